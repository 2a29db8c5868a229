// Attention by plain loops: one query at a time, all its logits in a row; and rotary positions.
// SPDX-License-Identifier: MIT
#include "nn/reference/attend.hpp"

#include "backsweep/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace backsweep::reference {
namespace {

using std::exp, std::log;  // Dual has its own

template <class Real>
bool sees(const Attend<Real>& a, Index i, Index j) {
    if (a.hidden && a.hidden[j]) return false;
    if (!a.causal) return true;
    const Index d = a.offset + i - j;
    return d >= 0 && (a.window == 0 || d < a.window);
}

template <class Real>
std::vector<Index> keys_of(const Attend<Real>& a, Index i) {
    std::vector<Index> keys;
    for (Index j = 0; j < a.keys; ++j)
        if (sees(a, i, j)) keys.push_back(j);
    return keys;
}

template <class Real>
Real logit(const Attend<Real>& a, Index i, Index j, const Real* q, const Real* k) {
    const Index d = a.offset + i - j;
    Real sum = 0;
    for (Index f = 0; f < a.width; ++f) sum += (a.r ? q[f] + a.u[f] : q[f]) * k[f];
    if (a.r)
        for (Index f = 0; f < a.width; ++f) sum += (q[f] + a.w[f]) * a.r[d * a.r_stride + f];
    return a.scale * sum - a.slope * static_cast<Real>(d < 0 ? -d : d);
}

/// Softmax of the logits of the keys of query i; returns log sum exp.
template <class Real>
Real softmax(const Attend<Real>& a, Index i, const std::vector<Index>& keys, Rows<const Real> q, Rows<const Real> k,
             std::vector<Real>& p) {
    p.clear();
    if (keys.empty()) return -std::numeric_limits<Real>::infinity();
    for (const Index j : keys) p.push_back(logit(a, i, j, q[i], k[j]));
    const Real max = *std::max_element(p.begin(), p.end());
    Real sum = 0;
    for (Real& x : p) sum += x = exp(x - max);
    for (Real& x : p) x /= sum;
    return max + log(sum);
}

template <class Real>
Real factor(const Attend<Real>& a, Index i, Index j) {
    const AttendDropout& drop = a.dropout;
    if (drop.rate == 0.0) return 1;
    const auto t = static_cast<std::uint32_t>(drop.step + i), s = static_cast<std::uint32_t>(drop.step - a.offset + j);
    const std::uint32_t word =
        Random(drop.seed, drop.stream).word(t, (static_cast<std::uint64_t>(drop.column) << 32) + s);
    return word * 0x1.0p-32 >= drop.rate ? static_cast<Real>(1.0 / (1.0 - drop.rate)) : Real{0};
}

}  // namespace

template <class Real>
void attend(const Attend<Real>& a, Rows<const Real> q, Rows<const Real> k, Rows<const Real> v, Rows<Real> o,
            Real* lse) {
    std::vector<Real> p;
    for (Index i = 0; i < a.queries; ++i) {
        const std::vector<Index> keys = keys_of(a, i);
        lse[i] = softmax(a, i, keys, q, k, p);
        std::fill_n(o[i], a.value_width, Real{0});
        for (std::size_t n = 0; n < keys.size(); ++n)
            for (Index f = 0; f < a.value_width; ++f) o[i][f] += p[n] * factor(a, i, keys[n]) * v[keys[n]][f];
    }
}

// p = softmax(s), o = sum of m p v:  dp = m (do.v),  ds = p (dp - sum of p dp)
template <class Real>
void attend_reverse(const Attend<Real>& a, const AttendReverse<Real>& call) {
    std::vector<Real> p, dp;
    for (Index i = 0; i < a.queries; ++i) {
        const std::vector<Index> keys = keys_of(a, i);
        softmax(a, i, keys, call.q, call.k, p);
        dp.assign(keys.size(), 0);
        Real mean = 0;
        for (std::size_t n = 0; n < keys.size(); ++n) {
            for (Index f = 0; f < a.value_width; ++f) dp[n] += call.d_o[i][f] * call.v[keys[n]][f];
            dp[n] *= factor(a, i, keys[n]);
            mean += p[n] * dp[n];
        }
        std::fill_n(call.dq[i], a.width, Real{0});
        for (std::size_t n = 0; n < keys.size(); ++n) {
            const Index j = keys[n], d = a.offset + i - j;
            const Real ds = a.scale * (p[n] * (dp[n] - mean)), mixed = p[n] * factor(a, i, j);
            for (Index f = 0; f < a.width; ++f) {
                call.dq[i][f] += ds * call.k[j][f];
                if (j >= call.first_key) call.dk[j][f] += ds * (a.r ? call.q[i][f] + a.u[f] : call.q[i][f]);
                if (!a.r) continue;
                const Real r = a.r[d * a.r_stride + f];
                call.dq[i][f] += ds * r;
                call.dr[d][f] += ds * (call.q[i][f] + a.w[f]);
                call.du[f] += ds * call.k[j][f];
                call.dw[f] += ds * r;
            }
            if (j >= call.first_key)
                for (Index f = 0; f < a.value_width; ++f) call.dv[j][f] += mixed * call.d_o[i][f];
        }
    }
}

template <class Real>
void rotate(const Rotary& rotary, Turn turn, Index first, Index steps, Index sequences, Index heads, Index width,
            Rows<Real> x) {
    for (Index t = 0; t < steps; ++t)
        for (Index b = 0; b < sequences; ++b)
            for (Index h = 0; h < heads; ++h)
                for (Index k = 0; k < rotary.dim / 2; ++k) {
                    const bool half = rotary.style == Rotary::Style::half;
                    Real& one = x[t * sequences + b][h * width + (half ? k : 2 * k)];
                    Real& other = x[t * sequences + b][h * width + (half ? k + rotary.dim / 2 : 2 * k + 1)];
                    const double angle = static_cast<double>(first + t) *
                                         std::pow(rotary.base, -2.0 * static_cast<double>(k) / static_cast<double>(rotary.dim));
                    const Real c = static_cast<Real>(std::cos(angle));
                    const Real s = static_cast<Real>(turn == Turn::forth ? std::sin(angle) : -std::sin(angle));
                    const Real before = one;
                    one = before * c - other * s;
                    other = other * c + before * s;
                }
}

template void attend(const Attend<float>&, Rows<const float>, Rows<const float>, Rows<const float>, Rows<float>, float*);
template void attend(const Attend<double>&, Rows<const double>, Rows<const double>, Rows<const double>, Rows<double>,
                     double*);
template void attend(const Attend<Dual<double>>&, Rows<const Dual<double>>, Rows<const Dual<double>>,
                     Rows<const Dual<double>>, Rows<Dual<double>>, Dual<double>*);
template void attend_reverse(const Attend<float>&, const AttendReverse<float>&);
template void attend_reverse(const Attend<double>&, const AttendReverse<double>&);
template void attend_reverse(const Attend<Dual<double>>&, const AttendReverse<Dual<double>>&);
template void rotate(const Rotary&, Turn, Index, Index, Index, Index, Index, Rows<float>);
template void rotate(const Rotary&, Turn, Index, Index, Index, Index, Index, Rows<double>);
template void rotate(const Rotary&, Turn, Index, Index, Index, Index, Index, Rows<Dual<double>>);

}  // namespace backsweep::reference
