// Layer norm [Ba16] and RMS norm [ZS19], position by position. No tape: the norm of a position is made again in
// reverse, out of x. Sums over features have a fixed order of eight partial sums, which compilers keep in vector registers.
// SPDX-License-Identifier: MIT
#include "backsweep/base/buffer.hpp"
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/described_layer.hpp"

#include <algorithm>
#include <cmath>

namespace backsweep::cpu {
namespace {

using std::sqrt;  // Dual has its own

/// Sum of term(k), k = 0 .. n - 1.
template <class Real, class Term>
inline Real sum_of(Index n, Term term) noexcept {
    constexpr Index lanes = 8;
    Real part[lanes] = {};
    Index k = 0;
    for (; k + lanes <= n; k += lanes)
        for (Index j = 0; j < lanes; ++j) part[j] += term(k + j);
    for (; k < n; ++k) part[0] += term(k);
    return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

/// n = s d, d = x - mean (rms: d = x), s = 1 / sqrt(mean d^2 + epsilon); returns s. The mean is taken twice, the second
/// time of the differences to the first: then its rounding does not count, however far it lies from 0.
template <bool centred, class Real>
Real normal(Index features, Real epsilon, const Real* __restrict x, Real* __restrict n) noexcept {
    const Real count = static_cast<Real>(features);
    if constexpr (centred) {
        const Real mean = sum_of<Real>(features, [x](Index k) { return x[k]; }) / count;
        for (Index k = 0; k < features; ++k) n[k] = x[k] - mean;
        const Real rest = sum_of<Real>(features, [n](Index k) { return n[k]; }) / count;
        for (Index k = 0; k < features; ++k) n[k] -= rest;
    } else {
        std::copy_n(x, features, n);
    }
    const Real s = Real{1} / sqrt(sum_of<Real>(features, [n](Index k) { return n[k] * n[k]; }) / count + epsilon);
    for (Index k = 0; k < features; ++k) n[k] *= s;
    return s;
}

/// dx = s (g - mean g - n mean(g n)); rms: without mean g.
template <bool centred, class Real>
void reverse_of_normal(Index features, Real s, const Real* __restrict n, const Real* __restrict g,
                       Real* __restrict dx) noexcept {
    const Real count = static_cast<Real>(features);
    const Real mean = centred ? sum_of<Real>(features, [g](Index k) { return g[k]; }) / count : Real{0};
    const Real slope = sum_of<Real>(features, [g, n](Index k) { return g[k] * n[k]; }) / count;
    for (Index k = 0; k < features; ++k) dx[k] = s * ((g[k] - mean) - n[k] * slope);
}

// y = n w + b, of rms without b, and without either where it is not affine
template <class Real, bool centred>
class Norm final : public DescribedLayer<Real> {
public:
    explicit Norm(const NormSpec& spec)
        : DescribedLayer<Real>(spec.name, parameters_of(spec)),
          features_(spec.features),
          epsilon_(static_cast<Real>(spec.epsilon)),
          affine_(spec.affine) {}

    // Workspace of reverse: n and g of a position, sums for the weight and the bias.
    Footprint footprint(Index, Index) const override {
        return {.inputs = features_, .outputs = features_, .workspace = 4 * aligned<Real>(features_), .reads_x = true};
    }

    void advance(const Forward<Real>& call) const override {
        const Real* const __restrict w = call.parameters;
        const Real* const __restrict b = w + features_;
        for (Index p = 0; p < call.at.steps * call.at.batch; ++p) {
            Real* const __restrict y = call.y + p * features_;
            normal<centred>(features_, epsilon_, call.x + p * features_, y);
            if (!affine_) continue;
            for (Index k = 0; k < features_; ++k) y[k] = centred ? y[k] * w[k] + b[k] : y[k] * w[k];
        }
    }

    void record(const Forward<Real>& call) const override {
        if (call.y) advance(call);
    }

    // with g = dy w: dw += dy n, db += dy
    void reverse(const Backward<Real>& call) const override {
        if (!call.dx && !affine_) return;
        Real* const __restrict n = call.workspace;
        Real* const __restrict g = n + aligned<Real>(features_);
        Real* const __restrict dw = g + aligned<Real>(features_);
        Real* const __restrict db = dw + aligned<Real>(features_);
        const Real* const __restrict w = call.parameters;
        std::fill_n(dw, features_, Real{0});
        std::fill_n(db, features_, Real{0});
        for (Index p = call.at.steps * call.at.batch; p-- > 0;) {
            const Real* const __restrict dy = call.dy + p * features_;
            const Real s = normal<centred>(features_, epsilon_, call.x + p * features_, n);
            if (affine_)
                for (Index k = 0; k < features_; ++k) {
                    dw[k] += dy[k] * n[k];
                    db[k] += dy[k];
                    g[k] = dy[k] * w[k];
                }
            if (call.dx) reverse_of_normal<centred>(features_, s, n, affine_ ? g : dy, call.dx + p * features_);
        }
        if (!affine_) return;
        add(features_, dw, call.gradients);
        if (centred) add(features_, db, call.gradients + features_);
    }

private:
    Index features_;
    Real epsilon_;
    bool affine_;
};

}  // namespace

template <class Real>
LayerPointer<Real> norm(const NormSpec& spec) {
    if (spec.kind == NormSpec::Kind::layer) return std::make_unique<Norm<Real, true>>(spec);
    return std::make_unique<Norm<Real, false>>(spec);
}

template LayerPointer<float> norm(const NormSpec&);
template LayerPointer<double> norm(const NormSpec&);
template LayerPointer<Dual<double>> norm(const NormSpec&);

}  // namespace backsweep::cpu
