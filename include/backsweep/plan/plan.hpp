// From a limit in bytes to a schedule: the cheapest that fits, and what it will hold.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/plan/workload.hpp"
#include "backsweep/schedule/schedule.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace backsweep {

/// How the layers of a link are kept; the names are those of the room that knows layers.
struct DepthChoice {
    std::string family = "store_all";
    Index period = 0, slots = 0;
    std::int64_t budget = 0;
    std::vector<double> work{};  ///< of each layer, forward and reverse, where it was measured

    friend bool operator==(const DepthChoice&, const DepthChoice&) = default;
};

/// A plan is data: it is written into a run's configuration, manifest and snapshots, and replayed from there.
struct Plan {
    ScheduleOptions schedule;  ///< for a full window; schedule_for makes it for another length
    Index chunk = 0;
    std::string save{};  ///< what layers keep inside (their save policy); empty: as the model says
    DepthChoice depth{};
    std::string memories{};  ///< where remembered rows lie: log, file, state; empty: there are none
    Bytes predicted{};       ///< peak of each kind, equal to what the ledgers count
    std::int64_t disk = 0;   ///< bytes on disk
    Index disk_slots = 0;    ///< slots there, of every shard
    Index advances = 0;      ///< of a full window
    Index recorded = 0;
    double cost = 0.0;        ///< of a full window, in the workload's unit
    double least_cost = 0.0;  ///< with every tape kept, nothing run again
    bool measured = false;    ///< the unit is the second

    /// Forward work over the least possible, 1 for store_all.
    double recompute_factor() const noexcept {
        return recorded == 0 ? 1.0 : static_cast<double>(advances + recorded) / static_cast<double>(recorded);
    }
    /// Time over that of a window with every tape kept.
    double slowdown() const noexcept { return least_cost > 0.0 ? cost / least_cost : 1.0; }
};

/// Whether the plan keeps all limits.
BACKSWEEP_API bool fits(const Plan& plan, const Budget& budget) noexcept;

/// The schedule for a window of another number of links; it never holds more than the plan's own.
BACKSWEEP_API std::unique_ptr<Schedule> schedule_for(const Plan& plan, Index links);

/// What a schedule makes of a workload: store_all, periodic, revolve, mixed, tiered_revolve or periodic_disk. Slots of
/// `mixed` are numbered anew, states and tapes apart, for their memory stays with them. Throws InvalidArgument for
/// options that do not fit the workload.
BACKSWEEP_API Plan price(const Workload& workload, ScheduleOptions options);

/// What one workload has to offer.
struct Offer {
    std::optional<Plan> best{};      ///< the cheapest that fits; among equals the one with the fewest bytes
    std::vector<Plan> fitting{};     ///< the best of every family, cheapest first
    std::optional<Plan> smallest{};  ///< the one that passes the limits the least, fitting or not
};
/// Looks at store_all, periodic (every period), revolve (every number of slots), mixed where its tables are small, and
/// with a limit on disk tiered_revolve and periodic_disk, which are priced by timeline(), or, where they have more than
/// some 300,000 actions, as if every transfer were waited for. Plans that cost `below` or more are not looked for.
/// Throws InvalidArgument (workload.problem()).
BACKSWEEP_API Offer offer(const Workload& workload, const Budget& budget,
                          double below = std::numeric_limits<double>::infinity());

/// The best offer. Throws InvalidArgument (workload.problem()), or NoPlan: what the least needs and what was offered.
BACKSWEEP_API Plan make_plan(const Workload& workload, const Budget& budget);

/// The order among plans: by cost, then bytes.
BACKSWEEP_API bool cheaper(const Plan& a, const Plan& b) noexcept;
/// By how much a plan passes the limits: the larger of the shares above 1; 1 or less where it fits.
BACKSWEEP_API double excess(const Plan& plan, const Budget& budget) noexcept;
/// "ram: needs 1.21 GiB (1299 bytes), offered ...": every limit that the plan passes.
BACKSWEEP_API std::string shortfall(const Plan& plan, const Budget& budget);
/// Those that no other beats in both bytes in all and cost: rising bytes, falling cost.
BACKSWEEP_API std::vector<Plan> pareto(std::vector<Plan> plans);

/// "1.21 GiB", "512 B": for messages.
BACKSWEEP_API std::string bytes_in_words(std::int64_t bytes);

}  // namespace backsweep
