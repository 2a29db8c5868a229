// Activations. No tape: reverse reads y where the derivative is a function of it, else x. The adjoint's memory is their
// scratch.
// SPDX-License-Identifier: MIT
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/described_layer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace backsweep::cpu {
namespace {

using std::erfc, std::exp, std::log1p;  // Dual has its own

// Each activation: `value` assigns y of n numbers x, `reverse` dx out of dy and y, or x unless `reads_y`. Those
// `of_a_row` are functions of a position's features together.

struct Relu {
    static constexpr bool reads_y = true, of_a_row = false;
    template <class Real>
    static void value(Index n, const Real* __restrict x, Real* __restrict y) noexcept {
        for (Index k = 0; k < n; ++k) y[k] = x[k] < Real{0} ? Real{0} : x[k];  // NaN stays NaN
    }
    template <class Real>
    static void reverse(Index n, const Real* __restrict y, const Real* __restrict dy, Real* __restrict dx) noexcept {
        for (Index k = 0; k < n; ++k) dx[k] = y[k] <= Real{0} ? Real{0} : dy[k];
    }
};

struct Sigmoid {
    static constexpr bool reads_y = true, of_a_row = false;
    template <class Real>
    static void value(Index n, const Real* __restrict x, Real* __restrict y) noexcept {
        std::copy_n(x, n, y);
        sigmoid(n, y);
    }
    template <class Real>
    static void reverse(Index n, const Real* __restrict y, const Real* __restrict dy, Real* __restrict dx) noexcept {
        for (Index k = 0; k < n; ++k) dx[k] = dy[k] * (y[k] * (Real{1} - y[k]));
    }
};

struct Tanh {
    static constexpr bool reads_y = true, of_a_row = false;
    template <class Real>
    static void value(Index n, const Real* __restrict x, Real* __restrict y) noexcept {
        std::copy_n(x, n, y);
        tanh(n, y);
    }
    template <class Real>
    static void reverse(Index n, const Real* __restrict y, const Real* __restrict dy, Real* __restrict dx) noexcept {
        for (Index k = 0; k < n; ++k) dx[k] = dy[k] * (Real{1} - y[k] * y[k]);
    }
};

// y = x s(x),  y' = s (1 + x (1 - s))
struct Silu {
    static constexpr bool reads_y = false, of_a_row = false;
    template <class Real>
    static void value(Index n, const Real* __restrict x, Real* __restrict y) noexcept {
        Sigmoid::value(n, x, y);
        for (Index k = 0; k < n; ++k) y[k] *= x[k];
    }
    template <class Real>
    static void reverse(Index n, const Real* __restrict x, const Real* __restrict dy, Real* __restrict dx) noexcept {
        Sigmoid::value(n, x, dx);
        for (Index k = 0; k < n; ++k) dx[k] = dy[k] * (dx[k] * (Real{1} + x[k] * (Real{1} - dx[k])));
    }
};

// P, p: distribution and density of the normal law;  y = x P(x),  y' = P + x p
struct Gelu {
    static constexpr bool reads_y = false, of_a_row = false;
    template <class Real>
    static Real distribution(Real x) noexcept {
        return Real{0.5} * erfc(x * Real(-0.5 * std::numbers::sqrt2));
    }
    template <class Real>
    static void value(Index n, const Real* __restrict x, Real* __restrict y) noexcept {
        for (Index k = 0; k < n; ++k) y[k] = x[k] * distribution(x[k]);
    }
    template <class Real>
    static void reverse(Index n, const Real* __restrict x, const Real* __restrict dy, Real* __restrict dx) noexcept {
        constexpr Real root = Real(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
        for (Index k = 0; k < n; ++k)
            dx[k] = dy[k] * (distribution(x[k]) + x[k] * (root * exp(Real{-0.5} * x[k] * x[k])));
    }
};

// u = a (x + c x^3), t = tanh u;  y = x / 2 (1 + t),  y' = (1 + t + x (1 - t^2) u') / 2, where 1 - t^2 = 0 wins over a
// u' that is too large
struct GeluTanh {
    static constexpr bool reads_y = false, of_a_row = false;
    static constexpr double a = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, c = 0.044715;
    template <class Real>
    static void tanh_u(Index n, const Real* __restrict x, Real* __restrict t) noexcept {
        for (Index k = 0; k < n; ++k) t[k] = Real(a) * (x[k] + Real(c) * x[k] * x[k] * x[k]);
        tanh(n, t);
    }
    template <class Real>
    static void value(Index n, const Real* __restrict x, Real* __restrict y) noexcept {
        tanh_u(n, x, y);
        for (Index k = 0; k < n; ++k) y[k] = Real{0.5} * x[k] * (Real{1} + y[k]);
    }
    template <class Real>
    static void reverse(Index n, const Real* __restrict x, const Real* __restrict dy, Real* __restrict dx) noexcept {
        tanh_u(n, x, dx);
        for (Index k = 0; k < n; ++k) {
            const Real t = dx[k], rest = Real{1} - t * t;
            const Real steep = x[k] * rest * (Real(a) * (Real{1} + Real(3.0 * c) * x[k] * x[k]));
            dx[k] = dy[k] * (Real{0.5} * (Real{1} + t + (rest == Real{0} ? Real{0} : steep)));
        }
    }
};

struct Softplus {
    static constexpr bool reads_y = false, of_a_row = false;
    template <class Real>
    static void value(Index n, const Real* __restrict x, Real* __restrict y) noexcept {
        for (Index k = 0; k < n; ++k) y[k] = x[k] > Real{20} ? x[k] : log1p(exp(x[k]));
    }
    template <class Real>
    static void reverse(Index n, const Real* __restrict x, const Real* __restrict dy, Real* __restrict dx) noexcept {
        Sigmoid::value(n, x, dx);
        for (Index k = 0; k < n; ++k) dx[k] = x[k] > Real{20} ? dy[k] : dy[k] * dx[k];
    }
};

// dx = y (dy - sum of dy y)
struct SoftmaxOfRow {
    static constexpr bool reads_y = true, of_a_row = true;
    template <class Real>
    static void value(Index n, const Real* __restrict x, Real* __restrict y) noexcept {
        softmax(n, x, y);
    }
    template <class Real>
    static void reverse(Index n, const Real* __restrict y, const Real* __restrict dy, Real* __restrict dx) noexcept {
        Real sum{0};
        for (Index k = 0; k < n; ++k) sum += dy[k] * y[k];
        for (Index k = 0; k < n; ++k) dx[k] = y[k] * (dy[k] - sum);
    }
};

// dx = dy - exp(y) sum of dy; exp(y) is softmax(y)
struct LogSoftmaxOfRow {
    static constexpr bool reads_y = true, of_a_row = true;
    template <class Real>
    static void value(Index n, const Real* __restrict x, Real* __restrict y) noexcept {
        const auto [max, log_sum] = softmax(n, x, y);
        for (Index k = 0; k < n; ++k) y[k] = (x[k] - max) - log_sum;
    }
    template <class Real>
    static void reverse(Index n, const Real* __restrict y, const Real* __restrict dy, Real* __restrict dx) noexcept {
        softmax(n, y, dx);
        Real sum{0};
        for (Index k = 0; k < n; ++k) sum += dy[k];
        for (Index k = 0; k < n; ++k) dx[k] = dy[k] - dx[k] * sum;
    }
};

template <class Real, class Function>
class Activation final : public DescribedLayer<Real> {
public:
    explicit Activation(const ActivationSpec& spec) : DescribedLayer<Real>(spec.name, {}), features_(spec.features) {}

    Footprint footprint(Index, Index) const override {
        return {.inputs = features_, .outputs = features_, .reads_x = !Function::reads_y, .reads_y = Function::reads_y};
    }

    void advance(const Forward<Real>& call) const override {
        in_blocks(call.at, [&](Index from, Index n) { Function::value(n, call.x + from, call.y + from); });
    }

    void record(const Forward<Real>& call) const override {
        if (call.y) advance(call);
    }

    void reverse(const Backward<Real>& call) const override {
        if (!call.dx) return;
        const Real* const known = Function::reads_y ? call.y : call.x;
        in_blocks(call.at, [&](Index from, Index n) { Function::reverse(n, known + from, call.dy + from, call.dx + from); });
    }

private:
    /// f(first, count) for rows, or for blocks that a cache holds while they are passed over more than once.
    template <class F>
    void in_blocks(const Segment<Real>& at, F f) const {
        const Index all = at.steps * at.batch * features_, block = Function::of_a_row ? features_ : Index{1024};
        for (Index first = 0; first < all; first += block) f(first, std::min(block, all - first));
    }

    Index features_;
};

}  // namespace

template <class Real>
LayerPointer<Real> activation(const ActivationSpec& spec) {
    switch (spec.kind) {
        case ActivationSpec::Kind::relu:
            return std::make_unique<Activation<Real, Relu>>(spec);
        case ActivationSpec::Kind::silu:
            return std::make_unique<Activation<Real, Silu>>(spec);
        case ActivationSpec::Kind::gelu:
            return std::make_unique<Activation<Real, Gelu>>(spec);
        case ActivationSpec::Kind::gelu_tanh:
            return std::make_unique<Activation<Real, GeluTanh>>(spec);
        case ActivationSpec::Kind::tanh:
            return std::make_unique<Activation<Real, Tanh>>(spec);
        case ActivationSpec::Kind::sigmoid:
            return std::make_unique<Activation<Real, Sigmoid>>(spec);
        case ActivationSpec::Kind::softplus:
            return std::make_unique<Activation<Real, Softplus>>(spec);
        case ActivationSpec::Kind::softmax:
            return std::make_unique<Activation<Real, SoftmaxOfRow>>(spec);
        case ActivationSpec::Kind::log_softmax:
            break;
    }
    return std::make_unique<Activation<Real, LogSoftmaxOfRow>>(spec);
}

template LayerPointer<float> activation(const ActivationSpec&);
template LayerPointer<double> activation(const ActivationSpec&);
template LayerPointer<Dual<double>> activation(const ActivationSpec&);

}  // namespace backsweep::cpu
