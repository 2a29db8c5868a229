// SPDX-License-Identifier: MIT
#include "schedule/tapes_as_states.hpp"

#include "schedule/emit.hpp"

namespace backsweep {

TapesAsStates::TapesAsStates(Index steps, Index slots, bool keeps_start)
    : steps_(steps),
      shift_(keeps_start ? 0 : 1),
      inner_(steps + (keeps_start ? 1 : 0), slots, AdvanceRule::fewest_writes, false),
      ahead_(inner_.next()) {}

void TapesAsStates::begin() {
    inner_.rewind();
    ahead_ = inner_.next();
    begun_ = false;
}

std::size_t TapesAsStates::generate(std::span<Action> out) {
    Action* to = out.data();
    const Action* const last_start = to + (out.size() - reach);
    if (!begun_ && shift_ == 1 && steps_ > 0) *to++ = emit::record(0);
    begun_ = true;
    while (to <= last_start) {
        const Action action = ahead_;
        ahead_ = inner_.next();
        to = translate(action, ahead_, to);
        if (action.verb == Verb::done) break;
    }
    return static_cast<std::size_t>(to - out.data());
}

/// Writes at most two actions.
Action* TapesAsStates::translate(const Action& action, const Action& ahead, Action* to) const {
    const Index step = action.steps.first + shift_;
    const Index link = step - 1;
    const bool start = link < 0;
    switch (action.verb) {
        case Verb::save:
            if (!start) {
                *to++ = emit::stow(link, action.to);
            } else if (ahead.steps.size() > 1) {  // else nothing of x_0's segment is left below
                *to++ = emit::save(0, action.to);
            }
            break;
        case Verb::advance: {
            const Index last = action.steps.last + shift_ - 1;
            if (step < last) *to++ = emit::advance(step, last);
            *to++ = ahead.verb == Verb::tape ? emit::tape(last) : emit::record(last);
            break;
        }
        case Verb::load:
            if (!start) {
                *to++ = emit::restart(step, action.from);
            } else {
                *to++ = ahead.steps.size() > 1 ? emit::load(0, action.from) : emit::take(0, action.from);
            }
            break;
        case Verb::take:
            if (!start) *to++ = emit::fetch(link, action.from);
            break;
        case Verb::turn:
            *to++ = emit::turn(steps_);
            break;
        case Verb::reverse:
            if (!start) *to++ = emit::reverse(link);
            break;
        case Verb::done:
            *to++ = emit::done();
            break;
        default:  // record and tape: the working tape is there already
            break;
    }
    return to;
}

}  // namespace backsweep
