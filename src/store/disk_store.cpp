// SPDX-License-Identifier: MIT
#include "backsweep/store/disk_store.hpp"

#include "backsweep/base/error.hpp"
#include "store/checksum.hpp"
#include "store/disk_file.hpp"
#include "store/packing.hpp"
#include "store/rounding.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace backsweep {

namespace {

constexpr std::int64_t page = 4096;
constexpr std::int64_t head_room = 128;  // before a content

/// The first bytes of the file.
struct FileHead {
    std::uint64_t magic = 0x6b73696473706b62;  // "bkpsdisk"
    std::uint64_t version = 1;
    std::uint64_t run = 0;
    std::int64_t slots = 0;
    std::int64_t slot_bytes = 0;
    std::int64_t compression = 0, precision = 0;
    std::uint64_t check = 0;
};

/// The first bytes of a slot.
struct SlotHead {
    std::uint64_t magic = 0x746f6c7373706b62;  // "bkpsslot"
    std::uint64_t run = 0;
    std::uint64_t sequence = 0;
    std::int64_t slot = 0;
    std::int64_t bytes = 0;    // as written
    std::int64_t rounded = 0;  // before packing
    std::int64_t stored = 0;   // in the file
    std::uint64_t layout = 0;
    std::uint64_t content = 0;  // checksum of the rounded bytes
    std::uint64_t check = 0;    // of this head
};
static_assert(sizeof(SlotHead) <= head_room && sizeof(FileHead) <= page);

template <class Head>
bool whole(const Head& head) {
    return head.magic == Head{}.magic && head.check == head_check(head);
}

std::int64_t stored_room(const DiskStoreOptions& o) {
    return o.compression == Compression::none ? o.slot_bytes : Packing::most(o.slot_bytes);
}

/// Slots begin at pages: a torn page harms one of them only.
std::int64_t stride(const DiskStoreOptions& o) {
    return (head_room + stored_room(o) + page - 1) / page * page;
}

std::string hexadecimal(std::uint64_t x) {
    std::string text(16, '0');
    for (std::size_t i = 16; i-- > 0; x /= 16) text[i] = "0123456789abcdef"[x % 16];
    return text;
}

DiskStoreOptions checked(DiskStoreOptions options) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument("DiskStore: " + problem);
    return options;
}

DiskFile opened(const DiskStoreOptions& o) {
    if (!o.keep) return DiskFile::nameless(o.folder, o.name);
    return DiskFile::locked(o.folder / (o.name + "-" + hexadecimal(o.run) + ".slots"));
}

/// Adds the seconds from its making to its end.
class Stopwatch {
public:
    double seconds() const { return std::chrono::duration<double>(Throttle::Clock::now() - begin_).count(); }
    Throttle::Clock::time_point begin() const { return begin_; }

private:
    Throttle::Clock::time_point begin_ = Throttle::Clock::now();
};

}  // namespace

const char* to_string(Compression compression) noexcept {
    switch (compression) {
        case Compression::none:
            return "none";
        case Compression::zstd:
            return "zstd";
    }
    return "unknown";
}

const char* to_string(Precision precision) noexcept {
    switch (precision) {
        case Precision::exact:
            return "exact";
        case Precision::float32:
            return "float32";
        case Precision::bfloat16:
            return "bfloat16";
    }
    return "unknown";
}

std::string DiskStoreOptions::problem() const {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    constexpr std::int64_t most = std::int64_t{1} << 60;
    if (folder.empty()) return "folder is empty; name a scratch folder";
    if (name.empty() || name.find_first_not_of(letters) != std::string::npos)
        return "name '" + name + "' is no name of a file; use letters, digits, '-', '_' and '.'";
    if (slots < 1 || slots > std::numeric_limits<std::int32_t>::max())
        return "slots is " + std::to_string(slots) + "; give from 1 to 2147483647";
    if (slot_bytes < 0 || slot_bytes > most / 2 || stride(*this) > most / slots)
        return "slot_bytes is " + std::to_string(slot_bytes) + "; give the bytes of the largest content";
    if (buffers < 0 || buffers > most / std::max<std::int64_t>(slot_bytes, 64))
        return "buffers is " + std::to_string(buffers) + "; give how many contents may wait in RAM";
    if (buffers == 0 && (compression != Compression::none || precision != Precision::exact))
        return "buffers is 0; packing and rounding need one buffer at least";
    if (compression != Compression::none && compression != Compression::zstd) return "compression is unknown";
    if (precision != Precision::exact && precision != Precision::float32 && precision != Precision::bfloat16)
        return "precision is unknown";
    return {};
}

