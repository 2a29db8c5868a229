// From a limit in bytes to a schedule: the cheapest that fits, and what it will hold.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/plan/workload.hpp"
#include "backsweep/schedule/schedule.hpp"

#include <string>
#include <vector>

namespace backsweep {

/// A plan is data: it is written into a run's configuration and snapshots, and replayed from there.
struct Plan {
    ScheduleOptions schedule;  ///< for a full window; schedule_for makes it for another length
    Index chunk = 0;
    Bytes predicted{};         ///< peak of each kind, equal to what the ledgers count
    Index advances = 0;        ///< of a full window
    Index recorded = 0;
    double cost = 0.0;         ///< in the workload's unit

    /// Forward work over the least possible, 1 for store_all.
    double recompute_factor() const noexcept {
        return recorded == 0 ? 1.0 : static_cast<double>(advances + recorded) / static_cast<double>(recorded);
    }
};

/// The family's options for a window of another number of links; never holds more than the plan's own.
BACKSWEEP_API ScheduleOptions schedule_for(const Plan& plan, Index links);

/// What a schedule makes of a workload. Throws InvalidArgument for options that do not fit the workload.
BACKSWEEP_API Plan price(const Workload& workload, ScheduleOptions options);

/// The cheapest of store_all, periodic (every period) and revolve (every number of slots) within the limits; among equals the
/// one with the fewest bytes. Throws InvalidArgument (workload.problem()), or NoPlan: what the least needs and what was offered.
BACKSWEEP_API Plan make_plan(const Workload& workload, const Budget& budget);

/// All candidates that make_plan chooses among, cheapest first, at most one a family: for tables.
BACKSWEEP_API std::vector<Plan> candidates(const Workload& workload, const Budget& budget);

/// "1.21 GiB", "512 B": for messages.
BACKSWEEP_API std::string bytes_in_words(std::int64_t bytes);

}  // namespace backsweep
