// SPDX-License-Identifier: MIT
#include "backsweep/schedule/prediction.hpp"

#include "backsweep/base/error.hpp"

#include <string>

namespace backsweep {

Play predict(Schedule& schedule, Index steps, const Machine& machine) {
    schedule.rewind();
    const Play play = referee(schedule, steps, {}, machine);
    schedule.rewind();
    return play;
}

Play predict(const ScheduleOptions& options, Index steps, Machine machine) {
    const std::unique_ptr<Schedule> schedule = make_schedule(options);
    machine.needs_state = options.needs_state;
    machine.reverses = options.family != "forward_only";
    if (!is_open_ended(options.family)) {
        machine.ending = Ending::closed;
        if (options.steps != steps)
            throw InvalidArgument("predict: the options are for " + std::to_string(options.steps) +
                                  " steps, the chain has " + std::to_string(steps) + "; give one number");
    } else if (machine.ending == Ending::closed) {
        machine.ending = Ending::met;
    }
    return predict(*schedule, steps, machine);
}

}  // namespace backsweep
