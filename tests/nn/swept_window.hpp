// A window through the time chain: loss, and gradients of parameters, inputs and the state it starts from, rows of memories
// included.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/time_chain.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "nn/sweep.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace backsweep::test {

template <class Real>
struct SweptWindow {
    double objective = 0.0;  ///< scale * losses
    std::vector<Real> gradients, dx;
    std::vector<Real> dstart;  ///< one block as in Network::adjoint()
};

/// Plays revolve with three slots. `start`: a state between windows; empty: sequences begin. The problem's carry and dcarry
/// are not read.
template <class Real>
SweptWindow<Real> swept(const Network<Real>& network, const std::vector<Real>& parameters, const Problem<Real>& problem,
                        const std::vector<Real>& start, Index chunk, const std::uint8_t* key_padding = nullptr,
                        const Context<Real>* context = nullptr, const DepthOptions& depth = {}) {
    SweptWindow<Real> out;
    out.gradients.assign(parameters.size(), Real{0});
    out.dx = unassigned<Real>(problem.steps * problem.batch * network.spec().inputs());
    const auto given = [](const auto& values) { return values.empty() ? nullptr : values.data(); };
    Window<Real> window;
    window.first = 1000;
    window.steps = problem.steps;
    window.tokens = given(problem.tokens);
    window.inputs = given(problem.x);
    window.classes = given(problem.classes);
    window.values = given(problem.values);
    window.weights = given(problem.weights);
    window.marks = given(problem.marks);
    window.key_padding = key_padding;
    window.context = context;
    window.begins = problem.begins;
    window.training = problem.training;
    window.seed = problem.seed;
    window.loss_from = problem.loss_from;
    window.scale = problem.scale;
    if (!out.dx.empty()) window.input_gradient = out.dx.data();
    TimeChain<Real> chain(network, problem.batch, chunk, Ledger::process(), {}, depth);
    typename TimeChain<Real>::State before = chain.zero();
    if (!start.empty()) {
        BOOST_TEST_REQUIRE(static_cast<Index>(start.size()) == before.carry.size());
        std::copy(start.begin(), start.end(), before.carry.begin());
        chain.start_from(before);
    }
    chain.show(window);
    chain.use(parameters.data());
    chain.add_to(out.gradients.data());
    ScheduleOptions revolve;
    revolve.family = "revolve";
    revolve.steps = *chain.length();
    revolve.slots = 3;
    Execution run(chain, make_schedule(revolve));
    run.forward();
    run.backward();
    out.objective = problem.scale * chain.loss();
    const auto& adjoint = run.adjoint();
    out.dstart.assign(adjoint.carry.begin(), adjoint.carry.end());
    return out;
}

/// A state between windows: random carry and memory rows, of which the last `seen` are keys, but for one of the first
/// sequence.
template <class Real>
std::vector<Real> remembering(const Network<Real>& network, Index batch, Index seen, std::uint32_t stream) {
    std::vector<Real> state = random_values<Real>(network.state() * batch, stream);
    const auto keys = [&](Index rows) { return state.end() - std::min(rows, network.remembered()) * batch; };
    std::fill(keys(network.remembered()), keys(seen), Real{0});
    std::fill(keys(seen), state.end(), Real{1});
    if (seen > 1) *keys(2) = Real{0};
    return state;
}

}  // namespace backsweep::test
