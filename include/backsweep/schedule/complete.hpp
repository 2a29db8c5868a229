// The best reverse from states that survived a forward sweep: online schedules, restarts after a kill, warm starts.
// Segments between kept states as in Stumm and Walther 2010 [SW10]; which states to keep is found by a dynamic program.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/referee.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace backsweep {

/// Up to this many surviving states complete() searches all reverses of its kind.
inline constexpr std::size_t exact_completion = 300;
/// Beyond, planning prices at most this many segments, and two layers if that is more.
inline constexpr Index completion_work = Index{1} << 26;

/// A schedule that reverses [0, steps) from `stored`. It begins with drops of the states that are not worth keeping,
/// then `turn` (the adjoint of x_steps is given there; no state is), then the reverse; every link is taped just before
/// its reverse, so chains that need their state are served too. A state is taken at its last read. A surviving state is
/// dropped at once, or kept until the links from it up to the next kept one are reversed, or taken once, as a start on
/// the way to a better place (one such state between two kept ones). `slots`: RAM slots in all, those of `stored`
/// included; new states go to RAM slots that are free, lowest index first. A stored state on another tier takes none.
///
/// With m stored states of different steps the number of advances is
/// - never more than keeping every state;
/// - m <= exact_completion: the least of all these reverses, for all sets of small chains the least that any sequence
///   of actions reaches; planning takes O(m^3);
/// - beyond: the least of all that take no state as a mere start and keep at most K states in RAM, with
///   K = max(1, completion_work / (m (log2 m + 3)) - 1), which is all of them up to m = 2,100; planning prices
///   O(m log m) segments for each of min(K, m) + 1 layers, completion_work in all up to m = 1.3 million, and holds
///   4 m (min(K, m) + 1) bytes.
/// Throws InvalidArgument if x_0 is not stored, a step lies outside [0, steps], two states share a slot, or more RAM
/// slots are in use than `slots`.
BACKSWEEP_API std::unique_ptr<Schedule> complete(std::span<const Stored> stored, Index slots, Index steps);

/// What that schedule costs.
struct Completion {
    Index advances = 0;  ///< links advanced; every link is taped once besides
    Index priced = 0;    ///< segments priced while planning: the measure of its time
};

/// Forecasts complete(). Throws as it does, and if the advances pass 2^63 - 1.
BACKSWEEP_API Completion completion(std::span<const Stored> stored, Index slots, Index steps);

}  // namespace backsweep
