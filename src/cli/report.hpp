// What the program says at its end, as text and as JSON: keys are the field's nouns in snake_case.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/plan/plan.hpp"
#include "backsweep/schedule/graph.hpp"
#include "backsweep/train/trainer.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace backsweep::cli {

/// A loss over a part of the data.
struct PartLoss {
    std::string part;  ///< "train", "valid", "test"
    Evaluation result;
    bool bits = false;
};

/// A training as it ended.
struct TrainReport {
    Index updates = 0, epochs = 0, steps = 0;  ///< steps of a window
    double seconds = 0.0;                      ///< of training
    std::optional<double> loss{};              ///< of the last update; none: nothing was left to do
    bool bits = false;
    Index remainder = 0;  ///< pairs of an epoch that fit into no window
    std::optional<PartLoss> valid{};
    Plan plan{};
    Bytes measured{};
    Counts last{};     ///< of the last update
    Counts all{};      ///< of all updates of this process
    Index chains = 0;  ///< sweeps of an update: shards times micro-batches
    std::int64_t peak_rss = 0;
    std::string folder{}, snapshot{};
    int interrupted = 0;  ///< the signal, or 0
};
std::string as_text(const TrainReport& report);
std::string as_json(const TrainReport& report);

/// One schedule that a run could have.
struct Candidate {
    Plan plan;
    bool fits = true;
    bool chosen = false;
    std::optional<double> seconds{};  ///< of an update, measured
    std::optional<Bytes> measured{};
};
std::string as_text(const std::vector<Candidate>& candidates, Index steps, const Budget& budget);
std::string as_json(const std::vector<Candidate>& candidates, Index steps, const Budget& budget);

/// The largest value of a key that fits; `now`: the configured one.
std::string fit_report(const char* key, Index largest, Index now, bool json);

std::string as_text(const std::vector<PartLoss>& losses);
std::string as_json(const std::vector<PartLoss>& losses, Index update, const std::string& snapshot);

/// A layer of a model; bytes are of all shards together.
struct LayerInfo {
    std::string name;
    std::vector<std::string> names{};  ///< of its parameters
    Index inputs = 0, outputs = 0, parameters = 0;
    std::int64_t carry = 0;      ///< of a state
    std::int64_t memory = 0;     ///< of the earlier steps that it reads, as many as it can
    std::int64_t tape = 0;       ///< of a link
    std::int64_t workspace = 0;  ///< of one call; the layers share the largest
};
struct ModelInfo {
    std::string model;
    Index batch = 0, shards = 0, chunk = 0;  ///< sequences side by side, in so many parts; steps of a link
    std::vector<LayerInfo> layers{};
};
std::string as_text(const ModelInfo& info);
std::string as_json(const ModelInfo& info);

/// One schedule that a chain without a model could have. Pairs are of RAM and disk.
struct ChainCandidate {
    ScheduleOptions schedule;
    Index advances = 0, recorded = 0;
    std::array<Index, 2> slots{}, writes{}, reads{};  ///< slots: most in use at once
    std::array<std::int64_t, 2> bytes{};              ///< of these slots at most
    double time = 0.0;                                ///< by the prices
    bool counted = false;                             ///< writes and reads are known
    bool fits = true;

    /// Forward work over the least possible, 1 for store_all.
    double recompute_factor() const noexcept {
        return recorded == 0 ? 1.0 : static_cast<double>(advances + recorded) / static_cast<double>(recorded);
    }
};
std::string as_text(const std::vector<ChainCandidate>& candidates, Index steps, bool bytes);
std::string as_json(const std::vector<ChainCandidate>& candidates, Index steps);

/// A graph of values, a plan for it, and one of its steps.
std::string as_text(const Graph& graph);
std::string as_text(const Graph& graph, const GraphPlan& plan, std::int64_t budget);
std::string as_json(const Graph& graph, const GraphPlan& plan, std::int64_t budget);
std::string in_words(const Graph& graph, const GraphStep& step);
std::string as_json(const Graph& graph, const GraphStep& step);

/// "revolve, slots 3; depth sqrt, period 4; save nothing".
std::string in_words(const Plan& plan);
/// "revolve, slots 3".
std::string in_words(const ScheduleOptions& options);
/// One line: {"verb": "save", "to": {"tier": "ram", "slot": 0}, "first": 0, "last": 0}.
std::string as_json(const Action& action);

std::string sample_as_json(std::string_view prompt, std::string_view sample, double temperature, std::uint64_t seed);
std::string version_as_json();

/// Seconds by verb.
using VerbSeconds = std::array<double, static_cast<std::size_t>(Verb::done) + 1>;

/// What is noted of an update beside its report.
struct UpdateNote {
    double seconds = 0.0;         ///< of training so far
    bool bits = false;            ///< the loss can be told in bits per character
    Bytes live{};                 ///< after the update
    std::optional<Bytes> peak{};  ///< so far, where it has grown
    std::int64_t peak_rss = 0;    ///< so far, where it has grown; else 0
    VerbSeconds spent{};          ///< of the update's actions, all shards together
};
/// Lines of metrics.jsonl.
std::string metrics_line(const UpdateReport& report, const UpdateNote& note);
std::string metrics_line(const PartLoss& loss, Index update);
/// The update that a line of metrics.jsonl is of; -1 if it is no whole line.
Index update_of(std::string_view metrics_line);

}  // namespace backsweep::cli
