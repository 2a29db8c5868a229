// Dense: one product for all positions of a segment. No tape: reverse reads x. W is its own, or the table of an embedding.
// SPDX-License-Identifier: MIT
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/cpu/multiply.hpp"
#include "nn/described_layer.hpp"


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

    Footprint footprint(Index, Index) const override {
        return {.inputs = inputs_, .outputs = outputs_, .workspace = outputs_, .reads_x = true};
    }
    Work work(Index steps, Index batch) const override {
        const double product = 2.0 * static_cast<double>(inputs_ * outputs_ * steps * batch);
        return {product, 2.0 * product};
    }

    // y = W x + b
    void advance(const Forward<Real>& call) const override {
        const Index positions = call.at.steps * call.at.batch;
        apply(outputs_, inputs_, positions, weight(call.parameters, call.tied), call.x,
              bias_ ? bias(call.parameters) : nullptr, call.y, outputs_);
    }

    void record(const Forward<Real>& call) const override {
        if (call.y) advance(call);
    }

    // dW += dy x', db += sum of dy, dx = W' dy
    void reverse(const Backward<Real>& call) const override {
        const Index positions = call.at.steps * call.at.batch;
        add_outer(outputs_, inputs_, positions, call.dy, call.x, weight(call.gradients, call.tied_gradients));
        if (bias_) {
            sum_columns(outputs_, positions, call.dy, outputs_, call.workspace);
            add(outputs_, call.workspace, bias(call.gradients));
        }
        if (call.dx)
            apply_transposed(outputs_, inputs_, positions, weight(call.parameters, call.tied), call.dy, Real{0}, call.dx);
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
template LayerPointer<Dual<double>> dense(const DenseSpec&);

}  // namespace backsweep::cpu
