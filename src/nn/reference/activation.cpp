// Activations by plain loops. No tape: reverse reads x.
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"

#include <cmath>
#include <numbers>

namespace backsweep::reference {
namespace {

using std::erfc, std::exp, std::fmax, std::log, std::log1p, std::tanh;  // Dual has its own

using Kind = ActivationSpec::Kind;

template <class Real>
Real sigmoid(Real x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

/// P(normal <= x).
template <class Real>
Real normal(Real x) {
    return erfc(-x / Real(std::numbers::sqrt2)) / 2;
}

template <class Real>
struct TanhOfCubic {
    Real value, slope;  // slope: of tanh(u(x)) in x, 0 where tanh is 1 however steep u is
    explicit TanhOfCubic(Real x) {
        const Real k = Real(std::sqrt(2 / std::numbers::pi)), c = Real(0.044715);
        value = tanh(k * (x + c * x * x * x));
        const Real rest = 1 - value * value;
        slope = rest == 0 ? 0 : rest * k * (1 + 3 * c * x * x);
    }
};

template <class Real>
Real value(Kind kind, Real x) {
    switch (kind) {
        case Kind::relu:
            return x < 0 ? 0 : x;
        case Kind::silu:
            return x * sigmoid(x);
        case Kind::gelu:
            return x * normal(x);
        case Kind::gelu_tanh:
            return x / 2 * (1 + TanhOfCubic<Real>(x).value);
        case Kind::tanh:
            return tanh(x);
        case Kind::sigmoid:
            return sigmoid(x);
        default:  // softplus
            return x > 20 ? x : log1p(exp(x));
    }
}

template <class Real>
Real slope(Kind kind, Real x) {
    switch (kind) {
        case Kind::relu:
            return x <= 0 ? Real{0} : Real{1};
        case Kind::silu:
            return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
        case Kind::gelu:
            return normal(x) + x * exp(-x * x / 2) / Real(std::sqrt(2 * std::numbers::pi));
        case Kind::gelu_tanh:
            return (1 + TanhOfCubic<Real>(x).value + x * TanhOfCubic<Real>(x).slope) / 2;
        case Kind::tanh:
            return 1 - tanh(x) * tanh(x);
        case Kind::sigmoid:
            return sigmoid(x) * (1 - sigmoid(x));
        default:  // softplus
            return x > 20 ? Real{1} : sigmoid(x);
    }
}

/// log softmax(x)_k = x_k - m - log sum of exp(x_j - m), m = max x
template <class Real>
Real log_softmax(Index n, const Real* x, Index k) {
    Real max = x[0], sum = 0;
    for (Index j = 1; j < n; ++j) max = fmax(max, x[j]);
    for (Index j = 0; j < n; ++j) sum += exp(x[j] - max);
    return x[k] - max - log(sum);
}

template <class Real>
class Activation final : public DescribedLayer<Real> {
public:
    explicit Activation(const ActivationSpec& spec) : DescribedLayer<Real>(spec.name, {}), spec_(spec) {}

    Footprint footprint(Index, Index) const override {
        return {.inputs = spec_.features, .outputs = spec_.features, .reads_x = true};
    }

    void advance(const Forward<Real>& call) const override {
        const Index F = spec_.features;
        for (Index p = 0; p < call.at.steps * call.at.batch; ++p)
            for (Index k = 0; k < F; ++k) call.y[p * F + k] = output(call.x + p * F, k);
    }

    void record(const Forward<Real>& call) const override {
        if (call.y) advance(call);
    }

    // softmax: dx = y (dy - sum of dy y);  log_softmax: dx = dy - exp(y) sum of dy;  else dx = dy slope(x)
    void reverse(const Backward<Real>& call) const override {
        if (!call.dx) return;
        const Index F = spec_.features;
        for (Index p = 0; p < call.at.steps * call.at.batch; ++p) {
            const Real* const x = call.x + p * F;
            const Real* const dy = call.dy + p * F;
            Real sum = 0;
            for (Index k = 0; k < F; ++k) sum += spec_.kind == Kind::softmax ? dy[k] * output(x, k) : dy[k];
            for (Index k = 0; k < F; ++k) {
                Real& dx = call.dx[p * F + k];
                if (spec_.kind == Kind::softmax)
                    dx = output(x, k) * (dy[k] - sum);
                else if (spec_.kind == Kind::log_softmax)
                    dx = dy[k] - exp(output(x, k)) * sum;
                else
                    dx = dy[k] * slope(spec_.kind, x[k]);
            }
        }
    }

private:
    /// Of feature k of a position.
    Real output(const Real* x, Index k) const {
        if (spec_.kind == Kind::softmax) return exp(log_softmax(spec_.features, x, k));
        if (spec_.kind == Kind::log_softmax) return log_softmax(spec_.features, x, k);
        return value(spec_.kind, x[k]);
    }

    ActivationSpec spec_;
};

}  // namespace

template <class Real>
LayerPointer<Real> activation(const ActivationSpec& spec) {
    return std::make_unique<Activation<Real>>(spec);
}

template LayerPointer<float> activation(const ActivationSpec&);
template LayerPointer<double> activation(const ActivationSpec&);
template LayerPointer<Dual<double>> activation(const ActivationSpec&);

}  // namespace backsweep::reference
