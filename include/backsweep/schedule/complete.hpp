// The best reverse from states that survived a forward sweep: online schedules, restarts after a kill, warm starts.
// Segments between kept states as in Stumm and Walther 2010 [SW10]; which states to keep is found by a dynamic program.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/referee.hpp"

#include <span>

namespace backsweep {

/// A schedule that reverses [0, steps) from `stored`. It begins with drops of the states that are not worth keeping,
/// then `turn` (the adjoint of x_steps is given there; no state is), then the reverse; every link is taped just before
/// its reverse, so chains that need their state are served too. A state is taken at its last read. A surviving state is
/// dropped at once, or kept until the links from it up to the next kept one are reversed, or taken once, as a start on
/// the way to a better place (one such state between two kept ones). Of all these reverses it is one with the fewest
/// advances: never more than keeping every state; for all sets of small chains the least that any sequence of actions
/// reaches. `slots`: RAM slots in all, those of `stored` included; new states go to RAM slots that are free, lowest
/// index first. A stored state on another tier takes none. Planning costs O(m^3) for m stored states (300: well under a
/// second). Throws InvalidArgument if x_0 is not stored, a step lies outside [0, steps], two states share a slot, or
/// more RAM slots are in use than `slots`.
BACKSWEEP_API std::unique_ptr<Schedule> complete(std::span<const Stored> stored, Index slots, Index steps);

}  // namespace backsweep
