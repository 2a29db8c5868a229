// Reference cases of nonuniform.
// SPDX-License-Identifier: MIT
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/nonuniform.hpp"
#include "backsweep/schedule/referee.hpp"
#include "reference_cases.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <vector>

namespace backsweep::test {

using nlohmann::json;

void nonuniform_case(const json& test) {
    NonuniformOptions options;
    options.costs = test.at("step_cost").get<std::vector<double>>();
    options.sizes = test.at("state_size").get<std::vector<Index>>();
    options.slots = test.at("budget").get<Index>();
    if (test.at("persistent_optimum").is_null()) {  // infeasible
        BOOST_CHECK_THROW(nonuniform(options), InvalidArgument);
        return;
    }
    const auto optimum = test.at("persistent_optimum").get<double>();
    const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); };
    BOOST_CHECK(close(nonuniform_cost(options), optimum));

    Machine machine;
    machine.sizes.state = [&](Index step) {
        const auto i = static_cast<std::size_t>(step);
        return i < options.sizes.size() ? options.sizes[i] : 0;  // x_n is never kept
    };
    machine.limits.bytes = {0, 0, options.slots, 0};
    machine.costs.advance = [&](Index link) { return options.costs[static_cast<std::size_t>(link)]; };
    const auto steps = static_cast<Index>(options.costs.size());
    const Play play = referee(*nonuniform(options), steps, {}, machine);
    BOOST_CHECK(close(play.cost, optimum));
    if (test.contains("exhaustive_optimum") && !test.at("exhaustive_optimum").is_null()) {
        BOOST_CHECK(play.cost >= test.at("exhaustive_optimum").get<double>() * (1.0 - 1e-9));
    }
}

}  // namespace backsweep::test
