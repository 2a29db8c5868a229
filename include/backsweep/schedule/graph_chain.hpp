// Graphs that are chains, and plans for them by the dynamic program of optimal_chain.hpp, at any number of nodes.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/graph.hpp"

namespace backsweep {

/// True for a chain, each node needing the one before it alone, and for a training chain: n such forward nodes v_0 ...
/// v_{n-1} and n backward nodes w_{n-1} ... w_0, where w_i needs v_i, v_{i-1} and w_{i+1} (those that there are) and,
/// but for w_0, has as many bytes as v_{i-1}. Throws InvalidArgument with graph.problem().
BACKSWEEP_API bool is_chain(const Graph& graph);

/// A plan for a chain. The bound is the time of all nodes: `proven` only where nothing is computed twice. Otherwise the
/// cost is the least of the dynamic program, which keeps values in nested segments; in rare cases another order takes
/// less. Throws InvalidArgument if the graph is no chain, NoPlan (naming the least budget) if budget is too small.
BACKSWEEP_API GraphPlan plan_graph_chain(const Graph& graph, std::int64_t budget);

}  // namespace backsweep
