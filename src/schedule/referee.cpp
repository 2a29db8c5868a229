// The abstract machine: a working state, a working tape, an adjoint, and slots that know what they hold.
// SPDX-License-Identifier: MIT
#include "backsweep/schedule/referee.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/ended.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

namespace backsweep {
namespace {

/// What a slot holds: the state x_index, or the tape of link index.
struct Held {
    enum class Kind { nothing, state, tape };

    Kind kind = Kind::nothing;
    Index index = 0;
    bool held_state = false;  // at any time
    bool held_tape = false;
};

std::string to_string(const Held& held) {
    switch (held.kind) {
        case Held::Kind::nothing:
            return "nothing";
        case Held::Kind::state:
            return "x_" + std::to_string(held.index);
        case Held::Kind::tape:
            return "the tape of link " + std::to_string(held.index);
    }
    return "nothing";
}

class Player {
public:
    Player(Index steps, std::span<const Stored> stored, const Machine& machine)
        : steps_(steps),
          sizes_(machine.sizes),
          limits_(machine.limits),
          costs_(machine.costs),
          needs_state_(machine.needs_state),
          reverses_(machine.reverses),
          weighs_(machine.sizes.state || machine.sizes.tape || machine.sizes.adjoint || machine.sizes.overhead),
          end_(steps) {
        if (steps < 0) throw InvalidArgument("referee: steps must be 0 or more, came " + std::to_string(steps));
        if (stored.empty()) {
            state_ = 0;
        } else {
            swept_ = true;
            for (const Stored& each : stored) {
                now_ = {Verb::save, {}, each.slot, 0, {each.step, each.step}};
                if (each.step < 0 || each.step > steps) refuse("the chain has the states x_0 to x_" + text(steps));
                put(each.slot, Held::Kind::state, each.step);
            }
        }
        count_peaks();
    }

    /// One action; false at `done`.
    bool play(const Action& action) {
        now_ = action;
        if (tape_alone_ && action.verb != Verb::reverse) {
            refuse("the reverse of link " + text(*tape_) + " must follow its `tape` at once");
        }
        if (action.verb == Verb::done) {
            finish();
            return false;
        }
        ++play_.actions;
        perform(action);
        count_peaks();
        weigh(0);
        return true;
    }

    const Play& result() {
        for (std::size_t tier = 0; tier < tier_count; ++tier) {
            for (const auto& [index, held] : slots_[tier]) {
                play_.state_slots[tier] += held.held_state ? 1 : 0;
                play_.tape_slots[tier] += held.held_tape ? 1 : 0;
            }
        }
        return play_;
    }

    [[noreturn]] void refuse(const std::string& rule) const {
        throw ScheduleError("action " + text(play_.actions) + ", " + backsweep::to_string(now_) + ": " + rule);
    }

private:
    static std::string text(Index number) { return std::to_string(number); }

