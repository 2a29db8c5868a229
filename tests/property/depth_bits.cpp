// Models that cannot be cut in time run depth-outer: a link is a layer over the whole window. The gradient has the same
// bits under every schedule along the depth, and they are those of the time chain with one link.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE depth_bits
#include "support/unit_test.hpp"

#include "backsweep/nn/time_chain.hpp"
#include "backsweep/store/ram_store.hpp"
#include "nn/cases.hpp"
#include "nn/depth_costs.hpp"
#include "support/every_family.hpp"

#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

struct Result {
    double loss = 0.0;
    std::vector<double> gradients, carry, dcarry, dx;
    bool operator==(const Result&) const = default;
};

/// A window of sequences of unequal length, some behind one another, with a carry and an adjoint of it.
struct Case {
    Network<double> network;
    Problem<double> data;
    std::vector<double> parameters;
};

Case case_of(const ModelSpec& spec, bool marks) {
    constexpr Index steps = 9, batch = 4;
    Case c{build<double>(spec), {}, {}};
    c.data = data_for(spec, c.network.carry(), steps, batch);
    c.parameters = parameters_for(c.network);
    if (!marks) return c;
    c.data.marks.assign(steps * batch, Mark::step);
    const Index lengths[batch] = {9, 4, 1, 6};
    for (Index b = 0; b < batch; ++b)
        for (Index t = lengths[b]; t < steps; ++t) c.data.marks[static_cast<std::size_t>(t * batch + b)] = Mark::filler;
    for (const Index p : {Index{0}, 1 * batch + 1, 3 * batch + 3})
        c.data.marks[static_cast<std::size_t>(p)] = Mark::first;
    return c;
}

/// The whole window as one link of a time chain.
Result in_one_link(const Case& c) {
    const Problem<double>& p = c.data;
    Result result;
    result.gradients.assign(c.parameters.size(), 0.0);
    result.dx.assign(p.x.size(), 0.0);
    TimeChain<double> chain(c.network, p.batch, p.steps);
    Window<double> window;
    window.first = 1000;
    window.steps = p.steps;
    window.inputs = p.x.data();
    window.values = p.values.data();
    window.weights = p.weights.data();
    window.marks = p.marks.empty() ? nullptr : p.marks.data();
    window.seed = p.seed;
    window.scale = p.scale;
    window.input_gradient = result.dx.data();
    TimeChain<double>::State start = chain.zero(), end = chain.zero();
    std::copy(p.carry.begin(), p.carry.end(), start.carry.begin());
    std::copy(p.dcarry.begin(), p.dcarry.end(), end.carry.begin());
    chain.start_from(start);
    chain.end_with(end);
    chain.use(c.parameters.data());
    chain.add_to(result.gradients.data());
    chain.show(window);
    Execution<TimeChain<double>> run(chain, make_schedule({.family = "store_all", .steps = 1}));
    run.forward();
    result.carry.assign(run.state().carry.begin(), run.state().carry.end());
    run.backward();
    result.loss = chain.loss();
    result.dcarry.assign(run.adjoint().carry.begin(), run.adjoint().carry.end());
    return result;
}

/// Layer by layer, under a schedule.
Result in_depth(const Case& c, const ScheduleOptions& schedule) {
    const Problem<double>& p = c.data;
    Result result;
    result.gradients.assign(c.parameters.size(), 0.0);
    result.carry.assign(p.carry.size(), -1.0);
    result.dcarry = p.dcarry;
    Index workspace_size = 0;
    for (Index l = 0; l < c.network.depth(); ++l) {
        const Footprint size = c.network.layer(l).footprint(p.steps, p.batch);
        workspace_size = std::max(workspace_size, size.workspace);
    }
    std::vector<double> workspace(static_cast<std::size_t>(workspace_size)), x = p.x;
    for (std::size_t k = 0; k < p.marks.size(); ++k)  // as the time chain does
        if (p.marks[k] == Mark::filler) std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(k) * 3, 3, 0.0);
    DepthChain<double> chain;
    DepthFrame<double>& frame = chain.frame();
    frame.network = &c.network;
    frame.at.first = 1000;
    frame.at.steps = p.steps;
    frame.at.batch = p.batch;
    frame.at.seed = p.seed;
    frame.at.marks = p.marks.empty() ? nullptr : p.marks.data();
    frame.at.values = p.values.data();
    frame.at.weights = p.weights.data();
    frame.at.scale = p.scale;
    frame.at.loss = &result.loss;
    frame.parameters = c.parameters.data();
    frame.gradients = result.gradients.data();
    frame.carry_in = p.carry.data();
    frame.carry_out = result.carry.data();
    frame.dcarry = result.dcarry.data();
    frame.workspace = workspace.data();
    chain.want_input_gradient(true);
    chain.start_from(x.data());
    chain.keep_outputs(schedule.family == "optimal_chain");
    Execution<DepthChain<double>> run(chain, make_schedule(schedule));
    RamStore disk;
    run.use(Tier::disk, disk);
    run.forward();
    run.backward();
    result.dx.assign(run.adjoint().values.begin(), run.adjoint().values.end());
    return result;
}

std::vector<ModelSpec> both_ways() {
    using Cell = RecurrentSpec::Cell;
    std::vector<ModelSpec> all;
    for (const Cell cell : {Cell::lstm, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu}) {
        RecurrentSpec rnn{"rnn", 3, 5, 3, true};
        rnn.cell = cell;
        rnn.bidirectional = true;
        rnn.dropout = cell == Cell::gru ? 0.3 : 0.0;
        rnn.layer_norm = cell == Cell::gru;
        rnn.projection = cell == Cell::lstm ? 2 : 0;
        rnn.learned_state = cell == Cell::rnn_tanh;
        ModelSpec m;
        m.layers = {rnn, NormSpec{"norm", rnn.outputs()}, DenseSpec{"head", rnn.outputs(), 2, true}};
        m.loss.kind = LossSpec::Kind::mean_squared_error;
        all.push_back(m);
    }
    return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(bits_along_the_depth_are_those_of_one_link) {
    for (const ModelSpec& spec : both_ways())
        for (const bool marks : {false, true}) {
            const Case c = case_of(spec, marks);
            const Index depth = c.network.depth();
            const Result wanted = in_one_link(c);
            BOOST_TEST(wanted.loss != 0.0);
            BOOST_TEST(wanted.dx.size() == 9u * 4u * 3u);
            std::vector<ScheduleOptions> schedules{{.family = "store_all", .steps = depth}};
            for (const Index slots : {Index{1}, Index{2}, Index{3}, depth})
                schedules.push_back({.family = "revolve", .steps = depth, .slots = slots});
            for (const Index period : {1, 2, 3})
                schedules.push_back({.family = "periodic", .steps = depth, .period = period});
            for (ScheduleOptions& o : every_family(depth)) schedules.push_back(o);
            for (ScheduleOptions& o : optimal_schedules(c.network, 9, 4)) schedules.push_back(o);
            for (const ScheduleOptions& schedule : schedules)
                BOOST_TEST_CONTEXT("model of " << depth << " layers, marks " << marks << ", " << schedule.family << ' '
                                               << schedule.slots)
            BOOST_TEST((in_depth(c, schedule) == wanted));
        }
}
