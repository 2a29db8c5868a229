// Plans: prices agree with the referee, choices with an exhaustive search, refusals name the least that works.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE plan
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/plan/plan.hpp"
#include "backsweep/plan/timeline.hpp"
#include "backsweep/schedule/referee.hpp"

#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

constexpr auto ram = static_cast<std::size_t>(Tier::ram);
constexpr auto disk = static_cast<std::size_t>(Tier::disk);

Workload workload(Index links, std::int64_t state = 100, std::int64_t tape = 700) {
    Workload w;
    w.steps = 5 * links - 2;  // the last link is short
    w.chunk = 5;
    w.state = state;
    w.tape = tape;
    w.always[Kind::parameters] = 1000;
    w.always[Kind::carry] = 3 * state;
    w.disk_slot = 128;
    w.disk_file = 4096;
    w.buffers = 300;
    w.advance = 0.75;
    w.write = 0.4;
    w.read = 0.3;
    return w;
}

ScheduleOptions mixed_options(Index units, Index tape_units) {
    ScheduleOptions o;
    o.family = "mixed";
    o.slots = units;
    o.tape_units = tape_units;
    return o;
}

ScheduleOptions tiered(Index in_ram, Index on_disk) {
    ScheduleOptions o;
    o.family = "tiered_revolve";
    o.levels.resize(2);
    o.levels[0].slots = in_ram;
    o.levels[1].tier = Tier::disk;
    o.levels[1].slots = on_disk;
    return o;
}

ScheduleOptions blocks(Index in_ram, Index period) {
    ScheduleOptions o = tiered(in_ram, -1);
    o.family = "periodic_disk";
    o.period = period;
    return o;
}

ScheduleOptions options(const char* family, Index slots, Index period) {
    ScheduleOptions o;
    o.family = family;
    o.slots = slots;
    o.period = period;
    return o;
}

/// Slots in RAM that ever hold a state other than x_0.
Index slots_without_start(Schedule& schedule) {
    std::set<std::int32_t> slots;
    schedule.rewind();
    for (Action a = schedule.next(); a.verb != Verb::done; a = schedule.next())
        if ((a.verb == Verb::save || (a.verb == Verb::move && a.steps.empty())) && a.to.tier == Tier::ram &&
            a.steps.first > 0)
            slots.insert(a.to.index);
    return static_cast<Index>(slots.size());
}

/// What the referee sees, priced: an independent way to every figure of a plan.
void agrees_with_referee(const Workload& w, const Plan& plan) {
    const auto schedule = schedule_for(plan, w.links());
    const Play play = referee(*schedule, w.links());
    const Index states = slots_without_start(*schedule);
    schedule->rewind();
    BOOST_CHECK_EQUAL(plan.advances, play.advances);
    BOOST_CHECK_EQUAL(plan.recorded, play.recorded);
    BOOST_CHECK_EQUAL(plan.predicted[Kind::slots], play.state_slots[ram] * w.state);
    BOOST_CHECK_EQUAL(plan.predicted[Kind::tape], (play.tape_slots[ram] + 1) * w.tape);
    BOOST_CHECK_EQUAL(plan.predicted[Kind::parameters], 1000);
    BOOST_CHECK_EQUAL(plan.predicted[Kind::workspace], plan.disk_slots > 0 ? w.buffers : 0);
    BOOST_CHECK_EQUAL(plan.disk_slots, play.peak_slots[disk]);
    BOOST_CHECK_EQUAL(plan.disk, plan.disk_slots > 0 ? w.disk_file + plan.disk_slots * w.disk_slot : 0);
    const double links = static_cast<double>(w.steps) / static_cast<double>(w.chunk);
    const double cost = static_cast<double>(play.advances) * w.advance + links * (w.record + w.reverse);
    const double transfers = static_cast<double>(play.writes[disk]) * w.write + static_cast<double>(play.reads[disk]) * w.read;
    BOOST_CHECK(plan.cost >= cost * (1.0 - 1e-12));
    BOOST_CHECK(plan.cost <= (cost + transfers) * (1.0 + 1e-12));
    if (transfers > 0.0) BOOST_CHECK(std::abs(plan.cost - timeline(*schedule, w).sweep) <= 1e-12 * cost);
    Workload again = w;
    again.remakes = true;
    again.tape_carry = 11;
    const Plan less = price(again, plan.schedule);
    BOOST_CHECK_EQUAL(less.predicted[Kind::slots], states * w.state);
    BOOST_CHECK_EQUAL(less.predicted[Kind::carry], plan.predicted[Kind::carry] + (play.tape_slots[ram] + 1) * 11);
    BOOST_CHECK_EQUAL(less.cost, plan.cost);
}

bool says(const std::exception& e, std::initializer_list<const char*> words) {
    const std::string text = e.what();
    for (const char* w : words)
        if (text.find(w) == std::string::npos) return false;
    return true;
}

}  // namespace

