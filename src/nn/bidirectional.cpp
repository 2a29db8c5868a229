// SPDX-License-Identifier: MIT
#include "backsweep/base/buffer.hpp"
#include "nn/composite.hpp"
#include "nn/described_layer.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace backsweep {
namespace {

template <class Real>
std::vector<ParameterShape> all_parameters(const Layer<Real>& forward, const Layer<Real>& backward) {
    std::vector<ParameterShape> all = forward.parameters();
    for (ParameterShape& shape : backward.parameters()) all.push_back(std::move(shape));
    return all;
}

/// `to` [step][batch][width] = `from` with the steps in falling order.
template <class Real>
void turn_round(Index steps, Index row, const Real* from, Real* to) {
    for (Index t = 0; t < steps; ++t) std::copy_n(from + t * row, row, to + (steps - 1 - t) * row);
}

/// Carry, tape and parameters: the forward direction's, then the backward's. Workspace: marks and inputs turned round,
/// outputs of both, in reverse their adjoints (in the same places where no reverse reads inputs or outputs), then the
/// directions' own.
template <class Real>
class Bidirectional final : public DescribedLayer<Real> {
public:
    Bidirectional(LayerPointer<Real> forward, LayerPointer<Real> backward)
        : DescribedLayer<Real>(forward->name(), all_parameters(*forward, *backward)),
          forward_(std::move(forward)),
          backward_(std::move(backward)) {
        for (const ParameterShape& shape : forward_->parameters()) parameters_ += shape.size();
    }

    Footprint footprint(Index steps, Index batch) const override {
        const Footprint one = forward_->footprint(steps, batch);
        const Places places(one, steps * batch);
        return {one.inputs,     2 * one.outputs, 2 * one.carry, 2 * one.tape, places.own + one.workspace,
                one.reads_x, one.reads_y};
    }
    Work work(Index steps, Index batch) const override {
        const Work one = forward_->work(steps, batch);
        return {2.0 * one.forward, 2.0 * one.reverse};
    }

    Index prepared() const override { return aligned<Real>(forward_->prepared()) + backward_->prepared(); }
    void prepare(const Real* parameters, Real* prepared) const override {
        forward_->prepare(parameters, prepared);
        backward_->prepare(parameters + parameters_, prepared + aligned<Real>(forward_->prepared()));
    }

    void advance(const Forward<Real>& call) const override { run(call, &Layer<Real>::advance); }
    void record(const Forward<Real>& call) const override { run(call, &Layer<Real>::record); }

    void reverse(const Backward<Real>& call) const override {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch;
        const Footprint one = forward_->footprint(T, B);
        const Places places(one, T * B);
        const Segment<Real> turned = turn(at, call.workspace);
        Real* const dx_turned = call.workspace + places.dx;
        Real* const dy_forward = call.workspace + places.dy_forward;
        Real* const dy_backward = call.workspace + places.dy_backward;
        Real* const x_turned = call.workspace + places.x;
        Real* const y_forward = call.workspace + places.y_forward;
        Real* const y_backward = call.workspace + places.y_backward;
        if (one.reads_x) turn_round(T, B * one.inputs, call.x, x_turned);
        if (one.reads_y) part(call.y, T, B, one.outputs, y_forward, y_backward);
        part(call.dy, T, B, one.outputs, dy_forward, dy_backward);
        backward_->reverse({turned, call.parameters + parameters_, call.gradients + parameters_, call.tape + one.tape,
                            call.carry_in + one.carry * B, dy_backward, call.dx ? dx_turned : nullptr,
                            call.dcarry + one.carry * B, call.workspace + places.own, nullptr, nullptr, nullptr, nullptr,
                            one.reads_x ? x_turned : nullptr, one.reads_y ? y_backward : nullptr,
                            of_backward(call.prepared)});
        forward_->reverse({at, call.parameters, call.gradients, call.tape, call.carry_in, dy_forward, call.dx,
                           call.dcarry, call.workspace + places.own, nullptr, nullptr, nullptr, nullptr, call.x,
                           one.reads_y ? y_forward : nullptr, call.prepared});
        if (!call.dx) return;
        const Index row = B * one.inputs;
        for (Index t = 0; t < T; ++t) {
            const Real* const from = dx_turned + (T - 1 - t) * row;
            Real* const to = call.dx + t * row;
            for (Index k = 0; k < row; ++k) to[k] += from[k];
        }
    }

private:
    /// Where the workspace's parts begin.
    struct Places {
        Places(const Footprint& one, Index positions) {
            Index end = aligned<Real>((positions * static_cast<Index>(sizeof(Mark)) + static_cast<Index>(sizeof(Real)) - 1) /
                                      static_cast<Index>(sizeof(Real)));
            const auto next = [&](Index features) { return std::exchange(end, end + aligned<Real>(positions * features)); };
            x = next(one.inputs);
            y_forward = next(one.outputs);
            y_backward = next(one.outputs);
            dx = one.reads_x ? next(one.inputs) : x;
            dy_forward = one.reads_y ? next(one.outputs) : y_forward;
            dy_backward = one.reads_y ? next(one.outputs) : y_backward;
            own = end;
        }
        Index x, y_forward, y_backward;     // the backward direction's turned round
        Index dx, dy_forward, dy_backward;  // adjoints, likewise
        Index own;                          // the directions' own workspace
    };

