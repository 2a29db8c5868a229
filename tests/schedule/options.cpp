// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_options
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/ended.hpp"
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
#include "support/streams.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// Options that the family accepts, every one that it uses set.
ScheduleOptions of_family(const std::string& family) {
    const std::vector<Level> ram_and_disk{{Tier::ram, 2}, {Tier::disk, -1, 3.0, 2.0}};
    ScheduleOptions o;
    o.family = family;
    if (!is_open_ended(family)) o.steps = 23;
    if (family == "revolve" || family == "mixed" || family == "nonuniform" || family == "online" ||
        family == "two_level")
        o.slots = 3;
    if (family == "periodic" || family == "two_level" || family == "periodic_disk") o.period = 4;
    if (family == "segments") o.segments = 4;
    if (family == "mixed") o.tape_units = 2;
    if (family == "nonuniform")
        for (Index i = 0; i < 23; ++i) o.costs.push_back(1.0 + static_cast<double>(i % 3));
    if (family == "multistage" || family == "periodic_disk") o.levels = ram_and_disk;
    if (family == "tiered_revolve") o.levels = {{Tier::ram, 2}, {Tier::disk, 1}};
    if (family == "optimal_chain") {
        o.chain.forward_time.assign(23, 1.0);
        o.chain.backward_time.assign(23, 2.0);
        o.chain.state_bytes.assign(24, 1);
        o.chain.tape_bytes.assign(23, 3);
        o.budget = 12;
    }
    return o;
}

void refused(const ScheduleOptions& options, const char* words) {
    BOOST_TEST_CONTEXT(words) {
        BOOST_CHECK_MESSAGE(options.problem().find(words) != std::string::npos, options.problem());
        BOOST_CHECK_EXCEPTION(make_schedule(options), InvalidArgument, says(words));
    }
}

void same(const ScheduleOptions& options, Schedule& expected) {
    BOOST_CHECK_EQUAL(options.problem(), "");
    BOOST_CHECK_EQUAL(text_of(by_next(*make_schedule(options))), text_of(by_next(expected)));
}

}  // namespace

BOOST_AUTO_TEST_CASE(families_by_name) {
    ScheduleOptions options = of_family("store_all");
    same(options, *store_all(23));
    options.needs_state = true;
    same(options, *store_all(23, true));
    options = of_family("periodic");
    same(options, *periodic(23, 4));
    options.needs_state = true;
    same(options, *periodic(23, 4, true));
    options = of_family("forward_only");
    same(options, *forward_only(23));
    options.loss = false;
    same(options, *forward_only(23, false));
    options = of_family("revolve");
    same(options, *revolve(23, 3));
    options.rule = "fewest_writes";
    same(options, *revolve(23, 3));
    options.rule = "longest";
    same(options, *revolve(23, 3, AdvanceRule::longest));
    options.rule = "shortest";
    options.needs_state = true;
    same(options, *revolve(23, 3, AdvanceRule::shortest, true));
}

