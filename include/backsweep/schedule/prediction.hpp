// What a schedule will do, before it is run: counts, bytes by tier, and time from given costs.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/referee.hpp"

namespace backsweep {

/// Plays `schedule` on `machine` from its beginning, rewinds it, and tells what it did: the counts that its run on a
/// chain of `steps` links will have, exactly. Takes time in proportion to the actions, 20 to 60 million a second.
/// Closed formulas for chains too long to play stand beside each family (revolve_advances, mixed_forwards, ...).
/// Throws as referee() does.
BACKSWEEP_API Play predict(Schedule& schedule, Index steps, const Machine& machine = {});

/// The same of the schedule that make_schedule() makes; needs_state and what is to be reversed are taken from the
/// options. An open-ended family is told its end as machine.ending says, as `met` if that is `closed`.
/// Throws InvalidArgument with options.problem() too.
BACKSWEEP_API Play predict(const ScheduleOptions& options, Index steps, Machine machine = {});

}  // namespace backsweep