BOOST_AUTO_TEST_CASE(prices_are_what_the_referee_counts) {
    for (Index links = 1; links <= 40; ++links) {
        const Workload w = workload(links);
        agrees_with_referee(w, price(w, options("store_all", 0, 0)));
        for (Index k = 1; k <= links + 2; ++k) {
            agrees_with_referee(w, price(w, options("revolve", k, 0)));
            agrees_with_referee(w, price(w, options("periodic", 0, k)));
        }
        for (const Index units : {1, 3, 7, 20})
            for (const Index tape : {1, 4, 7}) agrees_with_referee(w, price(w, mixed_options(units, tape)));
        for (const Index in_ram : {0, 1, 5})
            for (const Index on_disk : {1, 2, 9}) agrees_with_referee(w, price(w, tiered(in_ram, on_disk)));
        for (const Index in_ram : {1, 2, 5})
            for (Index period = 0; period <= links + 1; ++period) agrees_with_referee(w, price(w, blocks(in_ram, period)));
    }
    for (const Index links : {1000, 4097}) {
        const Workload w = workload(links);
        for (const Index k : {2, 17, 64, 900}) {
            agrees_with_referee(w, price(w, options("revolve", k, 0)));
            agrees_with_referee(w, price(w, options("periodic", 0, k)));
        }
    }
}

BOOST_AUTO_TEST_CASE(the_choice_is_the_cheapest_that_fits) {
    for (const Index links : {1, 2, 3, 7, 24, 61})
        for (const std::int64_t tape : {50, 100, 700, 5000}) {
            const Workload w = workload(links, 100, tape);
            const std::int64_t all = price(w, options("store_all", 0, 0)).predicted.total();
            for (std::int64_t limit = all; limit > 0; limit -= std::max<std::int64_t>(1, all / 97)) {
                std::optional<Plan> best;
                const auto consider = [&](const ScheduleOptions& o) {
                    const Plan p = price(w, o);
                    if (p.predicted.total() > limit) return;
                    if (!best || p.cost < best->cost || (p.cost == best->cost && p.predicted.total() < best->predicted.total())) best = p;
                };
                consider(options("store_all", 0, 0));
                for (Index k = 1; k <= links; ++k) {
                    consider(options("revolve", k, 0));
                    consider(options("periodic", 0, k));
                }
                std::optional<Plan> without = best;
                if (links > 2)
                    for (const Index units : {links / 4, links / 2, links, 2 * links, 5 * links})
                        if (units > 0) consider(mixed_options(units, (tape + 99) / 100));
                BOOST_TEST_CONTEXT("links " << links << ", tape " << tape << ", limit " << limit) {
                    if (best) {
                        const Plan chosen = make_plan(w, {limit, Budget::unlimited});
                        BOOST_CHECK(chosen.cost <= best->cost);
                        if (without && chosen.cost == without->cost)
                            BOOST_CHECK(chosen.predicted.total() <= without->predicted.total());
                        agrees_with_referee(w, chosen);
                        BOOST_CHECK(chosen.predicted.total() <= limit);
                    } else {
                        BOOST_CHECK_THROW(make_plan(w, {limit, Budget::unlimited}), NoPlan);
                    }
                }
            }
        }
}

BOOST_AUTO_TEST_CASE(both_limits_are_kept) {
    const Workload w = workload(50);
    const Plan free = make_plan(w, {});
    BOOST_CHECK_EQUAL(free.schedule.family, "store_all");
    BOOST_CHECK_EQUAL(free.recompute_factor(), 1.0);
    const Plan tight = make_plan(w, {free.predicted.total(), 4000});
    BOOST_CHECK(tight.predicted.time_axis() <= 4000);
    BOOST_CHECK(tight.cost > free.cost);
    const Plan other = make_plan(w, {5000, 4500});
    BOOST_CHECK(other.predicted.total() <= 5000);
    for (const Plan& p : offer(w, {5000, 4500}).fitting) BOOST_CHECK(p.cost >= other.cost);
}

BOOST_AUTO_TEST_CASE(a_refusal_names_the_least_that_works) {
    const Workload w = workload(50);
    const auto least = [&](Budget b) {
        std::string text;
        BOOST_CHECK_EXCEPTION(make_plan(w, b), NoPlan, [&](const NoPlan& e) {
            text = e.what();
            return says(e, {"needs", "offered", "chunk"});
        });
        return std::stoll(text.substr(text.find('(') + 1));
    };
    Budget b;
    b.ram = 1;
    b.ram = least(b);
    BOOST_CHECK_EQUAL(make_plan(w, b).predicted.total(), b.ram);
    --b.ram;
    least(b);
    Budget t;
    t.time_axis = 17;
    t.time_axis = least(t);
    BOOST_CHECK_EQUAL(make_plan(w, t).predicted.time_axis(), t.time_axis);
    --t.time_axis;
    least(t);
}

