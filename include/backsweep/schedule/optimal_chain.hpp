// Chains whose links differ in time and size, under a budget in bytes: the least time, and the schedule that takes it.
// The recurrence of rotor [BEHJS24] in exact bytes, and a second table that goes beyond it: the tape of a link may be
// kept while the state before the link is dropped and made again.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/chain_costs.hpp"
#include "backsweep/schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace backsweep {

struct BACKSWEEP_API ChainOptions {
    ChainCosts chain{};
    std::int64_t budget = 0;   ///< bytes: everything alive, x_0 and the action being played included
    bool second_table = true;  ///< false: persistent schedules only, what is kept stays until its reverse (rotor)
    Index units = 0;           ///< 0: exact where the tables fit; else the budget is cut into this many units
    double loss = 0.01;        ///< where units are coarse they are refined until no more than this can be lost
    std::size_t table_limit = std::size_t{1} << 30;  ///< bytes that the tables may take while planning

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// A plan and what is known about it.
struct ChainPlan {
    Index steps = 0;
    double cost = 0.0;              ///< time of all forward and backward runs
    double lower_bound = 0.0;       ///< no schedule of this kind takes less; cost itself if the plan is exact
    bool exact = true;              ///< false: sizes were rounded to units, and cost may be above the optimum
    std::int64_t unit = 1;          ///< bytes of a unit of the tables
    std::size_t table_bytes = 0;    ///< the largest that the tables were; all are freed when the plan is made
    std::int64_t peak = 0;          ///< bytes: the most that is alive at once, as the referee counts (Play::peak_total)
    std::vector<Action> actions{};  ///< the stream, at most 8 actions a link; `done` is left out

    /// The share of `cost` that can be lost against the best schedule of this kind at most.
    double loss() const noexcept { return lower_bound > 0.0 ? cost / lower_bound - 1.0 : 0.0; }
};

/// The least budget, in bytes, under which such schedules reverse `chain`. Throws InvalidArgument with chain.problem().
BACKSWEEP_API std::int64_t least_chain_budget(const ChainCosts& chain, bool second_table = true);

/// The least budget, in bytes, under which every link is run once. Throws InvalidArgument with chain.problem().
BACKSWEEP_API std::int64_t full_chain_budget(const ChainCosts& chain);

/// The best plan, or nothing if the budget is below least_chain_budget(). Takes O(n^3) times the breakpoints of a row.
/// Throws InvalidArgument with options.problem(), and NoPlan where even coarse tables pass options.table_limit, or are
/// too coarse for a budget that a finer one could meet.
BACKSWEEP_API std::optional<ChainPlan> plan_optimal_chain(const ChainOptions& options);

/// Plays a plan; slots are those of the RAM tier, states and tapes in one numbering. It brings x_i to the working state
/// before the reverse of link i, as chains that `needs_state` want it, and restarts states out of kept tapes.
BACKSWEEP_API std::unique_ptr<Schedule> optimal_chain(ChainPlan plan);

/// Plans and plays. Throws NoPlan, naming the least budget, where plan_optimal_chain() finds nothing.
BACKSWEEP_API std::unique_ptr<Schedule> optimal_chain(const ChainOptions& options);

}  // namespace backsweep
