// Dropout by plain loops.  y = x / (1 - rate) where the element's random number is at least rate, else 0;  dx likewise
// The number: word (step, sequence x features + feature) / 2^32 of the layer's stream; locked: of step 0; steps modulo
// 2^32.
// SPDX-License-Identifier: MIT
#include "backsweep/base/random.hpp"
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"

namespace backsweep::reference {
namespace {

template <class Real>
class Dropout final : public DescribedLayer<Real> {
public:
    Dropout(const DropoutSpec& spec, std::uint32_t stream)
        : DescribedLayer<Real>(spec.name, {}),
          spec_(spec),
          stream_(stream) {}

    Footprint footprint(Index, Index) const override { return {spec_.features, spec_.features, 0, 0, 0}; }

    void advance(const Forward<Real>& call) const override { apply(call.at, call.x, call.y); }
    void record(const Forward<Real>& call) const override {
        if (call.y) advance(call);
    }
    void reverse(const Backward<Real>& call) const override {
        if (call.dx) apply(call.at, call.dy, call.dx);
    }

private:
    void apply(const Segment<Real>& at, const Real* x, Real* y) const {
        const Random random(at.seed, stream_);
        for (Index t = 0; t < at.steps; ++t)
            for (Index b = 0; b < at.batch; ++b)
                for (Index k = 0; k < spec_.features; ++k) {
                    const Index e = (t * at.batch + b) * spec_.features + k;
                    const auto step = static_cast<std::uint32_t>(spec_.locked ? 0 : at.first + t);
                    const auto element = static_cast<std::uint64_t>((at.sequence + b) * spec_.features + k);
                    if (!at.training)
                        y[e] = x[e];
                    else if (random.word(step, element) * 0x1.0p-32 >= spec_.rate)
                        y[e] = x[e] * static_cast<Real>(1.0 / (1.0 - spec_.rate));
                    else
                        y[e] = 0;
                }
    }

    DropoutSpec spec_;
    std::uint32_t stream_;
};

}  // namespace

template <class Real>
LayerPointer<Real> dropout(const DropoutSpec& spec, std::uint32_t stream) {
    return std::make_unique<Dropout<Real>>(spec, stream);
}

template LayerPointer<float> dropout(const DropoutSpec&, std::uint32_t);
template LayerPointer<double> dropout(const DropoutSpec&, std::uint32_t);
template LayerPointer<Dual<double>> dropout(const DropoutSpec&, std::uint32_t);

}  // namespace backsweep::reference
