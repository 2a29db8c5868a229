// Both axes at once: one chunking, one gradient and one loss, whatever is kept along time and along the depth; and
// every layer runs as often as the plan says.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE depth_axis
#include "property/network_case.hpp"

#include "nn/counting_layer.hpp"
#include "nn/depth_costs.hpp"
#include "property/five_models.hpp"

#include <algorithm>
#include <deque>

using namespace backsweep;
using namespace backsweep::test;

namespace {

ScheduleOptions of(const char* family, Index slots = 0, Index period = 0) {
    ScheduleOptions o;
    o.family = family;
    o.slots = slots;
    o.period = period;
    return o;
}

std::vector<ScheduleOptions> along_time(Index links) {
    ScheduleOptions mixed = of("mixed", std::max<Index>(3, links / 2));
    mixed.tape_units = 2;
    return {of("store_all"),
            of("revolve", 1),
            of("revolve", 2),
            of("revolve", 3),
            of("revolve", links),
            of("periodic", 0, 2),
            mixed};
}

/// Bytes that the layers of a link hold under a program, those that are alive at once.
std::int64_t bytes_of(const DepthProgram& program) {
    return static_cast<std::int64_t>(sizeof(double)) * (program.rest + program.scratch);
}

std::vector<std::pair<std::string, DepthOptions>> along_depth(const Network<double>& network, Index steps,
                                                              Index batch) {
    using Family = DepthOptions::Family;
    std::vector<std::pair<std::string, DepthOptions>> all;
    const auto add = [&](std::string name, Family family) -> DepthOptions& {
        all.push_back({std::move(name), {}});
        all.back().second.family = family;
        return all.back().second;
    };
    add("sqrt", Family::sqrt);
    add("groups of 2", Family::sqrt).period = 2;
    add("no slots", Family::slots);
    add("one slot", Family::slots).slots = 1;
    // Halfway from the least that such schedules take to what all tapes take; the planner's bytes are rounded up.
    std::int64_t low = 1, high = 2 * bytes_of(depth_program(network, steps, batch, {}));
    const std::int64_t full = high;
    while (high - low > high / 20) {
        DepthOptions o;
        o.family = Family::optimal;
        o.budget = (low + high) / 2;
        try {
            depth_program(network, steps, batch, o);
            high = o.budget;
        } catch (const NoPlan&) {
            low = o.budget;
        }
    }
    add("optimal, nearly the least", Family::optimal).budget = high;
    add("optimal", Family::optimal).budget = (high + full) / 2;
    add("always", Family::store_all).always = {"*"};
    DepthOptions& marks = add("marked by name", Family::slots);
    marks.never = {network.layer(1).name()};
    marks.always = {network.layer(network.depth() - 2).name()};
    add("marked by a predicate", Family::sqrt).checkpoint = [](const std::string& name) {
        return name.size() % 2 == 0 ? Checkpoint::never : Checkpoint::automatic;
    };
    add("on disk", Family::sqrt).place = [](const std::string&) { return Tier::disk; };
    add("tapes' inputs on disk", Family::store_all).place = [](const std::string& name) {
        return name.size() % 2 == 0 ? Tier::disk : Tier::ram;
    };
    return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(bits_and_counts_along_both_axes) {
    for (const NamedModel& model : five_models())
        for (const Index chunk : {1, 3, 32})
            for (const Index batch : {1, 3}) {
                constexpr Index steps = 13;
                const Network<double> network = cpu::build<double>(model.spec);
                std::deque<LayerCalls> calls;
                const Case<double> run(counted(network, calls), steps, batch, chunk, model.marked);
                BOOST_TEST_CONTEXT(model.name << ", batch " << batch << ", chunk " << chunk) {
                    const Outcome<double> all = run(of("store_all"));
                    BOOST_TEST(std::isfinite(all.loss));
                    for (const auto& [name, depth] : along_depth(network, std::min(chunk, steps), batch)) {
                        const DepthProgram program = depth_program(network, std::min(chunk, steps), batch, depth);
                        if (depth.budget > 0) BOOST_TEST(bytes_of(program) <= depth.budget);
                        for (const ScheduleOptions& time : along_time(run.links()))
                            BOOST_TEST_CONTEXT("depth " << name << ", time " << time.family << " " << time.slots) {
                                for (LayerCalls& c : calls) c.forget();
                                const Outcome<double> other = run(time, depth);
                                BOOST_TEST(same_bits(all, other));
                                for (Index l = 0; l < network.depth(); ++l) {
                                    Index advances = other.advances * (l < network.carry_depth() ? 1 : 0), records = 0,
                                          reverses = 0;
                                    const auto count = [&](const std::vector<DepthCall>& part, Index times) {
                                        for (const DepthCall& c : part) {
                                            if (c.layer != l) continue;
                                            advances += c.what == DepthCall::What::advance ? times : 0;
                                            records += c.what == DepthCall::What::record ? times : 0;
                                            reverses += c.what == DepthCall::What::reverse ? times : 0;
                                        }
                                    };
                                    count(program.record, other.recorded);
                                    count(program.reverse, other.reversed);
                                    const LayerCalls& c = calls[static_cast<std::size_t>(l)];
                                    BOOST_TEST(c.advances == advances);
                                    BOOST_TEST(c.records == records);
                                    BOOST_TEST(c.reverses == reverses);
                                }
                            }
                        BOOST_TEST(same_bits(all, run.sweep(of("revolve", 2), depth, true)),
                                   "verified it differs, depth " << name);
                    }
                }
            }
}

// Depth-outer with time inside: the same calls in another order.
BOOST_AUTO_TEST_CASE(depth_outer_gives_the_bits_of_time_outer) {
    std::vector<NamedModel> all = five_models();
    ModelSpec real;
    real.layers = {RecurrentSpec{.name = "rnn", .inputs = 3, .hidden = 5, .layers = 2, .learned_state = true},
                   DenseSpec{"head", 5, 2}};
    real.loss.kind = LossSpec::Kind::mean_squared_error;
    all.push_back({"real inputs, learned states", real, true});
    for (const NamedModel& model : all)
        for (const Index chunk : {1, 3, 32})
            for (const Index batch : {1, 3}) {
                const Case<double> run(cpu::build<double>(model.spec), 13, batch, chunk, model.marked);
                BOOST_TEST_CONTEXT(model.name << ", batch " << batch << ", chunk " << chunk) {
                    const Outcome<double> outer = run(of("store_all"));
                    std::vector<ScheduleOptions> along_depth{of("store_all"), of("periodic", 0, 2), of("revolve", 1),
                                                             of("revolve", 2)};
                    along_depth.push_back(of("tiered_revolve"));
                    along_depth.back().levels = {{Tier::ram, 1}, {Tier::disk, 2}};
                    for (const ScheduleOptions& o : optimal_schedules(run.network(), 13, batch))
                        along_depth.push_back(o);
                    for (const ScheduleOptions& time : along_time(run.links()))
                        for (const ScheduleOptions& depth : along_depth) {
                            const Outcome<double> layers = run.layerwise(time, depth);
                            BOOST_TEST(same_bits(outer, layers),
                                       "time " << time.family << " " << time.slots << ", depth " << depth.family);
                        }
                }
            }
}

// The forward calls of a program are those that the referee counts for its schedule, where every layer has a tape; else
// calls that only pass something on which nobody reads are left out.
BOOST_AUTO_TEST_CASE(calls_are_the_schedules) {
    std::vector<NamedModel> all = five_models();
    ModelSpec stack;
    stack.layers = {RecurrentSpec{.name = "rnn", .inputs = 3, .hidden = 4, .layers = 11}};
    stack.loss.kind = LossSpec::Kind::mean_squared_error;
    all.push_back({"stack", stack});
    for (const NamedModel& model : all) BOOST_TEST_CONTEXT(model.name) {
            const Network<double> network = cpu::build<double>(model.spec);
            const bool exact = model.name == "stack";
            const Index n = network.links();
            const auto judge = [&](const DepthOptions& o, Index replays) {
                const DepthProgram program = depth_program(network, 4, 3, o);
                if (exact)
                    BOOST_TEST(program.replays == replays);
                else
                    BOOST_TEST(program.replays <= replays);
            };
            for (Index slots = 0; slots <= n; ++slots) {
                ScheduleOptions s = of("revolve", slots + 1);
                s.steps = n;
                const Play play = referee(*make_schedule(s), n);
                judge({.family = DepthOptions::Family::slots, .slots = slots}, play.advances + play.recorded - n);
            }
            for (Index period = 1; period <= n; ++period)
                judge({.family = DepthOptions::Family::sqrt, .period = period}, (n - 1) / period * period);
            judge({.always = {"*"}}, n);
            const DepthProgram never =
                depth_program(network, 4, 3, {.family = DepthOptions::Family::slots, .never = {"*"}});
            BOOST_TEST(never.replays == 0);
            BOOST_TEST(never.rest == depth_program(network, 4, 3, DepthOptions{}).rest);
        }
}

// Measured work: every layer's, and a layer that is said to be dear is not run again where the bytes leave a choice.
BOOST_AUTO_TEST_CASE(plans_follow_the_work_that_was_measured) {
    ModelSpec spec;
    spec.layers = {RecurrentSpec{.name = "rnn", .inputs = 3, .hidden = 4, .layers = 8}};
    spec.loss.kind = LossSpec::Kind::mean_squared_error;
    const Network<double> network = cpu::build<double>(spec);
    const std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size()), 0.1), x(3 * 6, 0.5),
        targets(4 * 6, 1.0);
    std::vector<double> gradients(parameters.size());
    TimeChain<double> chain(network, 2, 3);
    chain.measure(true);
    Window<double> window;
    window.steps = 3;
    window.inputs = x.data();
    window.values = targets.data();
    chain.show(window);
    chain.use(parameters.data());
    chain.add_to(gradients.data());
    ScheduleOptions one = of("store_all");
    one.steps = 1;
    Execution run(chain, make_schedule(one));
    run.forward();
    run.backward();
    std::vector<Work> work = chain.measured();
    BOOST_TEST_REQUIRE(work.size() == 9u);
    for (const Work& w : work) BOOST_TEST((w.forward > 0.0 && w.reverse > 0.0 && w.spared == 0.0));  // no advance
    // What an advance spares is off its price alone.
    const DepthProgram kept = depth_program(network, 3, 2, DepthOptions{});
    const LinkWork full = link_work(kept, std::vector<Work>(9, {3.0, 5.0})),
                   less = link_work(kept, std::vector<Work>(9, {3.0, 5.0, 1.0}));
    BOOST_TEST(full.record == 27.0);
    BOOST_TEST(full.reverse == 45.0);
    BOOST_TEST(less.advance == full.advance * 2.0 / 3.0);
    BOOST_TEST((less.record == full.record && less.reverse == full.reverse));
    const auto runs_again = [&](Index layer) {
        for (Work& w : work) w = {1.0, 2.0};
        work[static_cast<std::size_t>(layer)].forward = 1000.0;
        DepthOptions o{.family = DepthOptions::Family::optimal,
                       .budget = bytes_of(depth_program(network, 3, 2, DepthOptions{})) * 2 / 3};
        o.work = work;
        const DepthProgram program = depth_program(network, 3, 2, o);
        BOOST_TEST(program.replays > 0);
        return std::count_if(program.reverse.begin(), program.reverse.end(), [&](const DepthCall& c) {
            return c.layer == layer && c.what != DepthCall::What::reverse;
        });
    };
    for (Index layer = 0; layer < 8; ++layer) BOOST_TEST(runs_again(layer) == 0, "layer " << layer);
}

