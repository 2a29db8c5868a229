// Every file of the reference folder, dispatched on the name inside it; nothing is passed over in silence.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE reference_schedules
#include "support/unit_test.hpp"

#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "support/reference_dir.hpp"
#include "support/waiting.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;
using nlohmann::json;

namespace {

/// Chains with more advances than this are not played, only predicted.
constexpr Index longest_play = 2000000;

Index number(const json& test, const char* key) {
    return test.at(key).get<Index>();
}

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
    const Play play = referee(*revolve(steps, slots), steps, {}, {}, limits);
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
    const Play play = referee(*schedule, steps - 1, stored, {}, limits);
    const Index total_forward = steps + play.advances + play.recorded;
    BOOST_CHECK(total_forward <= number(test, "total_forward"));
    BOOST_CHECK(total_forward >= number(test, "offline_total_forward"));
}

const std::map<std::string, void (*)(const json&)> operations{
    {"revolve", revolve_case},
    {"revolve_inverse", revolve_inverse_case},
    {"binomial_range", binomial_range_case},
    {"online_completion", online_completion_case},
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_file) {
    const std::filesystem::path folder = reference_dir() / "schedules";
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    BOOST_TEST_REQUIRE(!files.empty(), "no reference file in " << folder);

    long run = 0;
    long waiting = 0;
    for (const std::filesystem::path& path : files) {
        const json file = json::parse(std::ifstream(path));
        const auto name = file.at("name").get<std::string>();
        const json& cases = file.at("cases");
        BOOST_CHECK_EQUAL(file.at("format").get<int>(), 1);
        BOOST_CHECK_MESSAGE(!cases.empty(), path << " has no case");
        const auto operation = operations.find(name);
        const Waiting* const row = waiting_for("schedules", name);
        BOOST_CHECK_MESSAGE((operation == operations.end()) != (row == nullptr),
                            name << " must either run or wait in tests/support/waiting.hpp");
        if (operation == operations.end()) {
            waiting += static_cast<long>(cases.size());
            std::cout << name << ": " << cases.size() << " cases wait for " << (row ? row->issue : "nothing") << '\n';
            continue;
        }
        for (const json& test : cases) {
            BOOST_TEST_CONTEXT(name << " " << test) {
                BOOST_CHECK_NO_THROW(operation->second(test));
            }
            ++run;
        }
        std::cout << name << ": " << cases.size() << " cases run\n";
    }
    std::cout << "reference.schedules: " << files.size() << " files, " << run << " cases run, " << waiting
              << " cases waiting" << std::endl;
    BOOST_CHECK(run > 0);
}
