// Graphs that are chains: which are, and what the dynamic program makes of them.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_graph_chain
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/graph_chain.hpp"
#include "backsweep/schedule/optimal_graph.hpp"
#include "graphs.hpp"
#include "support/streams.hpp"

#include <cmath>
#include <random>

using namespace backsweep;
using namespace backsweep::test;

namespace {

GraphPlan planned(const Graph& graph, std::int64_t budget) {
    const GraphPlan plan = plan_graph_chain(graph, budget);
    const GraphPlay play = referee(graph, plan.steps, budget);
    BOOST_CHECK_EQUAL(plan.cost, play.cost);
    BOOST_CHECK_EQUAL(plan.peak_bytes, play.peak_bytes);
    BOOST_CHECK_EQUAL(plan.method, "chain");
    BOOST_CHECK_EQUAL(plan.proven, play.recomputed == 0);
    BOOST_CHECK(plan.lower_bound <= plan.cost);
    return plan;
}

Graph plain_chain(const std::vector<std::int64_t>& bytes) {
    Graph graph;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        graph.nodes.push_back(
            {1.5, bytes[i], i > 0 ? std::vector<Index>{static_cast<Index>(i) - 1} : std::vector<Index>{}});
    }
    return graph;
}

/// Times and sizes at random; the adjoint of a value is as large as the value.
Graph uneven_training_chain(std::mt19937& random, Index n) {
    Graph graph = training_chain(n);
    for (GraphNode& node : graph.nodes) {
        node.time = 0.5 * static_cast<double>(random() % 12);
        node.bytes = 1 + static_cast<std::int64_t>(random() % 8);
    }
    for (Index i = 1; i < n; ++i) graph.nodes[2 * n - 1 - i].bytes = graph.nodes[i - 1].bytes;
    return graph;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_a_chain) {
    for (const Index n : {1, 2, 3, 40, 500}) BOOST_CHECK(is_chain(training_chain(n)));
    BOOST_CHECK(is_chain(plain_chain({3})));
    BOOST_CHECK(is_chain(plain_chain({3, 1, 4, 1, 5})));
    // The numbers of the nodes do not matter.
    BOOST_CHECK(is_chain(renumbered(training_chain(3), {4, 1, 5, 0, 3, 2})));

    Graph graph = training_chain(4);
    graph.nodes[6].bytes = 2;  // the adjoint of a value of one byte
    BOOST_CHECK(!is_chain(graph));
    graph = training_chain(4);
    graph.nodes[7].bytes = 2;  // the adjoint of nothing
    BOOST_CHECK(is_chain(graph));
    graph = training_chain(4);
    graph.nodes[5].preds.push_back(0);  // a skip connection
    BOOST_CHECK(!is_chain(graph));
    graph = training_chain(4);
    graph.nodes[5].preds = {4, 2};  // its input is not needed
    BOOST_CHECK(!is_chain(graph));
    graph = training_chain(4);
    graph.nodes.push_back({1.0, 1, {7}});  // one node more
    BOOST_CHECK(!is_chain(graph));
    BOOST_CHECK_THROW(is_chain(Graph{}), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(plain_chains_compute_every_node_once) {
    const Graph graph = plain_chain({3, 1, 4, 1, 5, 9, 2, 6});
    const GraphPlan plan = planned(graph, 14);
    BOOST_CHECK(plan.proven);
    BOOST_CHECK_EQUAL(plan.cost, 12.0);
    BOOST_CHECK_EQUAL(plan.peak_bytes, 14);
    BOOST_CHECK_EXCEPTION(plan_graph_chain(graph, 13), NoPlan, Says{"needs 14 bytes, offered 13"});
}

BOOST_AUTO_TEST_CASE(never_below_the_optimum_over_all_orders_and_mostly_equal) {
    std::mt19937 random(99);
    int equal = 0;
    int above = 0;
    for (int trial = 0; trial < 1000; ++trial) {
        const Graph graph = uneven_training_chain(random, 1 + static_cast<Index>(random() % 8));
        const LeastBudget least = least_graph_budget(graph);
        const std::int64_t spare = all_bytes(graph) - least.bytes;
        const std::int64_t budget = least.bytes + static_cast<std::int64_t>(random() % (spare + 1)) / 2;
        BOOST_TEST_CONTEXT("trial " << trial << ", budget " << budget) {
            const double optimum = optimal_graph({graph, budget}).cost;
            const double cost = planned(graph, budget).cost;
            BOOST_CHECK(cost >= optimum - 1e-9);
            (cost <= optimum + 1e-9 ? equal : above) += 1;
            if (least.bytes == 0) continue;
            BOOST_CHECK_EXCEPTION(plan_graph_chain(graph, least.bytes - 1), NoPlan, Says{"needs"});
        }
    }
    BOOST_TEST_MESSAGE(equal << " at the optimum over all orders, " << above << " above it");
    BOOST_CHECK(equal >= 980);
}

BOOST_AUTO_TEST_CASE(chains_of_equal_nodes) {
    for (const std::int64_t budget : {4, 5, 6, 8, 10, 12, 16}) {
        BOOST_CHECK_EQUAL(planned(training_chain(12), budget).cost, optimal_graph({training_chain(12), budget}).cost);
    }
    BOOST_CHECK_EQUAL(planned(training_chain(20), 6).cost, 64.0);
    BOOST_CHECK_EQUAL(planned(training_chain(20), 8).cost, 53.0);
    BOOST_CHECK_EQUAL(planned(training_chain(32), 4).cost, 499.0);
    // The cost falls as the budget grows, to that of every node once.
    double before = std::numeric_limits<double>::infinity();
    for (std::int64_t budget = 4; budget <= 104; budget += 4) {
        const double cost = planned(training_chain(100), budget).cost;
        BOOST_CHECK(cost <= before);
        before = cost;
    }
    BOOST_CHECK_EQUAL(before, 200.0);
}

BOOST_AUTO_TEST_CASE(what_is_no_chain_is_refused) {
    Graph graph = training_chain(4);
    graph.nodes[5].preds.push_back(0);
    BOOST_CHECK_EXCEPTION(plan_graph_chain(graph, 9), InvalidArgument, Says{"the graph is no chain"});
    BOOST_CHECK_THROW(plan_graph_chain(Graph{}, 9), InvalidArgument);
    BOOST_CHECK_EXCEPTION(plan_graph_chain(training_chain(4), 3), NoPlan, Says{"needs 4 bytes, offered 3"});
    BOOST_CHECK_EXCEPTION(plan_graph_chain(training_chain(4), -3), NoPlan, Says{"needs 4 bytes, offered -3"});
}