BOOST_AUTO_TEST_CASE(the_newer_families_are_their_typed_functions) {
    const auto same_counts = [](const ScheduleOptions& o, Schedule& expected, Ending ending = Ending::closed) {
        BOOST_TEST_CONTEXT(o.family) {
            BOOST_CHECK_EQUAL(o.problem(), "");
            const auto made = make_schedule(o);
            Ended a(*made, 23, ending), b(expected, 23, ending);
            BOOST_CHECK_EQUAL(text_of(by_next(a)), text_of(by_next(b)));
        }
    };
    ScheduleOptions o = of_family("revolve");
    o.rule = "aligned";
    o.align = 4;
    o.first = "external";
    same_counts(o,
                *revolve(RevolveOptions{
                    .steps = 23, .slots = 3, .rule = AdvanceRule::aligned, .first = FirstState::external, .align = 4}));
    o = of_family("revolve");
    o.rule = "fewest_disk";
    o.first = "live";
    o.ram_slots = 1;
    same_counts(o,
                *revolve(RevolveOptions{
                    .steps = 23, .slots = 3, .rule = AdvanceRule::fewest_disk, .first = FirstState::live, .ram = 1}));
    o = of_family("segments");
    o.depth = 2;
    same_counts(o, *segments({.steps = 23, .segments = 4, .levels = 2}));
    o = of_family("segments");
    o.segments = 0;
    o.period = 5;
    same_counts(o, *segments({.steps = 23, .length = 5}));
    o = of_family("mixed");
    o.restart = true;
    same_counts(o, *mixed({.steps = 23, .units = 3, .tape_units = 2, .restart = true}));
    o.tape_units = 0;
    o.rule = "internal";
    same_counts(o, *mixed({.steps = 23, .units = 3, .tape_units = 1, .restart = true, .rule = MixedRule::internal}));
    o = of_family("nonuniform");
    o.sizes.assign(23, 2);
    same_counts(o, *nonuniform({.costs = o.costs, .slots = 3, .sizes = o.sizes}));
    o = of_family("online");
    same_counts(o, *online({.slots = 3}), Ending::late);
    o.rule = "wang_moin";
    same_counts(o, *online({.slots = 3, .policy = OnlinePolicy::wang_moin}), Ending::ahead);
    o = of_family("multistage");
    o.advance_cost = 0.5;
    same_counts(o, *multistage({.steps = 23, .levels = o.levels, .advance = 0.5}));
    o.rule = "one";
    same_counts(o, *multistage({.steps = 23, .levels = o.levels, .advance = 0.5, .reads = LevelReads::one}));
    o = of_family("tiered_revolve");
    o.rule = "maximum";
    same_counts(o, *tiered_revolve({.steps = 23, .ram_slots = 2, .disk_slots = 1, .rule = SweepRule::maximum}));
    o = of_family("periodic_disk");
    o.reverse_cost = 4.0;
    same_counts(o,
                *periodic_disk({.steps = 23, .ram_slots = 2, .write = 3.0, .read = 2.0, .reverse = 4.0, .period = 4}));
    o = of_family("two_level");
    same_counts(o, *two_level({.period = 4, .extra_slots = 3}), Ending::late);
    o = of_family("optimal_chain");
    same_counts(o, *optimal_chain(ChainOptions{.chain = o.chain, .budget = 12}));
}

BOOST_AUTO_TEST_CASE(an_option_that_the_family_does_not_use_is_refused_by_name) {
    using Change = void (*)(ScheduleOptions&);
    const struct {
        const char* name;
        std::vector<std::string> users;
        Change change;
    } options[] = {
        {"slots", {"revolve", "mixed", "nonuniform", "online", "two_level"}, [](ScheduleOptions& o) { o.slots = 5; }},
        {"period", {"periodic", "segments", "periodic_disk", "two_level"}, [](ScheduleOptions& o) { o.period = 5; }},
        {"rule",
         {"revolve", "mixed", "online", "multistage", "tiered_revolve", "two_level"},
         [](ScheduleOptions& o) { o.rule = "longest"; }},
        {"loss", {"forward_only"}, [](ScheduleOptions& o) { o.loss = false; }},
        {"first", {"revolve"}, [](ScheduleOptions& o) { o.first = "live"; }},
        {"align", {"revolve"}, [](ScheduleOptions& o) { o.align = 2; }},
        {"ram_slots", {"revolve"}, [](ScheduleOptions& o) { o.ram_slots = 2; }},
        {"segments", {"segments"}, [](ScheduleOptions& o) { o.segments = 2; }},
        {"depth", {"segments"}, [](ScheduleOptions& o) { o.depth = 2; }},
        {"tape_units", {"mixed"}, [](ScheduleOptions& o) { o.tape_units = 2; }},
        {"restart", {"mixed"}, [](ScheduleOptions& o) { o.restart = true; }},
        {"levels", {"multistage", "tiered_revolve", "periodic_disk"}, [](ScheduleOptions& o) { o.levels.resize(1); }},
        {"advance_cost", {"multistage", "periodic_disk"}, [](ScheduleOptions& o) { o.advance_cost = 2.0; }},
        {"reverse_cost", {"multistage", "periodic_disk"}, [](ScheduleOptions& o) { o.reverse_cost = 2.0; }},
        {"costs", {"nonuniform"}, [](ScheduleOptions& o) { o.costs = {1.0}; }},
        {"sizes", {"nonuniform"}, [](ScheduleOptions& o) { o.sizes = {1}; }},
        {"chain", {"optimal_chain"}, [](ScheduleOptions& o) { o.chain.forward_time = {1.0}; }},
        {"budget", {"optimal_chain"}, [](ScheduleOptions& o) { o.budget = 7; }},
        {"needs_state",
         {"store_all", "revolve", "periodic", "segments", "mixed", "nonuniform", "online", "multistage",
          "tiered_revolve", "periodic_disk", "two_level", "optimal_chain", "forward_only"},
         [](ScheduleOptions& o) { o.needs_state = true; }},
    };
    BOOST_CHECK_EQUAL(schedule_families().size(), 13u);
    for (const std::string& family : schedule_families()) {
        BOOST_TEST_CONTEXT(family) {
            const ScheduleOptions good = of_family(family);
            BOOST_CHECK_EQUAL(good.problem(), "");
            BOOST_CHECK(make_schedule(good) != nullptr);
            for (const auto& option : options) {
                if (std::find(option.users.begin(), option.users.end(), family) != option.users.end()) continue;
                ScheduleOptions changed = good;
                option.change(changed);
                refused(changed, ("option " + std::string(option.name) + " is not used by family " + family).c_str());
            }
            ScheduleOptions negative = good;
            negative.steps = -2;
            refused(negative, is_open_ended(family) ? "option steps is not used" : "steps must be 0 or more, came -2");
        }
    }
}

