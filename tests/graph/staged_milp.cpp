// Checkmate's programme: its plans are legal, never below the optimum over all orders, and its bounds hold.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE graph_staged_milp
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/graph/staged_milp.hpp"
#include "backsweep/schedule/optimal_graph.hpp"
#include "schedule/graphs.hpp"
#include "support/streams.hpp"

#include <cmath>
#include <optional>
#include <random>

using namespace backsweep;
using namespace backsweep::test;

namespace {

GraphPlan planned(const Graph& graph, std::int64_t budget, double seconds = 60.0) {
    const GraphPlan plan = staged_milp(graph, budget, seconds);
    const GraphPlay play = referee(graph, plan.steps, budget);
    BOOST_CHECK_EQUAL(plan.cost, play.cost);
    BOOST_CHECK_EQUAL(plan.peak_bytes, play.peak_bytes);
    BOOST_CHECK(plan.lower_bound <= plan.cost);
    BOOST_CHECK(plan.orders == GraphOrders::staged);
    return plan;
}

}  // namespace

BOOST_AUTO_TEST_CASE(unit_training_chains) {
    for (const auto& [budget, cost] : {std::pair{4, 31.0}, {5, 21.0}, {6, 19.0}, {8, 17.0}, {10, 16.0}}) {
        const GraphPlan plan = planned(training_chain(8), budget);
        BOOST_CHECK(plan.proven);
        BOOST_CHECK_EQUAL(plan.cost, cost);
        BOOST_CHECK_EQUAL(plan.lower_bound, cost);
        BOOST_CHECK_EQUAL(plan.gap(), 0.0);
    }
}

BOOST_AUTO_TEST_CASE(random_graphs) {
    std::mt19937 random(11);
    int equal = 0;
    int above = 0;
    for (int trial = 0; trial < 40; ++trial) {
        const Graph graph = random_graph(random, 4 + trial % 7, true);
        const LeastBudget least = least_graph_budget(graph);
        const std::int64_t budget = least.bytes + trial % 4;
        BOOST_TEST_CONTEXT("trial " << trial << ", budget " << budget) {
            const double optimum = optimal_graph({graph, budget}).cost;
            std::optional<GraphPlan> plan;
            try {
                plan = planned(graph, budget);
            } catch (const NoPlan&) {
                // Stages can be infeasible where other orders are not.
                continue;
            }
            BOOST_CHECK(plan->proven);
            BOOST_CHECK(plan->cost >= optimum - 1e-9);
            (plan->cost <= optimum + 1e-9 ? equal : above) += 1;
            if (least.bytes > 0) BOOST_CHECK_THROW(staged_milp(graph, least.bytes - 1), NoPlan);
        }
    }
    BOOST_TEST_MESSAGE(equal << " at the optimum over all orders, " << above << " above it");
    BOOST_CHECK(equal >= 35);
}

BOOST_AUTO_TEST_CASE(units_do_not_matter) {
    const double cost = planned(training_chain(6), 5).cost;
    for (const auto& [time, bytes] : {std::pair{1e-9, std::int64_t{1} << 58}, {1e9, std::int64_t{1000000007}}}) {
        const GraphPlan plan = planned(training_chain(6, time, bytes), 5 * bytes);
        BOOST_CHECK(plan.proven);
        BOOST_CHECK(std::abs(plan.cost - time * cost) <= 1e-9 * plan.cost);
        // One byte less is one value less.
        BOOST_CHECK(planned(training_chain(6, time, bytes), 5 * bytes - 1).cost > plan.cost);
    }
    BOOST_CHECK_EQUAL(planned(training_chain(6, 0.0), 5).cost, 0.0);
    BOOST_CHECK_EQUAL(planned(Graph{{{2.5, 3, {}}}}, 3).cost, 2.5);
}

BOOST_AUTO_TEST_CASE(out_of_time_there_is_a_legal_plan_and_a_bound) {
    // 48 nodes: far too much to be solved in so short a time; the optimum over all orders is 108.
    const GraphPlan plan = planned(training_chain(24), 6, 2.0);
    BOOST_CHECK(!plan.proven);
    BOOST_CHECK(plan.lower_bound >= 48.0);
    BOOST_CHECK(plan.lower_bound <= 83.0);
    BOOST_CHECK(plan.cost >= 83.0);
    BOOST_CHECK(plan.gap() > 0.0);
}

BOOST_AUTO_TEST_CASE(bad_input) {
    const Graph graph = training_chain(4);
    BOOST_CHECK_EXCEPTION(staged_milp(Graph{}, 4), InvalidArgument, Says{"at least one node"});
    BOOST_CHECK_EXCEPTION(staged_milp(graph, -1), InvalidArgument, Says{"budget must be 0 or more bytes, came -1"});
    BOOST_CHECK_EXCEPTION(staged_milp(graph, 5, 0.0), InvalidArgument, Says{"seconds must be above 0"});
    BOOST_CHECK_EXCEPTION(staged_milp(graph, 5, std::nan("")), InvalidArgument, Says{"seconds must be above 0"});
    BOOST_CHECK_EXCEPTION(staged_milp(graph, 3), NoPlan, Says{"needs at least 4 bytes, offered 3"});
}
