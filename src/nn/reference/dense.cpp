// Dense by plain loops.  y = W x + b;  dW += dy x', db += dy, dx = W' dy.  No tape.
// W is the layer's own, b behind it, or the table of an embedding.
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"

namespace backsweep::reference {
namespace {

template <class Real>
class Dense final : public DescribedLayer<Real> {
public:
    explicit Dense(const DenseSpec& spec) : DescribedLayer<Real>(spec.name, parameters_of(spec)), spec_(spec) {}

    std::string tied() const override { return tied_to(spec_); }

    Footprint footprint(Index, Index) const override {
        return {.inputs = spec_.inputs, .outputs = spec_.outputs, .reads_x = true};
    }
    Work work(Index steps, Index batch) const override {
        const double product = 2.0 * static_cast<double>(spec_.inputs * spec_.outputs * steps * batch);
        return {product, 2.0 * product};
    }

    void advance(const Forward<Real>& call) const override {
        const Index I = spec_.inputs, O = spec_.outputs;
        const Real* const W = own() ? call.parameters : call.tied;
        const Real* const b = own() ? W + O * I : call.parameters;
        for (Index p = 0; p < call.at.steps * call.at.batch; ++p)
            for (Index o = 0; o < O; ++o) {
                Real sum = spec_.bias ? b[o] : Real{0};
                for (Index i = 0; i < I; ++i) sum += W[o * I + i] * call.x[p * I + i];
                call.y[p * O + o] = sum;
            }
    }

    void record(const Forward<Real>& call) const override {
        if (call.y) advance(call);
    }

    void reverse(const Backward<Real>& call) const override {
        const Index I = spec_.inputs, O = spec_.outputs;
        const Real* const W = own() ? call.parameters : call.tied;
        Real* const dW = own() ? call.gradients : call.tied_gradients;
        Real* const db = own() ? dW + O * I : call.gradients;
        for (Index p = call.at.steps * call.at.batch - 1; p >= 0; --p) {
            const Real* const x = call.x + p * I;
            const Real* const dy = call.dy + p * O;
            for (Index o = 0; o < O; ++o) {
                for (Index i = 0; i < I; ++i) dW[o * I + i] += dy[o] * x[i];
                if (spec_.bias) db[o] += dy[o];
            }
            if (!call.dx) continue;
            for (Index i = 0; i < I; ++i) {
                Real sum = 0;
                for (Index o = 0; o < O; ++o) sum += W[o * I + i] * dy[o];
                call.dx[p * I + i] = sum;
            }
        }
    }

private:
    bool own() const { return spec_.tied.empty(); }

    DenseSpec spec_;
};

}  // namespace

template <class Real>
LayerPointer<Real> dense(const DenseSpec& spec) {
    return std::make_unique<Dense<Real>>(spec);
}

template LayerPointer<float> dense(const DenseSpec&);
template LayerPointer<double> dense(const DenseSpec&);
template LayerPointer<Dual<double>> dense(const DenseSpec&);

}  // namespace backsweep::reference