    /// [step][batch][2 width] into the forward direction's half and the backward one's, whose steps fall.
    static void part(const Real* both, Index steps, Index batch, Index width, Real* forward, Real* backward) {
        for (Index p = 0; p < steps * batch; ++p) {
            std::copy_n(both + p * 2 * width, width, forward + p * width);
            std::copy_n(both + p * 2 * width + width, width, backward + turned_place(p, steps, batch) * width);
        }
    }

    /// The backward direction's part of what is prepared.
    const Real* of_backward(const Real* prepared) const {
        return prepared ? prepared + aligned<Real>(forward_->prepared()) : nullptr;
    }

    static Index turned_place(Index p, Index steps, Index batch) { return (steps - 1 - p / batch) * batch + p % batch; }

    /// The segment from its end. A sequence begins, seen from there, with its own last step; where it goes on from
    /// before the segment and nothing follows it, with the carry.
    static Segment<Real> turn(const Segment<Real>& at, Real* workspace) {
        Segment<Real> turned = at;
        turned.begins = false;
        if (!at.marks && !at.begins) return turned;
        const Index T = at.steps, B = at.batch;
        auto* const marks = new (workspace) Mark[static_cast<std::size_t>(T * B)];
        for (Index b = 0; b < B; ++b) {
            bool fresh = true;             // of the sequence that the last step seen belongs to: its end begins afresh
            for (Index t = T; t-- > 0;) {  // first: whether the last sequence of the segment begins in it
                if (at.starts(t, b)) break;
                if (t == 0) fresh = false;
            }
            bool end = true;  // the next step is the last of its sequence
            for (Index t = T; t-- > 0;) {
                Mark& mark = marks[(T - 1 - t) * B + b];
                if (at.filler(t, b)) {
                    mark = Mark::filler;
                    continue;
                }
                mark = end && fresh ? Mark::first : Mark::step;
                end = at.starts(t, b);
                if (end) fresh = true;  // whatever lies before it is another sequence
            }
        }
        turned.marks = marks;
        return turned;
    }

    void run(const Forward<Real>& call, void (Layer<Real>::*method)(const Forward<Real>&) const) const {
        const Segment<Real>& at = call.at;
        const Index T = at.steps, B = at.batch;
        const Footprint one = forward_->footprint(T, B);
        const Places places(one, T * B);
        const Segment<Real> turned = turn(at, call.workspace);
        Real* const x = call.workspace + places.x;
        Real* const y_forward = call.workspace + places.y_forward;
        Real* const y_backward = call.workspace + places.y_backward;
        turn_round(T, B * one.inputs, call.x, x);
        (*forward_.*method)({at, call.parameters, call.x, y_forward, call.carry_in, call.carry_out, call.tape,
                             call.workspace + places.own, nullptr, nullptr, call.prepared});
        (*backward_.*method)({turned, call.parameters + parameters_, x, y_backward, call.carry_in + one.carry * B,
                              call.carry_out + one.carry * B, call.tape ? call.tape + one.tape : nullptr,
                              call.workspace + places.own, nullptr, nullptr, of_backward(call.prepared)});
        if (!call.y) return;
        const Index S = one.outputs;
        for (Index p = 0; p < T * B; ++p) {
            std::copy_n(y_forward + p * S, S, call.y + p * 2 * S);
            std::copy_n(y_backward + turned_place(p, T, B) * S, S, call.y + p * 2 * S + S);
        }
    }

    LayerPointer<Real> forward_, backward_;
    Index parameters_ = 0;  // of the forward direction
};

}  // namespace

template <class Real>
LayerPointer<Real> bidirectional(LayerPointer<Real> forward, LayerPointer<Real> backward) {
    return std::make_unique<Bidirectional<Real>>(std::move(forward), std::move(backward));
}

template LayerPointer<float> bidirectional(LayerPointer<float>, LayerPointer<float>);
template LayerPointer<double> bidirectional(LayerPointer<double>, LayerPointer<double>);
template LayerPointer<Dual<double>> bidirectional(LayerPointer<Dual<double>>, LayerPointer<Dual<double>>);

}  // namespace backsweep
