// Every tape is kept: no link is run twice, memory grows with the chain.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

namespace backsweep {

/// Records the chain link by link and keeps the tapes in the RAM slots 0..steps-2; the last one stays the working tape.
/// `needs_state`: x_i is saved too, in slot i, and the tapes begin at slot `steps`.
/// Throws InvalidArgument if steps < 0 or the slots pass 2^31 - 1.
BACKSWEEP_API std::unique_ptr<Schedule> store_all(Index steps, bool needs_state = false);

}  // namespace backsweep
