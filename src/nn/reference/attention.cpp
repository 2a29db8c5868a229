// Attention by plain loops.
// SPDX-License-Identifier: MIT
#include "nn/attention_layer.hpp"
#include "nn/reference/attend.hpp"
#include "nn/reference/layers.hpp"

namespace backsweep::reference {
namespace {

using std::sqrt;  // Dual has its own

/// As cpu/attention.cpp's, element by element.
template <class Real>
struct PlainMath {
    static void product(Index out, Index in, Index positions, const Real* W, const Real* b, const Real* x, Real* y) {
        for (Index p = 0; p < positions; ++p)
            for (Index o = 0; o < out; ++o) {
                Real sum = b ? b[o] : Real{0};
                for (Index i = 0; i < in; ++i) sum += W[o * in + i] * x[p * in + i];
                y[p * out + o] = sum;
            }
    }
    static void transposed(Index out, Index in, Index positions, const Real* W, const Real* y, Real beta, Real* x) {
        for (Index p = 0; p < positions; ++p)
            for (Index i = 0; i < in; ++i) {
                Real sum = beta == Real{0} ? Real{0} : x[p * in + i];
                for (Index o = 0; o < out; ++o) sum += W[o * in + i] * y[p * out + o];
                x[p * in + i] = sum;
            }
    }
    static void outer(Index out, Index in, Index positions, const Real* dy, const Real* x, Real* dW) {
        for (Index p = 0; p < positions; ++p)
            for (Index o = 0; o < out; ++o)
                for (Index i = 0; i < in; ++i) dW[o * in + i] += dy[p * out + o] * x[p * in + i];
    }
    static void sum(Index features, Index positions, const Real* x, Real* s) {
        for (Index p = 0; p < positions; ++p)
            for (Index f = 0; f < features; ++f) s[f] += x[p * features + f];
    }
    static Real standardise(Index n, Real epsilon, Real* x) {
        Real mean = 0, variance = 0;
        for (Index i = 0; i < n; ++i) mean += x[i] / static_cast<Real>(n);
        for (Index i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<Real>(n);
        const Real inverse = Real{1} / sqrt(variance + epsilon);
        for (Index i = 0; i < n; ++i) x[i] = (x[i] - mean) * inverse;
        return inverse;
    }
    static void standardise_reverse(Index n, const Real* x, Real inverse, Real* dx) {
        Real mean = 0, slope = 0;
        for (Index i = 0; i < n; ++i) mean += dx[i] / static_cast<Real>(n);
        for (Index i = 0; i < n; ++i) slope += dx[i] * x[i] / static_cast<Real>(n);
        for (Index i = 0; i < n; ++i) dx[i] = inverse * (dx[i] - mean - x[i] * slope);
    }
    static Index workspace(const Attend<Real>&) { return 0; }
    static void attend(const Attend<Real>& a, Rows<const Real> q, Rows<const Real> k, Rows<const Real> v, Rows<Real> o,
                       Real* lse, Real*) {
        reference::attend(a, q, k, v, o, lse);
    }
    static void attend_reverse(const Attend<Real>& a, const AttendReverse<Real>& call, Real*) {
        reference::attend_reverse(a, call);
    }
    static void rotate(const Rotary& rotary, Turn turn, Index first, Index steps, Index sequences, Index heads,
                       Index width, Rows<Real> x) {
        reference::rotate(rotary, turn, first, steps, sequences, heads, width, x);
    }
};

}  // namespace

template <class Real>
LayerPointer<Real> attention(const AttentionSpec& spec, std::uint32_t stream) {
    return std::make_unique<AttentionLayer<Real, PlainMath<Real>>>(spec, stream);
}

template LayerPointer<float> attention(const AttentionSpec&, std::uint32_t);
template LayerPointer<double> attention(const AttentionSpec&, std::uint32_t);
template LayerPointer<Dual<double>> attention(const AttentionSpec&, std::uint32_t);

}  // namespace backsweep::reference
