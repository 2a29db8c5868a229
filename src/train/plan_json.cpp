// SPDX-License-Identifier: MIT
#include "backsweep/train/plan_json.hpp"

#include "backsweep/base/error.hpp"

#include <nlohmann/json.hpp>

namespace backsweep {

namespace {

using Json = nlohmann::ordered_json;

Json levels_of(const ScheduleOptions& o) {
    Json all = Json::array();
    for (const Level& l : o.levels) all.push_back({{"tier", to_string(l.tier)}, {"slots", l.slots}, {"write", l.write}, {"read", l.read}});
    return all;
}

Level level_of(const Json& j) {
    Level l;
    const auto name = j.at("tier").get<std::string>();
    for (const Tier tier : {Tier::device, Tier::pinned, Tier::ram, Tier::disk})
        if (name == to_string(tier)) l.tier = tier;
    l.slots = j.at("slots").get<Index>();
    l.write = j.at("write").get<double>();
    l.read = j.at("read").get<double>();
    return l;
}

}  // namespace

std::string to_json(const Plan& plan) {
    Json j;
    j["schedule"] = plan.schedule.family;
    j["links"] = plan.schedule.steps;
    j["slots"] = plan.schedule.slots;
    j["period"] = plan.schedule.period;
    j["rule"] = plan.schedule.rule;
    j["tape_units"] = plan.schedule.tape_units;
    j["levels"] = levels_of(plan.schedule);
    j["advance_cost"] = plan.schedule.advance_cost;
    j["reverse_cost"] = plan.schedule.reverse_cost;
    j["chunk"] = plan.chunk;
    j["save"] = plan.save;
    j["depth"] = {{"family", plan.depth.family}, {"period", plan.depth.period}, {"slots", plan.depth.slots},
                  {"budget", plan.depth.budget}, {"work", plan.depth.work}};
    j["memories"] = plan.memories;
    j["advances"] = plan.advances;
    j["recorded"] = plan.recorded;
    j["cost"] = plan.cost;
    j["least_cost"] = plan.least_cost;
    j["measured"] = plan.measured;
    j["disk"] = plan.disk;
    j["disk_slots"] = plan.disk_slots;
    for (std::size_t k = 0; k < kind_count; ++k) j["bytes"][to_string(static_cast<Kind>(k))] = plan.predicted.by_kind[k];
    return j.dump();
}

Plan plan_from_json(std::string_view text) {
    try {
        const Json j = Json::parse(text);
        Plan plan;
        plan.schedule.family = j.at("schedule").get<std::string>();
        plan.schedule.steps = j.at("links").get<Index>();
        plan.schedule.slots = j.at("slots").get<Index>();
        plan.schedule.period = j.at("period").get<Index>();
        plan.schedule.rule = j.at("rule").get<std::string>();
        plan.schedule.tape_units = j.at("tape_units").get<Index>();
        for (const Json& level : j.at("levels")) plan.schedule.levels.push_back(level_of(level));
        plan.schedule.advance_cost = j.at("advance_cost").get<double>();
        plan.schedule.reverse_cost = j.at("reverse_cost").get<double>();
        plan.chunk = j.at("chunk").get<Index>();
        plan.save = j.at("save").get<std::string>();
        const Json& depth = j.at("depth");
        plan.depth.family = depth.at("family").get<std::string>();
        plan.depth.period = depth.at("period").get<Index>();
        plan.depth.slots = depth.at("slots").get<Index>();
        plan.depth.budget = depth.at("budget").get<std::int64_t>();
        plan.depth.work = depth.at("work").get<std::vector<double>>();
        plan.memories = j.at("memories").get<std::string>();
        plan.advances = j.at("advances").get<Index>();
        plan.recorded = j.at("recorded").get<Index>();
        plan.cost = j.at("cost").get<double>();
        plan.least_cost = j.at("least_cost").get<double>();
        plan.measured = j.at("measured").get<bool>();
        plan.disk = j.at("disk").get<std::int64_t>();
        plan.disk_slots = j.at("disk_slots").get<Index>();
        for (std::size_t k = 0; k < kind_count; ++k) plan.predicted.by_kind[k] = j.at("bytes").at(to_string(static_cast<Kind>(k))).get<std::int64_t>();
        if (const std::string again = to_json(plan); again != j.dump())
            throw InvalidArgument("a pinned plan has exactly the keys of " + again + ", got " + std::string(text));
        return plan;
    } catch (const nlohmann::json::exception& e) {
        throw InvalidArgument(std::string("a pinned plan cannot be read: ") + e.what() + "; delete it to plan anew, or restore it from the run's snapshot");
    }
}

}  // namespace backsweep
