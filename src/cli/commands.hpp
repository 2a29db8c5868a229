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
    std::filesystem::path trace;     ///< of what was done when; empty: none
    Index trace_events = 1'000'000;  ///< at most
    bool untimed = false;            ///< the actions' seconds are not noted
    std::string verify = "off";      ///< "off", "slots", "steps"
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

struct ReportArguments {
    std::filesystem::path run;
    std::filesystem::path out;  ///< empty: report.html in the run's folder
};
int report(const ReportArguments& arguments);

struct SampleArguments {
    std::filesystem::path run;
    Index bytes = 500;
    double temperature = 1.0;  ///< 0: always the likeliest
    Index seed = 1;
    std::string prompt = "\n";
    bool json = false;
};
int sample(const SampleArguments& arguments);

struct ExportArguments {
    std::filesystem::path run;
    std::filesystem::path file;
};
int export_weights(const ExportArguments& arguments);

struct InfoArguments {
    std::filesystem::path file;
    std::vector<std::string> settings;
    bool json = false;
};
int info(const InfoArguments& arguments);

/// What is known of a chain without a model.
struct ChainArguments {
    Index steps = 0;
    Index slots = 0;           ///< states that RAM may keep; or bytes:
    std::string memory, disk;  ///< sizes, empty: not given
    std::string state_bytes, tape_bytes;
    Index disk_slots = 0;
    std::string costs;     ///< "advance=1,record=1,reverse=2,disk-write=5,disk-read=5"
    std::string schedule;  ///< the family that is shown, or whose actions are printed or drawn; empty: all, the best
    bool restart = false;  ///< a tape gives the state behind its link
    bool actions = false;
    std::filesystem::path plot;

    bool operator==(const ChainArguments&) const = default;
};

struct PlanArguments {
    std::filesystem::path file;  ///< a run, or a graph; empty: a chain
    std::vector<std::string> settings;
    Index measure = 0;  ///< updates of each candidate to run and measure
    std::string fit;    ///< "T", "B": the largest that fits; empty: not asked
    bool calibrate = false;
    ChainArguments chain;
    bool graph = false;  ///< of the file's model, or the file itself where its name ends in .json
    bool json = false;
};
int plan(const PlanArguments& arguments);

/// Warnings go to standard error, one a line.
void warn(const std::vector<std::string>& warnings);

/// Throws InvalidArgument, naming argument, value and range.
void require_within(const char* argument, Index value, Index least, Index most);

}  // namespace backsweep::cli
