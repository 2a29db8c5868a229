// Reference cases of optimal_graph.
// SPDX-License-Identifier: MIT
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/optimal_graph.hpp"
#include "reference_cases.hpp"
#include "reference_graph.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

namespace backsweep::test {

using nlohmann::json;

void dag_small_case(const json& test) {
    const Graph graph = dag_small_graph(test);
    BOOST_CHECK_EQUAL(referee(graph, once_in_order(graph)).cost, test.at("sum_cost").get<double>());
    for (const json& point : test.at("points")) {
        const auto budget = point.at("budget").get<std::int64_t>();
        BOOST_TEST_CONTEXT("budget " << budget) {
            if (point.at("any_order_optimum").is_null()) {
                BOOST_CHECK_THROW(optimal_graph({graph, budget}), NoPlan);
                continue;
            }
            const auto optimum = point.at("any_order_optimum").get<double>();
            const GraphPlan plan = optimal_graph({graph, budget});
            const GraphPlay play = referee(graph, plan.steps, budget);
            BOOST_CHECK(plan.proven);
            BOOST_CHECK_EQUAL(plan.cost, play.cost);
            BOOST_CHECK_MESSAGE(std::abs(play.cost - optimum) <= 1e-9 * optimum, play.cost << " is not " << optimum);
        }
    }
}

}  // namespace backsweep::test
