// Products of matrices of float or double in this processor's vectors, chosen when the program runs. Every element is
// the sum of its products in rising order of the inner index, each added by a fused multiply-add, or in two roundings
// where the processor has none: its bits depend neither on the number of rows and columns, nor on packing, nor on the
// vectors, nor on the team of the thread (nn/cpu/team.hpp), which splits a product where that pays.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

namespace backsweep::cpu {

/// Rows of a panel: one cache line.
template <class Real>
inline constexpr Index panel_rows = 64 / static_cast<Index>(sizeof(Real));

/// Elements of a packed matrix, [panel][inner][row of the panel]; rows of the last panel that do not exist are 0.
template <class Real>
constexpr Index packed_size(Index rows, Index inner) noexcept {
    return (rows + panel_rows<Real> - 1) / panel_rows<Real> * panel_rows<Real> * inner;
}

/// Packs op(A), rows x inner; A is column-major, `ld` the distance of its columns, op 'N' or 'T'. `to` is 64-byte
/// aligned.
template <class Real>
void pack(char op, Index rows, Index inner, const Real* A, Index ld, Real* to) noexcept;

/// C := A B + beta C, beta 0 or 1; A packed; B [inner x cols] and C [rows x cols] column-major. With beta 0, C is not
/// read; with `column` [rows] every column of the sum begins with that instead. This and what follows copy parts into
/// memory of the thread, 0.7 MiB (double: 1.4) for each member of its team, that it keeps from its first product on,
/// where they throw std::bad_alloc.
template <class Real>
void packed_product(Index rows, Index cols, Index inner, const Real* A, const Real* B, Index ld_b, Real beta, Real* C,
                    Index ld_c, const Real* column = nullptr);

/// C := op(A) op(B) + beta C, likewise, column-major.
template <class Real>
void product(char op_a, char op_b, Index rows, Index cols, Index inner, const Real* A, Index ld_a, const Real* B,
             Index ld_b, Real beta, Real* C, Index ld_c, const Real* column = nullptr);

/// One of several products C += A B' with the same B, column-major: A [rows x inner], C [rows x cols].
template <class Real>
struct Outer {
    Index rows;
    const Real* A;
    Index ld;
    Real* C;
    Index ld_c;
};
/// B is [cols x inner] and is packed once for two of them. No two C overlap.
template <class Real>
void add_outers(Index count, const Outer<Real>* outers, Index cols, Index inner, const Real* B, Index ld_b);

}  // namespace backsweep::cpu
