// One binomial schedule whose most accessed states lie in RAM and the others on disk, without costs.
// Stumm and Walther 2009 [SW09]; the advances are those of revolve with as many slots in all.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

#include <cstddef>
#include <vector>

namespace backsweep {

/// Which of the optimal first advances is taken. Both give the same number of advances; how often the single slots are
/// written and read differs.
enum class SweepRule {
    fewest_writes,  ///< Revolve's own rule [GW00, p. 34]: fewest saves in all
    maximum         ///< another optimal rule in use: longer advances, mostly but not always the longest
};

struct BACKSWEEP_API TieredRevolveOptions {
    Index steps = 0;       ///< links of the chain, 0 ... 2^62
    Index ram_slots = 0;   ///< states kept in RAM; x_0 takes a slot of either tier
    Index disk_slots = 0;  ///< states kept on disk
    SweepRule rule = SweepRule::fewest_writes;
    bool needs_state = false;                             ///< the chain's reverse reads the state before its link
    std::size_t most_table_bytes = std::size_t{1} << 30;  ///< more is refused

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// What the schedule does, by depth in its stack of kept states: depth 0 holds x_0.
struct TieredRevolveCounts {
    Index advances = 0;
    std::vector<Index> writes{};  ///< saves at a depth
    std::vector<Index> reads{};   ///< loads and takes at a depth
    std::vector<Tier> tiers{};    ///< where a depth lies: the ram_slots most accessed ones in RAM, the lower if equal
    Index disk_writes = 0;
    Index disk_reads = 0;
};

/// The counts, without a dry run: the work grows with the number of different segments, not with the steps. One entry a
/// useful depth: min(ram_slots + disk_slots, steps - 1). Throws InvalidArgument with options.problem(), or if the
/// advances pass 2^63 - 1.
BACKSWEEP_API TieredRevolveCounts tiered_revolve_counts(const TieredRevolveOptions& options);

/// Bytes that the schedule takes: 48 for each useful depth; making it takes as many again.
BACKSWEEP_API std::size_t tiered_revolve_table_bytes(const TieredRevolveOptions& options);

/// The schedule. Slots of a tier are numbered from 0 in rising order of depth; a state is taken at its last read.
/// O(1) amortised per action. Throws InvalidArgument as the counts do.
BACKSWEEP_API std::unique_ptr<Schedule> tiered_revolve(const TieredRevolveOptions& options);

}  // namespace backsweep
