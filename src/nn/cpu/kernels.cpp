// Pointwise loops of the CPU layers, compiled for every kind of vectors with -O3 -fno-trapping-math and without
// contraction: g++ and clang make vector loops of them, and a vector element and a scalar tail have the same bits. The
// processor's own kind is taken when the program runs.
// SPDX-License-Identifier: MIT
#include "nn/cpu/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/kernels.cpp"
#include "nn/cpu/targets.hpp"

#ifndef BACKSWEEP_KERNELS
#define BACKSWEEP_KERNELS(of)                                                                                          \
    of(sigmoid) of(tanh) of(softmax) of(largest) of(exponentials) of(sum_columns) of(add) of(lstm_gates) of(lstm_cell) \
        of(lstm_cell_reverse) of(normed_lstm_gates) of(normed_sums_reverse) of(normed_lstm_cell)                       \
            of(normed_lstm_cell_reverse) of(gru_gates) of(gru_cell) of(gru_cell_reverse) of(relu) of(rnn_tanh_reverse) \
                of(rnn_relu_reverse) of(standardise) of(standardise_reverse) of(scale_shift) of(scale_shift_reverse)   \
                    of(multiply_add)

namespace backsweep::cpu {

/// The loops of one kind of vectors.
template <class Real>
struct Kernels {
#define BACKSWEEP_MEMBER(name) decltype(&cpu::name<Real>) name;
    BACKSWEEP_KERNELS(BACKSWEEP_MEMBER)
#undef BACKSWEEP_MEMBER
};

}  // namespace backsweep::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backsweep::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using std::log, std::sqrt;  // Dual has its own

/// double and dual numbers are taken one by one, float by vectors; both are tags of what load gives.
template <class Real>
struct Single {};

template <class Real>
inline Real load(Single<Real>, const Real* from) noexcept {
    return *from;
}
template <class Real>
inline void store(Single<Real>, Real value, Real* to) noexcept {
    *to = value;
}
template <class Real>
inline Real all_of(Single<Real>, Real value) noexcept {
    return value;
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) noexcept {
    return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, float* to) noexcept {
    hn::StoreU(value, d, to);
}
template <class D>
HWY_INLINE hn::Vec<D> all_of(D d, float value) noexcept {
    return hn::Set(d, value);
}

/// f(tag, k) for all k < n; a vector has those from k on. The numbers of the tail have the bits that a vector's have.
template <class Real, class F>
HWY_INLINE void each(Index n, F f) noexcept {
    Index k = 0;
    if constexpr (std::is_same_v<Real, float>) {
        const hn::ScalableTag<float> d;
        constexpr auto lanes = static_cast<Index>(hn::MaxLanes(d));
        for (; k + lanes <= n; k += lanes) f(d, k);
        const hn::CappedTag<float, 1> one;
        for (; k < n; ++k) f(one, k);
    } else {
        for (; k < n; ++k) f(Single<Real>{}, k);
    }
}

/// exp(scale x) = power * (1 + rest) for x <= 0, scale 1 or 2: power = 2^n with n = round(scale x / log 2), rest =
/// exp(scale r) - 1 for the remainder r, as t + t^2 q(t) with t = scale r in [-log(2)/2, log(2)/2]. q is a minimax fit
/// of degree 4; the fit errs by 3.7e-9 of exp(t). Below scale x = -87.7 (where all would be denormal) power is 0. NaN
/// gives rest = NaN.
template <class V>
struct Exponential {
    V power, rest;
};

