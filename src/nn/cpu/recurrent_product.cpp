// SPDX-License-Identifier: MIT
#include "nn/cpu/recurrent_product.hpp"

#include "nn/cpu/multiply.hpp"

namespace backsweep::cpu {

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
        apply(gates_, state_, batch, U, h, Real{1}, z);
        return;
    }
    for_each_block([&](Index row, Index part, Index block) {
        multiply('T', 'N', width_, batch, width_, U + block, width_, h + part, state_, Real{1}, z + row, gates_);
    });
}

template <class Real>
void RecurrentProduct<Real>::reverse(Index batch, const Real* U, const Real* dz, Real* dh) const {
    if (heads_ == 1) {
        apply_transposed(gates_, state_, batch, U, dz, Real{0}, dh);
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
        apply_transposed(gates_, state_, batch, U, dz, Real{1}, dh);
        return;
    }
    for_each_block([&](Index row, Index part, Index block) {
        multiply('N', 'N', width_, batch, width_, U + block, width_, dz + row, gates_, Real{1}, dh + part, state_);
    });
}

template <class Real>
void RecurrentProduct<Real>::gradient(Index positions, const Real* h, const Real* dz, Real* dU) const {
    if (heads_ == 1) {
        add_outer(gates_, state_, positions, dz, h, dU);
        return;
    }
    for_each_block([&](Index row, Index part, Index block) {
        multiply('N', 'T', width_, width_, positions, h + part, state_, dz + row, gates_, Real{1}, dU + block, width_);
    });
}

template class RecurrentProduct<float>;
template class RecurrentProduct<double>;
template class RecurrentProduct<Dual<double>>;

}  // namespace backsweep::cpu
