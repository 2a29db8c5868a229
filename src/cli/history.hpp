// The course of a run, as its folder tells it: the lines of metrics.jsonl and the facts of manifest.json.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/ledger.hpp"
#include "cli/report.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace backsweep::cli {

struct History {
    /// A number an update, in order; NaN where its line has none: older versions noted less.
    std::vector<double> update, loss, rate, seconds, live, live_time_axis, peak, peak_time_axis;
    bool bits = false;  ///< losses can be told in bits per character
    Index silent = 0;   ///< updates without a position that has a loss; theirs is NaN

    struct Evaluated {
        double update = 0.0;
        std::string part;
        double loss = 0.0;
    };
    std::vector<Evaluated> evaluated;

    std::optional<Bytes> measured;  ///< peak of each kind; none: not noted
    std::int64_t peak_rss = 0;      ///< 0: not noted
    Index advances = 0, recorded = 0;
    VerbSeconds spent{};         ///< of all updates that noted it
    double spent_within = 0.0;   ///< seconds of training that these updates took

    std::vector<std::pair<std::string, std::string>> facts;  ///< of the manifest, without the plan
    Index unreadable = 0;                                    ///< lines that are no whole object
};

/// Files that are missing tell nothing.
History read_history(const std::filesystem::path& folder);

}  // namespace backsweep::cli
