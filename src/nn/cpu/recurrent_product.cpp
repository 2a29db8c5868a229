// SPDX-License-Identifier: MIT
#include "nn/cpu/recurrent_product.hpp"

#include "backsweep/nn/arma.hpp"

namespace backsweep::cpu {
namespace {

/// C := op(A) op(B) + beta C of column-major parts of larger matrices: `ld` are the distances of their columns.
template <class Real>
void multiply(char op_a, char op_b, Index rows, Index cols, Index inner, const Real* A, Index ld_a, const Real* B,
              Index ld_b, Real beta, Real* C, Index ld_c) {
    const auto size = [](Index n) { return static_cast<arma::blas_int>(n); };
    const arma::blas_int m = size(rows), n = size(cols), k = size(inner), a = size(ld_a), b = size(ld_b),
                         c = size(ld_c);
    const Real one = 1;
    arma::blas::gemm<Real>(&op_a, &op_b, &m, &n, &k, &one, A, &a, B, &b, &beta, C, &c);
}

}  // namespace

template <class Real>
RecurrentProduct<Real>::RecurrentProduct(const RecurrentSpec& spec, Index gates)
    : gates_(gates),
      hidden_(spec.hidden),
      state_(spec.state()),
      heads_(spec.heads),
      width_(spec.state() / spec.heads) {}

template <class Real>
template <class F>
void RecurrentProduct<Real>::for_each_block(F f) const {
    for (Index gate = 0; gate < gates_; gate += hidden_)
        for (Index part = 0; part < hidden_; part += width_) f(gate + part, part, (gate + part) * width_);
}

template <class Real>
void RecurrentProduct<Real>::add(Index batch, const Real* U, const Real* h, Real* z) const {
    if (heads_ == 1) {
        auto Z = matrix_view(z, gates_, batch);
        Z += matrix_view(U, state_, gates_).t() * matrix_view(h, state_, batch);
        return;
    }
    for_each_block([&](Index row, Index part, Index block) {
        multiply('T', 'N', width_, batch, width_, U + block, width_, h + part, state_, Real{1}, z + row, gates_);
    });
}

template <class Real>
void RecurrentProduct<Real>::reverse(Index batch, const Real* U, const Real* dz, Real* dh) const {
    if (heads_ == 1) {
        auto dH = matrix_view(dh, state_, batch);
        dH = matrix_view(U, state_, gates_) * matrix_view(dz, gates_, batch);
        return;
    }
    for_each_block([&](Index row, Index part, Index block) {
        const Real kept = row < hidden_ ? Real{0} : Real{1};
        multiply('N', 'N', width_, batch, width_, U + block, width_, dz + row, gates_, kept, dh + part, state_);
    });
}

template <class Real>
void RecurrentProduct<Real>::add_reverse(Index batch, const Real* U, const Real* dz, Real* dh) const {
    if (heads_ == 1) {
        auto dH = matrix_view(dh, state_, batch);
        dH += matrix_view(U, state_, gates_) * matrix_view(dz, gates_, batch);
        return;
    }
    for_each_block([&](Index row, Index part, Index block) {
        multiply('N', 'N', width_, batch, width_, U + block, width_, dz + row, gates_, Real{1}, dh + part, state_);
    });
}

template <class Real>
void RecurrentProduct<Real>::gradient(Index positions, const Real* h, const Real* dz, Real* dU) const {
    if (heads_ == 1) {
        auto D = matrix_view(dU, state_, gates_);
        D += matrix_view(h, state_, positions) * matrix_view(dz, gates_, positions).t();
        return;
    }
    for_each_block([&](Index row, Index part, Index block) {
        multiply('N', 'T', width_, width_, positions, h + part, state_, dz + row, gates_, Real{1}, dU + block, width_);
    });
}

template class RecurrentProduct<float>;
template class RecurrentProduct<double>;

}  // namespace backsweep::cpu