struct DiskStore::Inner {
    /// What a slot holds.
    struct Entry {
        bool full = false;
        std::int64_t bytes = 0, rounded = 0;
        std::uint64_t sequence = 0;  // 0: was never written
        std::uint64_t layout = 0;
    };

    /// A content in RAM on its way to or from the disk. It is that of its slot only if its sequence is the slot's too.
    struct Stage {
        enum class State { free, filling, writing, reading, ready, failed };
        Buffer<std::byte> memory;
        State state = State::free;
        std::int32_t slot = -1;
        Entry entry;
        std::string failure;  // of a look-ahead
    };
    using State = Stage::State;
    using Lock = std::unique_lock<std::mutex>;

    Inner(DiskStoreOptions given, Ledger& ledger)
        : options(checked(std::move(given))),
          file(opened(options)),
          entries(static_cast<std::size_t>(options.slots)) {
        try {
            for (Index i = 0; i < options.buffers; ++i)
                stages.emplace_back().memory = Buffer<std::byte>(options.slot_bytes, Kind::workspace, ledger);
            if (options.compression != Compression::none) packing.emplace(ledger);
            prepare();
        } catch (...) {
            if (file.made()) file.remove();
            throw;
        }
        ready = true;
        if (!stages.empty()) worker = std::thread([this] { work(); });
    }

    ~Inner() {
        if (!worker.joinable()) return;
        {
            const Lock lock(mutex);
            stopping = true;
        }
        awake.notify_one();
        worker.join();
    }

    // The file.

    void prepare() {
        FileHead wanted{.run = options.run,
                        .slots = options.slots,
                        .slot_bytes = options.slot_bytes,
                        .compression = static_cast<std::int64_t>(options.compression),
                        .precision = static_cast<std::int64_t>(options.precision)};
        wanted.check = head_check(wanted);
        FileHead found{.magic = 0};
        if (!file.made() && file.size() >= page) file.read(0, &found, sizeof found);
        constexpr FileHead nothing{.magic = 0, .version = 0};
        const bool begun = std::memcmp(&found, &nothing, sizeof found) == 0;  // died between making and its first write
        if (!file.made() && !(begun && file.size() <= file_bytes(options))) {
            if (std::memcmp(&found, &wanted, sizeof found) != 0 || file.size() < file_bytes(options)) refuse(found);
            for (Index slot = 0; slot < options.slots; ++slot) recover(static_cast<std::int32_t>(slot));
            return;
        }
        file.allocate(file_bytes(options));
        if (!options.keep) return;
        file.write(0, &wanted, sizeof wanted);
        if (!options.durable) return;
        file.sync();
        file.sync_folder();
    }

    [[noreturn]] void refuse(const FileHead& found) const {
        std::string what = "is no file of a disk store";
        if (whole(found)) {
            what = "is a disk store of run " + hexadecimal(found.run) + " with " + std::to_string(found.slots) +
                   " slots of " + std::to_string(found.slot_bytes) + " bytes in " + std::to_string(file.size()) + ", " +
                   to_string(static_cast<Compression>(found.compression)) + " and " +
                   to_string(static_cast<Precision>(found.precision));
        }
        throw StoreError("'" + file.path().string() + "' " + what + "; wanted was run " + hexadecimal(options.run) +
                         " with " + std::to_string(options.slots) + " slots of " + std::to_string(options.slot_bytes) +
                         " bytes in " + std::to_string(file_bytes(options)) + ", " + to_string(options.compression) +
                         " and " + to_string(options.precision) +
                         ": name another folder, or remove it if no run needs it");
    }