template <int scale, class D>
HWY_INLINE Exponential<hn::Vec<D>> exponential(D d, hn::Vec<D> x) noexcept {
    const hn::RebindToSigned<D> integers;
    const auto c = [d](float value) HWY_ATTR { return hn::Set(d, value); };
    constexpr auto by = static_cast<float>(scale);  // a power of two: moves no rounding
    constexpr float log2_high = 0.693359375F / by, log2_low = -2.12194440e-4F / by;  // n * log2_high is exact [CW80]
    // Adding it rounds to an integer, which stands in the low bits: 1.5 * 2^23.
    const auto rounder = c(12582912.0F);
    const auto least = c(-88.0F / by);
#if HWY_TARGET == HWY_SCALAR
    const auto y = hn::IfThenElse(x < least, least, x);  // Max of one number passes NaN by
#else
    const auto y = hn::Max(least, x);  // the second operand where one is NaN
#endif
    const auto shifted = hn::MulAdd(y, c(1.44269504F * by), rounder);
    const auto n = shifted - rounder;
    const auto r = hn::MulAdd(n, c(-log2_low), hn::MulAdd(n, c(-log2_high), y));
    const auto square = r * r;
    const auto low = hn::MulAdd(c(0.166665211F * by * by * by), r, c(0.49999994F * by * by));
    const auto high = hn::MulAdd(c(8.36874545e-3F * by * by * by * by * by), r, c(4.1668389e-2F * by * by * by * by));
    const auto q = hn::MulAdd(hn::MulAdd(c(1.38145383e-3F * by * by * by * by * by * by), square, high), square, low);
    const auto bits = hn::ShiftLeft<23>(hn::BitCast(integers, shifted) + hn::Set(integers, 127));
    return {hn::BitCast(d, bits), hn::MulAdd(q, square, scale == 1 ? r : r + r)};
}

/// exp(x) for x <= 0, relative error < 2e-7; exactly 0 below -87.7.
template <class D>
HWY_INLINE hn::Vec<D> exp_not_positive(D d, hn::Vec<D> x) noexcept {
    const auto e = exponential<1>(d, x);
    return hn::MulAdd(e.power, e.rest, e.power);
}
inline double exp_not_positive(Single<double>, double x) noexcept {
    return std::exp(x);
}

/// - |x|.
template <class D>
HWY_INLINE hn::Vec<D> minus_abs(D d, hn::Vec<D> x) noexcept {
    return hn::Or(x, hn::SignBit(d));
}

