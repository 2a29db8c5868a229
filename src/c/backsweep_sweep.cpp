// The C face of whole sweeps: an interpreter that is pulled. The caller runs and reverses links, the rest is done here.
// SPDX-License-Identifier: MIT
#include "backsweep/c/backsweep_sweep.h"

#include "backsweep/chain/execution_base.hpp"
#include "backsweep/store/disk_store.hpp"
#include "backsweep/store/journal.hpp"
#include "backsweep/store/ram_store.hpp"
#include "c/face.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace backsweep;
using namespace backsweep::face;

/// A schedule of the C face, owned.
class Handle final : public Schedule {
public:
    explicit Handle(const backsweep_options& options)
        : handle_(backsweep_create(&options)),
          open_ended_(is_open_ended(options.family ? options.family : "revolve")) {
        if (!handle_) refuse(backsweep_error_text());
    }
    ~Handle() override { backsweep_destroy(handle_); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    Action next() override {
        Action action;
        fill({&action, 1});
        return action;
    }
    std::size_t fill(std::span<Action> out) override {
        std::array<backsweep_action, 16> block;
        std::size_t written = 0;
        check(backsweep_fill(handle_, block.data(), std::min(block.size(), out.size()), &written));
        for (std::size_t k = 0; k < written; ++k) std::memcpy(static_cast<void*>(&out[k]), &block[k], sizeof block[k]);
        return written;
    }
    void rewind() override {
        check(backsweep_rewind(handle_));
        told_ = false;
    }
    void finish(Index steps) override {
        check(backsweep_finish(handle_, steps));
        told_ = true;
    }
    bool open() const noexcept override { return open_ended_ && !told_; }

private:
    static void check(int status) {
        if (status != BACKSWEEP_OK) throw ScheduleError(backsweep_error_text());
    }

    backsweep_schedule* handle_;
    bool open_ended_, told_ = false;
};

std::vector<Blob> pieces(const backsweep_memory* memory, std::size_t count, const std::string& name) {
    if (!memory) {
        if (count > 0)
            refuse("options." + name + " is NULL, but its count is " + std::to_string(count) + "; give the memory");
        return {};
    }
    return array(memory, std::max<std::size_t>(count, 1), "options." + name, [&](const backsweep_memory& each) {
        if (each.bytes > 0) given(each.data, ("a piece of options." + name).c_str(), "the memory of `bytes` bytes");
        if (each.holds < BACKSWEEP_BYTES || each.holds > BACKSWEEP_DOUBLES)
            refuse("options." + name + " holds " + std::to_string(each.holds) +
                   "; give 0 (bytes), 1 (floats) or 2 (doubles)");
        return Blob{static_cast<std::byte*>(each.data), each.bytes, static_cast<Holds>(each.holds)};
    });
}

std::int32_t within(std::int32_t value, std::int32_t most, const char* name) {
    if (value < 0 || value > most)
        refuse(std::string("options.") + name + " is " + std::to_string(value) + "; give 0 to " + std::to_string(most));
    return value;
}

void at_least(std::int64_t value, std::int64_t least, const char* name) {
    if (value < least)
        refuse(std::string("options.") + name + " is " + std::to_string(value) + "; give " + std::to_string(least) +
               " or more");
}

const char* family(const backsweep_options& options) {
    return options.family ? options.family : "revolve";
}

/// The caller's options, read and checked.
struct Given {
    backsweep_options schedule{};
    std::vector<Blob> x, a, sums, tape;
    CommitOptions commits;
    DiskStoreOptions disk;
    JournalOptions journal;
    std::uint64_t number = 0;
    bool has_folder = false, needs_state = false, commits_at_all = false;

