// Products of parts of larger matrices by BLAS.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/arma.hpp"

namespace backsweep::cpu {

/// C := op(A) op(B) + beta C of column-major parts of larger matrices: `ld` are the distances of their columns; op is
/// 'N' or 'T'. With beta 0, C is not read.
template <class Real>
void multiply(char op_a, char op_b, Index rows, Index cols, Index inner, const Real* A, Index ld_a, const Real* B,
              Index ld_b, Real beta, Real* C, Index ld_c) {
    const auto size = [](Index n) { return static_cast<arma::blas_int>(n); };
    const arma::blas_int m = size(rows), n = size(cols), k = size(inner), a = size(ld_a), b = size(ld_b),
                         c = size(ld_c);
    const Real one = 1;
    arma::blas::gemm<Real>(&op_a, &op_b, &m, &n, &k, &one, A, &a, B, &b, &beta, C, &c);
}

}  // namespace backsweep::cpu
