// Runs every reference file of the folder nn: by operation and options, never by name. A file with neither a runner nor
// a row in the list of waiting cases fails, and so does a result that no runner checked.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE reference.nn
#include "nn/reference_cases.hpp"
#include "support/reference_dir.hpp"
#include "support/waiting.hpp"

#include <iostream>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// The row under which a case waits: its operation, one of the options it makes use of, or the value of one.
const Waiting* waits(const ReferenceCase& c) {
    if (const Waiting* row = waiting_for("nn", c.operation)) return row;
    for (const auto& [key, value] : c.options.items()) {
        const bool used = !(value.is_null() || value == false || value == 0);
        if (const Waiting* row = waiting_for("nn", c.operation, key); row && used) return row;
        if (value.is_string())
            if (const Waiting* row = waiting_for("nn", c.operation, key + "=" + value.get<std::string>())) return row;
    }
    return nullptr;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_file) {
    const std::filesystem::path folder = reference_dir() / "nn";
    BOOST_TEST_REQUIRE(std::filesystem::is_directory(folder), folder << " is not there; set BACKSWEEP_REFERENCE");
    std::map<std::string, std::pair<int, int>> counts;  // run, waiting
    int run = 0, waiting = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".safetensors") continue;
        BOOST_TEST_CONTEXT(entry.path().filename().string()) {
            const Safetensors file = Safetensors::read(entry.path());
            const ReferenceCase c{file, file.metadata("op"), nlohmann::json::parse(file.metadata("options")), {}};
            if (waits(c)) {
                ++waiting;
                ++counts[c.operation].second;
                continue;
            }
            const auto runner = runners().find(c.operation);
            if (runner == runners().end()) {
                BOOST_ERROR("nothing runs operation '"
                            << c.operation << "' with options " << c.options.dump()
                            << "; write a runner, or enter what is missing in tests/support/waiting.hpp");
                continue;
            }
            try {
                runner->second(c);
            } catch (const std::exception& e) {
                BOOST_ERROR(e.what());
            }
            for (const auto& result : nlohmann::json::parse(file.metadata("results")))
                BOOST_TEST(c.checked.contains(result.get<std::string>()),
                           "no runner checked '" << result.get<std::string>() << "'");
            ++run;
            ++counts[c.operation].first;
        }
    }
    for (const auto& [operation, n] : counts)
        std::cout << operation << ": " << n.first << " run, " << n.second << " waiting\n";
    std::cout << "reference.nn: " << run << " cases run, " << waiting << " waiting for a later issue\n";
    BOOST_TEST(run > 0);
}
