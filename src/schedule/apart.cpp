// SPDX-License-Identifier: MIT
#include "backsweep/schedule/apart.hpp"

#include "backsweep/base/error.hpp"

#include <cstddef>
#include <utility>

namespace backsweep {

Apart::Apart(std::unique_ptr<Schedule> schedule) : schedule_(std::move(schedule)) {
    if (!schedule_)
        throw InvalidArgument("Apart numbers the slots of a schedule, but got none; make one with make_schedule");
}

void Apart::rewind() {
    schedule_->rewind();
    now_.clear();
    states_.next = 0;
    tapes_.next = 1;
    states_.free.clear();
    tapes_.free.clear();
}

void Apart::fill_slot(Slot& slot, Numbers& numbers) {
    if (slot.tier != Tier::ram || slot.index < 0) return;
    const auto at = static_cast<std::size_t>(slot.index);
    if (at >= now_.size()) now_.resize(at + 1, -1);
    if (now_[at] >= 0) throw ScheduleError("a schedule fills " + to_string(slot) + " twice; drop what it holds first");
    if (numbers.free.empty()) {
        now_[at] = std::exchange(numbers.next, numbers.next + 2);
    } else {
        now_[at] = numbers.free.back();
        numbers.free.pop_back();
    }
    slot.index = now_[at];
}

void Apart::empty_slot(Slot& slot) {
    if (slot.tier != Tier::ram || slot.index < 0) return;
    const auto at = static_cast<std::size_t>(slot.index);
    slot.index = std::exchange(now_.at(at), -1);
    if (slot.index >= 0) (slot.index % 2 == 0 ? states_ : tapes_).free.push_back(slot.index);
}

Action Apart::next() {
    Action a = schedule_->next();
    switch (a.verb) {
        case Verb::save:
            fill_slot(a.to, states_);
            break;
        case Verb::stow:
            fill_slot(a.to, tapes_);
            break;
        case Verb::load:
        case Verb::restart:
            if (a.from.tier == Tier::ram) a.from.index = now_.at(static_cast<std::size_t>(a.from.index));
            break;
        case Verb::take:
        case Verb::fetch:
        case Verb::drop:
            empty_slot(a.from);
            break;
        case Verb::move:
            empty_slot(a.from);
            fill_slot(a.to, a.steps.empty() ? states_ : tapes_);
            break;
        default:
            break;
    }
    return a;
}

}  // namespace backsweep