BOOST_AUTO_TEST_CASE(a_disk_is_used_where_it_pays) {
    Workload w = workload(60);
    Budget tight;
    tight.ram = w.always.total() + 2 * w.state + w.tape + w.buffers;
    const Plan without = make_plan(w, tight);
    tight.disk = 1 << 20;
    const Plan with = make_plan(w, tight);
    BOOST_CHECK_EQUAL(with.schedule.family, "tiered_revolve");
    BOOST_CHECK(with.cost < without.cost);
    BOOST_CHECK(fits(with, tight));
    agrees_with_referee(w, with);
    Workload dear = w;
    dear.write = dear.read = 1000.0;
    BOOST_CHECK_EQUAL(make_plan(dear, tight).cost, without.cost);
    Workload none = w;  // no store
    none.disk_slot = 0;
    BOOST_CHECK_EQUAL(make_plan(none, tight).cost, without.cost);
    BOOST_CHECK_THROW(price(none, tiered(1, 1)), InvalidArgument);
    // What must lie on disk is refused where none is offered, and named.
    Workload log = w;
    log.disk = 5000;
    Budget ram;
    ram.ram = 1 << 20;
    BOOST_CHECK_EXCEPTION(make_plan(log, ram), NoPlan, [](const NoPlan& e) { return says(e, {"disk: needs", "5000", "offered 0 B"}); });
}

BOOST_AUTO_TEST_CASE(fronts_rise_in_bytes_and_fall_in_cost) {
    const Workload w = workload(40);
    std::vector<Plan> all;
    for (Index k = 1; k <= 40; ++k) {
        all.push_back(price(w, options("revolve", k, 0)));
        all.push_back(price(w, options("periodic", 0, k)));
    }
    const std::vector<Plan> front = pareto(all);
    for (std::size_t k = 1; k < front.size(); ++k) {
        BOOST_CHECK(front[k].predicted.total() > front[k - 1].predicted.total());
        BOOST_CHECK(front[k].cost < front[k - 1].cost);
    }
    for (const Plan& p : all) {
        bool beaten = false;
        for (const Plan& f : front) beaten = beaten || (f.cost <= p.cost && f.predicted.total() <= p.predicted.total());
        BOOST_CHECK(beaten);
    }
}

BOOST_AUTO_TEST_CASE(a_huge_workload_is_planned) {
    Workload w = workload(1'000'000'000);
    Budget b;
    b.ram = 1'000'000;
    const Plan plan = make_plan(w, b);
    BOOST_CHECK_EQUAL(plan.schedule.family, "revolve");
    BOOST_CHECK(plan.predicted.total() <= b.ram);
    BOOST_CHECK(plan.predicted.total() > b.ram - w.state);
}

BOOST_AUTO_TEST_CASE(a_shorter_window_holds_no_more) {
    const Workload full = workload(60);
    for (const ScheduleOptions& o : {options("store_all", 0, 0), options("revolve", 7, 0), options("periodic", 0, 9), tiered(3, 5), blocks(3, 7), blocks(1, 40),
                                     mixed_options(12, 7), mixed_options(40, 7), mixed_options(300, 7), mixed_options(25, 2)}) {
        const Plan plan = price(full, o);
        for (Index links = 1; links < 60; ++links) {
            const auto schedule = schedule_for(plan, links);
            const Play play = referee(*schedule, links);
            BOOST_CHECK_EQUAL(play.reversed, links);
            BOOST_CHECK(play.state_slots[ram] * full.state <= plan.predicted[Kind::slots]);
            BOOST_CHECK((play.tape_slots[ram] + 1) * full.tape <= plan.predicted[Kind::tape]);
            BOOST_CHECK(play.peak_slots[disk] <= plan.disk_slots);
        }
    }
}

BOOST_AUTO_TEST_CASE(bad_input_is_refused_in_words) {
    Workload w = workload(4);
    w.chunk = 0;
    BOOST_CHECK_EXCEPTION(make_plan(w, {}), InvalidArgument, [](const Error& e) { return says(e, {"chunk = 0"}); });
    w = workload(4);
    w.steps = 0;
    BOOST_CHECK_EXCEPTION(make_plan(w, {}), InvalidArgument, [](const Error& e) { return says(e, {"at least 1 step", "0"}); });
    w = workload(4, -1);
    BOOST_CHECK_THROW(make_plan(w, {}), InvalidArgument);
    w = workload(4);
    w.advance = -1.0;
    BOOST_CHECK_EXCEPTION(make_plan(w, {}), InvalidArgument, [](const Error& e) { return says(e, {"costs are finite"}); });
    BOOST_CHECK_EXCEPTION(price(workload(4), options("forward_only", 0, 0)), InvalidArgument,
                          [](const Error& e) { return says(e, {"forward_only", "store_all"}); });
    BOOST_CHECK_EQUAL(bytes_in_words(512), "512 B");
    BOOST_CHECK_EQUAL(bytes_in_words(3 * 1024 * 1024 / 2), "1.50 MiB");
}
