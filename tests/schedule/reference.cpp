// Every file of the reference folder, dispatched on the name inside it; nothing is passed over in silence.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE reference_schedules
#include "support/unit_test.hpp"

#include "reference_cases.hpp"
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

const std::map<std::string, void (*)(const json&)> operations{
    {"revolve", revolve_case},
    {"revolve_inverse", revolve_inverse_case},
    {"binomial_range", binomial_range_case},
    {"online_completion", online_completion_case},
    {"multistage", multistage_case},
    {"hrevolve", hrevolve_case},
    {"disk_revolve", disk_revolve_case},
    {"periodic_disk", periodic_disk_case},
    {"twolevel", twolevel_case},
    {"mixed_tape", mixed_tape_case},
    {"gruslys", gruslys_case},
    {"rotor_chain", rotor_chain_case},
    {"nonuniform", nonuniform_case},
    {"dag_small", dag_small_case},
    {"uniform_segments", uniform_segments_case},
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
        json file, cases;
        std::string name;
        try {
            file = json::parse(std::ifstream(path));
            name = file.at("name").get<std::string>();
            cases = file.at("cases");
            BOOST_CHECK_EQUAL(file.at("format").get<int>(), 1);
        } catch (const json::exception& error) {
            BOOST_ERROR(path << ": " << error.what());
            continue;
        }
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
                try {
                    operation->second(test);
                } catch (const std::exception& error) {
                    BOOST_ERROR("it threw: " << error.what());
                }
            }
            ++run;
        }
        std::cout << name << ": " << cases.size() << " cases run\n";
    }
    std::cout << "reference.schedules: " << files.size() << " files, " << run << " cases run, " << waiting
              << " cases waiting" << std::endl;
    BOOST_CHECK(run > 0);
}