BOOST_AUTO_TEST_CASE(options_without_effect_in_a_family_are_refused) {
    ScheduleOptions o = of_family("revolve");
    o.align = 3;
    refused(o, "align has no effect without rule aligned");
    o = of_family("revolve");
    o.ram_slots = 3;
    refused(o, "ram_slots have no effect without rule fewest_disk");
    o = of_family("multistage");
    o.levels.back().slots = 3;
    o.rule = "one";
    refused(o, "rule has no effect unless the last level has no limit");
    o = of_family("tiered_revolve");
    o.levels.back().read = 1.0;
    refused(o, "prices have no effect");
    o.levels.pop_back();
    refused(o, "tiered_revolve wants two levels");
    o = of_family("periodic_disk");
    o.levels.front().write = 1.0;
    refused(o, "prices of RAM have no effect");
    o = of_family("periodic_disk");
    o.levels.back().slots = 3;
    refused(o, "the disk has no limit here");
    o = of_family("nonuniform");
    o.steps = 22;
    refused(o, "steps must be the number of costs, came 22 steps and 23 costs");
    o = of_family("optimal_chain");
    o.steps = 22;
    refused(o, "steps must be the number of links in chain");
}

BOOST_AUTO_TEST_CASE(wrong_values) {
    ScheduleOptions options = of_family("revolve");
    options.slots = 0;
    refused(options, "revolve: slots must be 1 or more (x_0 takes one), came 0");
    options = of_family("revolve");
    options.rule = "middle";
    refused(options, "rule 'middle' is not known; give one of fewest_writes, longest, shortest, fewest_disk, aligned");
    options = of_family("periodic");
    options.period = 0;
    refused(options, "periodic: period must be 1 or more, came 0");
    options = of_family("revolver");
    refused(options,
            "family 'revolver' is not known; give one of store_all, revolve, periodic, segments, mixed, nonuniform, "
            "online, multistage, "
            "tiered_revolve, periodic_disk, two_level, optimal_chain, forward_only");
}

BOOST_AUTO_TEST_CASE(closed_schedules_refuse_finish) {
    for (const std::string& family : schedule_families()) {
        if (is_open_ended(family)) continue;
        const auto schedule = make_schedule(of_family(family));
        BOOST_CHECK_EXCEPTION(schedule->finish(23), ScheduleError,
                              says("finish(23): this schedule was made for a known"));
    }
}

BOOST_AUTO_TEST_CASE(fill_of_the_base_class_stops_after_the_first_done) {
    Script script({{Verb::advance, {}, {}, 0, {0, 2}}});
    std::vector<Action> out(5);
    BOOST_CHECK_EQUAL(script.fill(out), 2u);
    BOOST_CHECK_EQUAL(script.fill(out), 1u);
    BOOST_CHECK_EQUAL(script.fill({}), 0u);
}
