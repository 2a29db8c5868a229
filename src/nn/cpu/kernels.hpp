// Loops over contiguous numbers of which the CPU layers consist, besides BLAS. No two arguments of a call alias.
// float: own exponential, branch-free so that compilers vectorise it; double: the standard library's functions.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

namespace backsweep::cpu {

/// x := sigmoid(x). float: absolute error < 9e-8, relative error < 1.8e-7; 0 below -87; NaN stays NaN.
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

/// Every column := `column`; out is [columns][rows].
template <class Real>
void fill_columns(Index rows, Index columns, const Real* column, Real* out) noexcept;

/// sum := sum of the columns of in, [columns][rows].
template <class Real>
void sum_columns(Index rows, Index columns, const Real* in, Real* sum) noexcept;

/// y += x.
template <class Real>
void add(Index n, const Real* x, Real* y) noexcept;

/// One LSTM cell [HS97]. z: 4 hidden sums of gates i f g o, replaced by the gates; assigns c and h.
template <class Real>
void lstm_cell(Index hidden, Real* z, const Real* c_before, Real* c, Real* h) noexcept;

/// Its reverse. dh: the adjoint of h but for dy, which is added here; dc: in: adjoint of c, out: of c_before.
/// Assigns dz (4 hidden, adjoint of the sums) and h again, with the bits it had.
template <class Real>
void lstm_cell_reverse(Index hidden, const Real* gates, const Real* c_before, const Real* c, const Real* dy,
                       const Real* dh, Real* dc, Real* dz, Real* h) noexcept;

/// a * b + c as this library compiles it: two roundings, whatever the processor offers.
template <class Real>
Real multiply_add(Real a, Real b, Real c) noexcept;

}  // namespace backsweep::cpu
