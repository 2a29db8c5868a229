// SPDX-License-Identifier: MIT
#include "cli/history.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <limits>

namespace backsweep::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

double number(const Json& object, const char* key) {
    const auto at = object.find(key);
    return at != object.end() && at->is_number() ? at->get<double>() : none;
}

std::int64_t whole(const Json& object, const char* key) {
    const auto at = object.find(key);
    return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

const Json& within(const Json& object, const char* key) {
    static const Json nothing = Json::object();
    const auto at = object.find(key);
    return at != object.end() && at->is_object() ? *at : nothing;
}

void add_update(History& h, const Json& line) {
    const double before = h.seconds.empty() ? 0.0 : h.seconds.back();
    const bool silent = number(line, "positions") == 0.0;
    h.silent += silent;
    h.update.push_back(number(line, "update"));
    h.loss.push_back(silent ? none : number(line, "loss"));
    h.rate.push_back(number(line, "rate"));
    h.seconds.push_back(number(line, "seconds"));
    h.live.push_back(number(within(line, "live"), "total"));
    h.live_time_axis.push_back(number(within(line, "live"), "time_axis"));
    h.bits = h.bits || line.contains("bits_per_character");
    h.advances += whole(line, "advances");
    h.recorded += whole(line, "recorded");
    h.peak_rss = std::max(h.peak_rss, whole(line, "peak_rss"));
    if (const Json& peak = within(line, "peak"); !peak.empty()) {
        if (!h.measured) h.measured.emplace();
        for (std::size_t k = 0; k < kind_count; ++k)  // a resumed run counts anew
            h.measured->by_kind[k] = std::max(h.measured->by_kind[k], whole(peak, to_string(static_cast<Kind>(k))));
    }
    h.peak.push_back(h.measured ? static_cast<double>(h.measured->total()) : none);
    h.peak_time_axis.push_back(h.measured ? static_cast<double>(h.measured->time_axis()) : none);
    if (const Json& spent = within(line, "spent"); !spent.empty()) {
        for (std::size_t v = 0; v < h.spent.size(); ++v) {
            const double seconds = number(spent, to_string(static_cast<Verb>(v)));
            if (seconds > 0.0) h.spent[v] += seconds;
        }
        h.spent_within += std::max(0.0, h.seconds.back() - before);
    }
}

}  // namespace

History read_history(const std::filesystem::path& folder) {
    History h;
    std::ifstream metrics(folder / "metrics.jsonl");
    for (std::string text; std::getline(metrics, text);) {
        const Json line = Json::parse(text, nullptr, false);
        const bool update = line.is_object() && line.contains("update") && line["update"].is_number_integer();
        if (!update) {
            ++h.unreadable;
        } else if (!line.contains("part")) {
            add_update(h, line);
        } else if (line["part"].is_string()) {
            h.evaluated.push_back({number(line, "update"), line["part"].get<std::string>(), number(line, "loss")});
        }
    }
    std::ifstream file(folder / "manifest.json");
    const Json manifest = Json::parse(file, nullptr, false);
    if (!manifest.is_object()) return h;
    for (const auto& [key, value] : manifest.items()) {
        if (key == "plan") continue;
        std::string text;
        if (value.is_array()) {
            for (const Json& word : value) {
                if (!text.empty()) text += ' ';
                text += word.is_string() ? word.get<std::string>() : word.dump();
            }
        } else {
            text = value.is_string() ? value.get<std::string>() : value.dump();
        }
        h.facts.emplace_back(key, std::move(text));
    }
    return h;
}

}  // namespace backsweep::cli