    explicit Given(const backsweep_sweep_options& o)
        : schedule(read(o.schedule, "options.schedule")),
          x(pieces(given(o.state, "options.state", "the memory of x"), o.state_count, "state")),
          a(pieces(given(o.adjoint, "options.adjoint", "the memory of the adjoint"), o.adjoint_count, "adjoint")),
          sums(pieces(o.sums, o.sums_count, "sums")),
          tape(pieces(o.tape, o.tape_count, "tape")),
          number(o.number),
          has_folder(o.folder != nullptr),
          needs_state(schedule.needs_state == 1),
          commits_at_all(o.commit_links != 0 || o.commit_seconds != 0.0) {
        schedule.size = sizeof schedule;
        at_least(o.ram_slots, 0, "ram_slots");
        at_least(o.disk_slots, 0, "disk_slots");
        at_least(o.buffers, -1, "buffers");
        const bool no_sums = flag(o.no_sums, "options.no_sums"), durable = !flag(o.not_durable, "options.not_durable");
        if (no_sums && o.sums) refuse("options.no_sums is 1, but options.sums is given; leave one out");
        const std::string folder = has_folder ? o.folder : "", name = o.name ? o.name : "sweep";
        disk = {.folder = folder,
                .name = name,
                .slots = o.disk_slots,
                .slot_bytes = ExecutionBase::header_bytes() +
                              static_cast<std::int64_t>(std::max(total_size(x), total_size(tape))),
                .buffers = o.buffers == 0 ? 2 : std::max<Index>(o.buffers, 0),
                .compression = static_cast<Compression>(within(o.compression, BACKSWEEP_ZSTD, "compression")),
                .precision = static_cast<Precision>(within(o.precision, BACKSWEEP_BFLOAT16, "precision")),
                .durable = durable,
                .keep = commits_at_all,
                .run = o.run};
        if (!commits_at_all) return;
        if (!has_folder)
            refuse(
                "options.commit_links or commit_seconds is given, but no folder for the journal; give options.folder");
        if (!no_sums && !o.sums)
            refuse(
                "a sweep that commits must know what the loop sums up, or a kill loses it; give options.sums, or "
                "no_sums = 1");
        commits = {
            .links = o.commit_links, .seconds = o.commit_seconds, .ram_slots = o.ram_slots == 0 ? -1 : o.ram_slots};
        if (const std::string why = commits.problem(); !why.empty()) refuse("options.commit_: " + why);
        journal = {.path = std::filesystem::path(folder) / (name + ".journal"), .run = o.run, .durable = durable};
    }
};

/// Outlives the slots.
struct Stores {
    RamStore ram;
    std::unique_ptr<DiskStore> disk;
    std::unique_ptr<Journal> journal;
};

}  // namespace

struct backsweep_sweep final : private Stores, private backsweep::ExecutionBase {
    explicit backsweep_sweep(Given from) : backsweep_sweep(std::make_unique<Handle>(from.schedule), std::move(from)) {}

    void give(backsweep_action& out) {
        end_of_last();
        for (;;) {
            Action a = pending_.empty() ? next() : Action{Verb::advance, {}, {}, 0, std::exchange(pending_, {})};
            if (follows()) {
                const Fate what = fate(a);
                if (what == Fate::lost) complete_rest();
                if (what != Fate::play) continue;
            }
            if (own(a)) continue;
            begin_of(a);
            last_ = a;
            std::memcpy(&out, &a, sizeof out);
            return;
        }
    }

    void told(Index steps) {
        if (!awaits_length() || ends_)
            throw ScheduleError("this sweep knows its length already; only an open-ended one is told it, and once");
        if (last_.verb == Verb::advance) {
            if (steps < last_.steps.first)
                refuse("the chain is said to end at link " + std::to_string(steps) + ", but x is at " +
                       std::to_string(last_.steps.first));
            if (steps < last_.steps.last) pending_ = {};
            last_.steps.last = std::min(last_.steps.last, steps);
        }
        end_of_last();
        pending_.last = std::min(pending_.last, std::max(steps, pending_.first));
        if (pending_.empty())
            learn(steps);
        else
            ends_ = steps;  // to the schedule the pieces are one advance
    }

    void commit_now() {
        end_of_last();
        if (!commits_.has_journal())
            throw ScheduleError("this sweep makes no commits; give options.commit_links or commit_seconds");
        if (commits_.on()) commit();
    }

    /// Its files go with it.
    void used() {
        if (journal) journal->remove();
        if (disk && from_.disk.keep) disk->remove();
    }

    const Recovery& recovery() const noexcept { return recovery_; }

private:
    backsweep_sweep(std::unique_ptr<Handle> handle, Given from)
        : ExecutionBase(looked_through(std::move(handle), from)),
          from_(std::move(from)) {
        use_for_ram(ram);
        if (from_.has_folder && from_.disk.slots > 0) {
            disk = std::make_unique<DiskStore>(from_.disk);
            use(Tier::disk, *disk);
        }
        if (from_.commits_at_all) {
            journal = std::make_unique<Journal>(from_.journal);
            commits_ = Commits(*journal, from_.commits);
        }
        begin(is_open_ended(family(from_.schedule)) ? std::nullopt : std::optional<Index>(from_.schedule.steps));
        at_ = 0;
        if (journal) recover();
    }

