// SPDX-License-Identifier: MIT
#include "backsweep/plan/plan.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/revolve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

namespace backsweep {

namespace {

bool fits(const Plan& plan, const Budget& budget) {
    return (budget.ram == Budget::unlimited || plan.predicted.total() <= budget.ram) &&
           (budget.time_axis == Budget::unlimited || plan.predicted.time_axis() <= budget.time_axis);
}

bool cheaper(const Plan& a, const Plan& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.predicted.total() < b.predicted.total();
}

ScheduleOptions family(const char* name, Index links) {
    ScheduleOptions o;
    o.family = name;
    o.steps = links;
    return o;
}

/// Periods of which one has the least cost and bytes for every number of blocks.
std::vector<Index> periods(Index links) {
    constexpr Index most = 1 << 16;
    std::vector<Index> all;
    for (Index k = 1; k <= std::min(links, most); ++k) all.push_back(k);
    for (Index blocks = 1; blocks <= std::min(links, most); ++blocks) all.push_back((links + blocks - 1) / blocks);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

/// Every schedule that make_plan looks at; `least` gets the one with the fewest bytes, fitting or not.
std::vector<Plan> fitting(const Workload& workload, const Budget& budget, std::optional<Plan>& least) {
    const Index links = workload.links();
    std::vector<Plan> best;
    const auto consider = [&](const ScheduleOptions& options, std::optional<Plan>& of_family) {
        Plan plan = price(workload, options);
        if (!least || plan.predicted.total() < least->predicted.total()) least = plan;
        if (fits(plan, budget) && (!of_family || cheaper(plan, *of_family))) of_family = std::move(plan);
    };

    std::optional<Plan> store_all, periodic, revolve;
    consider(family("store_all", links), store_all);
    for (const Index k : periods(links)) {
        ScheduleOptions o = family("periodic", links);
        o.period = k;
        consider(o, periodic);
    }
    // Advances fall and bytes rise with the slots: the most slots that fit are the cheapest.
    ScheduleOptions o = family("revolve", links);
    Index few = 1, many = std::max<Index>(1, links - 1);
    o.slots = few;
    consider(o, revolve);
    while (revolve && few < many) {
        o.slots = few + (many - few + 1) / 2;
        if (fits(price(workload, o), budget))
            few = o.slots;
        else
            many = o.slots - 1;
    }
    if (revolve) {
        // The least slots with as many advances as the most that fit.
        const Index advances = revolve_advances(links, few);
        o.slots = advances > 0 ? std::min(few, least_slots(links, advances)) : 1;
        revolve = price(workload, o);
    }
    for (auto* plan : {&store_all, &periodic, &revolve})
        if (*plan) best.push_back(std::move(**plan));
    std::stable_sort(best.begin(), best.end(), cheaper);
    return best;
}

}  // namespace

std::string Workload::problem() const {
    if (steps < 1) return "a workload has at least 1 step, got " + std::to_string(steps);
    if (chunk < 1) return "a link has at least 1 step, got chunk = " + std::to_string(chunk);
    if (state < 0 || tape < 0) return "bytes are not negative, got state = " + std::to_string(state) + ", tape = " + std::to_string(tape);
    for (const double c : {advance, record, reverse})
        if (!(c >= 0.0) || !std::isfinite(c)) return "costs are finite and not negative, got " + std::to_string(c);
    return {};
}

std::string bytes_in_words(std::int64_t bytes) {
    static constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024.0 && unit + 1 < units.size()) value /= 1024.0, ++unit;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return text.data();
}

ScheduleOptions schedule_for(const Plan& plan, Index links) {
    ScheduleOptions o = plan.schedule;
    o.steps = links;
    return o;
}

Plan price(const Workload& workload, ScheduleOptions options) {
    if (std::string why = workload.problem(); !why.empty()) throw InvalidArgument(why);
    const Index links = workload.links();
    options.steps = links;
    if (std::string why = options.problem(); !why.empty()) throw InvalidArgument(why);

    Index states = 0, tapes = 1, advances = 0;
    if (options.family == "store_all") {
        tapes = links;
    } else if (options.family == "periodic") {
        const Index blocks = 1 + (links - 1) / options.period;
        states = blocks - 1;
        tapes = std::min(options.period, links);
        advances = states == 0 ? 0 : states * options.period;
    } else if (options.family == "revolve") {
        states = std::min(options.slots, links - 1);
        advances = revolve_advances(links, options.slots);
    } else {
        throw InvalidArgument("no plan is made of schedule '" + options.family + "'; there are: store_all, periodic, revolve");
    }
    Plan plan;
    plan.schedule = std::move(options);
    plan.chunk = workload.chunk;
    plan.predicted = workload.always;
    plan.predicted[Kind::slots] += states * workload.state;
    plan.predicted[Kind::tape] += tapes * workload.tape;
    plan.advances = advances;
    plan.recorded = links;
    plan.cost = static_cast<double>(advances) * workload.advance + static_cast<double>(links) * (workload.record + workload.reverse);
    return plan;
}

std::vector<Plan> candidates(const Workload& workload, const Budget& budget) {
    if (std::string why = workload.problem(); !why.empty()) throw InvalidArgument(why);
    std::optional<Plan> least;
    return fitting(workload, budget, least);
}

Plan make_plan(const Workload& workload, const Budget& budget) {
    if (std::string why = workload.problem(); !why.empty()) throw InvalidArgument(why);
    std::optional<Plan> least;
    std::vector<Plan> plans = fitting(workload, budget, least);
    if (!plans.empty()) return std::move(plans.front());

    const auto line = [](const char* what, std::int64_t needs, std::int64_t offered) {
        return std::string(what) + ": needs " + bytes_in_words(needs) + " (" + std::to_string(needs) + " bytes), offered " +
               bytes_in_words(offered) + " (" + std::to_string(offered) + " bytes)";
    };
    std::string why;
    if (budget.ram != Budget::unlimited && least->predicted.total() > budget.ram) why = line("ram", least->predicted.total(), budget.ram);
    if (budget.time_axis != Budget::unlimited && least->predicted.time_axis() > budget.time_axis)
        why += (why.empty() ? "" : "; ") + line("time axis", least->predicted.time_axis(), budget.time_axis);
    throw NoPlan("no schedule fits: " + why + ". The least is " + least->schedule.family +
                 "'s; offer that much, or take a shorter chunk (now " + std::to_string(workload.chunk) + " steps) or a smaller batch");
}

}  // namespace backsweep
