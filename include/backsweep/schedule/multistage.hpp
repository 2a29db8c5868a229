// Any number of tiers with prices for writing and reading: the cheapest schedule, by dynamic programming.
// Herrmann and Pallez 2020 [HP20] with the longest first advance included; a last tier without limit after Aupy,
// Herrmann, Hovland and Robert 2016 [AHHR16].
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/level.hpp"
#include "backsweep/schedule/schedule.hpp"

#include <cstddef>
#include <vector>

namespace backsweep {

/// How often a state on the last level may be read, where that level has no limit.
enum class LevelReads {
    many,  ///< as often as pays
    one    ///< once: its block is then reversed from the other levels alone
};

struct BACKSWEEP_API MultistageOptions {
    Index steps = 0;  ///< links of the chain
    std::vector<Level>
        levels{};          ///< fastest first; levels of one tier share its slot numbers, the faster has the lower
    double advance = 1.0;  ///< price of advancing a link
    double reverse = 1.0;  ///< price of making the tape of a link and reversing it
    LevelReads reads = LevelReads::many;
    bool needs_state = false;                             ///< the chain's reverse reads the state before its link
    std::size_t most_table_bytes = std::size_t{1} << 30;  ///< a larger table is refused
    double most_additions = 1e11;                         ///< a longer planning is refused; 3e9 take about a second

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// What a schedule does, and what it costs: advance * advances + reverse * steps + the prices of writes and reads.
struct MultistageCounts {
    Index advances = 0;
    std::vector<Index> writes{};  ///< saves to a level
    std::vector<Index> reads{};   ///< loads and takes from a level
    double cost = 0.0;
    std::size_t table_bytes = 0;  ///< what the plan takes once it is made
};

/// The schedule. With P_k(l, m) the price of l + 1 links whose start lies on level k, m slots of k being free with that
/// one, and O_k(l, m) the same with the start at work only, uf, ub, w, r the prices, c_k the slots [HP20]:
///   P_k(0, m) = O_k(0, m) = ub,   O_k(l, 0) = O_{k-1}(l, c_{k-1}),   O_{-1}(l) = inf for l >= 1,
///   P_k(l, m) = min(O_{k-1}(l, c_{k-1}), min_{1<=j<=l} j uf + O_k(l - j, m - 1) + r_k + P_k(j - 1, m)),
///   O_k(l, m) = min(O_{k-1}(l, c_{k-1}), w_k + P_k(l, m)).
/// It is the optimum over all schedules wherever that could be searched, if neither w_k nor r_k falls from a level to
/// the next; levels in another order are legal, but their optimum may be missed.
///
/// A last level without limit: blocks are cut off in the first sweep, their starts written there, and nothing more is
/// written there later, f(j) = w + r + j uf + P(j - 1) a block of j links. Above one level without prices, [GW00], only
/// j < w / uf + e can pay, and all but a few blocks have the length of least f(j) / j, so that a chain of any length is
/// planned in the time of a few blocks; above other levels the whole table is made, O(steps^2).
///
/// With needs_state the recurrence is that of one link more, `turn`, for nothing; the first sweep records the last link
/// instead of advancing it.
///
/// A state is taken at its last read; slots of a level are numbered in the order in which they fill. Planning takes
/// O(steps^2 slots) additions without the slots of a first level without prices, which needs no table. Emission
/// allocates nothing; it finds an advance j in the table in j looks. Throws InvalidArgument with options.problem(), if
/// table or planning would pass the limits, or if more than 2^31 - 1 states would lie on a level.
BACKSWEEP_API std::unique_ptr<Schedule> multistage(const MultistageOptions& options);

/// The counts of that schedule, from the table and the multiplicities of the segments, not by a dry run. Throws as
/// multistage() does.
BACKSWEEP_API MultistageCounts multistage_counts(const MultistageOptions& options);

/// Its cost alone. Throws as multistage() does.
BACKSWEEP_API double multistage_cost(const MultistageOptions& options);

/// Bytes that the table takes at most, without making it. Throws InvalidArgument with options.problem().
BACKSWEEP_API std::size_t multistage_table_bytes(const MultistageOptions& options);

}  // namespace backsweep
