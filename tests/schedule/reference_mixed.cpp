// Reference cases of mixed.
// SPDX-License-Identifier: MIT
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/mixed.hpp"
#include "backsweep/schedule/referee.hpp"
#include "reference_cases.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace backsweep::test {

using nlohmann::json;

namespace {

Index number(const json& test, const char* key) {
    return test.at(key).get<Index>();
}

/// The referee holds the schedule to the budget and counts the forwards.
void check(const MixedOptions& options, Index forwards) {
    BOOST_TEST_CONTEXT("rule " << static_cast<int>(options.rule) << ", tape_units " << options.tape_units) {
        BOOST_CHECK_EQUAL(mixed_forwards(options), forwards);
        Machine machine;
        machine.sizes.state = [](Index) { return std::int64_t{1}; };
        machine.sizes.tape = [&](Index) { return options.tape_units; };
        machine.limits.bytes = {0, 0, options.units, 0};
        const Play play = referee(*mixed(options), options.steps, {}, machine);
        BOOST_CHECK_EQUAL(play.advances + play.recorded, forwards);
    }
}

}  // namespace

void mixed_tape_case(const json& test) {
    MixedOptions options;
    options.steps = number(test, "steps");
    options.units = number(test, "units");
    options.tape_units = number(test, "tape_units");
    options.restart = test.at("tape_holds_next_state").get<bool>();
    if (test.at("optimal_forward").is_null()) {
        BOOST_CHECK_THROW(mixed_forwards(options), InvalidArgument);
        BOOST_CHECK_THROW(mixed(options), InvalidArgument);
        return;
    }
    check(options, number(test, "optimal_forward"));
    if (options.tape_units == 1 && !options.restart) {
        options.rule = MixedRule::maddison;
        check(options, number(test, "optimal_forward"));
    }
    if (test.contains("gruslys_msm") && !test.at("gruslys_msm").is_null()) {
        options.rule = MixedRule::mixed;
        check(options, number(test, "gruslys_msm"));
    }
}

void gruslys_case(const json& test) {
    MixedOptions options;
    options.steps = number(test, "steps");
    options.units = number(test, "slots");
    options.rule = MixedRule::hidden;
    check(options, number(test, "hsm"));
    options.rule = MixedRule::internal;
    check(options, number(test, "ism"));
    options.rule = MixedRule::mixed;
    for (const auto& [tape_units, forwards] : test.at("msm").items()) {
        options.tape_units = std::stoll(tape_units);
        check(options, forwards.get<Index>());
    }
}

}  // namespace backsweep::test