    /// What the whole stream asks for, if it is known: better now than on the way.
    static std::unique_ptr<Schedule> looked_through(std::unique_ptr<Handle> handle, Given& from) {
        if (handle->open()) return handle;
        Index disk_slots = 0;
        for (Action a = handle->next(); a.verb != Verb::done; a = handle->next()) {
            can(a, from);
            for (const Slot& slot : {a.from, a.to})
                if (slot.tier == Tier::disk) disk_slots = std::max<Index>(disk_slots, slot.index + 1);
        }
        handle->rewind();
        if (from.disk.slots == 0) from.disk.slots = disk_slots;
        if (from.disk.slots < disk_slots)
            refuse("options.disk_slots is " + std::to_string(from.disk.slots) + ", but the schedule has " +
                   std::to_string(disk_slots) + " slots on disk");
        return handle;
    }
    static void can(const Action& a, const Given& from) {
        const std::string what = "the schedule has '" + std::string(to_string(a)) + "'";
        if (a.verb == Verb::move || a.verb == Verb::restart)
            refuse(what + ", which a sweep of the C face cannot do; take another family or option");
        if ((a.verb == Verb::stow || a.verb == Verb::fetch) && from.tape.empty())
            refuse(what + "; give options.tape, the memory of a tape");
        for (const Slot& slot : {a.from, a.to}) {
            if (slot.index < 0) continue;
            if (slot.tier != Tier::ram && slot.tier != Tier::disk)
                refuse(what + "; a sweep of the C face keeps states in RAM and on disk");
            if (slot.tier == Tier::disk && !from.has_folder)
                refuse(what + "; give options.folder, and options.disk_slots if its length is not known");
        }
    }

    void recover() {
        commits_.begin(from_.number, fingerprint(from_.x));
        Survivors survivors;
        const auto note = commits_.find(survivors, recovery_.text);
        const std::string who = "sweep " + std::to_string(from_.number);
        if (!note) {
            recovery_.text = who + " begins: " + recovery_.text;
            return;
        }
        start_.resize(total_size(from_.x));
        copy(from_.x, start());
        const bool back = note->end != nowhere;
        try {
            std::erase_if(survivors, [&](const Commits::Survivor& s) { return !whole(s, from_.x); });
            commits_.read(*note, note->at != nowhere ? from_.x : std::vector<Blob>{},
                          back ? from_.a : std::vector<Blob>{}, from_.sums);
        } catch (...) {
            copy(start(), from_.x);
            throw;
        }
        recovery_.from = back ? Recovery::From::reverse : Recovery::From::forward;
        recovery_.at = back ? note->end : note->at;
        recovery_.states = static_cast<Index>(survivors.size());
        recovery_.text = who +
                         (back ? " goes on with " + std::to_string(note->end) + " links left to reverse"
                               : " goes on in its forward sweep at link " + std::to_string(note->at)) +
                         ", with " + std::to_string(survivors.size()) + " states on disk";
        if (back) {
            turned(*note, survivors);
            const bool there =
                std::any_of(survivors.begin(), survivors.end(), [](const auto& s) { return s.step == 0; });
            if (note->at != nowhere && note->at < end_ && room(from_.needs_state).ram >= (there ? 1 : 2))
                put({Tier::ram, 0}, note->at, from_.x);
            complete_rest();
        } else {
            const Refill refill = skip(note->at, survivors);
            if (refill.here.index >= 0) put(refill.here, note->at, from_.x);
            if (refill.start.index >= 0) {
                put(refill.start, 0, start());
                start_ = {};
            }
        }
    }
    void complete_rest() {
        const Room slots = room(from_.needs_state);
        if (const Slot first = room_for_start(slots); first.index >= 0) put(first, 0, start());
        start_ = {};
        ExecutionBase::complete_rest(slots);
    }
    /// The kept x_0, in pieces as x has them.
    std::vector<Blob> start() {
        std::vector<Blob> all = from_.x;
        std::byte* bytes = start_.data();
        for (Blob& b : all) bytes = (b.data = bytes) + b.size;
        return all;
    }
    static void copy(const std::vector<Blob>& from, const std::vector<Blob>& to) {
        for (std::size_t k = 0; k < from.size(); ++k)
            if (from[k].size > 0) std::memcpy(to[k].data, from[k].data, from[k].size);
    }

    /// What the library does itself.
    bool own(const Action& a) {
        switch (a.verb) {
            case Verb::save:
                stand(a);
                can(a, from_);
                empty_place(a, a.to);
                put(a.to, a.steps.first, from_.x);
                return true;
            case Verb::load:
            case Verb::take: {
                Place& p = full_place(a, a.from, Held::state, a.steps.first);
                read(a.from, p, from_.x);
                if (a.verb == Verb::take) empty(a.from, p);
                at_ = a.steps.first;
                return true;
            }
            case Verb::stow:
                can(a, from_);
                has_tape(a);
                empty_place(a, a.to) = write(a.to, {Held::tape, tape_of_}, from_.tape);
                tape_of_ = nowhere;
                return true;
            case Verb::fetch: {
                no_tape(a);
                Place& p = full_place(a, a.from, Held::tape, a.steps.first);
                read(a.from, p, from_.tape);
                tape_of_ = p.step;
                empty(a.from, p);
                return true;
            }
            case Verb::drop:
                if (a.from.index >= 0) {
                    empty(a.from, full_place(a, a.from, a.steps.empty() ? Held::state : Held::tape, a.steps.first));
                } else {
                    has_tape(a);
                    tape_of_ = nowhere;
                }
                return true;
            default:
                can(a, from_);
                return false;
        }
    }
    void empty(Slot slot, Place& p) {
        erase(slot);
        p = {};
    }