    std::int64_t place(std::int32_t slot) const { return page + slot * stride(options); }
    std::string who(std::int32_t slot) const {
        return "slot " + std::to_string(slot) + " of '" + file.path().string() + "'";
    }

    /// Takes the slot over if it is whole.
    void recover(std::int32_t slot) {
        SlotHead head;
        file.read(place(slot), &head, sizeof head);
        if (!whole(head) || head.run != options.run || head.slot != slot) return;
        if (head.bytes < 0 || head.rounded < 0 || head.rounded > options.slot_bytes) return;
        const Entry entry{true, head.bytes, head.rounded, head.sequence, head.layout};
        sequence = std::max(sequence, head.sequence);
        try {
            if (!stages.empty()) {
                const Blob memory{stages.front().memory.data(), static_cast<std::size_t>(head.rounded)};
                from_disk(slot, entry, {&memory, 1});
            } else {
                std::byte some[16 * page];
                Checksum sum;
                for (std::int64_t at = 0; at < head.rounded;) {
                    const auto n = static_cast<std::size_t>(std::min<std::int64_t>(sizeof some, head.rounded - at));
                    file.read(place(slot) + head_room + at, some, n);
                    sum.add(some, n);
                    at += static_cast<std::int64_t>(n);
                }
                if (sum.value() != head.content) return;
            }
        } catch (const StoreError&) {
            return;  // damaged: it counts as empty
        }
        entries[static_cast<std::size_t>(slot)] = entry;
    }

    /// Writes a content, then the head that vouches for it. `parts`: rounded.
    void to_disk(std::int32_t slot, const Entry& entry, std::span<const Blob> parts) {
        SlotHead head{.run = options.run,
                      .sequence = entry.sequence,
                      .slot = slot,
                      .bytes = entry.bytes,
                      .rounded = entry.rounded,
                      .layout = entry.layout,
                      .content = checksum(parts)};
        const Stopwatch watch;
        const auto put = [&](const void* from, std::size_t bytes) {
            file.write(place(slot) + head_room + head.stored, from, bytes);
            head.stored += static_cast<std::int64_t>(bytes);
        };
        for (const Blob& part : parts) {
            if (!packing) {
                if (part.size != 0) put(part.data, part.size);
                continue;
            }
            constexpr auto block = static_cast<std::size_t>(Packing::block);
            for (std::size_t at = 0; at < part.size; at += block) {
                const auto packed = packing->pack({part.data + at, std::min(block, part.size - at)});
                put(packed.data(), packed.size());
            }
        }
        head.check = head_check(head);
        file.write(place(slot), &head, sizeof head);
        const double seconds = watch.seconds();
        passed(head, watch);
        const Lock lock(mutex);
        ++traffic.writes;
        traffic.bytes_written += bytes_of(head);
        traffic.seconds_writing += seconds;
    }

    /// Reads and verifies a content into `parts`, rounded; one part if it is packed.
    void from_disk(std::int32_t slot, const Entry& entry, std::span<const Blob> parts) {
        const Stopwatch watch;
        SlotHead head;
        file.read(place(slot), &head, sizeof head);
        if (!whole(head)) damaged(slot, "the checksum of its header does not fit");
        if (head.run != options.run || head.slot != slot || head.sequence != entry.sequence ||
            head.rounded != entry.rounded) {
            damaged(slot, "its header says write " + std::to_string(head.sequence) + " of slot " +
                              std::to_string(head.slot) + ", not write " + std::to_string(entry.sequence));
        }
        std::int64_t at = place(slot) + head_room;
        const auto get = [&](void* to, std::size_t bytes) {
            file.read(at, to, bytes);
            at += static_cast<std::int64_t>(bytes);
        };
        for (const Blob& part : parts) {
            if (!packing) {
                if (part.size != 0) get(part.data, part.size);
                continue;
            }
            constexpr auto block = static_cast<std::size_t>(Packing::block);
            for (std::size_t done = 0; done < part.size; done += block) {
                std::uint32_t length = 0;
                get(&length, sizeof length);
                const std::int64_t bytes = Packing::bytes_behind(length);
                if (bytes < 0) damaged(slot, "a packed block is damaged");
                const auto packed = packing->place(static_cast<std::size_t>(bytes));
                get(packed.data(), packed.size());
                if (!packing->unpack(length, {part.data + done, std::min(block, part.size - done)}))
                    damaged(slot, "a packed block is damaged");
            }
        }
        if (checksum(parts) != head.content) damaged(slot, "the checksum of its content does not fit");
        const double seconds = watch.seconds();
        passed(head, watch);
        const Lock lock(mutex);
        ++traffic.reads;
        traffic.bytes_read += bytes_of(head);
        traffic.seconds_reading += seconds;
    }

