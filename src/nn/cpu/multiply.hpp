// Products of matrices and of their parts: of real numbers, and of dual ones out of real products.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/dual.hpp"
#include "nn/cpu/product.hpp"

#include <algorithm>
#include <type_traits>

namespace backsweep::cpu {

/// C := op(A) op(B) + beta C of column-major parts of larger matrices: `ld` are the distances of their columns; op is
/// 'N' or 'T', beta 0 or 1. With beta 0, C is not read.
template <class Real>
void multiply(char op_a, char op_b, Index rows, Index cols, Index inner, const Real* A, Index ld_a, const Real* B,
              Index ld_b, Real beta, Real* C, Index ld_c) {
    product(op_a, op_b, rows, cols, inner, A, ld_a, B, ld_b, beta, C, ld_c);
}

/// The same of dual numbers, part by part. A stays where it lies: as a real matrix it has twice the rows, values and
/// tangents by turns. With values and tangents of op(B) in the right places of X, 32 KiB of double as is R, one real
/// product R gives
///     op 'N': R = A (Bv, Bt), rows (Av Bv, Av Bt) and (At Bv, At Bt) by turns
///     op 'T': R = A' X, X = (Bv, Bt) and (0, Bv) by turns: R = (Av' Bv, Av' Bt + At' Bv)
/// of which C takes the value Av Bv and the tangent At Bv + Av Bt.
template <class Real>
void multiply(char op_a, char op_b, Index rows, Index cols, Index inner, const Dual<Real>* A, Index ld_a,
              const Dual<Real>* B, Index ld_b, Dual<Real> beta, Dual<Real>* C, Index ld_c) {
    constexpr Index room = 4096;
    Real X[room], R[room];
    const bool plain = op_a == 'N';
    const auto* const a = reinterpret_cast<const Real*>(A);
    const Index width = std::min<Index>(cols, 16), length = room / (4 * width);  // of a part of B: columns, rows
    for (Index j = 0; j < cols; j += width)
        for (Index i = 0; i < rows; i += length) {
            const Index m = std::min(length, rows - i), n = std::min(width, cols - j), high = plain ? 2 * m : m;
            if (inner == 0) std::fill_n(R, 2 * n * high, Real{0});
            for (Index l = 0; l < inner; l += length) {
                const Index k = std::min(length, inner - l), deep = plain ? k : 2 * k;
                for (Index q = 0; q < n; ++q) {
                    Real *to_values = X + q * deep, *to_tangents = to_values + n * deep;
                    const Dual<Real>* from = op_b == 'N' ? B + l + (j + q) * ld_b : B + (j + q) + l * ld_b;
                    for (Index p = 0; p < k; ++p, from += op_b == 'N' ? 1 : ld_b) {
                        *to_values++ = from->value;
                        *to_tangents++ = from->tangent;
                        if (plain) continue;
                        *to_values++ = Real{0};
                        *to_tangents++ = from->value;
                    }
                }
                const Real* const part = a + 2 * (plain ? i + l * ld_a : l + i * ld_a);
                const Real more = l > 0 ? Real{1} : Real{0};
                const Index together = n > 1 ? 2 * n : 1;  // two vectors are no matrix
                for (Index q = 0; q < 2 * n; q += together)
                    multiply(op_a, 'N', high, together, deep, part, 2 * ld_a, X + q * deep, deep, more, R + q * high,
                             high);
            }
            for (Index q = 0; q < n; ++q)
                for (Index p = 0; p < m; ++p) {
                    const Real *const values = R + q * high + (plain ? 2 * p : p), *const tangents = values + n * high;
                    const Dual<Real> sum{*values, plain ? values[1] + *tangents : *tangents};
                    Dual<Real>& to = C[i + p + (j + q) * ld_c];
                    to = beta == Dual<Real>{0} ? sum : sum + beta * to;
                }
        }
}

// What a layer with a matrix W [out][in] does at all positions, x [position][in], y [position][out].

/// y := W x + the numbers of `column` [out] at every position; null: W x. y of two positions are `apart` elements
/// apart.
template <class Real>
void apply(Index out, Index in, Index positions, const Real* W, const Real* x, std::type_identity_t<const Real*> column,
           Real* y, Index apart) {
    if constexpr (std::is_floating_point_v<Real>) {
        product('T', 'N', out, positions, in, W, in, x, in, Real{0}, y, apart, column);
    } else {
        for (Index p = 0; column && p < positions; ++p) std::copy_n(column, out, y + p * apart);
        multiply('T', 'N', out, positions, in, W, in, x, in, column ? Real{1} : Real{0}, y, apart);
    }
}

/// x := W' y + beta x.
template <class Real>
void apply_transposed(Index out, Index in, Index positions, const Real* W, const Real* y, Real beta, Real* x) {
    multiply('N', 'N', in, positions, out, W, in, y, out, beta, x, in);
}

/// W += the sum over positions of y x'.
template <class Real>
void add_outer(Index out, Index in, Index positions, const Real* y, const Real* x, Real* W) {
    multiply('N', 'T', in, out, positions, x, in, y, out, Real{1}, W, in);
}

}  // namespace backsweep::cpu