    /// What the caller is to do: whether it may, and how far.
    void begin_of(Action& a) {
        switch (a.verb) {
            case Verb::advance:
                stand(a);
                if (commits_.on()) {
                    const Index stop = commits_.pause(a.steps, turn_ == nowhere);
                    if (stop < a.steps.last) pending_ = {stop, a.steps.last};
                    a.steps.last = stop;
                }
                break;
            case Verb::record:
            case Verb::tape:
                stand(a), no_tape(a);
                break;
            case Verb::reverse:
                may_reverse(a, from_.needs_state);
                break;
            case Verb::turn:
                turn(a);
                phase_ = Phase::forward;
                break;
            case Verb::done:
                finish(a);
                if (commits_.on()) commit();
                commits_.end();
                break;
            default:
                break;
        }
    }
    void end_of_last() {
        const Action a = std::exchange(last_, {});
        const bool fresh = turn_ == nowhere;
        switch (a.verb) {
            case Verb::advance:
                at_ = a.steps.last;
                due(fresh ? a.steps.size() : 0);
                break;
            case Verb::record:
                at_ = a.steps.last, tape_of_ = a.steps.first;
                due(fresh);
                break;
            case Verb::tape:
                at_ = from_.needs_state ? a.steps.first : nowhere, tape_of_ = a.steps.first;
                break;
            case Verb::reverse:
                tape_of_ = at_ = nowhere, end_ = a.steps.first;
                due(1);
                break;
            default:
                break;
        }
        if (ends_ && pending_.empty()) learn(*std::exchange(ends_, {}));
    }
    void due(Index links) {
        if (commits_.on() && commits_.due(links)) commit();
    }
    void commit() {
        const bool forward = turn_ == nowhere, has_x = at_ != nowhere;
        // Of a length that was learned on the way, the schedule could not be told at the same place again.
        if (forward ? !has_x || learned() : !has_x && commits_.news() == 0) return;
        commits_.write(settle(), on_disk(), has_x ? from_.x : std::vector<Blob>{},
                       forward ? std::vector<Blob>{} : from_.a, from_.sums);
    }

    Given from_;
    Recovery recovery_;
    Action last_{};                 // given out and not yet known to be done; `done`: there is none
    Range pending_{};               // the rest of an advance that a commit may interrupt
    std::optional<Index> ends_;     // told, and not yet passed on to the schedule
    std::vector<std::byte> start_;  // x_0, where it is in no slot
};

namespace {

template <class Sweep>
Sweep& opened(Sweep* sweep) {
    return *given(sweep, "sweep", "one that backsweep_sweep_open returned");
}

}  // namespace

backsweep_sweep* backsweep_sweep_open(const backsweep_sweep_options* options) {
    backsweep_sweep* result = nullptr;
    guarded([&] { result = new backsweep_sweep(Given(read(options, "options"))); });
    return result;
}

int backsweep_sweep_next(backsweep_sweep* sweep, backsweep_action* action) {
    return guarded([&] { opened(sweep).give(*given(action, "action", "room for one backsweep_action")); });
}

int backsweep_sweep_finish(backsweep_sweep* sweep, int64_t steps) {
    return guarded([&] { opened(sweep).told(steps); });
}

int backsweep_sweep_commit(backsweep_sweep* sweep) {
    return guarded([&] { opened(sweep).commit_now(); });
}

int backsweep_sweep_recovery(const backsweep_sweep* sweep, backsweep_recovery* recovery) {
    return guarded([&] {
        const std::size_t size = size_from(given(recovery, "recovery", "BACKSWEEP_RECOVERY_INIT")->size,
                                           sizeof(backsweep_recovery), "recovery");
        const Recovery& found = opened(sweep).recovery();
        const backsweep_recovery result{size, found.at, found.states, static_cast<std::int32_t>(found.from), 0};
        std::memset(recovery, 0, size);
        std::memcpy(recovery, &result, std::min(size, sizeof result));
    });
}

const char* backsweep_sweep_recovery_text(const backsweep_sweep* sweep) {
    return sweep ? sweep->recovery().text.c_str() : "";
}

int backsweep_sweep_close(backsweep_sweep* sweep, int32_t finished) {
    if (!sweep) return BACKSWEEP_OK;
    return guarded([&] {
        const std::unique_ptr<backsweep_sweep> closed(sweep);
        if (flag(finished, "finished")) closed->used();
    });
}
