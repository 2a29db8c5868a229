// States every few links; each block between them is then recorded link by link, with its tapes kept.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

namespace backsweep {

/// Keeps x_0, x_period, ... in the first sweep but for the start of the last block, which is recorded straight away.
/// Every other link is advanced once and recorded once. With B = ceil(steps / period) blocks the states have the RAM
/// slots 0..B-2, the tapes of a block the slots after them; the last tape of a block stays the working tape.
/// `needs_state`: the states inside a block are kept too, in min(period, steps) slots between states and tapes.
/// Throws InvalidArgument if steps < 0, period < 1, or the slots pass 2^31 - 1.
BACKSWEEP_API std::unique_ptr<Schedule> periodic(Index steps, Index period, bool needs_state = false);

}  // namespace backsweep
