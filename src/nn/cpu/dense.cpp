// Dense: one product for all positions of a segment. Tape: x. W is its own, or the table of an embedding.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/arma.hpp"
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/described_layer.hpp"

#include <algorithm>

namespace backsweep::cpu {
namespace {

template <class Real>
class Dense final : public DescribedLayer<Real> {
public:
    explicit Dense(const DenseSpec& spec)
        : DescribedLayer<Real>(spec.name, parameters_of(spec)),
          inputs_(spec.inputs),
          outputs_(spec.outputs),
          bias_(spec.bias),
          tied_(tied_to(spec)) {}

    std::string tied() const override { return tied_; }

    Footprint footprint(Index steps, Index batch) const override {
        return {inputs_, outputs_, 0, steps * batch * inputs_, outputs_};
    }

    // y = W x + b; seen by columns, W is stored as its transpose.
    void advance(const Forward<Real>& call) const override {
        const Index positions = call.at.steps * call.at.batch;
        const auto W = matrix_view(weight(call.parameters, call.tied), inputs_, outputs_);
        const auto x = matrix_view(call.x, inputs_, positions);
        auto y = matrix_view(call.y, outputs_, positions);
        if (bias_) {
            fill_columns(outputs_, positions, bias(call.parameters), call.y);
            y += W.t() * x;
        } else {
            y = W.t() * x;
        }
    }

    void record(const Forward<Real>& call) const override {
        std::copy_n(call.x, call.at.steps * call.at.batch * inputs_, call.tape);
        advance(call);
    }

    // dW += dy x', db += sum of dy, dx = W' dy
    void reverse(const Backward<Real>& call) const override {
        const Index positions = call.at.steps * call.at.batch;
        const auto x = matrix_view(call.tape, inputs_, positions);
        const auto dy = matrix_view(call.dy, outputs_, positions);
        auto dW = matrix_view(weight(call.gradients, call.tied_gradients), inputs_, outputs_);
        dW += x * dy.t();
        if (bias_) {
            sum_columns(outputs_, positions, call.dy, call.workspace);
            add(outputs_, call.workspace, bias(call.gradients));
        }
        if (call.dx) {
            auto dx = matrix_view(call.dx, inputs_, positions);
            dx = matrix_view(weight(call.parameters, call.tied), inputs_, outputs_) * dy;
        }
    }

private:
    /// Where W and b, or their gradients, lie.
    template <class T>
    T* weight(T* own, T* tied) const {
        return tied_.empty() ? own : tied;
    }
    template <class T>
    T* bias(T* own) const {
        return tied_.empty() ? own + inputs_ * outputs_ : own;
    }

    Index inputs_, outputs_;
    bool bias_;
    std::string tied_;
};

}  // namespace

template <class Real>
LayerPointer<Real> dense(const DenseSpec& spec) {
    return std::make_unique<Dense<Real>>(spec);
}

template LayerPointer<float> dense(const DenseSpec&);
template LayerPointer<double> dense(const DenseSpec&);

}  // namespace backsweep::cpu
