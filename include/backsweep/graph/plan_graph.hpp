// A plan for any graph: the one of the three solvers that suits it.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/graph/graph_json.hpp"
#include "backsweep/graph/staged_milp.hpp"
#include "backsweep/schedule/graph_chain.hpp"
#include "backsweep/schedule/optimal_graph.hpp"

namespace backsweep {

struct BACKSWEEP_API PlanGraphOptions {
    std::int64_t budget = 0;      ///< bytes that may be resident at once
    std::string method = "auto";  ///< auto, chain, search, milp
    Index search_nodes = 40;      ///< auto: the search comes first up to this many nodes; at most searchable_nodes
    Index states = 4000000;       ///< search: GraphOptions::states
    double seconds = 60.0;        ///< milp: wall time

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// auto: every node once, where that fits. Else a chain is planned as one; up to `search_nodes` nodes the search then
/// proves that plan or betters it. Other graphs of up to searchable_nodes nodes are searched; beyond `search_nodes`
/// CBC has its time as well where the search proved nothing, and larger ones are solved by CBC. Throws InvalidArgument
/// (graph.problem(), options.problem(), or a method that the graph does not fit) or NoPlan: BudgetTooSmall where the
/// search proved that.
BACKSWEEP_API GraphPlan plan_graph(const Graph& graph, const PlanGraphOptions& options);

}  // namespace backsweep
