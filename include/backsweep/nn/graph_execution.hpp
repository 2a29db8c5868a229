// Plays any plan for a network's graph on the network itself: values are allocated when they are computed and freed when
// they are dropped, so that no more is alive than the plan says.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "backsweep/nn/depth_chain.hpp"
#include "backsweep/nn/memories.hpp"
#include "backsweep/nn/network_graph.hpp"
#include "backsweep/nn/time_chain.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace backsweep {

/// One forward and reverse run of a whole window, which is one link. Loss, gradients and states have the bits of a
/// TimeChain with that link, under every plan: a layer reads the same numbers whenever it runs, sums of adjoints have a
/// fixed order, and only its first reverse run adds to gradients.
///
/// In the ledger, values of nodes are `tape`: their peak is the plan's. The state, the carry behind it and their adjoint
/// are `carry`, rows of memories `log`, scratch `workspace`; that is what one call of a layer takes and, where a plan
/// reverses a layer again, gradients that are thrown away. Graph, parameters, gradients and data are the caller's and
/// must outlive it. One thread at a time.
template <class Real>
class GraphExecution {
public:
    explicit GraphExecution(const NetworkGraph<Real>& graph, Ledger& ledger = Ledger::process());

    /// The data of the next runs, of the graph's steps: throws InvalidArgument if they do not fit, as TimeChain::show().
    /// Window::factors is not read; Window::input_gradient is to be set if and only if the graph gives one.
    void show(const Window<Real>& window);
    /// Flat.
    void use(const Real* parameters) noexcept { parameters_ = parameters; }
    void add_to(Real* gradients) noexcept { gradients_ = gradients; }
    /// State between windows (Network::state() x batch) and terminal adjoint (Network::adjoint() x batch); null: zero.
    void start_from(const Real* state) noexcept { start_ = state; }
    void end_with(const Real* adjoint) noexcept { end_ = adjoint; }

    /// Throws ScheduleError where the referee refuses the steps, and NumericError if the loss is not finite: gradients
    /// are as they were then.
    GraphPlay run(std::span<const GraphStep> steps, std::int64_t budget = std::numeric_limits<std::int64_t>::max());

    /// Of the last run, before scale.
    double loss() const noexcept { return loss_; }
    /// Of the last run: the adjoint of the state that it started from.
    std::span<const Real> first_adjoint() const noexcept { return adjoint_.span(); }
    /// Assigns the state behind the last run, Network::state() x batch.
    void carry_over(Real* state);

private:
    using Values = std::vector<Buffer<Real>>;

    void begin();
    void compute(Index n, Values& values);
    void reverse(const NetworkNode& node, Values& values, Real* dx);
    /// Where the rows of node n begin; null: there is no such node, or it has no value.
    Real* rows(Index n, Values& values) const;
    Index positions() const noexcept { return graph_->steps * graph_->batch; }

    const NetworkGraph<Real>* graph_;
    Ledger* ledger_;
    Window<Real> window_{};
    const Real* parameters_ = nullptr;
    Real* gradients_ = nullptr;
    const Real* start_ = nullptr;
    const Real* end_ = nullptr;
    double loss_ = 0.0;
    Memories<Real> memories_;
    DepthFrame<Real> frame_{};
    Buffer<Real> state_, carry_, terminal_, adjoint_;
    Buffer<Real> prepared_;  // of the parameters
    Buffer<Real> workspace_, spare_gradients_;
    std::vector<bool> reversed_;  // by layer
};

}  // namespace backsweep