    static std::int64_t bytes_of(const SlotHead& head) { return head.stored + static_cast<std::int64_t>(sizeof head); }
    void passed(const SlotHead& head, const Stopwatch& watch) const {
        if (options.throttle && ready) options.throttle->pass(bytes_of(head), watch.begin());
    }

    [[noreturn]] void damaged(std::int32_t slot, const std::string& why) const {
        throw StoreError(who(slot) + " is damaged: " + why +
                         "; check the medium, and whether somebody else writes there");
    }

    // The thread.

    void work() {
        Lock lock(mutex);
        while (true) {
            awake.wait(lock, [this] { return stopping || !queue.empty(); });
            if (queue.empty()) return;
            Stage& stage = *queue.front();
            queue.pop_front();
            const bool writes = stage.state == State::writing;
            const Blob memory{stage.memory.data(), static_cast<std::size_t>(stage.entry.rounded)};
            std::string error;
            lock.unlock();
            try {
                writes ? to_disk(stage.slot, stage.entry, {&memory, 1})
                       : from_disk(stage.slot, stage.entry, {&memory, 1});
            } catch (const std::exception& e) {
                error = e.what();
            }
            lock.lock();
            if (!writes) {
                stage.state = error.empty() ? State::ready : State::failed;
                stage.failure = std::move(error);
            } else {
                stage.state = State::free;
                if (!error.empty()) lose(stage.slot, stage.entry.sequence, error);
            }
            done.notify_all();
        }
    }

    /// A write failed: the slot is empty, and the next call says why.
    void lose(std::int32_t slot, std::uint64_t of, const std::string& error) {
        if (failure.empty()) failure = who(slot) + " could not be written: " + error;
        if (Entry& entry = entries[static_cast<std::size_t>(slot)]; entry.sequence == of) entry.full = false;
    }
    void throw_failure() {
        if (!failure.empty()) throw StoreError(std::exchange(failure, {}));
    }

    // Called with the lock held.

