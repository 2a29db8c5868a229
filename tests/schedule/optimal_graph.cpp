// The search over sets of resident values, against exhaustive solvers.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_optimal_graph
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/optimal_graph.hpp"
#include "graphs.hpp"
#include "support/streams.hpp"

#include <cmath>
#include <random>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// Plans and has the referee confirm what the plan says of itself.
GraphPlan planned(const GraphOptions& options) {
    const GraphPlan plan = optimal_graph(options);
    const GraphPlay play = referee(options.graph, plan.steps, options.budget);
    BOOST_CHECK_EQUAL(plan.cost, play.cost);
    BOOST_CHECK_EQUAL(plan.peak_bytes, play.peak_bytes);
    BOOST_CHECK(plan.lower_bound <= plan.cost);
    BOOST_CHECK(plan.table_bytes > 0);
    BOOST_CHECK_EQUAL(plan.method, "search");
    if (plan.proven) BOOST_CHECK_EQUAL(plan.lower_bound, plan.cost);
    return plan;
}

bool close(double a, double b) {
    return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

void equals_exhaustive(const Graph& graph, std::int64_t budget) {
    const double least = exhaustive_cost(graph, budget);
    BOOST_TEST_CONTEXT("budget " << budget << ", least " << least) {
        if (std::isinf(least)) {
            BOOST_CHECK_THROW(optimal_graph({graph, budget}), NoPlan);
        } else {
            const GraphPlan plan = planned({graph, budget});
            BOOST_CHECK(plan.proven);
            BOOST_CHECK_MESSAGE(close(plan.cost, least), plan.cost << " is not " << least);
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_plan_by_hand) {
    // a is needed by b and by e; with 6 bytes it must go while c is computed from b.
    const Graph graph{{{1, 3, {}, "a"}, {2, 3, {0}, "b"}, {2, 3, {1}, "c"}, {1, 1, {2}, "d"}, {1, 1, {0, 3}, "e"}}};
    using enum GraphStep::Verb;
    const std::vector<GraphStep> steps{{compute, 0}, {compute, 1}, {drop, 0},    {compute, 2}, {drop, 1}, {compute, 3},
                                       {drop, 2},    {compute, 0}, {compute, 4}, {drop, 0},    {drop, 3}};
    const GraphPlan plan = planned({graph, 6});
    BOOST_CHECK_EQUAL(plan.cost, 8.0);
    BOOST_CHECK_EQUAL(referee(graph, steps, 6).cost, 8.0);
    BOOST_CHECK_EQUAL(planned({graph, 9}).cost, 7.0);
}

BOOST_AUTO_TEST_CASE(equal_to_the_exhaustive_optimum) {
    std::mt19937 random(2020);
    for (int trial = 0; trial < 400; ++trial) {
        const Index count = 1 + static_cast<Index>(random() % 9);
        const Graph graph = random_graph(random, count, trial % 2 == 0);
        BOOST_TEST_CONTEXT("trial " << trial) {
            BOOST_REQUIRE(graph.problem().empty());
            const std::int64_t least = largest_node_bytes(graph);
            const std::int64_t spare = all_bytes(graph) - least;
            for (const std::int64_t budget : {least, least + 1, least + spare / 4, least + spare / 2, least + spare}) {
                equals_exhaustive(graph, budget);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(the_least_budget_is_the_least_that_serves) {
    std::mt19937 random(7);
    long above_the_largest_node = 0;
    for (int trial = 0; trial < 200; ++trial) {
        const Graph graph = random_graph(random, 4 + trial % 6, true);
        BOOST_TEST_CONTEXT("trial " << trial) {
            const LeastBudget least = least_graph_budget(graph);
            BOOST_CHECK(least.exact);
            BOOST_CHECK(least.bytes >= largest_node_bytes(graph));
            BOOST_CHECK(!std::isinf(exhaustive_cost(graph, least.bytes)));
            if (least.bytes == 0) continue;
            BOOST_CHECK(std::isinf(exhaustive_cost(graph, least.bytes - 1)));
            const std::string words =
                "needs " + std::to_string(least.bytes) + " bytes, offered " + std::to_string(least.bytes - 1);
            BOOST_CHECK_EXCEPTION(optimal_graph({graph, least.bytes - 1}), NoPlan, Says{words});
            above_the_largest_node += least.bytes > largest_node_bytes(graph) ? 1 : 0;
        }
    }
    BOOST_CHECK_MESSAGE(above_the_largest_node > 10,
                        above_the_largest_node << " graphs need more than their largest node");
}

BOOST_AUTO_TEST_CASE(training_chains) {
    // Few values fit at once here, so the exhaustive solver reaches these too.
    for (const std::int64_t budget : {4, 5, 6}) equals_exhaustive(training_chain(12), budget);
    for (const std::int64_t budget : {4, 5}) equals_exhaustive(training_chain(15), budget);
    equals_exhaustive(training_chain(20), 4);
    // The others: found by an independent search that drops anything at any time.
    BOOST_CHECK_EQUAL(planned({training_chain(12), 8}).cost, 29.0);
    BOOST_CHECK_EQUAL(planned({training_chain(12), 10}).cost, 27.0);
    BOOST_CHECK_EQUAL(planned({training_chain(12), 13}).cost, 24.0);
    BOOST_CHECK_EQUAL(planned({training_chain(20), 6}).cost, 64.0);
    BOOST_CHECK_EQUAL(planned({training_chain(20), 8}).cost, 53.0);
    BOOST_CHECK_EQUAL(planned({training_chain(20), 10}).cost, 51.0);
    BOOST_CHECK_EXCEPTION(optimal_graph({training_chain(20), 3}), BudgetTooSmall, Says{"needs 4 bytes, offered 3"});
}

BOOST_AUTO_TEST_CASE(units_do_not_matter) {
    const Graph graph = training_chain(9, 1e-9, std::int64_t{1} << 58);
    BOOST_CHECK(close(planned({graph, std::int64_t{5} << 58}).cost, 1e-9 * planned({training_chain(9), 5}).cost));
    BOOST_CHECK(close(planned({graph, (std::int64_t{6} << 58) - 1}).cost, 1e-9 * planned({training_chain(9), 5}).cost));
    BOOST_CHECK_EQUAL(planned({training_chain(9, 0.0), 5}).cost, 0.0);
    BOOST_CHECK_EQUAL(planned({training_chain(9, 1.0, 0), 0}).cost, 18.0);
    BOOST_CHECK_EQUAL(planned({Graph{{{2.5, 3, {}}}}, 3}).cost, 2.5);
}

BOOST_AUTO_TEST_CASE(sixty_four_nodes) {
    // Bit 63 is the goal.
    BOOST_CHECK_EQUAL(planned({training_chain(32), 4}).cost, 499.0);
    BOOST_CHECK_EQUAL(planned({training_chain(32), 34}).cost, 64.0);
    BOOST_CHECK_EXCEPTION(optimal_graph({training_chain(33), 34}), InvalidArgument,
                          Says{"up to 64 nodes, this one has 66"});
    BOOST_CHECK_THROW(least_graph_budget(training_chain(33)), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(a_search_cut_short_knows_how_far_off_it_may_be) {
    const GraphPlan best = planned({training_chain(20), 8});
    for (const Index states : {20000, 100000}) {
        const GraphPlan plan = planned({training_chain(20), 8, states});
        BOOST_TEST_CONTEXT(states << " states: " << plan.cost << ", bound " << plan.lower_bound) {
            BOOST_CHECK(!plan.proven);
            BOOST_CHECK(plan.lower_bound >= 40.0);
            BOOST_CHECK(plan.lower_bound <= best.cost);
            BOOST_CHECK(plan.cost >= best.cost);
            BOOST_CHECK(plan.cost <= 2.0 * best.cost);
            BOOST_CHECK(plan.gap() > 0.0);
        }
    }
    BOOST_TEST((planned({training_chain(20), 8, 20000}).steps == planned({training_chain(20), 8, 20000}).steps));
    BOOST_CHECK(!planned({training_chain(20), 8, 4000000, 1e-9}).proven);
    BOOST_CHECK_EXCEPTION(optimal_graph({training_chain(20), 8, 20}), NoPlan, Says{"none excluded"});
    BOOST_CHECK(!least_graph_budget(training_chain(20), 10).exact);
}

BOOST_AUTO_TEST_CASE(bad_options) {
    const Graph graph = training_chain(3);
    const auto refused = [](const GraphOptions& options, const std::string& words) {
        BOOST_CHECK_EXCEPTION(optimal_graph(options), InvalidArgument, Says{words});
    };
    refused({Graph{}, 4}, "at least one node");
    refused({training_chain(3, -1.0), 4}, "time must be finite");
    refused({graph, -1}, "budget must be 0 or more bytes, came -1");
    refused({graph, 4, 0}, "states must lie in 1 ... 2^31, came 0");
    refused({graph, 4, Index{1} << 40}, "states must lie in");
    refused({graph, 4, 100, -1.0}, "seconds must be");
    refused({graph, 4, 100, std::nan("")}, "seconds must be");
    BOOST_CHECK_EXCEPTION(optimal_graph({graph, 0}), NoPlan, Says{"needs 4 bytes, offered 0"});
    BOOST_CHECK_THROW(least_graph_budget(graph, 0), InvalidArgument);
    BOOST_CHECK_THROW(least_graph_budget(Graph{}), InvalidArgument);
}
