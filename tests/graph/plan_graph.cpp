// Which solver a graph is sent to.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE graph_plan_graph
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/graph/plan_graph.hpp"
#include "schedule/graphs.hpp"
#include "support/streams.hpp"

using namespace backsweep;
using namespace backsweep::test;

namespace {

GraphPlan planned(const Graph& graph, std::int64_t budget, PlanGraphOptions options = {}) {
    options.budget = budget;
    const GraphPlan plan = plan_graph(graph, options);
    BOOST_CHECK_EQUAL(plan.cost, referee(graph, plan.steps, budget).cost);
    return plan;
}

/// A training chain with a connection from its first value to a later node.
Graph with_a_skip(Index n) {
    Graph graph = training_chain(n);
    graph.nodes[n - 1].preds.push_back(0);
    return graph;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_fits_is_computed_once) {
    const GraphPlan plan = planned(with_a_skip(100), 150);
    BOOST_CHECK_EQUAL(plan.method, "once");
    BOOST_CHECK(plan.proven);
    BOOST_CHECK_EQUAL(plan.cost, 200.0);
}

BOOST_AUTO_TEST_CASE(chains_are_planned_as_chains) {
    const GraphPlan small = planned(training_chain(12), 5);
    BOOST_CHECK_EQUAL(small.method, "chain");
    BOOST_CHECK(small.proven);
    BOOST_CHECK_EQUAL(small.cost, 38.0);
    BOOST_CHECK_EQUAL(small.lower_bound, 38.0);

    const GraphPlan large = planned(training_chain(100), 6);
    BOOST_CHECK_EQUAL(large.method, "chain");
    BOOST_CHECK(!large.proven);
    BOOST_CHECK_EQUAL(large.cost, 585.0);
    BOOST_CHECK_EQUAL(large.lower_bound, 200.0);

    // The search is cut short before it meets a plan; the chain's stands.
    PlanGraphOptions hasty;
    hasty.states = 20;
    const GraphPlan kept = planned(training_chain(12), 5, hasty);
    BOOST_CHECK_EQUAL(kept.cost, 38.0);
    BOOST_CHECK(!kept.proven);
}

BOOST_AUTO_TEST_CASE(small_graphs_are_searched_and_large_ones_solved) {
    const GraphPlan small = planned(with_a_skip(12), 5);
    BOOST_CHECK_EQUAL(small.method, "search");
    BOOST_CHECK(small.proven);

    PlanGraphOptions options;
    options.search_nodes = 10;
    const double optimum = optimal_graph({with_a_skip(7), 6}).cost;
    const GraphPlan middle = planned(with_a_skip(7), 6, options);  // the search proves it before the programme is asked
    BOOST_CHECK_EQUAL(middle.method, "search");
    BOOST_CHECK(middle.proven);
    options.states = 20;
    const GraphPlan large = planned(with_a_skip(7), 6, options);
    BOOST_CHECK_EQUAL(large.cost, optimum);
    BOOST_CHECK(large.lower_bound <= optimum);
    BOOST_CHECK_EQUAL(large.method, "milp");
    options.method = "milp";
    const GraphPlan staged = planned(with_a_skip(7), 6, options);
    BOOST_CHECK(staged.orders == GraphOrders::staged);
    BOOST_CHECK(staged.proven);
    BOOST_CHECK_EQUAL(staged.cost, optimum);
}

BOOST_AUTO_TEST_CASE(a_budget_proven_too_small_is_not_tried_again) {
    // Every node fits alone, but beside the second large value the small one made of the first must stay.
    const Graph graph{{{1.0, 5, {}}, {1.0, 1, {0}}, {1.0, 5, {}}, {1.0, 1, {2}}, {1.0, 1, {1, 3}}}};
    PlanGraphOptions options{.budget = 6, .search_nodes = 4};
    BOOST_CHECK_EXCEPTION(plan_graph(graph, options), BudgetTooSmall, Says{"optimal_graph: the graph needs 7 bytes"});
    // A search that is cut short proves nothing, and the programme is asked.
    options.states = 1;
    BOOST_CHECK_EXCEPTION(plan_graph(graph, options), NoPlan, Says{"staged_milp: no staged plan fits"});
}

BOOST_AUTO_TEST_CASE(a_method_by_name) {
    const auto by = [](const std::string& method) {
        PlanGraphOptions options;
        options.method = method;
        return planned(training_chain(8), 5, options);
    };
    for (const std::string method : {"chain", "search", "milp"}) {
        BOOST_CHECK_EQUAL(by(method).method, method);
        BOOST_CHECK_EQUAL(by(method).cost, 21.0);
    }
    PlanGraphOptions chain;
    chain.method = "chain";
    BOOST_CHECK_EXCEPTION(planned(with_a_skip(8), 9, chain), InvalidArgument, Says{"the graph is no chain"});
}

BOOST_AUTO_TEST_CASE(bad_options) {
    const auto refused = [](PlanGraphOptions options, const std::string& words) {
        BOOST_CHECK_EXCEPTION(plan_graph(training_chain(3), options), InvalidArgument, Says{words});
    };
    refused({.budget = -1}, "budget must be 0 or more bytes, came -1");
    refused({.budget = 5, .method = "cplex"}, "one of auto, chain, search, milp, came 'cplex'");
    refused({.budget = 5, .search_nodes = 65}, "search_nodes must lie in 0 ... 64, came 65");
    refused({.budget = 5, .states = 0}, "states must");
    refused({.budget = 5, .seconds = 0.0}, "seconds must be above 0");
    BOOST_CHECK_EXCEPTION(plan_graph(Graph{}, {}), InvalidArgument, Says{"at least one node"});
    BOOST_CHECK_EXCEPTION(plan_graph(training_chain(30), {.budget = 3}), NoPlan, Says{"needs 4 bytes, offered 3"});
    BOOST_CHECK_EXCEPTION(plan_graph(with_a_skip(6), {.budget = 3}), NoPlan, Says{"offered 3"});
}
