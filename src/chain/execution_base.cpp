// SPDX-License-Identifier: MIT
#include "backsweep/chain/execution_base.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/ended.hpp"
#include "backsweep/schedule/referee.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

namespace backsweep {

namespace {

/// What precedes the bytes of a state or tape in a store.
struct Header {
    std::uint64_t magic = 0x62616b7377656570;  // "baksweep"
    std::int64_t step = 0;
    std::uint64_t held = 0;
    std::uint64_t bytes = 0;
    std::uint64_t fingerprint = 0;

    Blob blob() noexcept { return {reinterpret_cast<std::byte*>(this), sizeof *this}; }
};

/// A schedule of which the first RAM slots lie on disk.
class Spilled final : public Schedule {
public:
    Spilled(std::unique_ptr<Schedule> inner, std::vector<std::int32_t> on_disk)
        : inner_(std::move(inner)),
          on_disk_(std::move(on_disk)) {}

    Action next() override {
        Action a = inner_->next();
        for (Slot* slot : {&a.from, &a.to}) {
            if (slot->tier != Tier::ram || slot->index < 0) continue;
            const auto first = static_cast<std::int32_t>(on_disk_.size());
            if (slot->index < first)
                *slot = {Tier::disk, on_disk_[static_cast<std::size_t>(slot->index)]};
            else
                slot->index -= first;
        }
        return a;
    }
    void rewind() override { inner_->rewind(); }

private:
    std::unique_ptr<Schedule> inner_;
    std::vector<std::int32_t> on_disk_;
};

std::unique_ptr<Schedule> checked(std::unique_ptr<Schedule> schedule) {
    if (!schedule) throw InvalidArgument("an Execution needs a schedule, but got none; make one with make_schedule");
    return schedule;
}

}  // namespace

ExecutionBase::ExecutionBase(std::unique_ptr<Schedule> schedule) : schedule_(checked(std::move(schedule))) {}

void ExecutionBase::replace(std::unique_ptr<Schedule> schedule) {
    schedule_ = checked(std::move(schedule));
    phase_ = Phase::done;
}

void ExecutionBase::use(Tier tier, Store& store) {
    if (tier == Tier::ram) {
        throw InvalidArgument(
            "RAM slots are objects of the Execution and take no store; give it for device, pinned or "
            "disk");
    }
    shelf(tier).clear();
    shelf(tier).store = &store;
    has_stores_ = true;
}

std::int64_t ExecutionBase::header_bytes() noexcept {
    return sizeof(Header);
}

void ExecutionBase::begin(std::optional<Index> length) {
    phase_ = Phase::done;  // should anything throw
    schedule_->rewind();
    for (Shelf& s : shelves_) s.clear();
    length_ = length;
    counts_ = {};
    at_ = tape_of_ = turn_ = end_ = nowhere;
    head_ = filled_ = 0;
    prints_.clear();
    rest_.reset();
    learned_ = follows_ = tape_lost_ = false;
    commits_.end();
    if (length && schedule_->open()) tell(*length);
    phase_ = Phase::forward;
}

void ExecutionBase::Shelf::clear() noexcept {
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (store && places[i].held != Held::nothing) store->erase(static_cast<std::int32_t>(i));
        places[i] = {};
    }
}

void ExecutionBase::grow(std::vector<Place>& places, Slot slot) {
    if (slot.index < 0) throw ScheduleError("a slot is numbered from 0, got " + std::to_string(slot.index));
    places.resize(static_cast<std::size_t>(slot.index) + 1);
}

void ExecutionBase::look_ahead() {
    announce_ = false;
    for (std::size_t i = head_; i < filled_; ++i) {
        const Action& a = actions_[i];
        const bool reads = a.verb == Verb::load || a.verb == Verb::take || a.verb == Verb::restart ||
                           a.verb == Verb::fetch || a.verb == Verb::move;
        if (!reads || a.from.index < 0) continue;
        if (Store* const s = shelf(a.from.tier).store) s->expect(a.from.index);
    }
}

Store& ExecutionBase::store(Slot slot) {
    if (Store* const s = shelf(slot.tier).store) return *s;
    throw ScheduleError(std::string("the schedule uses tier ") + to_string(slot.tier) +
                        ", but no store was given for it; call use(tier, store)");
}

ExecutionBase::Place ExecutionBase::write(Slot to, Place p, std::vector<Blob> content) {
    Store& s = store(to);
    Header header;
    header.step = p.step;
    header.held = static_cast<std::uint64_t>(p.held);
    header.bytes = p.bytes = total_size(content);
    header.fingerprint = p.print = fingerprint(content);
    content.insert(content.begin(), header.blob());
    try {
        s.write(to.index, content);
    } catch (...) {
        s.erase(to.index);
        throw;
    }
    return p;
}

