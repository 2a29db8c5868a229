// Offline binomial checkpointing: the least number of advances for a given number of slots, in closed form.
// Griewank and Walther 2000 [GW00]. Slots include the one of x_0; advances do not count the links recorded or taped.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

namespace backsweep {

/// Which of the optimal first advances is taken; all give the same number of advances.
enum class AdvanceRule {
    fewest_writes,  ///< Revolve's own rule [GW00, p. 34]: fewest saves among all optimal schedules
    longest,        ///< always the longest optimal advance
    shortest        ///< always the shortest optimal advance
};

/// The closed interval of all optimal first advances.
struct AdvanceInterval {
    Index shortest = 0;
    Index longest = 0;
};

/// B(s, r) = C(s + r, s): the longest chain that s slots reverse with no link advanced more than r times [GW00, eq.
/// (1)]. 0 if s or r is negative; saturates at 2^63 - 1.
BACKSWEEP_API Index binomial(Index slots, Index repetitions) noexcept;

/// The least r >= 0 with B(slots, r) >= steps. Throws InvalidArgument if steps < 0, or slots < 1.
BACKSWEEP_API Index repetitions(Index steps, Index slots);

/// Least advances t(n, s) = r n - B(s + 1, r - 1) [GW00, eq. (3)]. With needs_state a schedule advances t(n + 1, s).
/// Throws InvalidArgument if steps < 0, slots < 1, or the count passes 2^63 - 1.
BACKSWEEP_API Index revolve_advances(Index steps, Index slots);

/// All optimal lengths of the first advance from x_0 over `steps` links, none outside.
/// Throws InvalidArgument if steps < 2 (there is no advance) or slots < 1.
BACKSWEEP_API AdvanceInterval first_advance_interval(Index steps, Index slots);

/// The least number of slots with t(steps, slots) <= max_advances.
/// Throws InvalidArgument if steps < 0 or max_advances < steps - 1, which no number of slots reaches.
BACKSWEEP_API Index least_slots(Index steps, Index max_advances);

/// The schedule. The last link of the first sweep is recorded as it is run, every other one taped just before its
/// reverse; a state is taken at its last read. O(1) amortised per action, O(slots) memory that is touched only where a
/// state is kept, no allocation after construction; slot k of the RAM tier holds the k-th lowest kept state.
/// `needs_state`: the reverse of the last link reads x_{n-1} too, so `turn` stands for a link of its own behind the
/// last: a binomial schedule of steps + 1 links. Throws InvalidArgument if steps < 0 or steps > 2^62, slots < 1, or
/// more slots are useful than there is memory for.
BACKSWEEP_API std::unique_ptr<Schedule> revolve(Index steps, Index slots, AdvanceRule rule = AdvanceRule::fewest_writes,
                                                bool needs_state = false);

}  // namespace backsweep
