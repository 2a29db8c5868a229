// How long a sweep waits for its disk: the actions of a schedule played over two clocks, the sweep's and the disk's.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/plan/workload.hpp"
#include "backsweep/schedule/schedule.hpp"

namespace backsweep {

/// What the clocks showed, in the workload's unit.
struct Timeline {
    double sweep = 0.0;           ///< from x_0 to the last reverse: what the links take, and what was waited
    double waited = 0.0;          ///< for a buffer, or for a content to come
    Index written = 0, read = 0;  ///< contents that went to the disk and came from there meanwhile
};

/// Plays `schedule` from its beginning, then rewinds it, as an Execution with a DiskStore does: `w.disk_buffers`
/// contents may be on their way, one at a time to or from the disk, in the order in which they were asked for; a read
/// that is not looked ahead goes before those that wait; what waits to be written is read from its buffer. The disk may
/// still write at the end. Nothing but the links, write and read takes time: copies in RAM, commits and settle() do
/// not. Takes time in proportion to the actions. Throws InvalidArgument (w.problem()); ScheduleError if a slot is read
/// that holds nothing.
BACKSWEEP_API Timeline timeline(Schedule& schedule, const Workload& w);

}  // namespace backsweep
