// Checkpointing of a chain whose length is known only when it ends.
// Stumm and Walther 2010 [SW10] while their first algorithm is exact, a greedy choice after it, and the best
// completion; or Wang, Moin and Iaccarino 2009 [WMI09]. Slots include the one of x_0.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace backsweep {

/// Which stored state a new one replaces.
enum class OnlinePolicy {
    greedy,    ///< Algorithm I [SW10] up to (c + 1)(c + 2) / 2 steps, optimal there; then the set of least cost at once
    wang_moin  ///< dispensable states by levels [WMI09]: fewest repetitions of any link, far from the least work
};

struct BACKSWEEP_API OnlineOptions {
    Index slots = 0;  ///< c, states that may be kept, 1 to 2^31 - 1
    OnlinePolicy policy = OnlinePolicy::greedy;
    bool needs_state = false;  ///< the chain's reverse reads the state before the link (Chain::needs_state)

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// An open-ended schedule: `advance` link by link with `save`, or `drop` and `save`, before it, until finish(n):
/// - n is where the chain stands, or the start of the last advance that was given out, which is then revoked (the chain
///   had no such link): `turn` without a record before it;
/// - n lies one link ahead: that link is recorded as it is run, then `turn`; it is not run again (with needs_state it
///   is);
/// - n lies further ahead: the sweep goes on as before and ends there.
/// Then come the drops and the reverse of `complete`. finish() throws ScheduleError if it was told already, and
/// InvalidArgument if n lies behind the chain or beyond 2^62. In the open sweep fill() gives out at most up to the next
/// advance. The greedy policy replaces nothing from 2^40 links on. rewind() starts again, open-ended. O(1) amortised a
/// step; memory is reserved once, touched as states are kept; the completion is planned, and allocates, where the sweep
/// ends. Throws InvalidArgument with options.problem(), or if there is no memory for the slots.
BACKSWEEP_API std::unique_ptr<Schedule> online(const OnlineOptions& options);

/// The advances of that schedule for a chain of `steps` links; `ahead`: the end is told one link ahead, not where it is
/// met. Runs the policy, so it takes O(steps) time. Throws as online(), and InvalidArgument if steps < 0.
BACKSWEEP_API Index online_advances(const OnlineOptions& options, Index steps, bool ahead = false);

/// Bytes that the schedule reserves. Throws InvalidArgument with options.problem().
BACKSWEEP_API std::size_t online_table_bytes(const OnlineOptions& options);

}  // namespace backsweep