    Entry& entry(std::int32_t slot) {
        if (slot >= 0 && slot < options.slots) return entries[static_cast<std::size_t>(slot)];
        throw StoreError("'" + file.path().string() + "' has slots from 0 to " + std::to_string(options.slots - 1) +
                         ", but slot " + std::to_string(slot) + " was asked for; give it more slots");
    }
    /// The stage that has, or will have, what the slot holds.
    Stage* stage_of(std::int32_t slot, const Entry& entry) {
        for (Stage& s : stages)
            if (s.state != State::free && s.state != State::filling && s.slot == slot &&
                s.entry.sequence == entry.sequence)
                return &s;
        return nullptr;
    }
    /// A stage that nobody needs: free, or a look-ahead of what is not in the slot any more.
    Stage* unused() {
        for (Stage& s : stages) {
            const bool at_rest = s.state == State::ready || s.state == State::failed;
            if (at_rest) {
                const Entry& now = entries[static_cast<std::size_t>(s.slot)];
                if (!now.full || now.sequence != s.entry.sequence) s.state = State::free;
            }
            if (s.state == State::free) return &s;
        }
        return nullptr;
    }
    /// Waits for one: look-aheads leave one.
    Stage& free_stage(Lock& lock) {
        Stage* s = nullptr;
        done.wait(lock, [&] { return (s = unused()) != nullptr; });
        return *s;
    }
    bool may_look_ahead() const {
        const auto ahead = std::count_if(stages.begin(), stages.end(), [](const Stage& s) {
            return s.state == State::reading || s.state == State::ready || s.state == State::failed;
        });
        return ahead + 1 < static_cast<std::ptrdiff_t>(stages.size());
    }
    /// Waits until the thread has nothing to do.
    void rest(Lock& lock) {
        done.wait(lock, [&] {
            return std::none_of(stages.begin(), stages.end(),
                                [](const Stage& s) { return s.state == State::writing || s.state == State::reading; });
        });
    }
    void begin_reading(Stage& s, std::int32_t slot, const Entry& entry, bool first) {
        s.state = State::reading;
        s.slot = slot;
        s.entry = entry;
        first ? queue.push_front(&s) : queue.push_back(&s);
        awake.notify_one();
    }

    DiskStoreOptions options;
    DiskFile file;
    std::vector<Entry> entries;
    std::uint64_t sequence = 0;
    std::deque<Stage> stages;
    std::optional<Packing> packing;  // of the thread, once there is one

    std::mutex mutex;  // guards entries, stages (but for memory and entry of a busy one), queue and what follows
    std::condition_variable awake, done;
    std::deque<Stage*> queue;
    std::string failure;
    Traffic traffic;
    bool ready = false;  // the file has been looked through
    bool stopping = false;
    std::thread worker;
};

DiskStore::DiskStore(DiskStoreOptions options, Ledger& ledger)
    : inner_(std::make_unique<Inner>(std::move(options), ledger)) {}

DiskStore::~DiskStore() = default;

void DiskStore::write(std::int32_t slot, std::span<const Blob> blobs) {
    Inner& in = *inner_;
    const Precision precision = in.options.precision;
    Inner::Lock lock(in.mutex);
    in.throw_failure();
    Inner::Entry& entry = in.entry(slot);
    entry.full = false;
    Inner::Entry next{true, static_cast<std::int64_t>(total_size(blobs)), rounded_bytes(blobs, precision),
                      ++in.sequence, layout(blobs, precision)};
    if (next.rounded > in.options.slot_bytes) {
        throw StoreError(in.who(slot) + " has room for " + std::to_string(in.options.slot_bytes) +
                         " bytes, but the content takes " + std::to_string(next.rounded) + "; make the slots larger");
    }
    if (in.stages.empty()) {
        lock.unlock();
        in.to_disk(slot, next, blobs);
        lock.lock();
        entry = next;
        return;
    }
    Inner::Stage& stage = in.free_stage(lock);
    stage.state = Inner::State::filling;
    lock.unlock();
    try {
        std::byte* to = stage.memory.data();
        for (const Blob& b : blobs) {
            round_into(to, b, precision);
            to += rounded_size(b, precision);
        }
    } catch (const StoreError& e) {
        lock.lock();
        stage.state = Inner::State::free;
        throw StoreError(in.who(slot) + ": " + e.what());
    }
    lock.lock();
    entry = next;
    stage.state = Inner::State::writing;
    stage.slot = slot;
    stage.entry = next;
    in.queue.push_back(&stage);
    in.awake.notify_one();
}

