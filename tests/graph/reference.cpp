// The reference file dag_small by Checkmate's programme: staged_optimum where it is given.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE graph_reference
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/graph/staged_milp.hpp"
#include "schedule/reference_graph.hpp"
#include "support/reference_dir.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <iostream>

using namespace backsweep;
using namespace backsweep::test;
using nlohmann::json;

namespace {

void staged_point(const Graph& graph, std::int64_t budget, const json& optimum) {
    if (optimum.is_null()) {
        BOOST_CHECK_THROW(staged_milp(graph, budget), NoPlan);
        return;
    }
    const GraphPlan plan = staged_milp(graph, budget);
    const GraphPlay play = referee(graph, plan.steps, budget);
    const auto wanted = optimum.get<double>();
    BOOST_CHECK(plan.proven);
    BOOST_CHECK_EQUAL(plan.cost, play.cost);
    BOOST_CHECK_MESSAGE(std::abs(play.cost - wanted) <= 1e-9 * wanted, play.cost << " is not " << wanted);
}

}  // namespace

BOOST_AUTO_TEST_CASE(staged_optima) {
    const json file = json::parse(std::ifstream(reference_dir() / "schedules/dag_small.json"));
    BOOST_CHECK_EQUAL(file.at("name").get<std::string>(), "dag_small");
    long points = 0;
    for (const json& test : file.at("cases")) {
        const Graph graph = dag_small_graph(test);
        for (const json& point : test.at("points")) {
            if (!point.contains("staged_optimum")) continue;
            BOOST_TEST_CONTEXT(test << " at " << point) {
                BOOST_CHECK_NO_THROW(
                    staged_point(graph, point.at("budget").get<std::int64_t>(), point.at("staged_optimum")));
            }
            ++points;
        }
    }
    std::cout << "graph.reference: " << points << " points of dag_small by the programme" << std::endl;
    BOOST_CHECK(points > 0);
}

BOOST_AUTO_TEST_CASE(two_cases_have_plans_but_no_staged_ones) {
    // The optimum of these computes a node twice in what would be one stage.
    const json cases = json::parse(std::ifstream(reference_dir() / "schedules/dag_small.json")).at("cases");
    for (const auto& [number, budget] : {std::pair{78, 14}, {98, 16}}) {
        BOOST_CHECK_THROW(staged_milp(dag_small_graph(cases.at(number)), budget), NoPlan);
    }
}
