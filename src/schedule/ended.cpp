// SPDX-License-Identifier: MIT
#include "backsweep/schedule/ended.hpp"

#include <utility>

namespace backsweep {

Ended::Ended(Schedule& schedule, Index steps, Ending ending)
    : schedule_(&schedule),
      steps_(steps),
      ending_(ending),
      open_(ending != Ending::closed) {}

Ended::Ended(std::unique_ptr<Schedule> schedule, Index steps, Ending ending) : Ended(*schedule, steps, ending) {
    owned_ = std::move(schedule);
}

Action Ended::next() {
    const Index left = steps_ - at_;
    if (open_ && ((ending_ == Ending::ahead && left <= 1) || (ending_ == Ending::met && left == 0))) tell();
    Action action = schedule_->next();
    if (!open_ || action.verb != Verb::advance) return action;
    if (action.steps.last > steps_) {
        tell();
        if (action.steps.first >= steps_) return schedule_->next();  // revoked
        action.steps.last = steps_;
    }
    at_ = action.steps.last;
    return action;
}

void Ended::rewind() {
    schedule_->rewind();
    at_ = 0;
    open_ = ending_ != Ending::closed;
}

void Ended::tell() {
    schedule_->finish(steps_);
    open_ = false;
}

}  // namespace backsweep
