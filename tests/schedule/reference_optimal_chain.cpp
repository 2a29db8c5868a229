// Reference cases of optimal_chain: persistent and exhaustive optima of heterogeneous chains.
// SPDX-License-Identifier: MIT
#include "support/unit_test.hpp"

#include "backsweep/schedule/optimal_chain.hpp"
#include "backsweep/schedule/referee.hpp"
#include "reference_cases.hpp"
#include "support/chain_machine.hpp"
#include "support/reference_dir.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

namespace backsweep::test {

using nlohmann::json;

namespace {

constexpr double infeasible = std::numeric_limits<double>::infinity();

ChainCosts chain_of(const json& test) {
    return {test.at("forward_time"), test.at("backward_time"),    test.at("act_size"),
            test.at("tape_size"),    test.at("forward_overhead"), test.at("backward_overhead")};
}

double optimum(const json& point, const char* key) {
    return point.at(key).is_null() ? infeasible : point.at(key).get<double>();
}

/// The cost that the referee sees, having checked what the plan says of itself; infinite if there is none.
double played(const ChainCosts& chain, std::int64_t budget, bool second_table) {
    ChainOptions options;
    options.chain = chain;
    options.budget = budget;
    options.second_table = second_table;
    const std::optional<ChainPlan> plan = plan_optimal_chain(options);
    if (!plan) return infeasible;
    const Play play = referee(*optimal_chain(*plan), chain.links(), {}, chain_machine(chain));
    BOOST_CHECK(std::abs(play.cost - plan->cost) <= 1e-9 * plan->cost);
    BOOST_CHECK_EQUAL(play.peak_total, plan->peak);
    BOOST_CHECK(play.peak_total <= budget);
    BOOST_CHECK(plan->exact && plan->lower_bound == plan->cost);
    return play.cost;
}

bool equal(double a, double b) {
    return a == b || std::abs(a - b) <= 1e-9 * std::abs(b);
}

}  // namespace

void rotor_chain_case(const json& test) {
    const ChainCosts chain = chain_of(test);
    for (const json& point : test.at("points")) {
        const auto budget = point.at("budget").get<std::int64_t>();
        BOOST_TEST_CONTEXT("budget " << budget) {
            const double persistent = optimum(point, "persistent_optimum");
            BOOST_CHECK(equal(played(chain, budget, false), persistent));
            const double ours = played(chain, budget, true);
            BOOST_CHECK(ours <= persistent || equal(ours, persistent));
            if (point.contains("exhaustive_optimum")) {
                const double exhaustive = optimum(point, "exhaustive_optimum");
                BOOST_CHECK(ours >= exhaustive || equal(ours, exhaustive));
            }
            BOOST_CHECK_EQUAL(least_chain_budget(chain) <= budget, ours < infeasible);
            BOOST_CHECK_EQUAL(least_chain_budget(chain, false) <= budget, persistent < infeasible);
        }
    }
    const auto full = test.at("store_all_peak").get<std::int64_t>();
    BOOST_CHECK_EQUAL(full_chain_budget(chain), full);
    BOOST_CHECK(equal(played(chain, full, true), test.at("store_all_time").get<double>()));
}

/// Over all points with both optima the second table closes at least 95 % of what persistence costs.
BOOST_AUTO_TEST_CASE(the_second_table_closes_the_gap_of_rotor_chain) {
    double gap = 0.0;
    double left = 0.0;
    for (const auto& entry : std::filesystem::directory_iterator(reference_dir() / "schedules")) {
        if (entry.path().extension() != ".json") continue;
        const json file = json::parse(std::ifstream(entry.path()));
        if (file.at("name") != "rotor_chain") continue;
        for (const json& test : file.at("cases")) {
            for (const json& point : test.at("points")) {
                if (!point.contains("exhaustive_optimum") || point.at("persistent_optimum").is_null()) continue;
                const double exhaustive = optimum(point, "exhaustive_optimum");
                gap += optimum(point, "persistent_optimum") / exhaustive - 1.0;
                left += played(chain_of(test), point.at("budget"), true) / exhaustive - 1.0;
            }
        }
    }
    BOOST_TEST_MESSAGE("rotor_chain: " << 100.0 * (1.0 - left / gap) << " % of the gap closed");
    BOOST_CHECK(left <= 0.05 * gap);
}

}  // namespace backsweep::test
