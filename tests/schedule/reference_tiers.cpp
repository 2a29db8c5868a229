// Reference cases of the schedules over tiers.
// SPDX-License-Identifier: MIT
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/multistage.hpp"
#include "backsweep/schedule/periodic_disk.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/tiered_revolve.hpp"
#include "backsweep/schedule/two_level.hpp"
#include "reference_cases.hpp"
#include "support/tier_play.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

namespace backsweep::test {

using nlohmann::json;

namespace {

constexpr auto in_ram = static_cast<std::size_t>(Tier::ram);
constexpr auto on_disk = static_cast<std::size_t>(Tier::disk);

Index number(const json& test, const char* key) {
    return test.at(key).get<Index>();
}

double price(const json& test, const char* key) {
    return test.at(key).get<double>();
}

void check_levels(const MultistageOptions& options, double optimum) {
    const MultistageCounts counts = multistage_counts(options);
    BOOST_CHECK(same_price(counts.cost, optimum));
    const LevelPlay play = play_levels(options);
    BOOST_CHECK_MESSAGE(same_price(play.cost, optimum), "cost " << play.cost << ", optimum " << optimum);
    BOOST_CHECK_EQUAL(play.recorded, options.steps);
    BOOST_CHECK_EQUAL(play.drops, 0);
    BOOST_CHECK_EQUAL(play.advances, counts.advances);
    BOOST_CHECK(play.level_writes == counts.writes);
    BOOST_CHECK(play.level_reads == counts.reads);
}

}  // namespace

void multistage_case(const json& test) {
    TieredRevolveOptions options;
    options.steps = number(test, "steps");
    options.ram_slots = number(test, "ram_slots");
    options.disk_slots = number(test, "disk_slots");
    if (test.at("rule") == "maximum") options.rule = SweepRule::maximum;
    const TieredRevolveCounts counts = tiered_revolve_counts(options);
    BOOST_CHECK_EQUAL(counts.advances, number(test, "advances"));
    BOOST_CHECK(counts.writes == test.at("slot_writes").get<std::vector<Index>>());
    BOOST_CHECK(counts.reads == test.at("slot_reads").get<std::vector<Index>>());
    std::vector<Index> ram;
    for (std::size_t depth = 0; depth < counts.tiers.size(); ++depth) {
        if (counts.tiers[depth] == Tier::ram) ram.push_back(static_cast<Index>(depth));
    }
    BOOST_CHECK(ram == test.at("ram_slot_indices").get<std::vector<Index>>());
    BOOST_CHECK_EQUAL(counts.disk_writes, number(test, "disk_writes"));
    BOOST_CHECK_EQUAL(counts.disk_reads, number(test, "disk_reads"));
    BOOST_CHECK_EQUAL(counts.disk_writes + counts.disk_reads, number(test, "disk_accesses"));
    Limits limits;
    limits.slots = {0, 0, options.ram_slots, options.disk_slots};
    const Play play = referee(*tiered_revolve(options), options.steps, {}, {.limits = limits});
    BOOST_CHECK_EQUAL(play.advances, number(test, "advances"));
    BOOST_CHECK_EQUAL(play.recorded, options.steps);
    BOOST_CHECK_EQUAL(play.writes[on_disk], number(test, "disk_writes"));
    BOOST_CHECK_EQUAL(play.reads[on_disk], number(test, "disk_reads"));
    Index writes = 0;
    Index reads = 0;
    for (const Index count : counts.writes) writes += count;
    for (const Index count : counts.reads) reads += count;
    BOOST_CHECK_EQUAL(play.writes[in_ram] + play.writes[on_disk], writes);
    BOOST_CHECK_EQUAL(play.reads[in_ram] + play.reads[on_disk], reads);
}

void hrevolve_case(const json& test) {
    MultistageOptions options;
    options.steps = number(test, "steps");
    options.advance = price(test, "uf");
    options.reverse = price(test, "ub");
    for (std::size_t k = 0; k < test.at("slots").size(); ++k) {
        // A tier for each level; those beyond the fourth share the last one.
        options.levels.push_back({static_cast<Tier>(std::min<std::size_t>(k, 3)), test.at("slots")[k].get<Index>(),
                                  test.at("write_cost")[k].get<double>(), test.at("read_cost")[k].get<double>()});
    }
    if (test.at("optimal_cost").is_null()) {  // infeasible
        BOOST_CHECK_THROW(multistage(options), InvalidArgument);
        return;
    }
    BOOST_CHECK(price(test, "optimal_cost") <= price(test, "published_dp_cost"));
    check_levels(options, price(test, "optimal_cost"));
}

void disk_revolve_case(const json& test) {
    MultistageOptions options;
    options.steps = number(test, "steps");
    options.levels = {{Tier::ram, number(test, "ram_slots")},
                      {Tier::disk, -1, price(test, "write_disk"), price(test, "read_disk")}};
    options.advance = price(test, "uf");
    options.reverse = price(test, "ub");
    check_levels(options, price(test, "optimal_cost"));
    // As many slots as there are states are no limit either, and that plan needs no window.
    options.levels[1].slots = options.steps;
    BOOST_CHECK(same_price(multistage_cost(options), price(test, "optimal_cost")));
    options.levels[1].slots = -1;
    options.reads = LevelReads::one;
    check_levels(options, price(test, "one_read_cost"));
    const MultistageCounts counts = multistage_counts(options);
    BOOST_CHECK_EQUAL(counts.reads[1], counts.writes[1]);
}

void periodic_disk_case(const json& test) {
    PeriodicDiskOptions options;
    options.steps = number(test, "steps");
    options.ram_slots = number(test, "ram_slots");
    options.write = price(test, "write_disk");
    options.read = price(test, "read_disk");
    options.advance = price(test, "uf");
    options.reverse = price(test, "ub");
    BOOST_CHECK_EQUAL(periodic_disk_period(options), number(test, "period"));
    const PeriodicDiskCounts counts = periodic_disk_counts(options);
    BOOST_CHECK_EQUAL(counts.advances, number(test, "advances"));
    BOOST_CHECK_EQUAL(counts.disk_writes, number(test, "disk_writes"));
    BOOST_CHECK_EQUAL(counts.disk_reads, number(test, "disk_reads"));
    BOOST_CHECK(same_price(counts.cost, price(test, "cost")));
    Limits limits;
    limits.slots = {0, 0, options.ram_slots, counts.disk_writes};
    const Play play = referee(*periodic_disk(options), options.steps, {}, {.limits = limits});
    BOOST_CHECK_EQUAL(play.advances, counts.advances);
    BOOST_CHECK_EQUAL(play.writes[on_disk], counts.disk_writes);
    BOOST_CHECK_EQUAL(play.reads[on_disk], counts.disk_reads);
    BOOST_CHECK_EQUAL(play.writes[in_ram], counts.ram_writes);
    BOOST_CHECK_EQUAL(play.reads[in_ram], counts.ram_reads);

    MultistageOptions unlimited;
    unlimited.steps = options.steps;
    unlimited.levels = {{Tier::ram, options.ram_slots}, {Tier::disk, -1, options.write, options.read}};
    unlimited.advance = options.advance;
    unlimited.reverse = options.reverse;
    const double optimum = multistage_cost(unlimited);
    BOOST_CHECK(optimum <= counts.cost * (1.0 + 1e-12));
    check_levels(unlimited, optimum);
    if (!test.contains("two_level_optimum")) return;
    BOOST_CHECK(same_price(optimum, price(test, "two_level_optimum")));
}

void twolevel_case(const json& test) {
    const Index steps = number(test, "steps");
    TwoLevelOptions options;
    options.period = number(test, "period");
    options.extra_slots = number(test, "extra_slots");
    for (const SweepRule rule : {SweepRule::fewest_writes, SweepRule::maximum}) {
        options.rule = rule;
        const TwoLevelCounts counts = two_level_counts(options, steps);
        BOOST_CHECK_EQUAL(counts.advances, number(test, "advances"));
        BOOST_CHECK_EQUAL(counts.disk_writes, number(test, "disk_writes"));
        if (rule == SweepRule::maximum) {
            BOOST_CHECK_EQUAL(counts.disk_reads, number(test, "disk_reads"));
            BOOST_CHECK_EQUAL(counts.ram_writes, number(test, "extra_slot_writes"));
            BOOST_CHECK_EQUAL(counts.ram_reads, number(test, "extra_slot_reads"));
        }
        for (const Ending ending : {Ending::ahead, Ending::late}) {
            Machine machine;
            machine.ending = ending;
            machine.needs_state = ending == Ending::late;
            const Index revoked = ending == Ending::late && steps % options.period == 0 ? 1 : 0;
            machine.limits.slots = {0, 0, options.extra_slots, counts.disk_writes + revoked};
            const Play play = referee(*two_level(options), steps, {}, machine);
            BOOST_CHECK_EQUAL(play.advances, counts.advances);
            BOOST_CHECK_EQUAL(play.writes[on_disk], counts.disk_writes + revoked);
            BOOST_CHECK_EQUAL(play.drops, revoked);
            BOOST_CHECK_EQUAL(play.reads[on_disk], counts.disk_reads);
            BOOST_CHECK_EQUAL(play.writes[in_ram], counts.ram_writes);
            BOOST_CHECK_EQUAL(play.reads[in_ram], counts.ram_reads);
        }
    }
}

}  // namespace backsweep::test
