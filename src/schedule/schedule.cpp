// SPDX-License-Identifier: MIT
#include "backsweep/schedule/schedule.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/forward_only.hpp"
#include "backsweep/schedule/mixed.hpp"
#include "backsweep/schedule/multistage.hpp"
#include "backsweep/schedule/nonuniform.hpp"
#include "backsweep/schedule/online.hpp"
#include "backsweep/schedule/optimal_chain.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/periodic_disk.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/segments.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "backsweep/schedule/tiered_revolve.hpp"
#include "backsweep/schedule/two_level.hpp"

#include <array>
#include <optional>
#include <span>
#include <utility>

namespace backsweep {
namespace {

/// Options beside `family`, as bits: which of them a family uses.
enum Used : unsigned {
    steps = 1u << 0,
    slots = 1u << 1,
    period = 1u << 2,
    loss = 1u << 3,
    needs_state = 1u << 4,
    first = 1u << 5,
    align = 1u << 6,
    in_segments = 1u << 7,
    depth = 1u << 8,
    tape_units = 1u << 9,
    restart = 1u << 10,
    levels = 1u << 11,
    prices = 1u << 12,
    costs = 1u << 13,
    sizes = 1u << 14,
    chain = 1u << 15,
    ram_slots = 1u << 16
};

/// A name of `rule`, and the enumerator of the family that it stands for.
using Rule = std::pair<std::string_view, int>;

/// One row per family. `problem` and `make` see options whose names and rule were checked.
struct Family {
    std::string_view name;
    unsigned used;
    bool open_ended;
    std::span<const Rule> rules;  // empty: it has none; the first is the default
    std::string (*problem)(const ScheduleOptions&);
    std::unique_ptr<Schedule> (*make)(const ScheduleOptions&);
};

template <class Enum>
constexpr Rule rule(std::string_view name, Enum value) {
    return {name, static_cast<int>(value)};
}

constexpr std::array revolve_rules{rule("fewest_writes", AdvanceRule::fewest_writes),
                                   rule("longest", AdvanceRule::longest), rule("shortest", AdvanceRule::shortest),
                                   rule("fewest_disk", AdvanceRule::fewest_disk),
                                   rule("aligned", AdvanceRule::aligned)};
constexpr std::array first_states{rule("in_slot", FirstState::in_slot), rule("external", FirstState::external),
                                  rule("live", FirstState::live)};
constexpr std::array mixed_rules{rule("optimal", MixedRule::optimal), rule("hidden", MixedRule::hidden),
                                 rule("internal", MixedRule::internal), rule("mixed", MixedRule::mixed),
                                 rule("maddison", MixedRule::maddison)};
constexpr std::array online_rules{rule("greedy", OnlinePolicy::greedy), rule("wang_moin", OnlinePolicy::wang_moin)};
constexpr std::array reads_rules{rule("many", LevelReads::many), rule("one", LevelReads::one)};
constexpr std::array sweep_rules{rule("fewest_writes", SweepRule::fewest_writes), rule("maximum", SweepRule::maximum)};

std::optional<int> rule_named(std::string_view name, std::span<const Rule> rules) {
    if (name.empty()) return rules.empty() ? 0 : rules.front().second;
    for (const Rule& each : rules)
        if (each.first == name) return each.second;
    return std::nullopt;
}

std::string names_of(std::span<const Rule> rules) {
    std::string names;
    for (const Rule& each : rules) names += (names.empty() ? "" : ", ") + std::string(each.first);
    return names;
}

/// The enumerator that a checked name stands for.
template <class Enum>
Enum chosen(std::string_view name, std::span<const Rule> rules) {
    return static_cast<Enum>(*rule_named(name, rules));
}

// What each family is made from.

RevolveOptions revolve_options(const ScheduleOptions& o) {
    RevolveOptions options;
    options.steps = o.steps;
    options.slots = o.slots;
    options.rule = chosen<AdvanceRule>(o.rule, revolve_rules);
    options.first = chosen<FirstState>(o.first, first_states);
    options.ram = o.ram_slots;
    if (o.align != 0) options.align = o.align;
    options.needs_state = o.needs_state;
    return options;
}

SegmentsOptions segments_options(const ScheduleOptions& o) {
    SegmentsOptions options;
    options.steps = o.steps;
    options.segments = o.segments;
    options.length = o.period;
    options.levels = o.depth == 0 ? 1 : o.depth;
    options.needs_state = o.needs_state;
    return options;
}

MixedOptions mixed_options(const ScheduleOptions& o) {
    MixedOptions options;
    options.steps = o.steps;
    options.units = o.slots;
    options.tape_units = o.tape_units == 0 ? 1 : o.tape_units;
    options.restart = o.restart;
    options.rule = chosen<MixedRule>(o.rule, mixed_rules);
    options.needs_state = o.needs_state;
    return options;
}

NonuniformOptions nonuniform_options(const ScheduleOptions& o) {
    NonuniformOptions options;
    options.costs = o.costs;
    options.slots = o.slots;
    options.sizes = o.sizes;
    options.needs_state = o.needs_state;
    return options;
}

OnlineOptions online_options(const ScheduleOptions& o) {
    OnlineOptions options;
    options.slots = o.slots;
    options.policy = chosen<OnlinePolicy>(o.rule, online_rules);
    options.needs_state = o.needs_state;
    return options;
}

MultistageOptions multistage_options(const ScheduleOptions& o) {
    MultistageOptions options;
    options.steps = o.steps;
    options.levels = o.levels;
    options.advance = o.advance_cost;
    options.reverse = o.reverse_cost;
    options.reads = chosen<LevelReads>(o.rule, reads_rules);
    options.needs_state = o.needs_state;
    return options;
}

TieredRevolveOptions tiered_revolve_options(const ScheduleOptions& o) {
    TieredRevolveOptions options;
    options.steps = o.steps;
    options.ram_slots = o.levels.at(0).slots;
    options.disk_slots = o.levels.at(1).slots;
    options.rule = chosen<SweepRule>(o.rule, sweep_rules);
    options.needs_state = o.needs_state;
    return options;
}

PeriodicDiskOptions periodic_disk_options(const ScheduleOptions& o) {
    PeriodicDiskOptions options;
    options.steps = o.steps;
    options.ram_slots = o.levels.at(0).slots;
    options.write = o.levels.at(1).write;
    options.read = o.levels.at(1).read;
    options.advance = o.advance_cost;
    options.reverse = o.reverse_cost;
    options.period = o.period;
    options.needs_state = o.needs_state;
    return options;
}

TwoLevelOptions two_level_options(const ScheduleOptions& o) {
    TwoLevelOptions options;
    options.period = o.period;
    options.extra_slots = o.slots;
    options.rule = chosen<SweepRule>(o.rule, sweep_rules);
    return options;
}

ChainOptions optimal_chain_options(const ScheduleOptions& o) {
    ChainOptions options;
    options.chain = o.chain;
    options.budget = o.budget;
    return options;
}

/// Families of one RAM level and one disk level; what they have no use for must be left at its default.
std::string ram_and_disk(const ScheduleOptions& o, bool disk_is_limited) {
    const std::vector<Level>& all = o.levels;
    if (all.size() != 2 || all[0].tier != Tier::ram || all[1].tier != Tier::disk)
        return o.family + " wants two levels, the first in RAM and the second on disk, came " +
               std::to_string(all.size()) +
               (all.empty() ? "" : ", the first on tier " + std::string(to_string(all[0].tier)));
    if (all[0].write != 0.0 || all[0].read != 0.0) return o.family + ": prices of RAM have no effect; leave them at 0";
    if (disk_is_limited && (all[1].write != 0.0 || all[1].read != 0.0))
        return o.family + ": prices have no effect; leave them at 0, or take multistage";
    if (!disk_is_limited && all[1].slots != -1)
        return o.family + ": the disk has no limit here; give its slots as -1, or take multistage";
    return {};
}

constexpr std::array families{
    Family{"store_all",
           steps | needs_state,
           false,
           {},
           [](const ScheduleOptions&) { return std::string(); },
           [](const ScheduleOptions& o) { return store_all(o.steps, o.needs_state); }},
    Family{"revolve", steps | slots | needs_state | first | align | ram_slots, false, revolve_rules,
           [](const ScheduleOptions& o) {
               const auto rule = chosen<AdvanceRule>(o.rule, revolve_rules);
               if (o.align != 0 && rule != AdvanceRule::aligned)
                   return std::string("revolve: align has no effect without rule aligned; leave it out");
               if (o.ram_slots != -1 && rule != AdvanceRule::fewest_disk)
                   return std::string("revolve: ram_slots have no effect without rule fewest_disk; leave them out");
               return revolve_options(o).problem();
           },
           [](const ScheduleOptions& o) { return revolve(revolve_options(o)); }},
    Family{"periodic",
           steps | period | needs_state,
           false,
           {},
           [](const ScheduleOptions& o) {
               return o.period < 1 ? "periodic: period must be 1 or more, came " + std::to_string(o.period)
                                   : std::string();
           },
           [](const ScheduleOptions& o) { return periodic(o.steps, o.period, o.needs_state); }},
    Family{"segments",
           steps | period | in_segments | depth | needs_state,
           false,
           {},
           [](const ScheduleOptions& o) { return segments_options(o).problem(); },
           [](const ScheduleOptions& o) { return segments(segments_options(o)); }},
    Family{"mixed", steps | slots | tape_units | restart | needs_state, false, mixed_rules,
           [](const ScheduleOptions& o) { return mixed_options(o).problem(); },
           [](const ScheduleOptions& o) { return mixed(mixed_options(o)); }},
    Family{"nonuniform",
           steps | slots | costs | sizes | needs_state,
           false,
           {},
           [](const ScheduleOptions& o) {
               if (o.steps != static_cast<Index>(o.costs.size()))
                   return "nonuniform: steps must be the number of costs, came " + std::to_string(o.steps) +
                          " steps and " + std::to_string(o.costs.size()) + " costs";
               return nonuniform_options(o).problem();
           },
           [](const ScheduleOptions& o) { return nonuniform(nonuniform_options(o)); }},
    Family{"online", slots | needs_state, true, online_rules,
           [](const ScheduleOptions& o) { return online_options(o).problem(); },
           [](const ScheduleOptions& o) { return online(online_options(o)); }},
    Family{"multistage", steps | levels | prices | needs_state, false, reads_rules,
           [](const ScheduleOptions& o) {
               if (!o.rule.empty() && (o.levels.empty() || o.levels.back().slots != -1))
                   return std::string(
                       "multistage: rule has no effect unless the last level has no limit; leave it out");
               return multistage_options(o).problem();
           },
           [](const ScheduleOptions& o) { return multistage(multistage_options(o)); }},
    Family{"tiered_revolve", steps | levels | needs_state, false, sweep_rules,
           [](const ScheduleOptions& o) {
               if (std::string why = ram_and_disk(o, true); !why.empty()) return why;
               return tiered_revolve_options(o).problem();
           },
           [](const ScheduleOptions& o) { return tiered_revolve(tiered_revolve_options(o)); }},
    Family{"periodic_disk",
           steps | period | levels | prices | needs_state,
           false,
           {},
           [](const ScheduleOptions& o) {
               if (std::string why = ram_and_disk(o, false); !why.empty()) return why;
               return periodic_disk_options(o).problem();
           },
           [](const ScheduleOptions& o) { return periodic_disk(periodic_disk_options(o)); }},
    Family{"two_level", slots | period | needs_state, true, sweep_rules,
           [](const ScheduleOptions& o) { return two_level_options(o).problem(); },
           [](const ScheduleOptions& o) { return two_level(two_level_options(o)); }},
    Family{"optimal_chain",
           steps | chain | needs_state,
           false,
           {},
           [](const ScheduleOptions& o) {
               if (o.steps != o.chain.links())
                   return "optimal_chain: steps must be the number of links in chain, came " + std::to_string(o.steps) +
                          " steps and " + std::to_string(o.chain.links()) + " links";
               return optimal_chain_options(o).problem();
           },
           [](const ScheduleOptions& o) { return optimal_chain(optimal_chain_options(o)); }},
    Family{"forward_only",
           steps | loss | needs_state,
           false,
           {},
           [](const ScheduleOptions&) { return std::string(); },
           [](const ScheduleOptions& o) { return forward_only(o.steps, o.loss); }},
};

const Family* family_named(std::string_view name) noexcept {
    for (const Family& family : families)
        if (family.name == name) return &family;
    return nullptr;
}

/// The first option that was changed though the family has no use for it.
const char* unused_option(const ScheduleOptions& o, const Family& family) {
    const struct {
        unsigned bit;
        bool changed;
        const char* name;
    } all[] = {
        {steps, o.steps != 0, "steps"},
        {slots, o.slots != 0, "slots"},
        {period, o.period != 0, "period"},
        {loss, !o.loss, "loss"},
        {needs_state, o.needs_state, "needs_state"},
        {first, !o.first.empty(), "first"},
        {align, o.align != 0, "align"},
        {ram_slots, o.ram_slots != -1, "ram_slots"},
        {in_segments, o.segments != 0, "segments"},
        {depth, o.depth != 0, "depth"},
        {tape_units, o.tape_units != 0, "tape_units"},
        {restart, o.restart, "restart"},
        {levels, !o.levels.empty(), "levels"},
        {prices, o.advance_cost != 1.0, "advance_cost"},
        {prices, o.reverse_cost != 1.0, "reverse_cost"},
        {costs, !o.costs.empty(), "costs"},
        {sizes, !o.sizes.empty(), "sizes"},
        {chain, o.chain.links() != 0, "chain"},
        {chain, o.budget != 0, "budget"},
    };
    if (!o.rule.empty() && family.rules.empty()) return "rule";
    for (const auto& option : all)
        if (option.changed && (family.used & option.bit) == 0) return option.name;
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

std::vector<std::string> schedule_families() {
    std::vector<std::string> names;
    for (const Family& family : families) names.emplace_back(family.name);
    return names;
}

bool is_open_ended(std::string_view name) noexcept {
    const Family* const family = family_named(name);
    return family != nullptr && family->open_ended;
}

std::string ScheduleOptions::problem() const {
    const Family* const known = family_named(family);
    if (known == nullptr) {
        std::string names;
        for (const Family& each : families) names += (names.empty() ? "" : ", ") + std::string(each.name);
        return "family '" + family + "' is not known; give one of " + names;
    }
    if (const char* const unused = unused_option(*this, *known))
        return std::string("option ") + unused + " is not used by family " + family + "; leave it out";
    if (steps < 0) return family + ": steps must be 0 or more, came " + std::to_string(steps);
    if (!rule_named(rule, known->rules))
        return family + ": rule '" + rule + "' is not known; give one of " + names_of(known->rules);
    if (!rule_named(first, first_states))
        return family + ": first '" + first + "' is not known; give one of " + names_of(first_states);
    return known->problem(*this);
}

std::unique_ptr<Schedule> make_schedule(const ScheduleOptions& options) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
    return family_named(options.family)->make(options);
}

}  // namespace backsweep
