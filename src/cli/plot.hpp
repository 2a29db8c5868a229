// A picture of a schedule: steps against time, as SVG.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

#include <string>

namespace backsweep::cli {

/// Plays `schedule` from its beginning (it is rewound before and after) over `steps` links and draws it: time to the
/// right, one unit for each link advanced, recorded or reversed; the chain upwards. Advances, records and reverses are
/// lines, a slot is a level line from its save to its drop, coloured by tier. What falls on the same tenth of a pixel
/// is drawn once, so that the file stays small for any length.
/// Throws InvalidArgument if the schedule has more than a hundred million actions.
std::string plot(Schedule& schedule, Index steps, const std::string& title);

}  // namespace backsweep::cli