    void perform(const Action& action) {
        const Range steps = action.steps;
        switch (action.verb) {
            case Verb::advance:
                need_links(steps);
                need_state(steps.first);
                if (play_.advances == 0) play_.first_advance = steps.size();
                play_.advances += steps.size();
                weigh_advance(steps);
                price_advance(steps);
                state_ = steps.last;
                break;
            case Verb::record:
            case Verb::tape:
                need_link(steps);
                need_state(steps.first);
                need_no_tape();
                weigh(tape_bytes(steps.first) + overhead(Verb::record, steps.first) +
                      (action.verb == Verb::record && !sizes_.tape_holds_state ? state_bytes(steps.last) : 0));
                if (costs_.record) play_.cost += costs_.record(steps.first);
                tape_ = steps.first;
                ++play_.recorded;
                if (action.verb == Verb::record) {
                    state_ = steps.last;
                } else {
                    tape_alone_ = true;
                    state_.reset();
                    if (needs_state_) state_ = steps.first;  // the chain's keep() leaves it there
                }
                break;
            case Verb::reverse:
                need_link(steps);
                if (!turned_) refuse("`turn` must come before the first reverse");
                if (steps.last != end_) {
                    refuse("reverses fall one by one: link " + text(end_ - 1) + " is next");
                }
                need_tape(steps.first);
                if (needs_state_) need_state(steps.first);
                weigh(adjoint_bytes(steps.first) + overhead(Verb::reverse, steps.first));
                if (costs_.reverse) play_.cost += costs_.reverse(steps.first);
                tape_.reset();
                tape_alone_ = false;
                state_.reset();
                --end_;
                ++play_.reversed;
                break;
            case Verb::save:
                need_point(steps);
                need_state(steps.first);
                put(action.to, Held::Kind::state, steps.first);
                ++play_.saves;
                count_write(action.to);
                break;
            case Verb::load:
                need_point(steps);
                need_held(action.from, Held::Kind::state, steps.first);
                state_ = steps.first;
                ++play_.loads;
                count_read(action.from);
                break;
            case Verb::take:
                need_point(steps);
                empty(action.from, Held::Kind::state, steps.first);
                state_ = steps.first;
                ++play_.takes;
                count_read(action.from);
                break;
            case Verb::restart:
                need_point(steps);
                need_held(action.from, Held::Kind::tape, steps.first - 1);
                state_ = steps.first;
                ++play_.restarts;
                break;
            case Verb::stow:
                need_link(steps);
                need_tape(steps.first);
                put(action.to, Held::Kind::tape, steps.first);
                tape_.reset();
                ++play_.stows;
                count_write(action.to);
                break;
            case Verb::fetch:
                need_link(steps);
                need_no_tape();
                empty(action.from, Held::Kind::tape, steps.first);
                tape_ = steps.first;
                ++play_.fetches;
                count_read(action.from);
                break;
            case Verb::drop:
                if (action.from.index < 0) {
                    need_link(steps);
                    need_tape(steps.first);
                    tape_.reset();
                } else {
                    empty(action.from, kind_of(steps), steps.first);
                }
                ++play_.drops;
                break;
            case Verb::move:
                if (action.from.tier == action.to.tier) refuse("`move` changes the tier");
                empty(action.from, kind_of(steps), steps.first);
                put(action.to, kind_of(steps), steps.first);
                play_.cost += costs_.read[tier_of(action.from)] + costs_.write[tier_of(action.to)];
                ++play_.moves;
                break;
            case Verb::turn:
                if (!reverses_) refuse("this schedule was said to reverse nothing");
                if (turned_) refuse("a sweep turns once");
                if (steps.first != steps_ || steps.last != steps_) refuse("the chain ends at x_" + text(steps_));
                if (!swept_) need_state(steps_);
                turned_ = true;
                break;
            case Verb::done:
                break;
            default:
                refuse("no such verb");
        }
    }

    void finish() const {
        if (reverses_) {
            if (!turned_) refuse("`turn` never came");
            if (end_ != 0) refuse("link " + text(end_ - 1) + " was never reversed");
        } else if (state_ != steps_) {
            refuse("the sweep must end at x_" + text(steps_) + ", it is at " + state_text());
        }
        if (tape_) refuse("the tape of link " + text(*tape_) + " is left as working tape; drop it");
        for (std::size_t tier = 0; tier < tier_count; ++tier) {
            for (const auto& [index, held] : slots_[tier]) {
                if (held.kind == Held::Kind::nothing) continue;
                refuse(to_string(held) + " is left in " + backsweep::to_string(Slot{static_cast<Tier>(tier), index}) +
                       "; take or drop it");
            }
        }
    }

    std::string state_text() const { return state_ ? "x_" + text(*state_) : "no known state"; }

    std::size_t tier_of(Slot slot) const {
        const auto tier = static_cast<std::size_t>(slot.tier);
        if (tier >= tier_count) refuse("no such tier");
        return tier;
    }

