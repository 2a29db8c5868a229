// SPDX-License-Identifier: MIT
#include "backsweep/nn/graph_execution.hpp"

#include "backsweep/base/error.hpp"
#include "nn/rows.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace backsweep {

namespace {
using What = NetworkNode::What;
}

template <class Real>
GraphExecution<Real>::GraphExecution(const NetworkGraph<Real>& graph, Ledger& ledger)
    : graph_(&graph),
      ledger_(&ledger),
      memories_(graph.layers, graph.batch, graph.steps, {}, ledger),
      state_(Kind::carry, ledger),
      carry_(Kind::carry, ledger),
      terminal_(Kind::carry, ledger),
      adjoint_(Kind::carry, ledger),
      prepared_(Kind::parameters, ledger),
      workspace_(Kind::workspace, ledger),
      spare_gradients_(Kind::workspace, ledger) {
    Index most = 0;
    for (Index l = 0; l < graph.layers.depth(); ++l)
        most = std::max(most, graph.layers.layer(l).footprint(graph.steps, graph.batch).workspace);
    workspace_.resize(most);
}

template <class Real>
void GraphExecution<Real>::show(const Window<Real>& window) {
    check_window(graph_->layers, window, graph_->batch, start_ != nullptr);
    if (window.steps != graph_->steps)
        throw InvalidArgument("this graph is that of " + std::to_string(graph_->steps) + " steps, but the window has " +
                              std::to_string(window.steps) + "; make the graph of as many");
    if ((window.input_gradient != nullptr) != graph_->input_gradient)
        throw InvalidArgument("Window::input_gradient is to be set if and only if the graph was made with input_gradient");
    window_ = window;
    memories_.show(window.steps, window.marks, window.key_padding, window.begins);
}

/// State, adjoint and segment, as a time chain's first link has them.
template <class Real>
void GraphExecution<Real>::begin() {
    if (window_.steps == 0) throw InvalidArgument("a run reads a window, but none was given; call show()");
    if ((!parameters_ || !gradients_) && graph_->layers.parameters().size() > 0)
        throw InvalidArgument("a run reads parameters and adds to gradients, but they were not given; call use() and add_to()");
    const MemoryLayout& layout = memories_.layout();
    state_.resize(layout.state);
    memories_.start(start_, state_.data());
    carry_.resize(layout.state);
    terminal_.assign(layout.adjoint, Real{0});
    if (end_) std::copy_n(end_, layout.adjoint, terminal_.data());
    adjoint_ = terminal_;
    reversed_.assign(static_cast<std::size_t>(graph_->layers.depth()), false);
    loss_ = 0.0;

    Segment<Real> at;
    at.first = window_.first;
    at.steps = window_.steps;
    at.batch = graph_->batch;
    at.seed = window_.seed;
    at.sequence = window_.sequence;
    at.training = window_.training;
    at.begins = window_.begins;
    at.marks = window_.marks;
    at.key_padding = window_.key_padding;
    at.context = window_.context;
    at.tokens = window_.tokens;
    at.classes = window_.classes;
    at.values = window_.values;
    at.weights = window_.weights;
    at.losses = window_.losses;
    at.loss_from = std::clamp<Index>(window_.loss_from, 0, window_.steps);
    at.scale = window_.scale;
    at.loss = &loss_;
    frame_ = {};
    frame_.network = &graph_->layers;
    frame_.at = at;
    frame_.parameters = parameters_;
    if (const Network<Real>& layers = graph_->layers; layers.prepared() > 0) {
        prepared_.resize(layers.prepared());
        layers.prepare(parameters_, prepared_.data());
        frame_.prepared = prepared_.data();
    }
    frame_.carry_in = state_.data();
    frame_.carry_out = carry_.data();
    frame_.dcarry = adjoint_.data();
    frame_.workspace = workspace_.data();
    memories_.point(frame_.at, 0, window_.steps, nullptr);
    frame_.memory = memories_.rows();
    memories_.spread(window_.steps, terminal_.data());
    frame_.dmemory = memories_.drows();
}

template <class Real>
Real* GraphExecution<Real>::rows(Index n, Values& values) const {
    if (n < 0) return nullptr;
    const auto s = static_cast<std::size_t>(n);
    return graph_->nodes[s].features > 0 ? values[s].data() + graph_->nodes[s].before : nullptr;
}

