// Layer norm [Ba16] and RMS norm [ZS19] by plain loops.  d = x - mean (rms: d = x), s = 1 / sqrt(mean d^2 + epsilon), n
// = s d
//   y = n w + b;  dw += dy n, db += dy;  with g = dy w: dx = s (g - mean g - n mean(g n)), of rms without mean g
// No tape: reverse reads x.
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"

#include <cmath>
#include <vector>

namespace backsweep::reference {
namespace {

using std::sqrt;  // Dual has its own

template <class Real>
class Norm final : public DescribedLayer<Real> {
public:
    explicit Norm(const NormSpec& spec) : DescribedLayer<Real>(spec.name, parameters_of(spec)), spec_(spec) {}

    Footprint footprint(Index, Index) const override {
        return {.inputs = spec_.features, .outputs = spec_.features, .reads_x = true};
    }

    void advance(const Forward<Real>& call) const override {
        const Index F = spec_.features;
        for (Index p = 0; p < call.at.steps * call.at.batch; ++p) {
            const Normal one = normal(call.x + p * F);
            for (Index k = 0; k < F; ++k) {
                Real y = one.n[static_cast<std::size_t>(k)];
                if (spec_.affine) y *= call.parameters[k];
                if (spec_.affine && centred()) y += call.parameters[F + k];
                call.y[p * F + k] = y;
            }
        }
    }

    void record(const Forward<Real>& call) const override {
        if (call.y) advance(call);
    }

    void reverse(const Backward<Real>& call) const override {
        const Index F = spec_.features;
        for (Index p = call.at.steps * call.at.batch - 1; p >= 0; --p) {
            const Normal one = normal(call.x + p * F);
            const Real* const dy = call.dy + p * F;
            Real mean_g = 0, mean_gn = 0;
            for (Index k = 0; k < F; ++k) {
                const Real n = one.n[static_cast<std::size_t>(k)],
                           g = spec_.affine ? dy[k] * call.parameters[k] : dy[k];
                if (spec_.affine) call.gradients[k] += dy[k] * n;
                if (spec_.affine && centred()) call.gradients[F + k] += dy[k];
                mean_g += g / static_cast<Real>(F);
                mean_gn += g * n / static_cast<Real>(F);
            }
            if (!call.dx) continue;
            for (Index k = 0; k < F; ++k) {
                const Real n = one.n[static_cast<std::size_t>(k)],
                           g = spec_.affine ? dy[k] * call.parameters[k] : dy[k];
                call.dx[p * F + k] = one.s * (g - (centred() ? mean_g : Real{0}) - n * mean_gn);
            }
        }
    }

private:
    struct Normal {
        std::vector<Real> n;
        Real s;
    };

    bool centred() const { return spec_.kind == NormSpec::Kind::layer; }

    /// The mean is taken twice, the second time of the differences to the first: then its rounding does not count,
    /// however far it lies from 0.
    Normal normal(const Real* x) const {
        const Index F = spec_.features;
        std::vector<Real> d(x, x + F);
        for (int pass = 0; centred() && pass < 2; ++pass) {
            Real sum = 0;
            for (const Real v : d) sum += v;
            for (Real& v : d) v -= sum / static_cast<Real>(F);
        }
        Real squares = 0;
        for (const Real v : d) squares += v * v;
        const Real s = 1 / sqrt(squares / static_cast<Real>(F) + static_cast<Real>(spec_.epsilon));
        for (Real& v : d) v *= s;
        return {d, s};
    }

    NormSpec spec_;
};

}  // namespace

template <class Real>
LayerPointer<Real> norm(const NormSpec& spec) {
    return std::make_unique<Norm<Real>>(spec);
}

template LayerPointer<float> norm(const NormSpec&);
template LayerPointer<double> norm(const NormSpec&);
template LayerPointer<Dual<double>> norm(const NormSpec&);

}  // namespace backsweep::reference
