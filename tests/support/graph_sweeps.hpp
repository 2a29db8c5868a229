// One window of a GraphCase swept by a time chain that keeps all, and by a plan for the network's graph.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/chain/execution.hpp"
#include "backsweep/nn/graph_execution.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "support/graph_models.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace backsweep::test {

template <class Real>
struct GraphSweep {
    std::vector<Real> gradients, input_gradient, first_adjoint, losses, state;
    double loss = 0.0;
};

template <class Real>
bool same_bits(const std::vector<Real>& a, const std::vector<Real>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0);
}
template <class Real>
bool same_bits(const GraphSweep<Real>& a, const GraphSweep<Real>& b) {
    return same_bits(a.gradients, b.gradients) && same_bits(a.input_gradient, b.input_gradient) &&
           same_bits(a.first_adjoint, b.first_adjoint) && same_bits(a.losses, b.losses) && same_bits(a.state, b.state) &&
           std::memcmp(&a.loss, &b.loss, sizeof a.loss) == 0;
}

template <class Real>
GraphSweep<Real> store_all_sweep(const GraphCase<Real>& of) {
    GraphSweep<Real> o;
    TimeChain<Real> chain(of.network, of.batch, of.steps);
    auto start = chain.zero(), end = chain.zero_adjoint();
    std::copy(of.start.begin(), of.start.end(), start.carry.begin());
    std::copy(of.end.begin(), of.end.end(), end.carry.begin());
    chain.start_from(start);
    chain.end_with(end);
    chain.show(of.window(o.losses, o.input_gradient));
    chain.use(of.parameters.data());
    o.gradients.assign(of.parameters.size(), Real(0.25));  // what is there is added to
    chain.add_to(o.gradients.data());
    Execution<TimeChain<Real>> run(chain, store_all(1));
    run.forward();
    auto behind = chain.zero();
    chain.carry_over(1, run.state(), behind);
    o.state.assign(behind.carry.begin(), behind.carry.end());
    run.backward();
    o.first_adjoint.assign(run.adjoint().carry.begin(), run.adjoint().carry.end());
    o.loss = chain.loss();
    return o;
}

/// `graph` of of.network; booked in `ledger`.
template <class Real>
GraphSweep<Real> graph_sweep(const GraphCase<Real>& of, const NetworkGraph<Real>& graph, std::span<const GraphStep> steps,
                             Ledger& ledger) {
    GraphSweep<Real> o;
    GraphExecution<Real> run(graph, ledger);
    run.start_from(of.start.data());
    run.end_with(of.end.data());
    run.show(of.window(o.losses, o.input_gradient));
    run.use(of.parameters.data());
    o.gradients.assign(of.parameters.size(), Real(0.25));
    run.add_to(o.gradients.data());
    run.run(steps);
    o.first_adjoint.assign(run.first_adjoint().begin(), run.first_adjoint().end());
    o.loss = run.loss();
    o.state.resize(of.start.size());
    run.carry_over(o.state.data());
    return o;
}

}  // namespace backsweep::test
