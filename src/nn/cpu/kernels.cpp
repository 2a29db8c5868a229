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

using std::log, std::sqrt;  // Dual has its own

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

// Of dual numbers: the functions above, and their derivatives out of what they give.
template <class Real>
inline Dual<Real> exp_not_positive(Dual<Real> x) noexcept {
    const Real e = exp_not_positive(x.value);
    return {e, e * x.tangent};
}
template <class Real>
inline Dual<Real> sigmoid_of(Dual<Real> x) noexcept {
    const Real s = sigmoid_of(x.value);
    return {s, s * (Real{1} - s) * x.tangent};
}
template <class Real>
inline Dual<Real> tanh_of(Dual<Real> x) noexcept {
    const Real t = tanh_of(x.value);
    return {t, (Real{1} - t * t) * x.tangent};
}

/// Partial maxima and sums that compilers keep in vector registers; a fixed order.
constexpr Index lanes = 8;

template <class Real>
Real sum_of(Index n, const Real* x) noexcept {
    Real part[lanes] = {};
    Index k = 0;
    for (; k + lanes <= n; k += lanes)
        for (Index j = 0; j < lanes; ++j) part[j] += x[k + j];
    for (; k < n; ++k) part[0] += x[k];
    return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

template <class Real>
Real dot(Index n, const Real* x, const Real* y) noexcept {
    Real part[lanes] = {};
    Index k = 0;
    for (; k + lanes <= n; k += lanes)
        for (Index j = 0; j < lanes; ++j) part[j] += x[k + j] * y[k + j];
    for (; k < n; ++k) part[0] += x[k] * y[k];
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
Real exponentials(Index n, Real shift, Real* x) noexcept {
    for (Index k = 0; k < n; ++k) x[k] = exp_not_positive(x[k] - shift);
    return sum_of(n, x);
}

template <class Real>
Softmax<Real> softmax(Index n, const Real* __restrict x, Real* __restrict p) noexcept {
    const Real max = largest(n, x);
    for (Index k = 0; k < n; ++k) p[k] = exp_not_positive(x[k] - max);
    const Real sum = sum_of(n, p);
    const Real inverse = Real{1} / sum;
    for (Index k = 0; k < n; ++k) p[k] *= inverse;
    return {max, log(sum)};
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

template <class Real>
void add_product(Index n, const Real* __restrict a, const Real* __restrict b, Real* __restrict y) noexcept {
    for (Index k = 0; k < n; ++k) y[k] += a[k] * b[k];
}

template <class Real>
void lstm_gates(Index hidden, Real* z) noexcept {
    sigmoid(2 * hidden, z);
    tanh(hidden, z + 2 * hidden);
    sigmoid(hidden, z + 3 * hidden);
}

// i, f, o = sigmoid(z), g = tanh(z);  c = f c_before + i g;  h = o tanh(c)
template <class Real>
void lstm_cell(Index hidden, Real* __restrict z, const Real* __restrict c_before, Real* __restrict c,
               Real* __restrict h) noexcept {
    lstm_gates(hidden, z);
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
void normed_lstm_cell(Index hidden, Real epsilon, Real* __restrict z, const Real* __restrict c_before,
                      const Real* __restrict gain, const Real* __restrict shift, Real* __restrict c,
                      Real* __restrict h) noexcept {
    lstm_gates(hidden, z);
    const Real* const i = z;
    const Real* const f = z + hidden;
    const Real* const g = z + 2 * hidden;
    const Real* const o = z + 3 * hidden;
    for (Index k = 0; k < hidden; ++k) c[k] = f[k] * c_before[k] + i[k] * g[k];
    std::copy_n(c, hidden, h);
    standardise(hidden, epsilon, h);
    for (Index k = 0; k < hidden; ++k) h[k] = o[k] * tanh_of(gain[k] * h[k] + shift[k]);
}

template <class Real>
void normed_lstm_cell_reverse(Index hidden, Real epsilon, const Real* __restrict gates, const Real* __restrict c_before,
                              const Real* __restrict c, const Real* __restrict gain, const Real* __restrict shift,
                              const Real* __restrict dy, const Real* __restrict dh, Real* __restrict dc,
                              Real* __restrict dz, Real* __restrict h, Real* __restrict dgain,
                              Real* __restrict dshift, Real* __restrict scratch) noexcept {
    const Real* const i = gates;
    const Real* const f = gates + hidden;
    const Real* const g = gates + 2 * hidden;
    const Real* const o = gates + 3 * hidden;
    Real* const normal = scratch;
    Real* const dc_own = scratch + hidden;  // the adjoint of c that comes through h
    std::copy_n(c, hidden, normal);
    const Real inverse = standardise(hidden, epsilon, normal);
    for (Index k = 0; k < hidden; ++k) {
        const Real tanh_c = tanh_of(gain[k] * normal[k] + shift[k]);
        h[k] = o[k] * tanh_c;
        const Real dh_k = dy[k] + dh[k];
        dz[3 * hidden + k] = dh_k * tanh_c * (o[k] * (Real{1} - o[k]));
        const Real d = dh_k * o[k] * (Real{1} - tanh_c * tanh_c);
        dgain[k] += d * normal[k];
        dshift[k] += d;
        dc_own[k] = d * gain[k];
    }
    standardise_reverse(hidden, normal, inverse, dc_own);
    for (Index k = 0; k < hidden; ++k) {
        const Real dc_k = dc[k] + dc_own[k];
        dz[k] = dc_k * g[k] * (i[k] * (Real{1} - i[k]));
        dz[hidden + k] = dc_k * c_before[k] * (f[k] * (Real{1} - f[k]));
        dz[2 * hidden + k] = dc_k * i[k] * (Real{1} - g[k] * g[k]);
        dc[k] = dc_k * f[k];
    }
}

// r, z = sigmoid(s + p), n = tanh(s + r p)
template <class Real>
void gru_gates(Index hidden, Real* __restrict gates, const Real* __restrict product) noexcept {
    for (Index k = 0; k < 2 * hidden; ++k) gates[k] = sigmoid_of(gates[k] + product[k]);
    const Real* const r = gates;
    Real* const n = gates + 2 * hidden;
    for (Index k = 0; k < hidden; ++k) n[k] = tanh_of(n[k] + r[k] * product[2 * hidden + k]);
}

// h = (1 - z) n + z h_before
template <class Real>
void gru_cell(Index hidden, Real* __restrict gates, const Real* __restrict product, Real* __restrict h) noexcept {
    gru_gates(hidden, gates, product);
    const Real* const z = gates + hidden;
    const Real* const n = gates + 2 * hidden;
    for (Index k = 0; k < hidden; ++k) h[k] = (Real{1} - z[k]) * n[k] + z[k] * h[k];
}

template <class Real>
void gru_cell_reverse(Index hidden, const Real* __restrict gates, const Real* __restrict product,
                      const Real* __restrict h_before, const Real* __restrict dy, Real* __restrict dh,
                      Real* __restrict dsums, Real* __restrict dproduct) noexcept {
    const Real* const r = gates;
    const Real* const z = gates + hidden;
    const Real* const n = gates + 2 * hidden;
    for (Index k = 0; k < hidden; ++k) {
        const Real dh_k = dh[k] + dy[k];
        const Real dn = dh_k * (Real{1} - z[k]) * (Real{1} - n[k] * n[k]);
        const Real dr = dn * product[k] * (r[k] * (Real{1} - r[k]));
        const Real dz = dh_k * (h_before[k] - n[k]) * (z[k] * (Real{1} - z[k]));
        dsums[k] = dr;
        dsums[hidden + k] = dz;
        dsums[2 * hidden + k] = dn;
        dproduct[k] = dr;
        dproduct[hidden + k] = dz;
        dproduct[2 * hidden + k] = dn * r[k];
        dh[k] = dh_k * z[k];
    }
}

template <class Real>
void relu(Index n, Real* x) noexcept {
    for (Index k = 0; k < n; ++k) x[k] = x[k] < Real{0} ? Real{0} : x[k];
}

template <class Real>
void rnn_tanh_reverse(Index n, const Real* __restrict h, const Real* __restrict dy, Real* __restrict dh,
                      Real* __restrict dsum) noexcept {
    for (Index k = 0; k < n; ++k) {
        dsum[k] = (dh[k] + dy[k]) * (Real{1} - h[k] * h[k]);
        dh[k] = Real{0};
    }
}

template <class Real>
void rnn_relu_reverse(Index n, const Real* __restrict h, const Real* __restrict dy, Real* __restrict dh,
                      Real* __restrict dsum) noexcept {
    for (Index k = 0; k < n; ++k) {
        const Real d = dh[k] + dy[k];
        dsum[k] = h[k] > Real{0} ? d : Real{0};
        dh[k] = Real{0};
    }
}

template <class Real>
Real standardise(Index n, Real epsilon, Real* x) noexcept {
    const Real size = static_cast<Real>(n), mean = sum_of(n, x) / size;
    for (Index k = 0; k < n; ++k) x[k] -= mean;
    const Real inverse = Real{1} / sqrt(dot(n, x, x) / size + epsilon);
    for (Index k = 0; k < n; ++k) x[k] *= inverse;
    return inverse;
}

// dx = (d - mean(d) - x mean(d x)) / s
template <class Real>
void standardise_reverse(Index n, const Real* __restrict x, Real inverse, Real* __restrict dx) noexcept {
    const Real size = static_cast<Real>(n), mean = sum_of(n, dx) / size, along = dot(n, dx, x) / size;
    for (Index k = 0; k < n; ++k) dx[k] = inverse * (dx[k] - mean - x[k] * along);
}

template <class Real>
void scale_shift(Index n, const Real* __restrict scale, const Real* __restrict shift, Real* __restrict x) noexcept {
    for (Index k = 0; k < n; ++k) x[k] = scale[k] * x[k] + shift[k];
}

template <class Real>
void scale_shift_reverse(Index n, const Real* __restrict scale, const Real* __restrict x, Real* __restrict d,
                         Real* __restrict dscale, Real* __restrict dshift) noexcept {
    for (Index k = 0; k < n; ++k) {
        dscale[k] += d[k] * x[k];
        dshift[k] += d[k];
        d[k] *= scale[k];
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
    template Real largest(Index, const Real*) noexcept;                                                            \
    template Real exponentials(Index, Real, Real*) noexcept;                                                       \
    template void fill_columns(Index, Index, const Real*, Real*) noexcept;                                         \
    template void sum_columns(Index, Index, const Real*, Real*) noexcept;                                          \
    template void add(Index, const Real*, Real*) noexcept;                                                         \
    template void lstm_cell(Index, Real*, const Real*, Real*, Real*) noexcept;                                     \
    template void add_product(Index, const Real*, const Real*, Real*) noexcept;                                    \
    template void lstm_gates(Index, Real*) noexcept;                                                               \
    template void normed_lstm_cell(Index, Real, Real*, const Real*, const Real*, const Real*, Real*,               \
                                   Real*) noexcept;                                                                \
    template void normed_lstm_cell_reverse(Index, Real, const Real*, const Real*, const Real*, const Real*,        \
                                           const Real*, const Real*, const Real*, Real*, Real*, Real*, Real*,      \
                                           Real*, Real*) noexcept;                                                 \
    template void lstm_cell_reverse(Index, const Real*, const Real*, const Real*, const Real*, const Real*, Real*, \
                                    Real*, Real*) noexcept;                                                        \
    template void gru_gates(Index, Real*, const Real*) noexcept;                                                   \
    template void gru_cell(Index, Real*, const Real*, Real*) noexcept;                                             \
    template void gru_cell_reverse(Index, const Real*, const Real*, const Real*, const Real*, Real*, Real*,        \
                                    Real*) noexcept;                                                               \
    template void relu(Index, Real*) noexcept;                                                                     \
    template void rnn_tanh_reverse(Index, const Real*, const Real*, Real*, Real*) noexcept;                        \
    template void rnn_relu_reverse(Index, const Real*, const Real*, Real*, Real*) noexcept;                        \
    template Real standardise(Index, Real, Real*) noexcept;                                                        \
    template void standardise_reverse(Index, const Real*, Real, Real*) noexcept;                                   \
    template void scale_shift(Index, const Real*, const Real*, Real*) noexcept;                                    \
    template void scale_shift_reverse(Index, const Real*, const Real*, Real*, Real*, Real*) noexcept;              \
    template Real multiply_add(Real, Real, Real) noexcept;
BACKSWEEP_INSTANTIATE(float)
BACKSWEEP_INSTANTIATE(double)
BACKSWEEP_INSTANTIATE(Dual<double>)
#undef BACKSWEEP_INSTANTIATE

}  // namespace backsweep::cpu