    /// A drop or a move names a state by {i, i} and a tape by {i, i + 1}.
    Held::Kind kind_of(Range steps) const {
        if (steps.size() == 0) return Held::Kind::state;
        need_link(steps);
        return Held::Kind::tape;
    }

    void need_links(Range steps) const {
        if (steps.empty()) refuse("the range of links is empty");
        if (steps.first < 0 || steps.last > steps_) refuse("the chain has the links [0, " + text(steps_) + ")");
        if (steps.last > end_) refuse("link " + text(steps.last - 1) + " is reversed already");
    }

    void need_link(Range steps) const {
        if (steps.size() != 1) refuse("exactly one link is meant");
        need_links(steps);
    }

    void need_point(Range steps) const {
        if (steps.size() != 0) refuse("exactly one state is meant");
    }

    void need_state(Index step) const {
        if (state_ != step) refuse("the working state must be x_" + text(step) + ", it is " + state_text());
    }

    void need_tape(Index link) const {
        if (tape_ == link) return;
        refuse("the working tape must be that of link " + text(link) + ", it is " +
               (tape_ ? "that of link " + text(*tape_) : std::string("empty")));
    }

    void need_no_tape() const {
        if (tape_)
            refuse("the working tape of link " + text(*tape_) + " would be lost; reverse, stow or drop it first");
    }

    const Held& need_held(Slot slot, Held::Kind kind, Index index) const {
        const auto& tier = slots_[tier_of(slot)];
        const auto found = tier.find(slot.index);
        const Held held = found == tier.end() ? Held{} : found->second;
        if (slot.index < 0 || held.kind != kind || held.index != index) {
            refuse(backsweep::to_string(slot) + " must hold " + to_string(Held{kind, index}) + ", it holds " +
                   to_string(held));
        }
        return found->second;
    }

    void weigh_advance(Range links) {
        if (!weighs_) return;
        // Where all sizes are equal the first link weighs most, or the second: x_first may lie in a slot, too.
        const Index last = sizes_.uniform ? std::min(links.last, links.first + 2) : links.last;
        for (Index link = links.first; link < last; ++link) {
            state_ = link;
            weigh(state_bytes(link + 1) + overhead(Verb::advance, link));
        }
    }

    void price_advance(Range links) {
        if (!costs_.advance) return;
        if (costs_.uniform) {
            play_.cost += static_cast<double>(links.size()) * costs_.advance(links.first);
            return;
        }
        for (Index link = links.first; link < links.last; ++link) play_.cost += costs_.advance(link);
    }

    void count_write(Slot slot) {
        ++play_.writes[tier_of(slot)];
        play_.cost += costs_.write[tier_of(slot)];
    }

    void count_read(Slot slot) {
        ++play_.reads[tier_of(slot)];
        play_.cost += costs_.read[tier_of(slot)];
    }

    void put(Slot slot, Held::Kind kind, Index index) {
        const std::size_t tier = tier_of(slot);
        if (slot.index < 0) refuse("a slot must be named");
        Held& held = slots_[tier][slot.index];
        if (held.kind != Held::Kind::nothing) {
            refuse(backsweep::to_string(slot) + " is full, it holds " + to_string(held) + "; take or drop that first");
        }
        held.kind = kind;
        held.index = index;
        (kind == Held::Kind::state ? held.held_state : held.held_tape) = true;
        ++used_[tier];
        if (kind == Held::Kind::state) ++states_;
        bytes_[tier] += size_of(kind, index);
        const Index limit = limits_.slots[tier];
        if (limit >= 0 && used_[tier] > limit) {
            refuse("tier " + std::string(backsweep::to_string(slot.tier)) + " may use " + text(limit) +
                   " slots at once");
        }
        const std::int64_t most = limits_.bytes[tier];
        if (most >= 0 && bytes_[tier] > most) {
            refuse("tier " + std::string(backsweep::to_string(slot.tier)) + " may hold " + text(most) +
                   " bytes at once, this makes " + text(bytes_[tier]));
        }
        if (weighs_) ++holders_[state_in(kind, index)];
    }

