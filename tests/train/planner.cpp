// The planner of trainings: within every limit it is never dearer than the ways that it could have taken, its bytes are
// measured to the byte, and the gradient has the bits of one that keeps every tape.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE planner
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/blocks.hpp"
#include "backsweep/nn/models.hpp"
#include "backsweep/store/throttle.hpp"
#include "backsweep/train/plan_json.hpp"
#include "backsweep/train/planner.hpp"
#include "support/scratch.hpp"
#include "train/made_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

ModelEnds ends() {
    ModelEnds e;
    e.vocabulary = e.outputs = 256;
    return e;
}

ModelSpec lstm(Index layers = 1) {
    return recurrent_model({ends(), 9, {.name = "rnn", .hidden = 13, .layers = layers}});
}
ModelSpec gru() {
    RecurrentSpec cell{.name = "rnn", .hidden = 7, .layers = 4};
    cell.cell = RecurrentSpec::Cell::gru;
    return recurrent_model({ends(), 9, cell});
}
ModelSpec sha() {
    ShaRnn o;
    o.ends = ends();
    o.features = 8;
    o.layers = 2;
    o.heads = 1;
    o.memory = 12;
    return sha_rnn(o);
}
ModelSpec xl() {
    TransformerXl o;
    o.ends = ends();
    o.features = 8;
    o.layers = 3;
    o.heads = 2;
    o.memory = 10;
    return transformer_xl(o);
}

/// A model in all its forms, and a text.
template <class Real>
struct Case {
    Case(const ModelSpec& spec, Index batch, Index window, Index windows = 3)
        : text(1 + batch * (window * windows - window / 3)),
          source(text.source<Real>(batch, window)) {
        for (const std::string& save : save_policies()) {
            ModelSpec form = save_policy(spec, save);
            add(form, save);
            form.loss.save = {};
            add(form, save + ", no logits");
        }
    }
    void add(const ModelSpec& form, const std::string& name) {
        forms.push_back(std::make_unique<Network<Real>>(build<Real>(form)));
        names.push_back(name);
    }
    Planner<Real> planner(const TrainOptions& options) const {
        Planner<Real> p(*forms.front(), source, options, names.front());
        for (std::size_t f = 1; f < forms.size(); ++f) p.add(*forms[f], names[f]);
        return p;
    }
    const Network<Real>& network(const Plan& plan) const {
        return *forms[static_cast<std::size_t>(std::find(names.begin(), names.end(), plan.save) - names.begin())];
    }

    Text text;
    TextSource<Real> source;
    std::vector<std::unique_ptr<Network<Real>>> forms;
    std::vector<std::string> names;
};