void DiskStore::read(std::int32_t slot, std::span<const Blob> blobs) {
    Inner& in = *inner_;
    const Precision precision = in.options.precision;
    Inner::Lock lock(in.mutex);
    in.throw_failure();
    const Inner::Entry entry = in.entry(slot);
    if (!entry.full) throw StoreError(in.who(slot) + " is empty; write it before it is read");
    if (static_cast<std::int64_t>(total_size(blobs)) != entry.bytes || layout(blobs, precision) != entry.layout) {
        const bool same_size = static_cast<std::int64_t>(total_size(blobs)) == entry.bytes;
        throw StoreError(in.who(slot) + " holds " + std::to_string(entry.bytes) + " bytes, but " +
                         std::to_string(total_size(blobs)) + (same_size ? " with other numbers among them" : "") +
                         " were asked for; read it into an object of the same shape");
    }
    Inner::Stage* stage = in.stage_of(slot, entry);
    if (!stage && !in.packing && precision == Precision::exact) {
        lock.unlock();
        in.from_disk(slot, entry, blobs);
        return;
    }
    if (!stage) {
        stage = &in.free_stage(lock);
        in.begin_reading(*stage, slot, entry, true);
    }
    in.done.wait(lock, [&] { return stage->state != Inner::State::reading; });
    if (stage->state == Inner::State::failed) {
        stage->state = Inner::State::free;
        throw StoreError(stage->failure);
    }
    // One that is being written is only read by the thread, too; it may become free, but nobody else fills it.
    const bool looked_ahead = stage->state == Inner::State::ready;
    lock.unlock();
    const std::byte* from = stage->memory.data();
    for (const Blob& b : blobs) {
        widen_from(from, b, precision);
        from += rounded_size(b, precision);
    }
    lock.lock();
    if (looked_ahead) stage->state = Inner::State::free;
}

void DiskStore::erase(std::int32_t slot) noexcept {
    const Inner::Lock lock(inner_->mutex);
    if (slot >= 0 && slot < inner_->options.slots) inner_->entries[static_cast<std::size_t>(slot)].full = false;
}

void DiskStore::expect(std::int32_t slot) {
    Inner& in = *inner_;
    const Inner::Lock lock(in.mutex);
    if (slot < 0 || slot >= in.options.slots) return;
    const Inner::Entry& entry = in.entries[static_cast<std::size_t>(slot)];
    if (!entry.full || in.stage_of(slot, entry)) return;
    Inner::Stage* const stage = in.unused();
    if (stage && in.may_look_ahead()) in.begin_reading(*stage, slot, entry, false);
}

void DiskStore::settle() {
    Inner& in = *inner_;
    Inner::Lock lock(in.mutex);
    in.rest(lock);
    in.throw_failure();
    if (!in.options.durable) return;
    lock.unlock();
    const Stopwatch watch;
    in.file.sync();
    lock.lock();
    in.traffic.seconds_settling += watch.seconds();
}

bool DiskStore::exact() const noexcept {
    return inner_->options.precision == Precision::exact;
}

std::vector<DiskStore::Kept> DiskStore::kept() const {
    const Inner::Lock lock(inner_->mutex);
    std::vector<Kept> all;
    std::int32_t slot = 0;
    for (const Inner::Entry& e : inner_->entries) {
        if (e.full) all.push_back({slot, e.bytes, e.sequence});
        ++slot;
    }
    return all;
}

std::uint64_t DiskStore::sequence() const noexcept {
    return inner_->sequence;
}

void DiskStore::remove() {
    Inner::Lock lock(inner_->mutex);
    inner_->rest(lock);
    inner_->file.remove();
}

DiskStore::Traffic DiskStore::traffic() const {
    const Inner::Lock lock(inner_->mutex);
    return inner_->traffic;
}

const std::filesystem::path& DiskStore::path() const noexcept {
    return inner_->file.path();
}

std::int64_t DiskStore::buffer_bytes(const DiskStoreOptions& o) {
    return o.buffers * o.slot_bytes + (o.compression == Compression::none ? 0 : Packing::memory_bytes());
}

std::int64_t DiskStore::file_bytes(const DiskStoreOptions& o) {
    return page + o.slots * stride(o);
}

std::int64_t DiskStore::rounded_bytes(std::span<const Blob> blobs, Precision precision) noexcept {
    std::size_t bytes = 0;
    for (const Blob& b : blobs) bytes += rounded_size(b, precision);
    return static_cast<std::int64_t>(bytes);
}

}  // namespace backsweep
