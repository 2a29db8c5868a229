// Attention with heads in tiles [Dao22].
// SPDX-License-Identifier: MIT
#include "nn/attention_layer.hpp"
#include "nn/cpu/attend.hpp"
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/cpu/multiply.hpp"
#include "nn/cpu/rotary.hpp"

namespace backsweep::cpu {
namespace {

template <class Real>
struct CpuMath {
    /// y = W x + b, position by position; W [out][in], b may be null.
    static void product(Index out, Index in, Index positions, const Real* W, const Real* b, const Real* x, Real* y) {
        apply(out, in, positions, W, x, b, y, out);
    }
    /// x = W' y + beta x, beta 0 or 1.
    static void transposed(Index out, Index in, Index positions, const Real* W, const Real* y, Real beta, Real* x) {
        apply_transposed(out, in, positions, W, y, beta, x);
    }
    /// dW += dy x'.
    static void outer(Index out, Index in, Index positions, const Real* dy, const Real* x, Real* dW) {
        add_outer(out, in, positions, dy, x, dW);
    }
    /// s += the sum over positions.
    static void sum(Index features, Index positions, const Real* x, Real* s) {
        for (Index p = 0; p < positions; ++p) add(features, x + p * features, s);
    }
    static Real standardise(Index n, Real epsilon, Real* x) { return cpu::standardise(n, epsilon, x); }
    static void standardise_reverse(Index n, const Real* x, Real inverse, Real* dx) {
        cpu::standardise_reverse(n, x, inverse, dx);
    }
    static Index workspace(const Attend<Real>& a) { return attend_workspace(a); }
    static void attend(const Attend<Real>& a, Rows<const Real> q, Rows<const Real> k, Rows<const Real> v, Rows<Real> o,
                       Real* lse, Real* workspace) {
        cpu::attend(a, q, k, v, o, lse, workspace);
    }
    static void attend_reverse(const Attend<Real>& a, const AttendReverse<Real>& call, Real* workspace) {
        cpu::attend_reverse(a, call, workspace);
    }
    static void rotate(const Rotary& rotary, Turn turn, Index first, Index steps, Index sequences, Index heads,
                       Index width, Rows<Real> x) {
        cpu::rotate(rotary, turn, first, steps, sequences, heads, width, x);
    }
};

}  // namespace

template <class Real>
LayerPointer<Real> attention(const AttentionSpec& spec, std::uint32_t stream) {
    return std::make_unique<AttentionLayer<Real, CpuMath<Real>>>(spec, stream);
}

template LayerPointer<float> attention(const AttentionSpec&, std::uint32_t);
template LayerPointer<double> attention(const AttentionSpec&, std::uint32_t);
template LayerPointer<Dual<double>> attention(const AttentionSpec&, std::uint32_t);

}  // namespace backsweep::cpu
