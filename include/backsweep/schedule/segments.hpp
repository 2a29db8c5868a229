// Segments of a chain, recorded one by one from states kept at their starts, and segments within segments.
// Chen et al. 2016 [Chen16]: with sqrt(n) segments memory grows like sqrt(n) for one more forward sweep.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

#include <span>
#include <vector>

namespace backsweep {

struct BACKSWEEP_API SegmentsOptions {
    Index steps = 0;           ///< links of the chain
    Index segments = 0;        ///< how many: all but the last have floor(steps / segments) links, the last the rest
    Index length = 0;          ///< or their length, the last is shorter: then the schedule is `periodic`
    Index levels = 1;          ///< how often: with 2 every segment is cut into `segments` again when its turn comes
    bool needs_state = false;  ///< the chain's reverse reads the state before the link

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// Links advanced, beside each link recorded once: about `levels` times `steps`.
/// Throws InvalidArgument with options.problem().
BACKSWEEP_API Index segments_advances(const SegmentsOptions& options);

/// The most that kept states and tapes take together, the working tape included, in units of which a state takes
/// `state` and a tape `tape`; [Chen16, eq. (1)] for one level. Throws InvalidArgument with options.problem(), if state
/// or tape < 0, or if the sum passes 2^63 - 1.
BACKSWEEP_API Index segments_peak(const SegmentsOptions& options, Index state = 1, Index tape = 1);

/// The schedule: the starts of segments have the first RAM slots, then come with needs_state the states inside an
/// innermost segment, then its tapes but for the last one, which stays the working tape.
/// Throws InvalidArgument with options.problem().
BACKSWEEP_API std::unique_ptr<Schedule> segments(const SegmentsOptions& options);

/// The number of segments (one level) with the least segments_peak; the least number on ties. O(sqrt(steps)) time.
/// Throws InvalidArgument if steps < 0, state or tape < 0, or a peak passes 2^63 - 1.
BACKSWEEP_API Index best_segments(Index steps, Index state = 1, Index tape = 1);

/// The plan of a chain whose states and tapes differ in size.
struct SegmentStarts {
    std::vector<Index> starts;  ///< the first link of every segment, rising; the first is 0
    Index peak = 0;             ///< the most that kept states and tapes take together, the working tape included
};

/// Segments that are closed before their tapes would pass `budget` [Chen16, alg. 3]; a tape above it stands alone.
/// states: [links] sizes of x_0 ... x_{n-1}, tapes: [links] sizes of the tapes, both >= 0 in one unit.
/// Throws InvalidArgument if their lengths differ, a size or the budget is negative, or the sizes' sum passes 2^63 - 1.
BACKSWEEP_API SegmentStarts budget_segments(std::span<const Index> states, std::span<const Index> tapes, Index budget);

/// The least peak among budgets around sqrt(x y) [Chen16, sec. 4.3], with x the kept states and y the tapes of the
/// largest segment of a first plan. Not the optimum: that is optimal_chain's. Throws as budget_segments does.
BACKSWEEP_API SegmentStarts search_segments(std::span<const Index> states, std::span<const Index> tapes);

/// One level of segments that begin at the given links. Throws InvalidArgument unless `starts` rises from 0 below
/// `steps` (one start, 0, if steps is 0), or if the slots have no numbers.
BACKSWEEP_API std::unique_ptr<Schedule> segments_at(Index steps, std::vector<Index> starts, bool needs_state = false);

}  // namespace backsweep
