// Pointwise loops of the CPU layers. Compiled with -O3 -fno-trapping-math and without contraction: g++ and clang make
// vector loops of them at baseline x86-64, and a vector element and a scalar tail have the same bits.
// SPDX-License-Identifier: MIT
#include "nn/cpu/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace backsweep::cpu {
namespace {

/// exp(x) = power * (1 + rest) for x <= 0: power = 2^n with n = round(x / log 2), rest = exp(r) - 1 for the remainder r
/// in
/// [-log(2)/2, log(2)/2], as r + r^2 q(r). q is a minimax fit of degree 4; the fit errs by 3.7e-9 of exp(x).
/// Below -87 (1.6e-38; smaller results would become denormal) power is 0. NaN gives rest = NaN.
struct Exponential {
    float power, rest;
};

inline Exponential exponential(float x) noexcept {
    constexpr float least = -87.0F;
    constexpr float rounder = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, which stands in the low bits
    constexpr float log2_high = 0.693359375F, log2_low = -2.12194440e-4F;  // n * log2_high is exact [CW80]
    const float y = x < least ? least : x;
    const float shifted = y * 1.44269504F + rounder;
    const float n = shifted - rounder;
    const float r = (y - n * log2_high) - n * log2_low;
    float q = 1.38145383e-3F;
    q = q * r + 8.36874545e-3F;
    q = q * r + 4.1668389e-2F;
    q = q * r + 0.166665211F;
    q = q * r + 0.49999994F;
    const std::uint32_t bits = (std::bit_cast<std::uint32_t>(shifted) + 127U) << 23;
    return {std::bit_cast<float>(x < least ? 0U : bits), r + r * r * q};
}

/// exp(x) for x <= 0, relative error < 2e-7; exactly 0 below -87.
inline float exp_not_positive(float x) noexcept {
    const Exponential e = exponential(x);
    return e.power + e.power * e.rest;
}
inline double exp_not_positive(double x) noexcept {
    return std::exp(x);
}

inline float sigmoid_of(float x) noexcept {
    const float e = exp_not_positive(-std::fabs(x));
    return (x < 0.0F ? e : 1.0F) / (1.0F + e);
}
inline double sigmoid_of(double x) noexcept {
    const double e = std::exp(-std::fabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

/// With e = exp(-2 |x|): tanh |x| = (1 - e) / (1 + e) where e > 1/2, for 1 - e = -((power - 1) + power rest) does not
/// cancel there, else 1 - 2 e / (1 + e), which is good to the last place near 1, where the reverse forms 1 - tanh^2.
inline float tanh_of(float x) noexcept {
    const Exponential ex = exponential(-2.0F * std::fabs(x));
    const float grown = ex.power * ex.rest;
    const float e = ex.power + grown;
    const bool near_zero = e > 0.5F;
    const float quotient = (near_zero ? -((ex.power - 1.0F) + grown) : e + e) / (1.0F + e);
    return std::copysign(near_zero ? quotient : 1.0F - quotient, x);
}
inline double tanh_of(double x) noexcept {
    return std::tanh(x);
}

/// Partial maxima and sums that compilers keep in vector registers; a fixed order.
constexpr Index lanes = 8;

template <class Real>
Real largest(Index n, const Real* x) noexcept {
    Real part[lanes];
    std::fill_n(part, lanes, x[0]);
    Index k = 0;
    for (; k + lanes <= n; k += lanes)
        for (Index j = 0; j < lanes; ++j) part[j] = x[k + j] > part[j] ? x[k + j] : part[j];
    for (; k < n; ++k) part[0] = x[k] > part[0] ? x[k] : part[0];
    return *std::max_element(part, part + lanes);
}

template <class Real>
Real sum_of(Index n, const Real* x) noexcept {
    Real part[lanes] = {};
    Index k = 0;
    for (; k + lanes <= n; k += lanes)
        for (Index j = 0; j < lanes; ++j) part[j] += x[k + j];
    for (; k < n; ++k) part[0] += x[k];
    return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

}  // namespace

template <class Real>
void sigmoid(Index n, Real* x) noexcept {
    for (Index k = 0; k < n; ++k) x[k] = sigmoid_of(x[k]);
}

template <class Real>
void tanh(Index n, Real* x) noexcept {
    for (Index k = 0; k < n; ++k) x[k] = tanh_of(x[k]);
}

template <class Real>
Softmax<Real> softmax(Index n, const Real* __restrict x, Real* __restrict p) noexcept {
    const Real max = largest(n, x);
    for (Index k = 0; k < n; ++k) p[k] = exp_not_positive(x[k] - max);
    const Real sum = sum_of(n, p);
    const Real inverse = Real{1} / sum;
    for (Index k = 0; k < n; ++k) p[k] *= inverse;
    return {max, std::log(sum)};
}

template <class Real>
void fill_columns(Index rows, Index columns, const Real* __restrict column, Real* __restrict out) noexcept {
    for (Index j = 0; j < columns; ++j, out += rows)
        for (Index k = 0; k < rows; ++k) out[k] = column[k];
}

template <class Real>
void sum_columns(Index rows, Index columns, const Real* __restrict in, Real* __restrict sum) noexcept {
    for (Index k = 0; k < rows; ++k) sum[k] = Real{0};
    for (Index j = 0; j < columns; ++j, in += rows)
        for (Index k = 0; k < rows; ++k) sum[k] += in[k];
}

template <class Real>
void add(Index n, const Real* __restrict x, Real* __restrict y) noexcept {
    for (Index k = 0; k < n; ++k) y[k] += x[k];
}

// i, f, o = sigmoid(z), g = tanh(z);  c = f c_before + i g;  h = o tanh(c)
template <class Real>
void lstm_cell(Index hidden, Real* __restrict z, const Real* __restrict c_before, Real* __restrict c,
               Real* __restrict h) noexcept {
    sigmoid(2 * hidden, z);
    tanh(hidden, z + 2 * hidden);
    sigmoid(hidden, z + 3 * hidden);
    const Real* const i = z;
    const Real* const f = z + hidden;
    const Real* const g = z + 2 * hidden;
    const Real* const o = z + 3 * hidden;
    for (Index k = 0; k < hidden; ++k) {
        c[k] = f[k] * c_before[k] + i[k] * g[k];
        h[k] = o[k] * tanh_of(c[k]);
    }
}

template <class Real>
void lstm_cell_reverse(Index hidden, const Real* __restrict gates, const Real* __restrict c_before,
                       const Real* __restrict c, const Real* __restrict dy, const Real* __restrict dh,
                       Real* __restrict dc, Real* __restrict dz, Real* __restrict h) noexcept {
    const Real* const i = gates;
    const Real* const f = gates + hidden;
    const Real* const g = gates + 2 * hidden;
    const Real* const o = gates + 3 * hidden;
    for (Index k = 0; k < hidden; ++k) {
        const Real tanh_c = tanh_of(c[k]);
        h[k] = o[k] * tanh_c;
        const Real dh_k = dy[k] + dh[k];
        const Real dc_k = dc[k] + dh_k * o[k] * (Real{1} - tanh_c * tanh_c);
        dz[k] = dc_k * g[k] * (i[k] * (Real{1} - i[k]));
        dz[hidden + k] = dc_k * c_before[k] * (f[k] * (Real{1} - f[k]));
        dz[2 * hidden + k] = dc_k * i[k] * (Real{1} - g[k] * g[k]);
        dz[3 * hidden + k] = dh_k * tanh_c * (o[k] * (Real{1} - o[k]));
        dc[k] = dc_k * f[k];
    }
}

template <class Real>
Real multiply_add(Real a, Real b, Real c) noexcept {
    return a * b + c;
}

#define BACKSWEEP_INSTANTIATE(Real)                                                                                \
    template void sigmoid(Index, Real*) noexcept;                                                                  \
    template void tanh(Index, Real*) noexcept;                                                                     \
    template Softmax<Real> softmax(Index, const Real*, Real*) noexcept;                                            \
    template void fill_columns(Index, Index, const Real*, Real*) noexcept;                                         \
    template void sum_columns(Index, Index, const Real*, Real*) noexcept;                                          \
    template void add(Index, const Real*, Real*) noexcept;                                                         \
    template void lstm_cell(Index, Real*, const Real*, Real*, Real*) noexcept;                                     \
    template void lstm_cell_reverse(Index, const Real*, const Real*, const Real*, const Real*, const Real*, Real*, \
                                    Real*, Real*) noexcept;                                                        \
    template Real multiply_add(Real, Real, Real) noexcept;
BACKSWEEP_INSTANTIATE(float)
BACKSWEEP_INSTANTIATE(double)
#undef BACKSWEEP_INSTANTIATE

}  // namespace backsweep::cpu
