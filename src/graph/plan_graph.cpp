// SPDX-License-Identifier: MIT
#include "backsweep/graph/plan_graph.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace backsweep {
namespace {

GraphPlan searched(const Graph& graph, const PlanGraphOptions& options) {
    return optimal_graph({.graph = graph, .budget = options.budget, .states = options.states});
}

/// The cheaper of `plan` and what the search finds, with the bound of the search.
GraphPlan bettered(const Graph& graph, const PlanGraphOptions& options, GraphPlan plan) {
    try {
        GraphPlan any = searched(graph, options);
        if (any.cost < plan.cost) return any;
        plan.lower_bound = std::min(any.lower_bound, plan.cost);
        plan.orders = GraphOrders::any;
        plan.proven = any.proven;
    } catch (const NoPlan&) {
        // The search was cut short before it met any plan; the one that there is stands.
    }
    return plan;
}

/// Every node once, if that fits.
std::optional<GraphPlan> without_recomputation(const Graph& graph, std::int64_t budget) {
    GraphPlan plan;
    plan.steps = once_in_order(graph);
    const GraphPlay play = referee(graph, plan.steps);
    if (play.peak_bytes > budget) return std::nullopt;
    plan.cost = plan.lower_bound = play.cost;
    plan.peak_bytes = play.peak_bytes;
    plan.proven = true;
    plan.method = "once";
    return plan;
}

}  // namespace

std::string PlanGraphOptions::problem() const {
    if (budget < 0) return "budget must be 0 or more bytes, came " + std::to_string(budget);
    if (method != "auto" && method != "chain" && method != "search" && method != "milp") {
        return "method must be one of auto, chain, search, milp, came '" + method + "'";
    }
    if (search_nodes < 0 || search_nodes > static_cast<Index>(searchable_nodes)) {
        return "search_nodes must lie in 0 ... " + std::to_string(searchable_nodes) + ", came " +
               std::to_string(search_nodes);
    }
    if (states < 1) return "states must be 1 or more, came " + std::to_string(states);
    if (!(seconds > 0.0)) return "seconds must be above 0, came " + std::to_string(seconds);
    return {};
}

GraphPlan plan_graph(const Graph& graph, const PlanGraphOptions& options) {
    for (const std::string& wrong : {graph.problem(), options.problem()}) {
        if (!wrong.empty()) throw InvalidArgument("plan_graph: " + wrong);
    }
    if (options.method == "chain") return plan_graph_chain(graph, options.budget);
    if (options.method == "search") return searched(graph, options);
    if (options.method == "milp") return staged_milp(graph, options.budget, options.seconds);

    if (auto plan = without_recomputation(graph, options.budget)) return *plan;
    const auto count = static_cast<Index>(graph.nodes.size());
    if (is_chain(graph)) {
        GraphPlan plan = plan_graph_chain(graph, options.budget);
        return count <= options.search_nodes ? bettered(graph, options, std::move(plan)) : plan;
    }
    if (count <= options.search_nodes) return searched(graph, options);
    if (count > static_cast<Index>(searchable_nodes)) return staged_milp(graph, options.budget, options.seconds);
    // The search takes seconds where it proves anything; the programme has a minute after it.
    std::optional<GraphPlan> found;
    try {
        found = searched(graph, options);
        if (found->proven) return *found;
        GraphPlan staged = staged_milp(graph, options.budget, options.seconds);
        if (staged.cost >= found->cost) return *found;
        staged.lower_bound = std::min(found->lower_bound, staged.cost);
        staged.orders = GraphOrders::any;
        staged.proven = false;
        return staged;
    } catch (const BudgetTooSmall&) {
        throw;
    } catch (const NoPlan&) {
        if (found) return *found;
        return staged_milp(graph, options.budget, options.seconds);
    }
}

}  // namespace backsweep
