// SPDX-License-Identifier: MIT
#include "backsweep/schedule/schedule.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/forward_only.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace backsweep {
namespace {

/// One row per family: the options it uses beside `steps` and `needs_state`, and how it is made.
struct Family {
    std::string_view name;
    bool slots;
    bool period;
    bool rule;
    bool loss;
    std::unique_ptr<Schedule> (*make)(const ScheduleOptions&);
};

std::optional<AdvanceRule> rule_named(std::string_view name) {
    if (name.empty() || name == "fewest_writes") return AdvanceRule::fewest_writes;
    if (name == "longest") return AdvanceRule::longest;
    if (name == "shortest") return AdvanceRule::shortest;
    return std::nullopt;
}

constexpr std::array families{
    Family{"store_all", false, false, false, false,
           [](const ScheduleOptions& o) { return store_all(o.steps, o.needs_state); }},
    Family{"revolve", true, false, true, false,
           [](const ScheduleOptions& o) { return revolve(o.steps, o.slots, *rule_named(o.rule), o.needs_state); }},
    Family{"periodic", false, true, false, false,
           [](const ScheduleOptions& o) { return periodic(o.steps, o.period, o.needs_state); }},
    Family{"forward_only", false, false, false, true,
           [](const ScheduleOptions& o) { return forward_only(o.steps, o.loss); }},
};

const Family* family_named(std::string_view name) {
    for (const Family& family : families) {
        if (family.name == name) return &family;
    }
    return nullptr;
}

}  // namespace

std::size_t Schedule::fill(std::span<Action> out) {
    std::size_t written = 0;
    while (written < out.size()) {
        out[written] = next();
        if (out[written++].verb == Verb::done) break;
    }
    return written;
}

void Schedule::finish(Index steps) {
    throw ScheduleError("finish(" + std::to_string(steps) +
                        "): this schedule was made for a known number of steps and ends by itself; do not call finish, "
                        "or make an open-ended schedule");
}

std::string ScheduleOptions::problem() const {
    const Family* const known = family_named(family);
    if (known == nullptr) {
        std::string names;
        for (const Family& each : families) names += (names.empty() ? "" : ", ") + std::string(each.name);
        return "family '" + family + "' is not known; give one of " + names;
    }
    const auto unused = [this](const char* option) {
        return std::string("option ") + option + " is not used by family " + family + "; leave it out";
    };
    if (!known->slots && slots != 0) return unused("slots");
    if (!known->period && period != 0) return unused("period");
    if (!known->rule && !rule.empty()) return unused("rule");
    if (!known->loss && !loss) return unused("loss");
    if (steps < 0) return family + ": steps must be 0 or more, came " + std::to_string(steps);
    if (known->slots && slots < 1) {
        return family + ": slots must be 1 or more (x_0 takes one), came " + std::to_string(slots);
    }
    if (known->period && period < 1) return family + ": period must be 1 or more, came " + std::to_string(period);
    if (!rule_named(rule)) {
        return family + ": rule '" + rule + "' is not known; give one of fewest_writes, longest, shortest";
    }
    return {};
}

std::unique_ptr<Schedule> make_schedule(const ScheduleOptions& options) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
    return family_named(options.family)->make(options);
}

}  // namespace backsweep