/// With e = exp(-|x|): t = e / (1 + e) or 1 - t. t makes good for what 1 + e lost: t' = e / (1 + e + lost), and
/// 1 - t is 1 / (1 + e).
template <class D>
HWY_INLINE hn::Vec<D> sigmoid_of(D d, hn::Vec<D> x) noexcept {
    const auto one = hn::Set(d, 1.0F), e = exp_not_positive(d, minus_abs(d, x));
    const auto sum = one + e, lost = e - (sum - one), t = e / sum, other = one - t;
    return hn::IfNegativeThenElse(x, hn::NegMulAdd(t * lost, other, t), other);
}
inline double sigmoid_of(Single<double>, double x) noexcept {
    const double e = std::exp(-std::fabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

/// Below 0.625 x + x^3 p(x^2), p a minimax fit of degree 4 that errs by 7.5e-9 of tanh x; else 1 - 2 e / (1 + e) with
/// e = exp(-2 |x|), which is good to the last place near 1, where the reverse forms 1 - tanh^2.
template <class D>
HWY_INLINE hn::Vec<D> tanh_of(D d, hn::Vec<D> x) noexcept {
    const auto c = [d](float value) HWY_ATTR { return hn::Set(d, value); };
    const auto one = c(1.0F), y = minus_abs(d, x), square = x * x;
    auto p = hn::MulAdd(c(-5.515155e-3F), square, c(2.046941e-2F));
    p = hn::MulAdd(p, square, c(-5.368802e-2F));
    p = hn::MulAdd(p, square, c(0.1333083F));
    p = hn::MulAdd(p, square, c(-0.3333326F));
    const auto near_zero = hn::MulAdd(square * x, p, x);
    const auto ex = exponential<2>(d, y);
    const auto e = hn::MulAdd(ex.power, ex.rest, ex.power);
    const auto rest = one - (e + e) / (one + e);
    // The sign last: of -0 too.
    return hn::Or(hn::IfNegativeThenElse(y + c(0.625F), rest, near_zero), hn::And(hn::SignBit(d), x));
}
inline double tanh_of(Single<double>, double x) noexcept {
    return std::tanh(x);
}

// Of dual numbers: the functions above, and their derivatives out of what they give.
template <class Real>
inline Dual<Real> exp_not_positive(Single<Dual<Real>>, Dual<Real> x) noexcept {
    const Real e = exp_not_positive(Single<Real>{}, x.value);
    return {e, e * x.tangent};
}
template <class Real>
inline Dual<Real> sigmoid_of(Single<Dual<Real>>, Dual<Real> x) noexcept {
    const Real s = sigmoid_of(Single<Real>{}, x.value);
    return {s, s * (Real{1} - s) * x.tangent};
}
template <class Real>
inline Dual<Real> tanh_of(Single<Dual<Real>>, Dual<Real> x) noexcept {
    const Real t = tanh_of(Single<Real>{}, x.value);
    return {t, (Real{1} - t * t) * x.tangent};
}

/// Partial maxima and sums that compilers keep in vector registers; a fixed order.
constexpr Index lanes = 8;

/// Sum of f(k) for all k < n, in four times as many partial sums, for each waits for its last addition.
template <class Real, class F>
HWY_INLINE Real sum_by(Index n, F f) noexcept {
    Real part[4 * lanes] = {};
    Index k = 0;
    for (; k + 4 * lanes <= n; k += 4 * lanes)
        for (Index j = 0; j < 4 * lanes; ++j) part[j] += f(k + j);
    for (; k + lanes <= n; k += lanes)
        for (Index j = 0; j < lanes; ++j) part[j] += f(k + j);
    for (; k < n; ++k) part[0] += f(k);
    for (Index half = 2 * lanes; half > 0; half /= 2)
        for (Index j = 0; j < half; ++j) part[j] += part[j + half];
    return part[0];
}

template <class Real>
Real sum_of(Index n, const Real* x) noexcept {
    return sum_by<Real>(n, [=](Index k) HWY_ATTR { return x[k]; });
}

template <class Real>
Real dot(Index n, const Real* x, const Real* y) noexcept {
    return sum_by<Real>(n, [=](Index k) HWY_ATTR { return x[k] * y[k]; });
}

template <class Real>
void sigmoid(Index n, Real* x) noexcept {
    each<Real>(n, [x](auto d, Index k) HWY_ATTR { store(d, sigmoid_of(d, load(d, x + k)), x + k); });
}

template <class Real>
void tanh(Index n, Real* x) noexcept {
    each<Real>(n, [x](auto d, Index k) HWY_ATTR { store(d, tanh_of(d, load(d, x + k)), x + k); });
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
    each<Real>(n, [x, shift](auto d, Index k)
                      HWY_ATTR { store(d, exp_not_positive(d, load(d, x + k) - all_of(d, shift)), x + k); });
    return sum_of(n, x);
}

template <class Real>
Softmax<Real> softmax(Index n, const Real* __restrict x, Real* __restrict p) noexcept {
    const Real max = largest(n, x);
    each<Real>(n, [x, p, max](auto d, Index k)
                      HWY_ATTR { store(d, exp_not_positive(d, load(d, x + k) - all_of(d, max)), p + k); });
    const Real sum = sum_of(n, p);
    const Real inverse = Real{1} / sum;
    for (Index k = 0; k < n; ++k) p[k] *= inverse;
    return {max, log(sum)};
}

template <class Real>
void sum_columns(Index rows, Index columns, const Real* __restrict in, Index apart, Real* __restrict sum) noexcept {
    for (Index k = 0; k < rows; ++k) sum[k] = Real{0};
    for (Index j = 0; j < columns; ++j, in += apart)
        for (Index k = 0; k < rows; ++k) sum[k] += in[k];
}

template <class Real>
void add(Index n, const Real* __restrict x, Real* __restrict y) noexcept {
    for (Index k = 0; k < n; ++k) y[k] += x[k];
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
    each<Real>(hidden, [=](auto d, Index k) HWY_ATTR {
        Real *const f = z + hidden, *const g = f + hidden, *const o = g + hidden;
        const auto i_k = sigmoid_of(d, load(d, z + k)), f_k = sigmoid_of(d, load(d, f + k)),
                   g_k = tanh_of(d, load(d, g + k)), o_k = sigmoid_of(d, load(d, o + k)),
                   c_k = f_k * load(d, c_before + k) + i_k * g_k;
        store(d, i_k, z + k);
        store(d, f_k, f + k);
        store(d, g_k, g + k);
        store(d, o_k, o + k);
        store(d, c_k, c + k);
        store(d, o_k * tanh_of(d, c_k), h + k);
    });
}

template <class Real>
void lstm_cell_reverse(Index hidden, const Real* gates, const Real* __restrict c_before, const Real* __restrict c,
                       const Real* __restrict dy, const Real* __restrict dh, Real* __restrict dc, Real* dz,
                       Real* __restrict h) noexcept {
    each<Real>(hidden, [=](auto d, Index k) HWY_ATTR {
        const auto one = all_of(d, Real{1});
        const auto i = load(d, gates + k), f = load(d, gates + hidden + k), g = load(d, gates + 2 * hidden + k),
                   o = load(d, gates + 3 * hidden + k), tanh_c = tanh_of(d, load(d, c + k));
        store(d, o * tanh_c, h + k);
        const auto dh_k = load(d, dy + k) + load(d, dh + k);
        const auto dc_k = load(d, dc + k) + dh_k * o * (one - tanh_c * tanh_c);
        store(d, dc_k * g * (i * (one - i)), dz + k);
        store(d, dc_k * load(d, c_before + k) * (f * (one - f)), dz + hidden + k);
        store(d, dc_k * i * (one - g * g), dz + 2 * hidden + k);
        store(d, dh_k * tanh_c * (o * (one - o)), dz + 3 * hidden + k);
        store(d, dc_k * f, dc + k);
    });
}

template <class Real>
void normed_lstm_gates(Index hidden, const Real* __restrict gain_x, const Real* __restrict x,
                       const Real* __restrict gain_h, const Real* __restrict h, const Real* __restrict shift,
                       Real* __restrict gates) noexcept {
    each<Real>(hidden, [=](auto d, Index k) HWY_ATTR {
        const auto sum = [=](Index n) HWY_ATTR {
            return load(d, shift + n) + load(d, gain_x + n) * load(d, x + n) + load(d, gain_h + n) * load(d, h + n);
        };
        store(d, sigmoid_of(d, sum(k)), gates + k);
        store(d, sigmoid_of(d, sum(hidden + k)), gates + hidden + k);
        store(d, tanh_of(d, sum(2 * hidden + k)), gates + 2 * hidden + k);
        store(d, sigmoid_of(d, sum(3 * hidden + k)), gates + 3 * hidden + k);
    });
}

template <class Real>
void normed_sums_reverse(Index n, const Real* __restrict gain, const Real* x, Real inverse, const Real* __restrict dz,
                         Real* __restrict dgain, Real* dsum) noexcept {
    const Real size = static_cast<Real>(n);
    const Real mean = sum_by<Real>(n, [=](Index k) HWY_ATTR { return dz[k] * gain[k]; }) / size;
    const Real along = sum_by<Real>(n, [=](Index k) HWY_ATTR { return dz[k] * gain[k] * x[k]; }) / size;
    each<Real>(n, [=](auto d, Index k) HWY_ATTR {
        const auto x_k = load(d, x + k), dz_k = load(d, dz + k);
        store(d, load(d, dgain + k) + dz_k * x_k, dgain + k);
        store(d, all_of(d, inverse) * (dz_k * load(d, gain + k) - all_of(d, mean) - x_k * all_of(d, along)), dsum + k);
    });
}

template <class Real>
void normed_lstm_cell(Index hidden, Real epsilon, const Real* __restrict gates, const Real* __restrict c_before,
                      const Real* __restrict gain, const Real* __restrict shift, Real* __restrict c,
                      Real* __restrict h) noexcept {
    const Real* const i = gates;
    const Real* const f = gates + hidden;
    const Real* const g = gates + 2 * hidden;
    const Real* const o = gates + 3 * hidden;
    for (Index k = 0; k < hidden; ++k) c[k] = f[k] * c_before[k] + i[k] * g[k];
    std::copy_n(c, hidden, h);
    standardise(hidden, epsilon, h);
    each<Real>(hidden, [=](auto d, Index k) HWY_ATTR {
        store(d, load(d, o + k) * tanh_of(d, load(d, gain + k) * load(d, h + k) + load(d, shift + k)), h + k);
    });
}

template <class Real>
void normed_lstm_cell_reverse(Index hidden, Real epsilon, const Real* __restrict gates, const Real* __restrict c_before,
                              const Real* __restrict c, const Real* __restrict gain, const Real* __restrict shift,
                              const Real* __restrict dy, const Real* __restrict dh, Real* __restrict dc,
                              Real* __restrict dz, Real* __restrict h, Real* __restrict dgain, Real* __restrict dshift,
                              Real* __restrict scratch) noexcept {
    const Real* const i = gates;
    const Real* const f = gates + hidden;
    const Real* const g = gates + 2 * hidden;
    const Real* const o = gates + 3 * hidden;
    Real* const normal = scratch;
    Real* const dc_own = scratch + hidden;  // the adjoint of c that comes through h
    std::copy_n(c, hidden, normal);
    const Real inverse = standardise(hidden, epsilon, normal);
    each<Real>(hidden, [=](auto d, Index k) HWY_ATTR {
        store(d, tanh_of(d, load(d, gain + k) * load(d, normal + k) + load(d, shift + k)), h + k);
    });
    for (Index k = 0; k < hidden; ++k) {
        const Real tanh_c = h[k];
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
    each<Real>(2 * hidden, [=](auto d, Index k) HWY_ATTR {
        store(d, sigmoid_of(d, load(d, gates + k) + load(d, product + k)), gates + k);
    });
    Real* const n = gates + 2 * hidden;
    each<Real>(hidden, [=](auto d, Index k) HWY_ATTR {
        store(d, tanh_of(d, load(d, n + k) + load(d, gates + k) * load(d, product + 2 * hidden + k)), n + k);
    });
}

// h = (1 - z) n + z h_before
template <class Real>
void gru_cell(Index hidden, Real* __restrict gates, const Real* __restrict product, const Real* __restrict h_before,
              Real* __restrict h) noexcept {
    gru_gates(hidden, gates, product);
    const Real* const z = gates + hidden;
    const Real* const n = gates + 2 * hidden;
    for (Index k = 0; k < hidden; ++k) h[k] = (Real{1} - z[k]) * n[k] + z[k] * h_before[k];
}

template <class Real>
void gru_cell_reverse(Index hidden, const Real* gates, const Real* product, const Real* __restrict h_before,
                      const Real* __restrict dy, Real* __restrict dh, Real* dsums, Real* dproduct) noexcept {
    each<Real>(hidden, [=](auto d, Index k) HWY_ATTR {
        const auto one = all_of(d, Real{1});
        const auto r = load(d, gates + k), z = load(d, gates + hidden + k), n = load(d, gates + 2 * hidden + k),
                   dh_k = load(d, dh + k) + load(d, dy + k);
        const auto dn = dh_k * (one - z) * (one - n * n);
        const auto dr = dn * load(d, product + k) * (r * (one - r));
        const auto dz = dh_k * (load(d, h_before + k) - n) * (z * (one - z));
        store(d, dr, dsums + k);
        store(d, dz, dsums + hidden + k);
        store(d, dn, dsums + 2 * hidden + k);
        store(d, dr, dproduct + k);
        store(d, dz, dproduct + hidden + k);
        store(d, dn * r, dproduct + 2 * hidden + k);
        store(d, dh_k * z, dh + k);
    });
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
    const Real squares = sum_by<Real>(n, [=](Index k) HWY_ATTR { return (x[k] - mean) * (x[k] - mean); });
    const Real inverse = Real{1} / sqrt(squares / size + epsilon);
    for (Index k = 0; k < n; ++k) x[k] = (x[k] - mean) * inverse;
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

template <class Real>
constexpr Kernels<Real> all{
#define BACKSWEEP_VALUE(name) HWY_NAMESPACE::name<Real>,
    BACKSWEEP_KERNELS(BACKSWEEP_VALUE)
#undef BACKSWEEP_VALUE
};

}  // namespace

const Kernels<float>& of_float() {
    return all<float>;
}
const Kernels<double>& of_double() {
    return all<double>;
}
const Kernels<Dual<double>>& of_dual() {
    return all<Dual<double>>;
}

}  // namespace HWY_NAMESPACE
}  // namespace backsweep::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backsweep::cpu {
namespace {

HWY_EXPORT(of_float);
HWY_EXPORT(of_double);

template <class Real>
const Kernels<Real>& kernels() noexcept {
    if constexpr (std::is_same_v<Real, float>)
        return HWY_DYNAMIC_DISPATCH(of_float)();
    else if constexpr (std::is_same_v<Real, double>)
        return HWY_DYNAMIC_DISPATCH(of_double)();
    else
        return HWY_STATIC_DISPATCH(of_dual)();
}

}  // namespace

template <class Real>
void sigmoid(Index n, Real* x) noexcept {
    return kernels<Real>().sigmoid(n, x);
}
template <class Real>
void tanh(Index n, Real* x) noexcept {
    return kernels<Real>().tanh(n, x);
}
template <class Real>
Softmax<Real> softmax(Index n, const Real* x, Real* p) noexcept {
    return kernels<Real>().softmax(n, x, p);
}
template <class Real>
Real largest(Index n, const Real* x) noexcept {
    return kernels<Real>().largest(n, x);
}
template <class Real>
Real exponentials(Index n, Real shift, Real* x) noexcept {
    return kernels<Real>().exponentials(n, shift, x);
}
template <class Real>
void sum_columns(Index rows, Index columns, const Real* in, Index apart, Real* sum) noexcept {
    return kernels<Real>().sum_columns(rows, columns, in, apart, sum);
}
template <class Real>
void add(Index n, const Real* x, Real* y) noexcept {
    return kernels<Real>().add(n, x, y);
}
template <class Real>
void lstm_gates(Index hidden, Real* z) noexcept {
    return kernels<Real>().lstm_gates(hidden, z);
}
template <class Real>
void lstm_cell(Index hidden, Real* z, const Real* c_before, Real* c, Real* h) noexcept {
    return kernels<Real>().lstm_cell(hidden, z, c_before, c, h);
}
template <class Real>
void lstm_cell_reverse(Index hidden, const Real* gates, const Real* c_before, const Real* c, const Real* dy,
                       const Real* dh, Real* dc, Real* dz, Real* h) noexcept {
    return kernels<Real>().lstm_cell_reverse(hidden, gates, c_before, c, dy, dh, dc, dz, h);
}
template <class Real>
void normed_lstm_gates(Index hidden, const Real* gain_x, const Real* x, const Real* gain_h, const Real* h,
                       const Real* shift, Real* gates) noexcept {
    return kernels<Real>().normed_lstm_gates(hidden, gain_x, x, gain_h, h, shift, gates);
}
template <class Real>
void normed_sums_reverse(Index n, const Real* gain, const Real* x, Real inverse, const Real* dz, Real* dgain,
                         Real* dsum) noexcept {
    return kernels<Real>().normed_sums_reverse(n, gain, x, inverse, dz, dgain, dsum);
}
template <class Real>
void normed_lstm_cell(Index hidden, Real epsilon, const Real* gates, const Real* c_before, const Real* gain,
                      const Real* shift, Real* c, Real* h) noexcept {
    return kernels<Real>().normed_lstm_cell(hidden, epsilon, gates, c_before, gain, shift, c, h);
}
template <class Real>
void normed_lstm_cell_reverse(Index hidden, Real epsilon, const Real* gates, const Real* c_before, const Real* c,
                              const Real* gain, const Real* shift, const Real* dy, const Real* dh, Real* dc, Real* dz,
                              Real* h, Real* dgain, Real* dshift, Real* scratch) noexcept {
    return kernels<Real>().normed_lstm_cell_reverse(hidden, epsilon, gates, c_before, c, gain, shift, dy, dh, dc, dz, h,
                                                    dgain, dshift, scratch);
}
template <class Real>
void gru_gates(Index hidden, Real* gates, const Real* product) noexcept {
    return kernels<Real>().gru_gates(hidden, gates, product);
}
template <class Real>
void gru_cell(Index hidden, Real* gates, const Real* product, const Real* h_before, Real* h) noexcept {
    return kernels<Real>().gru_cell(hidden, gates, product, h_before, h);
}
template <class Real>
void gru_cell_reverse(Index hidden, const Real* gates, const Real* product, const Real* h_before, const Real* dy,
                      Real* dh, Real* dsums, Real* dproduct) noexcept {
    return kernels<Real>().gru_cell_reverse(hidden, gates, product, h_before, dy, dh, dsums, dproduct);
}
template <class Real>
void relu(Index n, Real* x) noexcept {
    return kernels<Real>().relu(n, x);
}
template <class Real>
void rnn_tanh_reverse(Index n, const Real* h, const Real* dy, Real* dh, Real* dsum) noexcept {
    return kernels<Real>().rnn_tanh_reverse(n, h, dy, dh, dsum);
}
template <class Real>
void rnn_relu_reverse(Index n, const Real* h, const Real* dy, Real* dh, Real* dsum) noexcept {
    return kernels<Real>().rnn_relu_reverse(n, h, dy, dh, dsum);
}
template <class Real>
Real standardise(Index n, Real epsilon, Real* x) noexcept {
    return kernels<Real>().standardise(n, epsilon, x);
}
template <class Real>
void standardise_reverse(Index n, const Real* x, Real inverse, Real* dx) noexcept {
    return kernels<Real>().standardise_reverse(n, x, inverse, dx);
}
template <class Real>
void scale_shift(Index n, const Real* scale, const Real* shift, Real* x) noexcept {
    return kernels<Real>().scale_shift(n, scale, shift, x);
}
template <class Real>
void scale_shift_reverse(Index n, const Real* scale, const Real* x, Real* d, Real* dscale, Real* dshift) noexcept {
    return kernels<Real>().scale_shift_reverse(n, scale, x, d, dscale, dshift);
}
template <class Real>
Real multiply_add(Real a, Real b, Real c) noexcept {
    return kernels<Real>().multiply_add(a, b, c);
}

#define BACKSWEEP_INSTANTIATE(Real)                                                                                  \
    template void sigmoid(Index, Real*) noexcept;                                                                    \
    template void tanh(Index, Real*) noexcept;                                                                       \
    template Softmax<Real> softmax(Index, const Real*, Real*) noexcept;                                              \
    template Real largest(Index, const Real*) noexcept;                                                              \
    template Real exponentials(Index, Real, Real*) noexcept;                                                         \
    template void sum_columns(Index, Index, const Real*, Index, Real*) noexcept;                                     \
    template void add(Index, const Real*, Real*) noexcept;                                                           \
    template void lstm_cell(Index, Real*, const Real*, Real*, Real*) noexcept;                                       \
    template void lstm_gates(Index, Real*) noexcept;                                                                 \
    template void normed_lstm_gates(Index, const Real*, const Real*, const Real*, const Real*, const Real*,          \
                                    Real*) noexcept;                                                                 \
    template void normed_sums_reverse(Index, const Real*, const Real*, Real, const Real*, Real*, Real*) noexcept;    \
    template void normed_lstm_cell(Index, Real, const Real*, const Real*, const Real*, const Real*, Real*,           \
                                   Real*) noexcept;                                                                  \
    template void normed_lstm_cell_reverse(Index, Real, const Real*, const Real*, const Real*, const Real*,          \
                                           const Real*, const Real*, const Real*, Real*, Real*, Real*, Real*, Real*, \
                                           Real*) noexcept;                                                          \
    template void lstm_cell_reverse(Index, const Real*, const Real*, const Real*, const Real*, const Real*, Real*,   \
                                    Real*, Real*) noexcept;                                                          \
    template void gru_gates(Index, Real*, const Real*) noexcept;                                                     \
    template void gru_cell(Index, Real*, const Real*, const Real*, Real*) noexcept;                                  \
    template void gru_cell_reverse(Index, const Real*, const Real*, const Real*, const Real*, Real*, Real*,          \
                                   Real*) noexcept;                                                                  \
    template void relu(Index, Real*) noexcept;                                                                       \
    template void rnn_tanh_reverse(Index, const Real*, const Real*, Real*, Real*) noexcept;                          \
    template void rnn_relu_reverse(Index, const Real*, const Real*, Real*, Real*) noexcept;                          \
    template Real standardise(Index, Real, Real*) noexcept;                                                          \
    template void standardise_reverse(Index, const Real*, Real, Real*) noexcept;                                     \
    template void scale_shift(Index, const Real*, const Real*, Real*) noexcept;                                      \
    template void scale_shift_reverse(Index, const Real*, const Real*, Real*, Real*, Real*) noexcept;                \
    template Real multiply_add(Real, Real, Real) noexcept;
BACKSWEEP_INSTANTIATE(float)
BACKSWEEP_INSTANTIATE(double)
BACKSWEEP_INSTANTIATE(Dual<double>)
#undef BACKSWEEP_INSTANTIATE

}  // namespace backsweep::cpu
#endif
