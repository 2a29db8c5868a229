// Reference cases of revolve and of complete.
// SPDX-License-Identifier: MIT
#include "support/unit_test.hpp"

#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "reference_cases.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace backsweep::test {

using nlohmann::json;

namespace {

Index number(const json& test, const char* key) {
    return test.at(key).get<Index>();
}

}  // namespace

void revolve_case(const json& test) {
    const Index steps = number(test, "steps");
    const Index slots = number(test, "slots");
    const Index advances = number(test, "advances");
    BOOST_CHECK_EQUAL(revolve_advances(steps, slots), advances);
    BOOST_CHECK_EQUAL(advances + steps, number(test, "total_forward"));
    BOOST_CHECK_EQUAL(repetitions(steps, slots), number(test, "repetitions"));
    if (test.contains("first_advance_min")) {
        const AdvanceInterval first = first_advance_interval(steps, slots);
        BOOST_CHECK_EQUAL(first.shortest, number(test, "first_advance_min"));
        BOOST_CHECK_EQUAL(first.longest, number(test, "first_advance_max"));
    } else {
        BOOST_CHECK(steps <= 1);
    }
    if (advances > longest_play) return;
    Limits limits;
    limits.slots[static_cast<std::size_t>(Tier::ram)] = slots;
    const Play play = referee(*revolve(steps, slots), steps, {}, {.limits = limits});
    BOOST_CHECK_EQUAL(play.advances, advances);
    BOOST_CHECK_EQUAL(play.recorded, steps);
}

void revolve_inverse_case(const json& test) {
    const Index steps = number(test, "steps");
    const Index slots = least_slots(steps, number(test, "max_advances"));
    BOOST_CHECK_EQUAL(slots, number(test, "min_slots"));
    BOOST_CHECK_EQUAL(revolve_advances(steps, slots), number(test, "advances_at_min"));
}

void binomial_range_case(const json& test) {
    BOOST_CHECK_EQUAL(binomial(number(test, "slots"), number(test, "repetitions")), number(test, "max_steps"));
}

/// The file's model records the last step of the first sweep as it is run, so the completion has steps - 1 links.
void online_completion_case(const json& test) {
    const Index steps = number(test, "steps");
    const Index slots = number(test, "slots");
    const auto checkpoints = test.at("checkpoints").get<std::vector<Index>>();
    std::vector<Stored> stored;
    Index keeping_all = steps + (steps - 1);
    for (std::size_t i = 0; i < checkpoints.size(); ++i) {
        const auto depth = static_cast<Index>(i);
        stored.push_back({checkpoints[i], {Tier::ram, static_cast<std::int32_t>(i)}});
        const Index next = i + 1 < checkpoints.size() ? checkpoints[i + 1] : steps - 1;
        keeping_all += revolve_advances(next - checkpoints[i], slots - depth);
    }
    BOOST_CHECK_EQUAL(keeping_all, number(test, "total_forward"));
    Limits limits;
    limits.slots[static_cast<std::size_t>(Tier::ram)] = slots;
    const auto schedule = complete(stored, slots, steps - 1);
    const Play play = referee(*schedule, steps - 1, stored, {.limits = limits});
    const Index total_forward = steps + play.advances + play.recorded;
    BOOST_CHECK(total_forward <= number(test, "total_forward"));
    BOOST_CHECK(total_forward >= number(test, "offline_total_forward"));
}

}  // namespace backsweep::test