// The law of the depth [Chen16]: n equal layers by groups take the square root of what all tapes take, for n less the
// last group's layers run once more. 100 layers of a tape of 6 times the boundary, groups of sqrt(100 / 6): 10 times
// less.
BOOST_AUTO_TEST_CASE(bytes_grow_as_the_square_root) {
    const auto stack = [](Index n) {
        ModelSpec m{{RecurrentSpec{.name = "rnn", .inputs = 4, .hidden = 4, .layers = n}}, {}};
        m.loss.kind = LossSpec::Kind::mean_squared_error;
        return cpu::build<double>(m);
    };
    const auto slope = [](double a, double b) { return std::log(b / a) / std::log(64.0); };
    std::vector<double> all, few;
    for (Index n = 16; n <= 1024; n *= 8) {
        const Network<double> network = stack(n);
        all.push_back(static_cast<double>(bytes_of(depth_program(network, 4, 4, DepthOptions{}))));
        const DepthProgram groups = depth_program(network, 4, 4, {.family = DepthOptions::Family::sqrt});
        few.push_back(static_cast<double>(bytes_of(groups)));
        bool found = false;  // all but the last group's
        for (Index period = 1; period <= n; ++period) found = found || groups.replays == (n - 1) / period * period;
        BOOST_TEST(found);
    }
    BOOST_TEST(std::abs(slope(all.front(), all.back()) - 1.0) <= 0.02);
    BOOST_TEST(std::abs(slope(few.front(), few.back()) - 0.5) <= 0.05);
    const Network<double> network = stack(100);
    const DepthProgram groups = depth_program(network, 4, 4, {.family = DepthOptions::Family::sqrt, .period = 4});
    BOOST_TEST(groups.replays == 96);
    BOOST_TEST(10 * bytes_of(groups) <= bytes_of(depth_program(network, 4, 4, DepthOptions{})));
}

