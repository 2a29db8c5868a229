// Embedding by plain loops.  y[p] = W[token[p]];  dW[token[p]] += dy[p], but for the padding row;  y = 0 at fillers, without token
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"

namespace backsweep::reference {
namespace {

template <class Real>
class Embedding final : public DescribedLayer<Real> {
public:
    explicit Embedding(const EmbeddingSpec& spec) : DescribedLayer<Real>(spec.name, parameters_of(spec)), spec_(spec) {}

    Footprint footprint(Index, Index) const override { return {0, spec_.features, 0, 0, 0}; }

    void advance(const Forward<Real>& call) const override {
        require_array(call.at.tokens, this->name(), "tokens");
        for (Index t = 0; t < call.at.steps; ++t)
            for (Index b = 0; b < call.at.batch; ++b) {
                const Index p = t * call.at.batch + b;
                if (call.at.filler(t, b)) {
                    for (Index k = 0; k < spec_.features; ++k) call.y[p * spec_.features + k] = 0;
                    continue;
                }
                const std::int32_t token = call.at.tokens[p];
                if (token < 0 || token >= spec_.vocabulary)
                    out_of_range(this->name(), "token", token, spec_.vocabulary, call.at.first + t, b);
                for (Index k = 0; k < spec_.features; ++k)
                    call.y[p * spec_.features + k] = call.parameters[token * spec_.features + k];
            }
    }

    void record(const Forward<Real>& call) const override {
        if (call.y) advance(call);
    }

    void reverse(const Backward<Real>& call) const override {
        for (Index p = call.at.steps * call.at.batch - 1; p >= 0; --p) {
            if (call.at.filler(p / call.at.batch, p % call.at.batch)) continue;
            const std::int32_t token = call.at.tokens[p];
            if (spec_.padding && token == *spec_.padding) continue;
            for (Index k = 0; k < spec_.features; ++k)
                call.gradients[token * spec_.features + k] += call.dy[p * spec_.features + k];
        }
    }

private:
    EmbeddingSpec spec_;
};

}  // namespace

template <class Real>
LayerPointer<Real> embedding(const EmbeddingSpec& spec) {
    return std::make_unique<Embedding<Real>>(spec);
}

template LayerPointer<float> embedding(const EmbeddingSpec&);
template LayerPointer<double> embedding(const EmbeddingSpec&);
template LayerPointer<Dual<double>> embedding(const EmbeddingSpec&);

}  // namespace backsweep::reference