template <class Real>
bool same_bits(std::span<const Real> a, std::span<const Real> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TrainOptions options() {
    TrainOptions o;
    o.shards = 2;
    o.seed = 5;
    o.optimizer.rule = SgdSpec{.momentum = 0.5};
    return o;
}

/// Four updates under the plan, and with everything kept in the same links: one set of bits, and the bytes foretold.
template <class Real>
void runs_as_foretold(const Case<Real>& on, const TrainOptions& o, const Plan& plan) {
    BOOST_TEST_CONTEXT(to_json(plan)) {
        Trainer<Real> trainer(on.network(plan), on.source, o, plan);
        trainer.run(4);
        const Bytes measured = trainer.measured();
        for (std::size_t k = 0; k < kind_count; ++k)
            BOOST_TEST(measured.by_kind[k] == plan.predicted.by_kind[k],
                       to_string(static_cast<Kind>(k))
                           << ": measured " << measured.by_kind[k] << ", predicted " << plan.predicted.by_kind[k]);
        TrainOptions all = o;
        all.budget = {};
        all.scratch = {};
        all.chunk = plan.chunk;
        all.schedule = {.family = "store_all"};
        all.depth = {};
        all.plan_depth = all.plan_memories = false;
        Trainer<Real> kept(*on.forms.front(), on.source, all);
        kept.run(4);
        BOOST_TEST(same_bits<Real>(trainer.parameters(), kept.parameters()));
        BOOST_TEST(same_bits<Real>(trainer.gradients(), kept.gradients()));
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(planner)

BOOST_AUTO_TEST_CASE(every_budget_runs_as_foretold) {
    for (const auto& [spec, window] : {std::pair{lstm(), Index{101}}, std::pair{gru(), Index{53}},
                                       std::pair{sha(), Index{47}}, std::pair{xl(), Index{43}}}) {
        const Case<float> on(spec, 3, window);
        const Scratch scratch;
        TrainOptions o = options();
        const Plan free = on.planner(o).best();
        BOOST_TEST(free.slowdown() <= 1.0 + 1e-12);
        const Plan least = on.planner(o).smallest({});
        const std::int64_t most = free.predicted.total(), fewest = least.predicted.total();
        runs_as_foretold(on, o, least);
        for (const double share : {1.0, 0.7, 0.4, 0.2, 0.1, 0.03}) {
            o.budget.ram = fewest + static_cast<std::int64_t>(share * static_cast<double>(most - fewest));
            const Plan plan = on.planner(o).best();
            BOOST_TEST(fits(plan, o.budget));
            runs_as_foretold(on, o, plan);
        }
        // Below the least nothing fits; it says how much is needed, and that runs.
        o.budget.ram = fewest - 1;
        BOOST_CHECK_EXCEPTION(on.planner(o).best(), NoPlan, [&](const NoPlan& e) {
            return std::string(e.what()).find("needs " + bytes_in_words(fewest) + " (" + std::to_string(fewest) +
                                              " bytes)") != std::string::npos;
        });
        o.budget.ram = fewest;
        BOOST_TEST(on.planner(o).best().predicted.total() == fewest);
        // A disk makes room, or changes nothing.
        o.budget.disk = 1 << 24;
        o.scratch.folder = scratch.path().string();
        const Plan on_disk = on.planner(o).best();
        BOOST_TEST(on_disk.cost <= least.cost);
        runs_as_foretold(on, o, on_disk);
        const Plan less = on.planner(o).smallest(o.budget);
        BOOST_TEST(less.predicted.total() <= fewest);
        if (less.disk > 0) runs_as_foretold(on, o, less);
    }
}

BOOST_AUTO_TEST_CASE(no_way_of_the_grid_is_cheaper) {
    for (const auto& [spec, window] :
         {std::pair{lstm(2), Index{300}}, std::pair{gru(), Index{270}}, std::pair{xl(), Index{130}}}) {
        const Case<float> on(spec, 2, window);
        const TrainOptions o = options();
        const Planner<float> planner = on.planner(o);
        const Plan free = planner.best();
        const std::int64_t most = free.predicted.total(), fewest = planner.smallest({}).predicted.total();
        std::vector<Plan> grid;
        const auto add = [&](const std::function<Plan()>& plan) {
            try {
                grid.push_back(plan());
            } catch (const Error&) {  // a depth budget too small, more units than tables
            }
        };
        for (const std::string& save : on.names)
            for (const Index chunk : {8, 16, 32, 64, 128, 256})
                for (const int depth : {0, 1, 2, 3, 4}) {  // every tape, groups, the optimum in two thirds, 5/6 and all of that
                    TrainOptions way = o;
                    way.chunk = chunk;
                    way.plan_depth = way.plan_memories = false;
                    if (depth == 1) way.depth.family = DepthOptions::Family::sqrt;
                    if (depth >= 2) {
                        way.depth.family = DepthOptions::Family::optimal;
                        const DepthProgram all = depth_program(*on.forms.front(), std::min(chunk, window), 1, {});
                        way.depth.budget =
                            (all.rest + all.scratch) * static_cast<Index>(sizeof(float)) * (depth + 2) / 6;
                    }
                    const Index links = 1 + (window - 1) / chunk;
                    way.schedule = {.family = "store_all"};
                    add([&] { return planner.price(way, save); });
                    for (Index k = 1; k < links; k += 1 + k / 4) {
                        way.schedule = {.family = "periodic"};
                        way.schedule.period = k;
                        add([&] { return planner.price(way, save); });
                        way.schedule = {.family = "revolve"};
                        way.schedule.slots = k;
                        add([&] { return planner.price(way, save); });
                    }
                    const Workload w = workload(on.network(free), on.source, [&] {
                        TrainOptions all = way;
                        all.depth = {};
                        all.schedule = {.family = "store_all"};
                        return all;
                    }());
                    for (const Index units : {links / 2, links, 3 * links, 9 * links}) {
                        way.schedule = {.family = "mixed"};
                        way.schedule.slots = units;
                        way.schedule.tape_units =
                            std::max<Index>(1, (w.tape + w.state - 1) / std::max<std::int64_t>(1, w.state));
                        if (units > 0 && links > 2 && w.state > 0) add([&] { return planner.price(way, save); });
                    }
                }
        BOOST_TEST(grid.size() > 100u);
        for (int k = 0; k <= 24; ++k) {
            Budget b;
            b.ram = fewest + (most - fewest) * k * k / 576;
            const Plan chosen = planner.best(b);
            for (const Plan& way : grid)
                if (fits(way, b))
                    BOOST_TEST(chosen.cost <= way.cost, to_json(chosen) << "\nis dearer than\n" << to_json(way));
        }
        const std::vector<Plan> front = planner.front(8);
        for (std::size_t k = 1; k < front.size(); ++k) BOOST_TEST(front[k].cost < front[k - 1].cost);
        BOOST_TEST(front.front().predicted.total() == fewest);
    }
}

// One number in: with room for the logits they are kept, with less head and loss run in blocks, at the price of the
// head's product once more, and far below what kept logits need at least.
BOOST_AUTO_TEST_CASE(a_large_vocabulary_runs_in_blocks_where_bytes_are_short) {
    ModelEnds many = ends();
    many.outputs = 3001;
    const Case<float> on(recurrent_model({many, 9, {.name = "rnn", .hidden = 13}}), 4, 160);
    TrainOptions o = options();
    o.chunk = 80;
    const Planner<float> planner = on.planner(o);
    const Plan free = planner.best();
    BOOST_TEST(free.save == "everything");
    Planner<float> logits(*on.forms.front(), on.source, o, "everything");
    logits.add(*on.forms[4], "nothing");
    BOOST_TEST(on.names[4] == "nothing");
    o.budget.ram = logits.smallest({}).predicted.total() - 1;
    BOOST_CHECK_THROW(logits.best(o.budget), NoPlan);
    const Plan blocks = planner.best(o.budget);
    BOOST_TEST(blocks.save == "everything, no logits");
    BOOST_TEST(blocks.cost < 4.0 / 3.0 * free.cost);
    runs_as_foretold(on, o, blocks);
    // Of the least of both, all but parameters, gradients and moments.
    const auto of_links = [](const Plan& plan) {
        Bytes b = plan.predicted;
        for (const Kind kind : {Kind::parameters, Kind::gradients, Kind::moments}) b[kind] = 0;
        return b.total();
    };
    const Plan least = planner.smallest({});
    BOOST_TEST(least.save == "nothing, no logits");
    BOOST_TEST(3 * of_links(least) < of_links(logits.smallest({})));
    runs_as_foretold(on, o, least);
}

BOOST_AUTO_TEST_CASE(a_plan_is_one_plan_and_comes_back_from_text) {
    const Case<double> on(gru(), 3, 61);
    TrainOptions o = options();
    const Plan free = on.planner(o).best();
    o.budget.ram = free.predicted.total() * 6 / 10;
    const std::string text = to_json(on.planner(o).best());
    std::vector<std::string> again(4);
    std::vector<std::thread> threads;
    for (std::string& t : again) threads.emplace_back([&] { t = to_json(on.planner(o).best()); });
    for (std::thread& t : threads) t.join();
    for (const std::string& t : again) BOOST_TEST(t == text);
    BOOST_TEST(to_json(plan_from_json(text)) == text);
    BOOST_TEST(o.open() == "chunk, schedule, depth, memories");
    BOOST_TEST(planned(o, plan_from_json(text), 0).open().empty());
}

BOOST_AUTO_TEST_CASE(what_is_given_is_kept) {
    const Case<float> on(lstm(3), 3, 90);
    TrainOptions o = options();
    o.chunk = 9;
    o.schedule = {.family = "revolve"};
    o.schedule.slots = 4;
    o.plan_depth = false;
    o.depth.family = DepthOptions::Family::sqrt;
    o.depth.period = 2;
    const Plan plan = on.planner(o).best();
    BOOST_TEST(plan.chunk == 9);
    BOOST_TEST(plan.schedule.family == "revolve");
    BOOST_TEST(plan.schedule.slots == 4);
    BOOST_TEST(plan.depth.family == "sqrt");
    BOOST_TEST(plan.depth.period == 2);
    runs_as_foretold(on, o, plan);
    o.budget.ram = 1000;
    BOOST_CHECK_EXCEPTION(on.planner(o).best(), NoPlan, [](const NoPlan& e) {
        const std::string text = e.what();
        for (const char* words : {"schedule revolve does not fit", "offered 1000 B", "with chunk left to the planner",
                                  "with the depth left to the planner"})
            if (text.find(words) == std::string::npos) return false;
        return true;
    });
    // Also where the depth is the planner's, and another schedule would do with less.
    TrainOptions pinned = options();
    pinned.schedule = {.family = "store_all"};
    const Planner<float> stores = on.planner(pinned);
    const std::int64_t fewest = stores.smallest({}).predicted.total(), most = stores.best().predicted.total();
    for (int k = 0; k < 12; ++k) {
        pinned.budget.ram = fewest * 8 / 10 + (most - fewest * 8 / 10) * k / 12;
        try {
            const Plan kept = stores.best(pinned.budget);
            BOOST_TEST(kept.schedule.family == "store_all");
            BOOST_TEST(fits(kept, pinned.budget));
        } catch (const NoPlan&) {
            BOOST_TEST(pinned.budget.ram < fewest);
        }
    }
    // Marks hold under every family that the planner looks at.
    TrainOptions marked = options();
    marked.depth.never = {"rnn, layer 1"};
    marked.budget.ram = on.planner(options()).best().predicted.total() / 2;
    runs_as_foretold(on, marked, on.planner(marked).best());
    // Links too long for the bytes of a depth that is given are left aside.
    TrainOptions narrow = options();
    narrow.plan_depth = false;
    narrow.depth.family = DepthOptions::Family::optimal;
    narrow.depth.budget = 40000;
    const Plan short_links = on.planner(narrow).best();
    BOOST_TEST(short_links.chunk < 90);
    runs_as_foretold(on, narrow, short_links);
    narrow.depth.budget = 1;
    BOOST_CHECK_THROW(on.planner(narrow).best(), NoPlan);
    // A chunk divides what is looked back at.
    TrainOptions back = options();
    back.look_back = 45;
    BOOST_TEST(90 % on.planner(back).best().chunk == 0);
    BOOST_TEST(45 % on.planner(back).best().chunk == 0);
}

BOOST_AUTO_TEST_CASE(measured_plans_say_so_and_run) {
    const Case<float> on(lstm(2), 3, 96);
    TrainOptions o = options();
    Planner<float> planner = on.planner(o);
    planner.measure(5);
    const Plan free = planner.best();
    BOOST_TEST(free.measured);
    BOOST_TEST(free.cost > 0.0);
    BOOST_TEST(free.cost < 10.0);  // seconds
    // Without attention `selective` is `everything`, so it takes the same to the last bit; and links between powers of
    // two take what lies on the line between these.
    const auto seconds = [&](Index chunk, const std::string& save) {
        TrainOptions way = o;
        way.chunk = chunk;
        way.schedule = {.family = "store_all"};
        way.plan_depth = way.plan_memories = false;
        return planner.price(way, save).cost;
    };
    for (const Index chunk : {1, 8, 24, 96}) BOOST_TEST(seconds(chunk, "everything") == seconds(chunk, "selective"));
    const double links16 = seconds(16, "nothing") / 6.0, links32 = seconds(32, "nothing") / 3.0;
    BOOST_TEST(std::abs(seconds(24, "nothing") / 4.0 - 0.5 * (links16 + links32)) <= 1e-12 * links32);
    o.budget.ram = free.predicted.total() / 2;
    const Plan plan = planner.best(o.budget);
    runs_as_foretold(on, o, plan);
    TrainOptions five = o;
    five.chunk = 5;
    five.schedule = {.family = "store_all"};
    five.plan_depth = five.plan_memories = false;
    BOOST_CHECK_THROW(planner.price(five, "everything"), InvalidArgument);  // was not timed
}

// The first window is shorter than those that look back, and links are timed behind as many as fill the memory.
BOOST_AUTO_TEST_CASE(windows_that_look_back_are_timed) {
    TransformerXl xl;
    xl.ends.vocabulary = xl.ends.outputs = 12;
    xl.features = 8;
    xl.layers = 1;
    xl.heads = 2;
    xl.memory = 50;
    const Case<float> on(transformer_xl(xl), 3, 24);
    TrainOptions o = options();
    o.look_back = 48;
    Planner<float> planner = on.planner(o);
    planner.measure(1);
    const Plan plan = planner.best();
    BOOST_TEST(plan.measured);
    BOOST_TEST(24 % plan.chunk == 0);
    runs_as_foretold(on, o, plan);
}

// Timing holds no more than the plans may; links that would are priced on the line through the longest that do not.
BOOST_AUTO_TEST_CASE(timing_keeps_the_limit) {
    const Case<float> on(lstm(2), 3, 96);
    TrainOptions o = options();
    const auto peak_of = [&](Planner<float> planner) {
        Ledger& all = Ledger::process();
        const std::int64_t before = all.live_total();
        all.reset_peaks();
        planner.measure(1);
        TrainOptions whole = o;
        whole.chunk = 96;
        whole.schedule = {.family = "store_all"};
        whole.plan_depth = whole.plan_memories = false;
        BOOST_TEST(planner.price(whole, "everything").cost > 0.0);
        return all.peak_total() - before;
    };
    const std::int64_t free = peak_of(on.planner(o));
    o.budget.ram = on.planner(o).smallest({}).predicted.total() * 2;
    BOOST_TEST(free > o.budget.ram);
    BOOST_TEST(peak_of(on.planner(o)) <= o.budget.ram);
}

BOOST_AUTO_TEST_CASE(a_slow_disk_gives_another_plan) {
    const Case<float> on(recurrent_model({ends(), 9, {.name = "rnn", .hidden = 150}}), 3, 101);
    const Scratch scratch;
    TrainOptions o = options();
    o.chunk = 1;
    o.budget.ram = on.planner(o).smallest({}).predicted.total() + 40000;  // a dozen states
    o.budget.disk = 1 << 24;
    o.scratch.folder = scratch.path().string();
    o.scratch.bandwidth = 1e12;
    const auto plan = [&](double bandwidth, double throttle) {
        TrainOptions other = o;
        other.scratch.bandwidth = bandwidth;
        if (throttle > 0.0) other.scratch.throttle = std::make_shared<Throttle>(throttle);
        return on.planner(other).best();
    };
    const Plan fast = plan(1e12, 0.0), slow = plan(2e6, 0.0);
    BOOST_TEST(fast.disk_slots > slow.disk_slots);
    BOOST_TEST(fast.cost < slow.cost);
    BOOST_TEST(to_json(plan(1e12, 2e6)) == to_json(slow));
    BOOST_TEST(to_json(plan(2e6, 1e12)) == to_json(slow));
    o.scratch.throttle = std::make_shared<Throttle>(1e8);
    runs_as_foretold(on, o, fast);
    // Operations a second are what counted transfers are weighed against; measured ones are seconds already.
    TrainOptions way = o;
    way.schedule = fast.schedule;
    way.plan_depth = way.plan_memories = false;
    way.scratch.throttle = std::make_shared<Throttle>(2e6);
    TrainOptions other = way;
    other.scratch.speed *= 1000.0;
    Planner<float> planner = on.planner(o);
    BOOST_TEST(planner.price(other, "everything").cost > planner.price(way, "everything").cost);
    planner.measure(1);
    BOOST_TEST(planner.price(other, "everything").cost == planner.price(way, "everything").cost);
}

BOOST_AUTO_TEST_CASE(bad_input_is_refused) {
    const Case<float> on(lstm(), 3, 30);
    const Network<float> other = build<float>(gru());
    TrainOptions o = options();
    Planner<float> planner = on.planner(o);
    BOOST_CHECK_THROW(planner.add(other, "other"), InvalidArgument);
    BOOST_CHECK_THROW(planner.add(*on.forms.front(), "everything"), InvalidArgument);
    BOOST_CHECK_THROW(planner.price(o), InvalidArgument);
    BOOST_CHECK_THROW(planner.measure(0), InvalidArgument);
    o.budget.disk = 100;
    BOOST_CHECK_THROW(on.planner(o), InvalidArgument);
    o = options();
    o.scratch.folder = "x";
    BOOST_CHECK_THROW(on.planner(o), InvalidArgument);
    o = options();
    o.depth.slots = 2;
    BOOST_CHECK_THROW(on.planner(o), InvalidArgument);
    BOOST_CHECK_THROW(workload(*on.forms.front(), on.source, options()), InvalidArgument);
    Plan plan = planner.best();
    o = options();
    o.chunk = plan.chunk - 1;
    BOOST_CHECK_THROW(Trainer<float>(*on.forms.front(), on.source, o, plan), InvalidArgument);
    plan.depth.family = "none";
    BOOST_CHECK_THROW(Trainer<float>(*on.forms.front(), on.source, options(), plan), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(the_largest_that_fits) {
    for (const Index limit : {1, 2, 3, 7, 100, 1000}) {
        Index asked = 0;
        const auto fits = [&](Index x) { return ++asked, x <= limit; };
        BOOST_TEST(largest_that_fits(1, 1000, fits) == limit);
        BOOST_TEST(asked <= 22);
    }
    BOOST_TEST(largest_that_fits(5, 10, [](Index) { return false; }) == 0);
    BOOST_CHECK_THROW(largest_that_fits(5, 4, [](Index) { return true; }), InvalidArgument);
}

BOOST_AUTO_TEST_SUITE_END()