    void empty(Slot slot, Held::Kind kind, Index index) {
        need_held(slot, kind, index);
        const std::size_t tier = tier_of(slot);
        slots_[tier][slot.index].kind = Held::Kind::nothing;
        if (weighs_) {
            const auto holders = holders_.find(state_in(kind, index));
            if (--holders->second == 0) holders_.erase(holders);
        }
        --used_[tier];
        if (kind == Held::Kind::state) --states_;
        bytes_[tier] -= size_of(kind, index);
    }

    std::int64_t size_of(Held::Kind kind, Index index) const {
        return kind == Held::Kind::state ? state_bytes(index) : tape_bytes(index);
    }

    std::int64_t state_bytes(Index step) const { return sizes_.state ? sizes_.state(step) : 0; }
    std::int64_t tape_bytes(Index link) const { return sizes_.tape ? sizes_.tape(link) : 0; }
    std::int64_t adjoint_bytes(Index step) const { return sizes_.adjoint ? sizes_.adjoint(step) : 0; }
    std::int64_t overhead(Verb verb, Index link) const { return sizes_.overhead ? sizes_.overhead(verb, link) : 0; }

    /// The state that lies in a slot of this content; -1 if none does.
    Index state_in(Held::Kind kind, Index index) const {
        if (kind == Held::Kind::state) return index;
        return sizes_.tape_holds_state ? index + 1 : -1;
    }

    /// Counts what is alive at this point, and `more` while an action runs.
    void weigh(std::int64_t more) {
        if (!weighs_) return;
        for (std::size_t tier = 0; tier < tier_count; ++tier)
            if (tier != static_cast<std::size_t>(Tier::disk)) more += bytes_[tier];
        if (tape_) more += tape_bytes(*tape_);
        if (turned_) more += adjoint_bytes(end_);
        const bool held =
            state_ && (holders_.count(*state_) != 0 || (sizes_.tape_holds_state && tape_ && *tape_ + 1 == *state_));
        if (state_ && !held) more += state_bytes(*state_);
        play_.peak_total = std::max(play_.peak_total, more);
    }

    void count_peaks() {
        for (std::size_t tier = 0; tier < tier_count; ++tier) {
            play_.peak_slots[tier] = std::max(play_.peak_slots[tier], used_[tier]);
            play_.peak_bytes[tier] = std::max(play_.peak_bytes[tier], bytes_[tier]);
        }
        play_.peak_states = std::max(play_.peak_states, states_ + (state_ ? 1 : 0));
    }

    Index steps_;
    const Sizes& sizes_;
    const Limits& limits_;
    const Costs& costs_;
    bool needs_state_;
    bool reverses_;
    bool weighs_;

    Action now_{};
    std::optional<Index> state_;  // step of the working state, if it is specified
    std::optional<Index> tape_;   // link of the working tape
    bool tape_alone_ = false;     // made by `tape`: its reverse must follow
    bool swept_ = false;          // the forward sweep lies before the first action
    bool turned_ = false;
    Index end_;  // links below it are left to reverse
    std::array<std::unordered_map<std::int32_t, Held>, tier_count> slots_;
    std::unordered_map<Index, Index> holders_;  // slots that hold a state, by its step
    std::array<Index, tier_count> used_{};
    std::array<std::int64_t, tier_count> bytes_{};
    Index states_ = 0;
    Play play_{};
};

}  // namespace

Play referee(Schedule& schedule, Index steps, std::span<const Stored> stored, const Machine& machine) {
    Player player(steps, stored, machine);
    Ended stream(schedule, steps, machine.ending);
    while (player.play(stream.next())) {}
    if (schedule.next().verb != Verb::done) player.refuse("`done` must be repeated for ever");
    return player.result();
}

}  // namespace backsweep