void ExecutionBase::read(Slot from, const Place& p, std::vector<Blob> content) {
    Header header;
    content.insert(content.begin(), header.blob());
    Store& s = store(from);
    s.read(from.index, content);
    announce_ = true;
    const std::span<const Blob> payload = std::span(content).subspan(1);
    const std::string who = to_string(from) + " should hold " + text(p);
    if (header.magic != Header{}.magic)
        throw StoreError(who + ", but its header was not written by Backsweep; does somebody else write there?");
    if (header.step != p.step || header.held != static_cast<std::uint64_t>(p.held)) {
        Place found{Held::nothing, header.step};
        if (header.held <= static_cast<std::uint64_t>(Held::tape)) found.held = static_cast<Held>(header.held);
        throw StoreError(who + ", but its header says " + text(found) + "; does somebody else write there?");
    }
    if (header.bytes != total_size(payload) || header.fingerprint != p.print ||
        (s.exact() && header.fingerprint != fingerprint(payload)))
        throw StoreError(who +
                         ", but the content is damaged: its fingerprint is not the one in its header; check the "
                         "medium");
}

void ExecutionBase::same_state(Index step, std::uint64_t print) {
    print |= static_cast<std::uint64_t>(print == 0);
    if (!kept(step)) {
        if (prints_.size() <= static_cast<std::size_t>(step)) prints_.resize(static_cast<std::size_t>(step) + 1);
        prints_[static_cast<std::size_t>(step)] = print;
    } else if (prints_[static_cast<std::size_t>(step)] != print) {
        throw NumericError("a replay reached " + text({Held::state, step}) +
                           " with other bits than when it was first kept; a link is a function of its arguments alone, "
                           "so look for what it remembers between calls, and for parameters or data that changed");
    }
}

void ExecutionBase::same_slot(Slot slot, const Place& p, std::uint64_t print) {
    if (print == p.print) return;
    throw StoreError(
        to_string(slot) + " should hold " + text(p) +
        ", but its bits have changed since they were kept there; check the memory, and what else writes to it");
}

double ExecutionBase::seconds() noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Commits::Note ExecutionBase::settle() {
    for (const Shelf& s : shelves_)
        if (s.store) s.store->settle();
    Commits::Note note;
    note.at = at_;
    note.end = end_;
    note.turn = turn_;
    note.length = length_.value_or(nowhere);
    return note;
}

ExecutionBase::Survivors ExecutionBase::on_disk() const {
    Survivors all;
    const std::vector<Place>& places = shelves_[static_cast<std::size_t>(Tier::disk)].places;
    for (std::size_t i = 0; i < places.size(); ++i)
        if (const Place& p = places[i]; p.held == Held::state)
            all.push_back({static_cast<Index>(i), p.step, p.bytes, p.print});
    return all;
}

bool ExecutionBase::whole(const Commits::Survivor& s, std::vector<Blob> x) {
    if (!shelf(Tier::disk).store) return false;
    try {
        read({Tier::disk, static_cast<std::int32_t>(s.slot)}, {Held::state, s.step, s.bytes, s.print}, std::move(x));
        return true;
    } catch (const StoreError&) {
        return false;
    }
}

ExecutionBase::Refill ExecutionBase::skip(Index j, const Survivors& survivors) {
    follows_ = true;
    at_ = 0;
    while (at_ < j) {
        const Action& a = next();
        switch (a.verb) {
            case Verb::advance:
                at_ = std::min(a.steps.last, j);
                if (a.steps.last > j) again({j, a.steps.last});
                break;
            case Verb::record:
                at_ = a.steps.last, tape_of_ = a.steps.first, tape_lost_ = true;
                break;
            case Verb::stow:
                tape_of_ = nowhere, tape_lost_ = false;
                [[fallthrough]];
            case Verb::save:
                place_of(a.to) = {Held::lost, a.steps.first};
                break;
            case Verb::move:
                place_of(a.to) = std::exchange(place_of(a.from), {});
                break;
            case Verb::drop:
                if (a.from.index >= 0)
                    place_of(a.from) = {};
                else
                    tape_of_ = nowhere, tape_lost_ = false;
                break;
            default:
                fail(a, "the killed run had come to x_" + name(j) + " in its forward sweep; go on with its schedule");
        }
    }
    for (const Commits::Survivor& s : survivors) {
        Place& p = place_of({Tier::disk, static_cast<std::int32_t>(s.slot)});
        if (p.held == Held::lost && p.step == s.step) p = {Held::state, s.step, s.bytes, s.print};
    }
    // x_0 goes back to its slot, or where the first tape was; x_j takes the place of the last thing lost.
    Refill refill;
    Index first = j, last = 0;
    bool start = false;
    for (std::size_t t = 0; t < shelves_.size(); ++t)
        for (std::size_t i = 0; i < shelves_[t].places.size(); ++i) {
            const Place& p = shelves_[t].places[i];
            const Slot slot{static_cast<Tier>(t), static_cast<std::int32_t>(i)};
            if (p.held == Held::lost && p.step < first) first = p.step, refill.start = slot;
            start = start || (p.held == Held::state && p.step == 0);
            if (p.held == Held::nothing || p.step < last) continue;
            last = p.step;
            refill.here = p.held == Held::lost ? slot : Slot{};
        }
    if (start || (first > 0 && refill.start == refill.here)) refill.start = {};
    if (refill.here == refill.start) refill.here = {};
    for (const Slot& slot : {refill.start, refill.here})
        if (slot.index >= 0) place_of(slot) = {};
    return refill;
}

