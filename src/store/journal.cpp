// SPDX-License-Identifier: MIT
#include "backsweep/store/journal.hpp"

#include "backsweep/base/error.hpp"
#include "store/checksum.hpp"
#include "store/disk_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

namespace backsweep {

namespace {

constexpr std::int64_t head_room = 64;

/// The first bytes of each file.
struct RecordHead {
    std::uint64_t magic = 0x6c72756f6a706b62;  // "bkpjourl"
    std::uint64_t run = 0;
    std::uint64_t number = 0;  // 0: no record
    std::int64_t bytes = 0;
    std::uint64_t content = 0;  // checksum of the bytes
    std::uint64_t check = 0;    // of this head
};
static_assert(sizeof(RecordHead) <= head_room);

/// Calls f(data, size) for the blobs' first `bytes` bytes.
template <class F>
void first_bytes(std::span<const Blob> blobs, std::int64_t bytes, F f) {
    auto left = static_cast<std::size_t>(bytes);
    for (const Blob& b : blobs) {
        const std::size_t n = std::min(left, b.size);
        if (n != 0) f(b.data, n);
        left -= n;
    }
}

}  // namespace

struct Journal::Inner {
    struct Place {
        DiskFile file;
        RecordHead head;  // number 0: holds no whole record of the run
    };

    explicit Inner(JournalOptions given) : options(std::move(given)), places{open(".0"), open(".1")} {
        try {
            bool made = false;
            for (Place& p : places) {
                made = made || p.file.made();
                find(p);
                if (p.file.size() < head_room + options.record_bytes) p.file.allocate(head_room + options.record_bytes);
            }
            if (made && options.durable) places[0].file.sync_folder();
        } catch (...) {
            for (Place& p : places)
                if (p.file.made()) p.file.remove();
            throw;
        }
        number = std::max(places[0].head.number, places[1].head.number);
    }

    Place open(const char* end) const { return {DiskFile::locked(options.path.string() + end), {}}; }

    /// Reads what stands there and verifies it.
    void find(Place& p) const {
        RecordHead head{.magic = 0};
        if (p.file.size() < head_room) return foreign_unless(p, p.file.made());
        p.file.read(0, &head, sizeof head);
        static constexpr RecordHead nothing{.magic = 0};
        if (std::memcmp(&head, &nothing, sizeof head) == 0) return;  // room was set aside, no more
        foreign_unless(p, head.magic == RecordHead{}.magic);
        if (head.check != head_check(head) || head.run != options.run) return;
        if (head.bytes < 0 || head.bytes > p.file.size() - head_room) return;
        std::byte some[1 << 16];
        Checksum sum;
        for (std::int64_t at = 0; at < head.bytes;) {
            const auto n = static_cast<std::size_t>(std::min<std::int64_t>(sizeof some, head.bytes - at));
            p.file.read(head_room + at, some, n);
            sum.add(some, n);
            at += static_cast<std::int64_t>(n);
        }
        if (sum.value() == head.content) p.head = head;
    }

    void foreign_unless(const Place& p, bool ours) const {
        if (ours) return;
        throw StoreError("'" + p.file.path().string() + "' (" + std::to_string(p.file.size()) +
                         " bytes) is no file of a journal; name another path");
    }

    const Place* newest() const {
        const Place& p = places[places[1].head.number > places[0].head.number];
        return p.head.number != 0 ? &p : nullptr;
    }

    void put(Place& p, RecordHead head) {
        head.check = head_check(head);
        p.file.write(0, &head, sizeof head);
        if (options.durable) p.file.sync();
    }

    JournalOptions options;
    std::array<Place, 2> places;
    std::uint64_t number = 0;
};

Journal::Journal(JournalOptions options) : inner_(std::make_unique<Inner>(std::move(options))) {}
Journal::~Journal() = default;
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;

void Journal::commit(std::span<const Blob> blobs) {
    Inner& in = *inner_;
    Inner::Place& p = in.places[in.newest() == &in.places[0]];
    p.head = {};
    const RecordHead head{.run = in.options.run,
                          .number = in.number + 1,
                          .bytes = static_cast<std::int64_t>(total_size(blobs)),
                          .content = checksum(blobs)};
    if (p.file.size() < head_room + head.bytes) p.file.allocate(head_room + head.bytes);
    std::int64_t at = head_room;
    first_bytes(blobs, head.bytes, [&](const std::byte* data, std::size_t size) {
        p.file.write(at, data, size);
        at += static_cast<std::int64_t>(size);
    });
    in.put(p, head);
    p.head = head;
    ++in.number;
}

std::optional<Journal::Record> Journal::last() const noexcept {
    const Inner::Place* const p = inner_->newest();
    if (!p) return std::nullopt;
    return Record{p->head.number, p->head.bytes};
}

void Journal::read(std::span<const Blob> blobs) const {
    const Inner::Place* const p = inner_->newest();
    if (!p) throw StoreError("the journal '" + inner_->options.path.string() + "' holds no record; ask last() first");
    const auto wanted = static_cast<std::int64_t>(total_size(blobs));
    if (wanted > p->head.bytes) {
        throw StoreError("the newest record of '" + p->file.path().string() + "' has " + std::to_string(p->head.bytes) +
                         " bytes, but " + std::to_string(wanted) + " were asked for");
    }
    std::int64_t at = head_room;
    first_bytes(blobs, wanted, [&](std::byte* data, std::size_t size) {
        p->file.read(at, data, size);
        at += static_cast<std::int64_t>(size);
    });
    if (wanted == p->head.bytes && checksum(blobs) != p->head.content) {
        throw StoreError("record " + std::to_string(p->head.number) + " of '" + p->file.path().string() +
                         "' is damaged: the checksum of its " + std::to_string(wanted) +
                         " bytes does not fit; check the medium");
    }
}

void Journal::clear() {
    Inner& in = *inner_;
    const Inner::Place* const last = in.newest();
    const std::size_t newer = last == &in.places[1];
    for (const std::size_t i : {1 - newer, newer}) {  // the newest last: no older one is ever taken for it
        in.places[i].head = {};
        in.put(in.places[i], {});
    }
}

void Journal::remove() {
    for (Inner::Place& p : inner_->places) p.file.remove();
}

}  // namespace backsweep
