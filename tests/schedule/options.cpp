// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_options
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/forward_only.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "support/streams.hpp"

using namespace backsweep;
using namespace backsweep::test;

namespace {

ScheduleOptions of_family(const char* family) {
    ScheduleOptions options;
    options.family = family;
    options.steps = 23;
    if (options.family == "revolve") options.slots = 3;
    if (options.family == "periodic") options.period = 4;
    return options;
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

BOOST_AUTO_TEST_CASE(an_option_that_the_family_does_not_use_is_refused_by_name) {
    for (const char* family : {"store_all", "revolve", "periodic", "forward_only"}) {
        BOOST_TEST_CONTEXT(family) {
            const ScheduleOptions good = of_family(family);
            BOOST_CHECK_EQUAL(good.problem(), "");
            ScheduleOptions options = good;
            options.slots = 5;
            if (good.slots == 0) refused(options, "option slots is not used by family");
            options = good;
            options.period = 5;
            if (good.period == 0) refused(options, "option period is not used by family");
            options = good;
            options.rule = "longest";
            if (good.slots == 0) refused(options, "option rule is not used by family");
            options = good;
            options.loss = false;
            if (good.family != "forward_only") refused(options, "option loss is not used by family");
            options = good;
            options.steps = -2;
            refused(options, "steps must be 0 or more, came -2");
        }
    }
}

BOOST_AUTO_TEST_CASE(wrong_values) {
    ScheduleOptions options = of_family("revolve");
    options.slots = 0;
    refused(options, "revolve: slots must be 1 or more (x_0 takes one), came 0");
    options = of_family("revolve");
    options.rule = "middle";
    refused(options, "rule 'middle' is not known; give one of fewest_writes, longest, shortest");
    options = of_family("periodic");
    options.period = 0;
    refused(options, "periodic: period must be 1 or more, came 0");
    options = of_family("revolver");
    refused(options, "family 'revolver' is not known; give one of store_all, revolve, periodic, forward_only");
}

BOOST_AUTO_TEST_CASE(closed_schedules_refuse_finish) {
    for (const char* family : {"store_all", "revolve", "periodic", "forward_only"}) {
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