void ExecutionBase::turned(const Commits::Note& note, const Survivors& survivors) {
    length_ = note.length;
    turn_ = note.turn;
    end_ = note.end;
    for (const Commits::Survivor& s : survivors)
        place_of({Tier::disk, static_cast<std::int32_t>(s.slot)}) = {Held::state, s.step, s.bytes, s.print};
    phase_ = Phase::turned;
}

ExecutionBase::Fate ExecutionBase::fate(const Action& a) {
    const auto lost = [&] {
        if (turn_ == nowhere)
            fail(a, "what it wants was lost when the sweep was killed, and its end is not reached yet");
        return Fate::lost;
    };
    const Place* const from = a.from.index >= 0 ? &place_of(a.from) : nullptr;
    const bool state = a.verb == Verb::load || a.verb == Verb::take || (a.steps.empty() && a.verb != Verb::restart);
    const Index step = a.verb == Verb::restart ? a.steps.first - 1 : a.steps.first;
    // x_0 or x_j may have taken the place of what was lost.
    const bool other = from && (from->held != (state ? Held::state : Held::tape) || from->step != step);
    switch (a.verb) {
        case Verb::load:
        case Verb::take:
        case Verb::restart:
        case Verb::fetch:
        case Verb::move:
            return other ? lost() : Fate::play;
        case Verb::reverse:
            return tape_lost_ ? lost() : Fate::play;
        case Verb::stow:
            if (!tape_lost_) return Fate::play;
            place_of(a.to) = {Held::lost, a.steps.first};
            break;
        case Verb::drop:
            if (from ? !other : !tape_lost_) return Fate::play;
            if (from) {
                if (from->held == Held::state && a.from.tier != Tier::ram) erase(a.from);
                place_of(a.from) = {};
                return Fate::pass;
            }
            break;
        case Verb::turn:
            if (!rest_) return Fate::play;
            follows_ = false;
            return Fate::pass;
        default:
            return Fate::play;
    }
    tape_of_ = nowhere;
    tape_lost_ = false;
    return Fate::pass;
}

ExecutionBase::Room ExecutionBase::room(bool needs_state) {
    schedule_->rewind();
    Machine machine;
    machine.needs_state = needs_state;
    Ended ended(*schedule_, turn_, Ending::late);
    const Play play = referee(ended, turn_, {}, machine);
    const Index ram = commits_.options().ram_slots;
    return {ram >= 0 ? ram : play.peak_slots[static_cast<std::size_t>(Tier::ram)],
            play.peak_slots[static_cast<std::size_t>(Tier::disk)]};
}

Slot ExecutionBase::room_for_start(Room room) {
    bool there = false;
    for (Shelf& s : shelves_)
        for (std::size_t i = 0; i < s.places.size(); ++i) {
            Place& p = s.places[i];
            if (p.held == Held::state && p.step < end_) {
                there = there || p.step == 0;
            } else {
                if (s.store && p.held != Held::lost) s.store->erase(static_cast<std::int32_t>(i));
                p = {};
            }
        }
    if (there) return {};
    std::vector<Place>& ram = shelf(Tier::ram).places;
    const auto full = [](const Place& p) { return p.held == Held::state; };
    while (std::count_if(ram.begin(), ram.end(), full) >= std::max<Index>(room.ram, 1)) {
        *std::min_element(ram.begin(), ram.end(), [&](const Place& p, const Place& q) {
            return full(p) != full(q) ? full(p) : p.step < q.step;
        }) = {};
    }
    const Slot start{Tier::ram,
                     static_cast<std::int32_t>(std::find_if_not(ram.begin(), ram.end(), full) - ram.begin())};
    place_of(start) = {Held::state, 0};
    return start;
}