template <class Real>
GraphPlay GraphExecution<Real>::run(std::span<const GraphStep> steps, std::int64_t budget) {
    const GraphPlay play = referee(graph_->graph, steps, budget);
    begin();
    Values values;
    for (std::size_t n = 0; n < graph_->nodes.size(); ++n) values.emplace_back(Kind::tape, *ledger_);
    for (const auto& [verb, node] : steps)
        if (verb == GraphStep::Verb::drop)
            values[static_cast<std::size_t>(node)].release();
        else
            compute(node, values);
    memories_.collect(adjoint_.data());
    if (graph_->input_gradient) {
        const Real* const dx = rows(static_cast<Index>(values.size()) - 1, values);
        std::copy_n(dx, positions() * graph_->nodes.back().features, window_.input_gradient);
    }
    return play;
}

template <class Real>
void GraphExecution<Real>::compute(Index n, Values& values) {
    const NetworkNode& node = graph_->nodes[static_cast<std::size_t>(n)];
    const Index width = node.features;
    values[static_cast<std::size_t>(n)].resize(node.size);
    Real* const to = rows(n, values);
    const auto features = [&](Index of) { return graph_->nodes[static_cast<std::size_t>(of)].features; };
    switch (node.what) {
        case What::input:
            std::copy_n(window_.inputs, positions() * width, to);
            // What lies in a filler may be no number; layers may then treat all positions alike.
            for (Index p = 0; window_.marks && p < positions(); ++p)
                if (window_.marks[p] == Mark::filler) std::fill_n(to + p * width, width, Real{0});
            break;
        case What::record:
            frame_.record(node.layer, rows(node.x, values), to, values[static_cast<std::size_t>(n)].data());
            if (width == 0 && !std::isfinite(loss_))
                throw NumericError("the loss of the window from step " + std::to_string(window_.first) + " is " +
                                   std::to_string(loss_) + "; nothing was reversed and no gradient changed");
            break;
        case What::output:
            std::copy_n(rows(node.tape, values), positions() * width, to);
            break;
        case What::sum:
            std::copy_n(rows(node.y, values), positions() * width, to);
            break;
        case What::concatenate:
            copy_rows(positions(), features(node.x), rows(node.x, values), features(node.x), to, width);
            copy_rows(positions(), features(node.y), rows(node.y, values), features(node.y), to + features(node.x), width);
            break;
        case What::split:
            copy_rows(positions(), width, rows(node.dy, values) + features(node.dy) - width, features(node.dy), to, width);
            break;
        case What::reverse:
            reverse(node, values, to);
            break;
    }
    for (const Index from : node.added) add_rows(positions(), width, rows(from, values), features(from), to, width);
}

/// A layer that is reversed again gives its dx alone: what it adds to is thrown away, what it replaces made anew.
template <class Real>
void GraphExecution<Real>::reverse(const NetworkNode& node, Values& values, Real* dx) {
    const Network<Real>& layers = graph_->layers;
    const Index l = node.layer, from = layers.carry_offset(l, graph_->batch);
    const Index carry = frame_.footprint(l).carry * graph_->batch;
    std::copy_n(terminal_.data() + from, carry, adjoint_.data() + from);
    DepthFrame<Real> frame = frame_;
    frame.gradients = gradients_;
    std::vector<Buffer<Real>> spare;
    std::vector<Real*> dmemory;
    if (reversed_[static_cast<std::size_t>(l)]) {
        spare_gradients_.resize(layers.parameters().size());
        frame.gradients = spare_gradients_.data();
        for (std::size_t m = 0; frame_.dmemory && m < layers.memories().size(); ++m) {
            const MemoryShape& memory = layers.memories()[m];
            const Index count = (frame_.at.rows_before(memory.rows) + graph_->steps) * memory.features * graph_->batch;
            spare.emplace_back(Kind::workspace, *ledger_);
            if (memory.gradient) spare.back().resize(count);
            if (memory.gradient) std::copy_n(frame_.dmemory[m], count, spare.back().data());
            dmemory.push_back(spare.back().data());
        }
        if (!dmemory.empty()) frame.dmemory = dmemory.data();
    }
    reversed_[static_cast<std::size_t>(l)] = true;
    const Real* const tape = node.tape < 0 ? nullptr : values[static_cast<std::size_t>(node.tape)].data();
    frame.reverse(l, rows(node.x, values), rows(node.y, values), tape, rows(node.dy, values), dx);
}

template <class Real>
void GraphExecution<Real>::carry_over(Real* state) {
    if (carry_.size() != memories_.layout().state || window_.steps == 0)
        throw InvalidArgument("carry_over gives the state behind a run, but there was none; call run() first");
    memories_.keep(window_.steps, carry_.data());
    memories_.between(window_.steps, carry_.data(), state);
}

template class GraphExecution<float>;
template class GraphExecution<double>;

}  // namespace backsweep
