// The forward sweep alone: evaluation, line searches, rolling a state on.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

namespace backsweep {

/// With `loss` every link is recorded and its tape dropped (a loss is computed where a link is recorded); without it
/// one `advance` runs the chain. No `turn`: the stream ends with `done` at x_steps. Throws InvalidArgument if steps <
/// 0.
BACKSWEEP_API std::unique_ptr<Schedule> forward_only(Index steps, bool loss = true);

}  // namespace backsweep
