// The cheapest way to compute a graph of values within a budget in bytes, over all orders and all recomputations: a
// best first search [HNR68] over the sets of resident values. No other library is needed; made for up to about 40
// nodes.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/graph.hpp"

namespace backsweep {

/// Nodes that a search can hold in one set.
inline constexpr std::size_t searchable_nodes = 64;

struct BACKSWEEP_API GraphOptions {
    Graph graph;
    std::int64_t budget = 0;  ///< bytes that may be resident at once
    /// Sets of resident values that one search may keep; one takes some 50 bytes. The same limit gives the same plan.
    Index states = 4000000;
    double seconds =
        0.0;  ///< wall time of one search, 0: no limit. A plan that was cut short by time is not reproducible

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// The budget is proven too small, for every order: no other solver finds a plan.
class BACKSWEEP_API BudgetTooSmall : public NoPlan {
    using NoPlan::NoPlan;
};

/// The plan of least cost: `proven`, with lower_bound = cost. Where the search is cut short, the best plan that hasty
/// searches of the same limits find, and the bound that the exact one had proven by then.
/// Throws InvalidArgument (options.problem()), BudgetTooSmall (the message names the least that serves, or a bound that
/// it does not fall below), or another NoPlan: none was found within the limits.
BACKSWEEP_API GraphPlan optimal_graph(const GraphOptions& options);

/// A budget in bytes, and whether it is known to serve.
struct LeastBudget {
    std::int64_t bytes = 0;
    bool exact = false;  ///< bytes serves; false: no less does, the search was cut short
};

/// The least budget that any plan for the graph can do with; `states` as in GraphOptions.
/// Throws InvalidArgument for a graph with a problem(), more than searchable_nodes nodes, or states < 1.
BACKSWEEP_API LeastBudget least_graph_budget(const Graph& graph, Index states = 4000000);

}  // namespace backsweep