BOOST_AUTO_TEST_CASE(bad_options_are_refused) {
    const Network<double> network = cpu::build<double>(five_models()[0].spec);
    const auto says = [&](const DepthOptions& o, const char* words) {
        BOOST_CHECK_EXCEPTION(
            TimeChain<double>(network, 1, 1, Ledger::process(), {}, o), InvalidArgument,
            [&](const InvalidArgument& e) { return std::string(e.what()).find(words) != std::string::npos; });
    };
    using Family = DepthOptions::Family;
    says({.period = 2}, "depth.period has no effect");
    says({.family = Family::sqrt, .period = 99}, "depth.period wants layers of a group, 1 to 5");
    says({.family = Family::slots, .slots = -1}, "depth.slots wants 0 or more");
    says({.family = Family::optimal}, "depth.budget wants bytes");
    says({.slots = 1}, "depth.slots has no effect");
    says({.always = {"rnn, layer 9"}},
         "depth.always names 'rnn, layer 9', which no layer is called; there are: 'embedding', 'rnn, layer 0'");
    says({.always = {"rnn*"}, .never = {"*1"}}, "layer 'rnn, layer 1' is on the lists");
    DepthOptions short_of{.family = Family::optimal, .budget = 1 << 20};
    short_of.work.resize(2);
    says({.always = {"cross_entropy"}}, "depth.always names 'cross_entropy'");
    says({.family = static_cast<Family>(9)}, "depth.family is none of");
    for (const char* family :
         {"online", "two_level", "periodic_disk"}) {  // none of these fits: no length, tapes on disk or too long
        ScheduleOptions o = of(family, 2, 2);
        if (o.family == "periodic_disk")
            o.levels = {{Tier::ram, 1}, {Tier::disk, -1, 1.0, 1.0}}, o.slots = o.period = 0;
        if (o.family == "online") o.period = 0;
        if (o.family == "periodic_disk") o.steps = 9;
        BOOST_CHECK_THROW(depth_program(network, 4, 3, *make_schedule(o)), InvalidArgument);
    }
    ScheduleOptions shorter = of("store_all");
    shorter.steps = 4;
    BOOST_CHECK_THROW(depth_program(network, 4, 3, *make_schedule(shorter)), InvalidArgument);
    says(short_of, "depth.work wants what each of the 6 layers takes, got 2");
    DepthOptions small{.family = Family::optimal, .budget = 64};
    BOOST_CHECK_EXCEPTION(depth_program(network, 4, 3, small), NoPlan,
                          [](const NoPlan& e) { return std::string(e.what()).find("64") != std::string::npos; });
    DepthOptions pinned;
    pinned.place = [](const std::string&) { return Tier::pinned; };
    BOOST_CHECK_THROW(depth_program(network, 4, 3, pinned), InvalidArgument);
    DepthOptions disk{.family = Family::slots, .slots = 1};
    disk.place = [](const std::string&) { return Tier::disk; };
    TimeChain<double> chain(network, 1, 2, Ledger::process(), {}, disk);
    const std::vector<std::int32_t> tokens(4, 1);
    Window<double> window;
    window.steps = 4;
    window.tokens = window.classes = tokens.data();
    BOOST_CHECK_EXCEPTION(chain.show(window), InvalidArgument, [](const InvalidArgument& e) {
        return std::string(e.what()).find("call use(store)") != std::string::npos;
    });
}
