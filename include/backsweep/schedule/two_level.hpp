// A chain of unknown length with a state on disk every few links; afterwards each block is reversed by itself.
// Pringle, Jones, Goswami, Narayanan and Goldberg 2016 [PJGNG16].
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"
#include "backsweep/schedule/tiered_revolve.hpp"

namespace backsweep {

struct BACKSWEEP_API TwoLevelOptions {
    Index period = 0;       ///< links between states on disk, 1 ... 2^61
    Index extra_slots = 0;  ///< states kept in RAM while a block is reversed, beside its start on disk
    SweepRule rule = SweepRule::fewest_writes;  ///< inside a block

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// What the schedule does on a chain whose length becomes known where it ends a block or inside one, or ahead.
struct TwoLevelCounts {
    Index advances = 0;  ///< steps + sum over blocks of t(links of the block, extra_slots + 1)
    Index disk_writes = 0;
    Index disk_reads = 0;
    Index ram_writes = 0;
    Index ram_reads = 0;
};

/// The counts for a chain of `steps` links, in closed form. If a chain is only found to be at its end where the next
/// block would begin, its last state has been written to disk already: one write more, and a drop.
/// Throws InvalidArgument with options.problem(), if steps is not in 0 ... 2^62, or a count passes 2^63 - 1.
BACKSWEEP_API TwoLevelCounts two_level_counts(const TwoLevelOptions& options, Index steps);

/// An open-ended schedule: x_0, x_period, ... go to the disk slots 0, 1, ..., each followed by an advance of a period,
/// until finish(n):
/// - n lies inside the last advance that was given out, which ends there; at its start, it is revoked;
/// - n lies ahead: the sweep goes on as before and ends there.
/// Then comes `turn`, and the blocks are reversed, the last one first: revolve with the state on disk, which is read as
/// often as revolve reads it, and the RAM slots 0 ... extra_slots - 1. No link is taped in the first sweep, so that
/// chains whose reverse reads the state before its link are served too. finish() throws ScheduleError if it was told
/// already, and InvalidArgument if n lies before the last advance or beyond 2^62. In the open sweep fill() gives out at
/// most up to the next advance. rewind() starts again, open-ended. O(1) amortised an action, O(extra_slots) memory.
/// Throws InvalidArgument with options.problem().
BACKSWEEP_API std::unique_ptr<Schedule> two_level(const TwoLevelOptions& options);

}  // namespace backsweep
