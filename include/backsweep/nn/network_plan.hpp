// Plans for a network's graph that know it as a chain of the network's layers, blocks closed: at any number of nodes,
// and what plans that see the graph are measured against.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/network_graph.hpp"
#include "backsweep/schedule/graph.hpp"
#include "backsweep/schedule/schedule.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace backsweep {

/// The steps of a schedule's stream over the network's layers, one a link, on the graph: states are the layers' outputs,
/// a link's tape is all that its reverse runs read. What nobody reads is not computed, and nothing that is still
/// resident is computed again. States and tapes lie in RAM. Throws InvalidArgument for an action that does not fit.
std::vector<GraphStep> layer_steps(const Graph& graph, std::span<const NetworkNode> nodes, Schedule& schedule);

/// The cheapest of such plans within `budget` bytes, of those that keep all, that keep inputs of groups of equal length,
/// and, unless `equal_spacing`, of the chain's optimum [BEHJS24] under budgets found by halving. Method "spacing" or
/// "layers"; proven only where nothing is computed twice. Throws NoPlan, naming the least that serves one of them.
GraphPlan plan_layers(const Graph& graph, std::span<const NetworkNode> nodes, std::int64_t budget,
                      bool equal_spacing = false);

}  // namespace backsweep
