// States on disk at a fixed distance, binomial blocks in RAM between them: near the optimum, planned in closed form.
// Aupy and Herrmann 2017 [AH17].
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

namespace backsweep {

struct BACKSWEEP_API PeriodicDiskOptions {
    Index steps = 0;           ///< links of the chain, 0 ... 2^62
    Index ram_slots = 0;       ///< c, states kept in RAM, without price
    double write = 0.0;        ///< price of a save to disk
    double read = 0.0;         ///< price of a take from disk
    double advance = 1.0;      ///< price of advancing a link
    double reverse = 1.0;      ///< price of making the tape of a link and reversing it
    Index period = 0;          ///< links between states on disk; 0: the best one by the prices
    bool needs_state = false;  ///< the chain's reverse reads the state before its link

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// What the schedule does, and what it costs: advance * advances + reverse * steps + the prices of writes and reads.
struct PeriodicDiskCounts {
    Index period = 0;
    Index advances = 0;
    Index disk_writes = 0;
    Index disk_reads = 0;
    Index ram_writes = 0;
    Index ram_reads = 0;
    double cost = 0.0;
};

/// options.period, or where that is 0 the best period: B(c, T), T the least with B(c + 1, T) > (write + read) / advance
/// [AH17]; 2^62 where a state on disk never pays. Throws InvalidArgument with options.problem().
BACKSWEEP_API Index periodic_disk_period(const PeriodicDiskOptions& options);

/// The counts, in closed form. Throws as periodic_disk() does.
BACKSWEEP_API PeriodicDiskCounts periodic_disk_counts(const PeriodicDiskOptions& options);

/// The schedule: x_0, x_period, x_{2 period}, ... are written to disk in the first sweep while more than period + 1
/// links lie ahead, and read once; the k-th of them has disk slot k. What lies behind the last one, and every block
/// that is read again, is reversed by revolve in the RAM slots 0 ... c - 1. O(1) amortised an action, O(c) memory.
/// Throws InvalidArgument with options.problem(), if more than 2^31 - 1 states would lie on disk, or if the advances
/// pass 2^63 - 1.
BACKSWEEP_API std::unique_ptr<Schedule> periodic_disk(const PeriodicDiskOptions& options);

}  // namespace backsweep
