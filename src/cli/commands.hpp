// The commands of the program. Each prints its answer to standard output and returns the exit code.
// They throw InvalidArgument and NoPlan for what the user gave, other Errors for what failed on the way.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace backsweep::cli {

struct TrainArguments {
    std::filesystem::path file;
    std::vector<std::string> settings;  ///< "key=value"
    std::string out;                    ///< empty: the configuration says
    bool resume = false;
    bool json = false;
    std::vector<std::string> command;  ///< the whole command line, for the manifest
};
int train(const TrainArguments& arguments);

struct EvalArguments {
    std::filesystem::path run;
    std::vector<std::string> settings;
    std::vector<std::string> parts;  ///< empty: valid and test, as far as there are
    bool json = false;
};
int eval(const EvalArguments& arguments);

struct SampleArguments {
    std::filesystem::path run;
    Index bytes = 500;
    double temperature = 1.0;  ///< 0: always the likeliest
    Index seed = 1;
    std::string prompt = "\n";
    bool json = false;
};
int sample(const SampleArguments& arguments);

struct PlanArguments {
    std::filesystem::path file;  ///< empty: the schedules of `steps` and `slots` alone
    std::vector<std::string> settings;
    Index measure = 0;  ///< updates of each candidate to run and measure
    Index steps = 0, slots = 0;
    bool json = false;
};
int plan(const PlanArguments& arguments);

/// Warnings go to standard error, one a line.
void warn(const std::vector<std::string>& warnings);

/// Throws InvalidArgument, naming argument, value and range.
void require_within(const char* argument, Index value, Index least, Index most);

}  // namespace backsweep::cli
