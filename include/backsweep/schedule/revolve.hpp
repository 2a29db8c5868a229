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
    shortest,       ///< always the shortest optimal advance
    fewest_disk,    ///< fewest accesses (saves, loads, takes) of slots beyond the first `ram`, which are on disk
    aligned         ///< to a multiple of `align` where an optimal advance keeps a state on one, else Revolve's own
};

/// Where x_0 lies, and whether `slots` counts it.
enum class FirstState {
    in_slot,   ///< in a slot like any other, from two links on
    external,  ///< outside: it can be made again for nothing. It has slot 0 for that, which `slots` leaves out
    live       ///< in the working state, saved only if it is needed again: 0 slots reverse one link [Maddison24]
};

/// What revolve is made from.
struct BACKSWEEP_API RevolveOptions {
    Index steps = 0;  ///< links of the chain, 0 ... 2^62
    Index slots = 0;  ///< states that may be kept
    AdvanceRule rule = AdvanceRule::fewest_writes;
    FirstState first = FirstState::in_slot;
    Index ram = -1;                                  ///< fewest_disk: kept states number 0 ... ram - 1 lie in RAM
    Index align = 1;                                 ///< aligned: >= 1
    bool needs_state = false;                        ///< the chain's reverse reads the state before its link
    std::size_t table_limit = std::size_t{1} << 30;  ///< fewest_disk: bytes that planning may take

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
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

/// Least advances t(n, s) = r n - B(s + 1, r - 1) [GW00, eq. (3)]; with needs_state they are t(n + 1, s) - 1, n >= 1.
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
/// `needs_state`: the reverse of the last link reads x_{n-1}, so `turn` stands for a link of its own behind the last: a
/// binomial schedule of steps + 1 links. The last link is recorded in the first sweep all the same, and its tape waits
/// as the working tape until x_{n-1} is at work again. Throws InvalidArgument if steps < 0 or steps > 2^62, slots < 1,
/// or more slots are useful than there is memory for.
BACKSWEEP_API std::unique_ptr<Schedule> revolve(Index steps, Index slots, AdvanceRule rule = AdvanceRule::fewest_writes,
                                                bool needs_state = false);

/// The same with every choice. Rule fewest_disk is planned in revolve_table_bytes of memory and O(steps^2 slots) time
/// and keeps 16 bytes a link; its slots beyond the first `ram` are the disk slots 0, 1, ... Throws InvalidArgument with
/// options.problem(), or if more slots are useful than there is memory for.
BACKSWEEP_API std::unique_ptr<Schedule> revolve(const RevolveOptions& options);

/// Advances of revolve(options). Throws InvalidArgument with options.problem(), or if the count passes 2^63 - 1.
BACKSWEEP_API Index revolve_advances(const RevolveOptions& options);

/// Disk accesses of rule fewest_disk: the least of all schedules with the least advances that keep states in order of
/// depth. Throws InvalidArgument with options.problem(), or if the rule is another one.
BACKSWEEP_API Index revolve_disk_accesses(const RevolveOptions& options);

/// Bytes of the tables while the schedule is planned, 0 but for rule fewest_disk. Saturates.
BACKSWEEP_API std::size_t revolve_table_bytes(const RevolveOptions& options);

}  // namespace backsweep
