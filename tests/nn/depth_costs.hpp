// The layers of a network as links of a chain with costs, for schedules made by optimal_chain.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/network.hpp"
#include "backsweep/schedule/optimal_chain.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace backsweep::test {

/// By the layers' own work and bytes in segments of `steps` steps; inputs of tokens count one number.
inline ChainCosts depth_costs(const Network<double>& network, Index steps, Index batch) {
    ChainCosts costs;
    const auto bytes = [](Index numbers) { return 8 * std::max<Index>(numbers, 1); };
    for (Index l = 0; l < network.depth(); ++l) {
        const Footprint f = network.layer(l).footprint(steps, batch);
        const Work work = network.layer(l).work(steps, batch);
        costs.forward_time.push_back(work.forward);
        costs.backward_time.push_back(work.reverse);
        costs.state_bytes.push_back(bytes(steps * batch * f.inputs));
        costs.tape_bytes.push_back(bytes(f.tape + steps * batch * f.outputs));
    }
    costs.state_bytes.push_back(8);
    return costs;
}

/// Schedules of optimal_chain along the depth, from the least budget to the one that stores all.
inline std::vector<ScheduleOptions> optimal_schedules(const Network<double>& network, Index steps, Index batch) {
    const ChainCosts costs = depth_costs(network, steps, batch);
    const std::int64_t least = least_chain_budget(costs), full = full_chain_budget(costs);
    std::vector<ScheduleOptions> all;
    for (const std::int64_t budget : {least, (least + full) / 2, full}) {
        ScheduleOptions o;
        o.family = "optimal_chain";
        o.steps = network.depth();
        o.chain = costs;
        o.budget = budget;
        all.push_back(o);
    }
    return all;
}

}  // namespace backsweep::test
