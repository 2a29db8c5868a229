// SPDX-License-Identifier: MIT
#include "backsweep/train/plan_json.hpp"

#include "backsweep/base/error.hpp"

#include <nlohmann/json.hpp>

namespace backsweep {

std::string to_json(const Plan& plan) {
    nlohmann::ordered_json j;
    j["schedule"] = plan.schedule.family;
    j["links"] = plan.schedule.steps;
    j["slots"] = plan.schedule.slots;
    j["period"] = plan.schedule.period;
    j["rule"] = plan.schedule.rule;
    j["chunk"] = plan.chunk;
    j["advances"] = plan.advances;
    j["recorded"] = plan.recorded;
    j["cost"] = plan.cost;
    for (std::size_t k = 0; k < kind_count; ++k) j["bytes"][to_string(static_cast<Kind>(k))] = plan.predicted.by_kind[k];
    return j.dump();
}

Plan plan_from_json(std::string_view text) {
    try {
        const auto j = nlohmann::ordered_json::parse(text);
        Plan plan;
        plan.schedule.family = j.at("schedule").get<std::string>();
        plan.schedule.steps = j.at("links").get<Index>();
        plan.schedule.slots = j.at("slots").get<Index>();
        plan.schedule.period = j.at("period").get<Index>();
        plan.schedule.rule = j.at("rule").get<std::string>();
        plan.chunk = j.at("chunk").get<Index>();
        plan.advances = j.at("advances").get<Index>();
        plan.recorded = j.at("recorded").get<Index>();
        plan.cost = j.at("cost").get<double>();
        for (std::size_t k = 0; k < kind_count; ++k) plan.predicted.by_kind[k] = j.at("bytes").at(to_string(static_cast<Kind>(k))).get<std::int64_t>();
        if (const std::string again = to_json(plan); again != j.dump())
            throw InvalidArgument("a pinned plan has exactly the keys of " + again + ", got " + std::string(text));
        return plan;
    } catch (const nlohmann::json::exception& e) {
        throw InvalidArgument(std::string("a pinned plan cannot be read: ") + e.what() + "; delete it to plan anew, or restore it from the run's snapshot");
    }
}

}  // namespace backsweep
