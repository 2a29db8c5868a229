// SPDX-License-Identifier: MIT
#include "backsweep/chain/execution_base.hpp"

#include "backsweep/base/error.hpp"

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
}

void ExecutionBase::begin(std::optional<Index> length) {
    phase_ = Phase::done;  // should anything throw
    schedule_->rewind();
    for (Shelf& s : shelves_) s.clear();
    length_ = length;
    counts_ = {};
    at_ = tape_of_ = turn_ = end_ = nowhere;
    head_ = filled_ = 0;
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
    header.fingerprint = fingerprint(content);
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
    store(from).read(from.index, content);
    const std::span<const Blob> payload = std::span(content).subspan(1);
    const std::string who = to_string(from) + " should hold " + text(p);
    if (header.magic != Header{}.magic)
        throw StoreError(who + ", but its header was not written by Backsweep; does somebody else write there?");
    if (header.step != p.step || header.held != static_cast<std::uint64_t>(p.held)) {
        Place found{Held::nothing, header.step};
        if (header.held <= static_cast<std::uint64_t>(Held::tape)) found.held = static_cast<Held>(header.held);
        throw StoreError(who + ", but its header says " + text(found) + "; does somebody else write there?");
    }
    if (header.bytes != total_size(payload) || header.fingerprint != fingerprint(payload))
        throw StoreError(who +
                         ", but the content is damaged: its fingerprint is not the one in its header; check the "
                         "medium");
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
        case Held::nothing: return "nothing";
        case Held::state: return "the state of step " + name(p.step);
        case Held::tape: return "the tape of link " + name(p.step);
    }
    return "something else";
}

}  // namespace backsweep
