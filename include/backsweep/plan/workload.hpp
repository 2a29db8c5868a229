// What a planner needs to know of a run: counts, bytes and costs. No mathematics.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/base/ledger.hpp"
#include "backsweep/base/range.hpp"

#include <cstdint>
#include <string>

namespace backsweep {

/// A chain of equal links, with everything that its run holds. Shards that sweep side by side under one schedule are
/// one workload: their bytes are added up.
struct BACKSWEEP_API Workload {
    Index steps = 0;   ///< steps of a window
    Index chunk = 64;  ///< steps a link; the last may be short

    std::int64_t state = 0;       ///< bytes of a state: what one slot holds
    std::int64_t tape = 0;        ///< bytes of the tape of a full link
    std::int64_t tape_carry = 0;  ///< more of them, that are booked as carry
    bool remakes = false;         ///< the chain makes x_0 again: no slot in RAM keeps it
    Bytes always{};  ///< held whatever the schedule: parameters, gradients, moments, data, carry, log, workspace

    std::int64_t disk = 0;       ///< bytes on disk whatever the schedule
    std::int64_t disk_slot = 0;  ///< bytes that a slot on disk takes there
    std::int64_t disk_file = 0;  ///< bytes of the files besides, where there are any slots
    std::int64_t buffers = 0;    ///< workspace of the stores, held where the schedule has slots on disk

    /// Costs of a full link, in any unit: counted by default, so that plans do not depend on the clock.
    double advance = 1.0;
    double record = 1.0;
    double reverse = 2.0;
    double write = 0.0, read = 0.0;  ///< of a slot on disk, in the same unit: what the disk itself takes
    Index disk_buffers = 2;          ///< contents on their way there beside the links (DiskStoreOptions::buffers)

    Index links() const noexcept { return steps < 1 || chunk < 1 ? 0 : 1 + (steps - 1) / chunk; }
    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// Limits in bytes; what is not given does not limit.
struct Budget {
    static constexpr std::int64_t unlimited = -1;
    std::int64_t ram = unlimited;        ///< all kinds together
    std::int64_t time_axis = unlimited;  ///< data, carry, slots, tape and log: what grows with the length of the window
    std::int64_t disk = 0;               ///< for slots and logs; unlimited is a limit like any other: it must be given
};

}  // namespace backsweep
