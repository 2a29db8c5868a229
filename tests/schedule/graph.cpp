// Graphs of values and the judge of plans for them.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_graph
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/graph.hpp"
#include "graphs.hpp"
#include "support/streams.hpp"

#include <cmath>
#include <limits>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr GraphStep compute(Index node) {
    return {GraphStep::Verb::compute, node};
}
constexpr GraphStep drop(Index node) {
    return {GraphStep::Verb::drop, node};
}

/// a -> b -> c, a -> c.
Graph triangle() {
    return {{{1.0, 4, {}, "a"}, {2.0, 2, {0}, "b"}, {4.0, 1, {0, 1}, "c"}}};
}

std::string problem_with(const auto& change) {
    Graph graph = triangle();
    change(graph);
    return graph.problem();
}

bool says(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_legal_plan_is_counted) {
    const std::vector<GraphStep> steps{compute(0), compute(1), drop(0), compute(0), compute(2), drop(1), drop(0)};
    const GraphPlay play = referee(triangle(), steps, 7);
    BOOST_CHECK_EQUAL(play.cost, 8.0);
    BOOST_CHECK_EQUAL(play.peak_bytes, 7);
    BOOST_CHECK_EQUAL(play.computed, 4);
    BOOST_CHECK_EQUAL(play.recomputed, 1);
    BOOST_CHECK_EQUAL(play.dropped, 3);
}

BOOST_AUTO_TEST_CASE(every_rule_is_kept) {
    const auto refused = [](std::vector<GraphStep> steps, const std::string& words, std::int64_t budget = 7) {
        BOOST_CHECK_EXCEPTION(referee(triangle(), steps, budget), ScheduleError, Says{words});
    };
    refused({compute(0), compute(2)}, "step 1, compute node 2 (c): it needs node 1 (b), which is not resident");
    refused({compute(1)}, "step 0, compute node 1 (b): it needs node 0 (a)");
    refused({compute(0), compute(0)}, "it is resident already");
    refused({drop(0)}, "step 0, drop node 0 (a): it is not resident");
    refused({compute(0), drop(0), drop(0)}, "it is not resident");
    refused({compute(3)}, "there are only the nodes 0 ... 2");
    refused({compute(-1)}, "there are only the nodes 0 ... 2");
    refused({{static_cast<GraphStep::Verb>(2), 0}}, "neither compute nor drop");
    refused({compute(0), compute(1), compute(2)}, "6 bytes are resident and it takes 1; the budget is 6", 6);
    refused({}, "ends without its goal, node 2 (c)");
    refused({compute(0), compute(1), drop(0), drop(1)}, "ends without its goal");
    refused({compute(0), compute(1), compute(2), drop(0)}, "node 1 (b) is still resident; drop it");
    BOOST_CHECK_THROW(referee(Graph{}, {}), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(problems_are_told_in_words) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    BOOST_CHECK_EQUAL(triangle().problem(), "");
    BOOST_CHECK(says(Graph{}.problem(), "at least one node"));
    BOOST_CHECK(
        says(problem_with([](Graph& g) { g.nodes[1].time = -0.5; }), "node 1 (b): time must be finite and 0 or"));
    BOOST_CHECK(says(problem_with([](Graph& g) { g.nodes[1].time = nan; }), "time must be finite"));
    BOOST_CHECK(says(problem_with([](Graph& g) { g.nodes[1].time = infinity; }), "time must be finite"));
    BOOST_CHECK(
        says(problem_with([](Graph& g) { g.nodes[0].time = g.nodes[1].time = 1.5e308; }), "add up to infinity"));
    BOOST_CHECK(says(problem_with([](Graph& g) { g.nodes[2].bytes = -1; }), "bytes must be 0 or more, came -1"));
    BOOST_CHECK(says(problem_with([](Graph& g) { g.nodes[2].bytes = INT64_MAX; }), "more than 2^63 - 1 bytes"));
    BOOST_CHECK(says(problem_with([](Graph& g) { g.nodes[2].preds = {0, 1, 3}; }), "its pred 3 is not among"));
    BOOST_CHECK(says(problem_with([](Graph& g) { g.nodes[2].preds = {0, 1, -1}; }), "its pred -1 is not among"));
    BOOST_CHECK(says(problem_with([](Graph& g) {
                         g.nodes[2].preds = {1, 0, 1};
                     }),
                     "its pred node 1 (b) is named twice"));
    BOOST_CHECK(says(problem_with([](Graph& g) { g.nodes[0].preds = {1}; }), "needs itself through a cycle"));
    BOOST_CHECK(says(problem_with([](Graph& g) { g.nodes[1].preds = {0, 1}; }), "node 1 (b) needs itself"));
    BOOST_CHECK(says(problem_with([](Graph& g) { g.nodes[2].preds = {0}; }), "node 1 (b) and node 2 (c) are both"));
    BOOST_CHECK_THROW(topological_order(Graph{}), InvalidArgument);
    BOOST_CHECK_THROW(largest_node_bytes(Graph{}), InvalidArgument);
    BOOST_CHECK_THROW(once_in_order(Graph{}), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(orders) {
    // 3 -> 1 -> 0, 2 -> 0: among ready nodes the lowest number first.
    const Graph graph{{{1, 1, {1, 2}}, {1, 1, {3}}, {1, 5, {}}, {1, 2, {}}}};
    const std::vector<Index> order{2, 3, 1, 0};
    BOOST_TEST((topological_order(graph) == order));
    BOOST_CHECK_EQUAL(largest_node_bytes(graph), 7);
    const std::vector<GraphStep> steps{compute(2), compute(3), compute(1), drop(3), compute(0), drop(1), drop(2)};
    BOOST_TEST((once_in_order(graph) == steps));
    BOOST_CHECK_EQUAL(referee(graph, steps).cost, 4.0);
    BOOST_CHECK_EQUAL(referee(graph, steps).peak_bytes, 8);
}

BOOST_AUTO_TEST_CASE(the_gap) {
    GraphPlan plan;
    plan.cost = 51.0;
    plan.lower_bound = 50.0;
    BOOST_CHECK(std::abs(plan.gap() - 0.02) < 1e-15);
    plan.lower_bound = 0.0;
    BOOST_CHECK(std::isinf(plan.gap()));
    plan.proven = true;
    BOOST_CHECK_EQUAL(plan.gap(), 0.0);
}
