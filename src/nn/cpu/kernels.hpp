// Loops over contiguous numbers of which the CPU layers consist, besides products. No two arguments of a call alias.
// float: own exponential in vectors, its results and those made of it within 2 units in the last place; double: the
// standard library's functions.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"
#include "backsweep/nn/dual.hpp"

namespace backsweep::cpu {

/// x := sigmoid(x). float: absolute error < 9e-8, relative error < 1.8e-7; 0 below -87.7, where it would be denormal;
/// NaN stays NaN.
template <class Real>
void sigmoid(Index n, Real* x) noexcept;

/// x := tanh(x). float: absolute error < 9e-8, relative error < 2.1e-7; +-1 from about +-9; NaN stays NaN.
template <class Real>
void tanh(Index n, Real* x) noexcept;

/// Softmax of one position: p_k := exp(x_k - m) / s, with m = max x and s = sum of exp(x_k - m).
/// log softmax is (x_k - m) - log s.
template <class Real>
struct Softmax {
    Real max;
    Real log_sum;
};
template <class Real>
Softmax<Real> softmax(Index n, const Real* x, Real* p) noexcept;

/// max x, n > 0; NaN may count for nothing.
template <class Real>
Real largest(Index n, const Real* x) noexcept;

/// x := exp(x - shift), x <= shift but for rounding; returns the sum. float: relative error < 2e-7, 0 below -87.7.
template <class Real>
Real exponentials(Index n, Real shift, Real* x) noexcept;

/// sum := sum of the columns of in, [columns][rows], `apart` elements apart.
template <class Real>
void sum_columns(Index rows, Index columns, const Real* in, Index apart, Real* sum) noexcept;

/// x comes nearer meanwhile.
template <class Real>
void fetch(Index n, const Real* x) noexcept {
    for (Index k = 0; k < n; k += 64 / static_cast<Index>(sizeof(Real))) __builtin_prefetch(x + k);
}

/// y += x.
template <class Real>
void add(Index n, const Real* x, Real* y) noexcept;

/// z: 4 hidden sums of an LSTM's gates i f g o, replaced by the gates.
template <class Real>
void lstm_gates(Index hidden, Real* z) noexcept;

/// One LSTM cell [HS97]. z: 4 hidden sums of gates i f g o, replaced by the gates; assigns c and h.
template <class Real>
void lstm_cell(Index hidden, Real* z, const Real* c_before, Real* c, Real* h) noexcept;

/// Its reverse. dh: the adjoint of h but for dy, which is added here; dc: in: adjoint of c, out: of c_before.
/// Assigns dz (4 hidden, adjoint of the sums; may be where the gates are) and h again, with the bits it had.
template <class Real>
void lstm_cell_reverse(Index hidden, const Real* gates, const Real* c_before, const Real* c, const Real* dy,
                       const Real* dh, Real* dc, Real* dz, Real* h) noexcept;

/// An LSTM's gates of sums that layer norm made, gates of gain_x x + gain_h h + shift [Ba16, eq. (20)]; 4 hidden each.
template <class Real>
void normed_lstm_gates(Index hidden, const Real* gain_x, const Real* x, const Real* gain_h, const Real* h,
                       const Real* shift, Real* gates) noexcept;

/// Of one of them: dgain += dz x, and dsum := the adjoint of the n sums that `standardise` made x of. `inverse` is what
/// it returned; dsum may be where x is.
template <class Real>
void normed_sums_reverse(Index n, const Real* gain, const Real* x, Real inverse, const Real* dz, Real* dgain,
                         Real* dsum) noexcept;

/// One LSTM cell behind its gates with layer norm of c, h = o tanh(gain LN(c) + shift) [Ba16, eq. (22)]; epsilon as in
/// `standardise`.
template <class Real>
void normed_lstm_cell(Index hidden, Real epsilon, const Real* gates, const Real* c_before, const Real* gain,
                      const Real* shift, Real* c, Real* h) noexcept;

/// Its reverse, as lstm_cell_reverse; dgain and dshift are added to, scratch holds 2 hidden.
template <class Real>
void normed_lstm_cell_reverse(Index hidden, Real epsilon, const Real* gates, const Real* c_before, const Real* c,
                              const Real* gain, const Real* shift, const Real* dy, const Real* dh, Real* dc, Real* dz,
                              Real* h, Real* dgain, Real* dshift, Real* scratch) noexcept;

/// The gates of a GRU [Cho14], reset after the recurrent product. gates: 3 hidden sums of W x, blocks r z n, replaced
/// by the gates; product: 3 hidden, U h; both with their biases.
template <class Real>
void gru_gates(Index hidden, Real* gates, const Real* product) noexcept;

/// One GRU cell: its gates; assigns h.
template <class Real>
void gru_cell(Index hidden, Real* gates, const Real* product, const Real* h_before, Real* h) noexcept;

/// Its reverse. product: its hidden numbers of block n. dh: in: adjoint of h but for dy, which is added here; out: of
/// h_before, but for what comes through the product. Assigns dsums and dproduct (3 hidden each), which may be where the
/// gates are and, with their block n, the product.
template <class Real>
void gru_cell_reverse(Index hidden, const Real* gates, const Real* product, const Real* h_before, const Real* dy,
                      Real* dh, Real* dsums, Real* dproduct) noexcept;

/// x := max(x, 0); NaN stays NaN.
template <class Real>
void relu(Index n, Real* x) noexcept;

/// Reverse of h = tanh(sum), or relu(sum), of which it needs only h: dsum := (dh + dy) act'(sum), dh := 0.
template <class Real>
void rnn_tanh_reverse(Index n, const Real* h, const Real* dy, Real* dh, Real* dsum) noexcept;
template <class Real>
void rnn_relu_reverse(Index n, const Real* h, const Real* dy, Real* dh, Real* dsum) noexcept;

/// x := (x - mean) / sqrt(variance + epsilon), the variance biased [Ba16]; returns 1 / sqrt(variance + epsilon).
template <class Real>
Real standardise(Index n, Real epsilon, Real* x) noexcept;

/// Its reverse: dx: in: adjoint of what it made, x; out: of what it was given. `inverse` is what it returned.
template <class Real>
void standardise_reverse(Index n, const Real* x, Real inverse, Real* dx) noexcept;

/// x := scale x + shift, feature by feature.
template <class Real>
void scale_shift(Index n, const Real* scale, const Real* shift, Real* x) noexcept;

/// Its reverse, x as it was given: dscale += d x, dshift += d;  d: in: adjoint of what it made, out: of x.
template <class Real>
void scale_shift_reverse(Index n, const Real* scale, const Real* x, Real* d, Real* dscale, Real* dshift) noexcept;

/// a * b + c as this library compiles it: two roundings, whatever the processor offers.
template <class Real>
Real multiply_add(Real a, Real b, Real c) noexcept;

}  // namespace backsweep::cpu
