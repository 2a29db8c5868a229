// An open-ended schedule whose caller knows its chain, and what such a schedule has stored.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace backsweep::test {

/// Passes actions on and calls finish(steps) as soon as the chain stands at `at`: with at = steps the end is told where
/// it is met, with less it is told ahead.
class Told final : public Schedule {
public:
    Told(std::unique_ptr<Schedule> inner, Index steps, Index at) : inner_(std::move(inner)), steps_(steps), at_(at) {}

    Action next() override {
        if (!told_ && reached_ == at_) {
            told_ = true;
            inner_->finish(steps_);
        }
        const Action action = inner_->next();
        if (!told_ && action.verb == Verb::advance) reached_ = action.steps.last;
        return action;
    }
    void rewind() override {
        inner_->rewind();
        reached_ = 0;
        told_ = false;
    }

private:
    std::unique_ptr<Schedule> inner_;
    Index steps_, at_;
    Index reached_ = 0;
    bool told_ = false;
};

/// What the slots hold, in rising order of steps: it listens to saves and drops, and keeps no action.
class Shelved {
public:
    void note(const Action& action) {
        if (action.verb == Verb::drop) std::erase_if(states_, [&](const Stored& s) { return s.slot == action.from; });
        if (action.verb == Verb::save) states_.push_back({action.steps.first, action.to});
    }
    std::span<const Stored> states() const { return states_; }

    /// Advances of the reverse of `steps` links that keeps every state until its gap is reversed.
    Index keeping_all(Index steps, Index slots) const {
        Index sum = 0;
        for (std::size_t i = 0; i < states_.size() && states_[i].step < steps; ++i) {
            const Index end = i + 1 < states_.size() ? std::min(states_[i + 1].step, steps) : steps;
            sum += revolve_advances(end - states_[i].step, slots - static_cast<Index>(i));
        }
        return sum;
    }

private:
    std::vector<Stored> states_;
};

/// One step of an open sweep: its actions up to the next advance.
inline void step_on(Schedule& schedule, Shelved& shelf) {
    Action action;
    do {
        action = schedule.next();
        shelf.note(action);
    } while (action.verb != Verb::advance);
}

}  // namespace backsweep::test
