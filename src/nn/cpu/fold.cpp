// The sum of blocks of features [Merity19]. No tape.
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"
#include "nn/cpu/layers.hpp"

#include <algorithm>

namespace backsweep::cpu {
namespace {

template <class Real>
class Fold final : public DescribedLayer<Real> {
public:
    explicit Fold(const FoldSpec& spec)
        : DescribedLayer<Real>(spec.name, {}),
          inputs_(spec.inputs),
          outputs_(spec.outputs) {}

    Footprint footprint(Index, Index) const override { return {inputs_, outputs_, 0, 0, 0}; }

    // y_k = sum over the blocks m of x_{m outputs + k}
    void advance(const Forward<Real>& call) const override {
        for (Index p = 0; p < call.at.steps * call.at.batch; ++p) {
            const Real* const x = call.x + p * inputs_;
            Real* const y = call.y + p * outputs_;
            std::copy_n(x, outputs_, y);
            for (Index m = outputs_; m < inputs_; m += outputs_)
                for (Index k = 0; k < outputs_; ++k) y[k] += x[m + k];
        }
    }
    void record(const Forward<Real>& call) const override {
        if (call.y) advance(call);
    }
    void reverse(const Backward<Real>& call) const override {
        if (!call.dx) return;
        for (Index p = 0; p < call.at.steps * call.at.batch; ++p)
            for (Index m = 0; m < inputs_; m += outputs_)
                std::copy_n(call.dy + p * outputs_, outputs_, call.dx + p * inputs_ + m);
    }

private:
    Index inputs_, outputs_;
};

}  // namespace

template <class Real>
LayerPointer<Real> fold(const FoldSpec& spec) {
    return std::make_unique<Fold<Real>>(spec);
}

template LayerPointer<float> fold(const FoldSpec&);
template LayerPointer<double> fold(const FoldSpec&);
template LayerPointer<Dual<double>> fold(const FoldSpec&);

}  // namespace backsweep::cpu