void ExecutionBase::complete_rest(Room room) {
    std::vector<Stored> stored;
    std::array<Index, tier_count> used{};
    for (std::size_t t = 0; t < shelves_.size(); ++t)
        for (std::size_t i = 0; i < shelves_[t].places.size(); ++i) {
            const Place& p = shelves_[t].places[i];
            if (p.held != Held::state) continue;
            stored.push_back({p.step, {static_cast<Tier>(t), static_cast<std::int32_t>(i)}});
            ++used[t];
        }
    const Index ram = std::max(room.ram, used[static_cast<std::size_t>(Tier::ram)]);
    std::vector<std::int32_t> free;
    const std::vector<Place>& disk = shelf(Tier::disk).places;
    for (Index i = 0; shelf(Tier::disk).store && i < room.disk; ++i)
        if (static_cast<std::size_t>(i) >= disk.size() || disk[static_cast<std::size_t>(i)].held == Held::nothing)
            free.push_back(static_cast<std::int32_t>(i));
    // The first slots are written least often: those are the ones on disk.
    std::vector<Stored> behind = stored;
    for (Stored& s : behind)
        if (s.slot.tier == Tier::ram) s.slot.index += static_cast<std::int32_t>(free.size());
    const Index all = ram + static_cast<Index>(free.size());
    if (!free.empty() && completion(stored, ram, end_).advances > 2 * completion(behind, all, end_).advances)
        rest_ = std::make_unique<Spilled>(complete(behind, all, end_), std::move(free));
    else
        rest_ = complete(stored, ram, end_);
    head_ = filled_ = 0;
    at_ = tape_of_ = nowhere;
    tape_lost_ = false;
    follows_ = true;
}

void ExecutionBase::may_reverse(const Action& a, bool needs_state) const {
    if (a.steps.last != end_)
        fail(a, end_ == nowhere ? "`turn` comes first" : "reverses fall one by one from x_" + name(end_));
    has_tape(a);
    if (needs_state && at_ != a.steps.first) {
        fail(a, "this chain's reverse reads the state before the link, but x is at " + name(at_) +
                    "; make the schedule with needs_state");
    }
}

void ExecutionBase::may_seed() const {
    at_turn("backward()");
    if (at_ != turn_)
        throw ScheduleError("backward() cannot seed: the last state is not at hand; give the terminal adjoint");
    if (length_ && *length_ != turn_) {
        throw ScheduleError("backward() cannot seed: the schedule turns at link " + name(turn_) +
                            ", but the chain has " + name(*length_) +
                            " links; make the schedule for all of them, or give the adjoint at the turn");
    }
}

void ExecutionBase::at_turn(const char* who) const {
    if (phase_ == Phase::turned) return;
    throw ScheduleError(std::string(who) + " wants an Execution that rests at the turn; call forward() first" +
                        (phase_ == Phase::done ? " (this schedule may have no reverse sweep)" : ""));
}

void ExecutionBase::stopped(Range r) {
    if (at_ < r.first || at_ > r.last) {
        throw ScheduleError("the chain was sent over links [" + name(r.first) + ", " + name(r.last) +
                            ") and says it reached " + std::to_string(at_) +
                            "; advance and record answer the link they reached");
    }
    tell(at_);
}

void ExecutionBase::tell(Index length) {
    learned_ = learned_ || !length_;
    length_ = length;
    schedule_->finish(length);
}

void ExecutionBase::refuse_place(const Action& a) const {
    if (at_ != a.steps.first) fail(a, "x is at " + name(at_));
    fail(a, "the chain has " + name(*length_) + " links; make the schedule for that many steps");
}

void ExecutionBase::refuse_tape(const Action& a) const {
    const bool wants_one = a.verb == Verb::reverse || a.verb == Verb::stow || a.verb == Verb::drop;
    fail(a, wants_one
                ? "the working tape belongs to link " + name(tape_of_)
                : "the working tape of link " + name(tape_of_) + " would be lost; reverse, stow or drop it first");
}

void ExecutionBase::refuse_slot(const Action& a, Slot slot, const Place& wanted, const Place& found) {
    if (wanted.held == Held::nothing) fail(a, to_string(slot) + " still holds " + text(found) + "; drop it first");
    fail(a, to_string(slot) + " should hold " + text(wanted) + ", but holds " + text(found));
}

void ExecutionBase::fail(const Action& a, const std::string& why) {
    throw ScheduleError("illegal action " + to_string(a) + ": " + why);
}

void ExecutionBase::no_bytes() {
    throw ScheduleError(
        "tiers other than RAM need the bytes of states and tapes; write `std::vector<Blob> blobs(T&)` "
        "beside the type");
}

std::string ExecutionBase::text(const Place& p) {
    switch (p.held) {
        case Held::nothing:
            return "nothing";
        case Held::state:
            return "the state of step " + name(p.step);
        case Held::tape:
            return "the tape of link " + name(p.step);
        case Held::lost:
            return "what was lost when the sweep was killed";
    }
    return "something else";
}

}  // namespace backsweep
