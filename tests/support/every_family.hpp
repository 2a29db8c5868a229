// Options of the families that a chain without a restart can follow.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

#include <utility>
#include <vector>

namespace backsweep::test {

/// The families beside store_all, revolve and periodic, in sizes in which every part of them is met; some use the disk.
/// Not optimal_chain: it asks for chains that restart.
inline std::vector<ScheduleOptions> every_family(Index steps) {
    std::vector<ScheduleOptions> all;
    const auto add = [&](const char* family) -> ScheduleOptions& {
        ScheduleOptions o;
        o.family = family;
        if (!is_open_ended(family)) o.steps = steps;
        return all.emplace_back(std::move(o));
    };
    ScheduleOptions& nested = add("segments");
    nested.segments = 3;
    nested.depth = 2;
    for (const Index units : {0, 4}) {
        if (units == 0 && steps > 1) continue;  // nothing can be kept
        ScheduleOptions& mixed = add("mixed");
        mixed.slots = units;
        mixed.tape_units = 2;
    }
    ScheduleOptions& uneven = add("nonuniform");
    uneven.slots = 3;
    for (Index i = 0; i < steps; ++i) uneven.costs.push_back(1.0 + static_cast<double>(i * i % 5));
    for (const char* policy : {"greedy", "wang_moin"}) {
        ScheduleOptions& online = add("online");
        online.slots = 3;
        online.rule = policy;
    }
    ScheduleOptions& stages = add("multistage");
    stages.levels = {{Tier::ram, 2, 0.0, 0.0}, {Tier::disk, 2, 1.5, 1.0}};
    ScheduleOptions& endless = add("multistage");
    endless.levels = {{Tier::ram, 1, 0.0, 0.0}, {Tier::disk, -1, 1.5, 1.0}};
    add("tiered_revolve").levels = {{Tier::ram, 1}, {Tier::disk, 2}};
    ScheduleOptions& blocks = add("periodic_disk");
    blocks.levels = {{Tier::ram, 2}, {Tier::disk, -1, 1.0, 1.0}};
    ScheduleOptions& two = add("two_level");
    two.period = 4;
    two.slots = 1;
    return all;
}

}  // namespace backsweep::test
