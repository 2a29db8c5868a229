// SPDX-License-Identifier: MIT
#include "nn/cpu/recurrent_product.hpp"

#include "nn/cpu/multiply.hpp"

#include <algorithm>
#include <type_traits>

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
    if (heads_ == 1) return f(0, 0, 0, gates_);
    for (Index gate = 0; gate < gates_; gate += hidden_)
        for (Index part = 0; part < hidden_; part += width_) f(gate + part, part, (gate + part) * width_, width_);
}

template <class Real>
Index RecurrentProduct<Real>::prepared() const noexcept {
    if (!std::is_floating_point_v<Real> || heads_ > 1) return 0;
    return packed_size<Real>(gates_, state_) + packed_size<Real>(state_, gates_);
}

template <class Real>
void RecurrentProduct<Real>::prepare(const Real* U, Real* prepared) const {
    if constexpr (std::is_floating_point_v<Real>) {
        if (heads_ > 1) return;
        pack('T', gates_, state_, U, state_, prepared);
        pack('N', state_, gates_, U, state_, prepared + packed_size<Real>(gates_, state_));
    }
}

template <class Real>
void RecurrentProduct<Real>::forward(Index batch, const Real* U, const Real* prepared, const Real* h, Real beta,
                                     Real* z, Index apart, const Real* column) const {
    if constexpr (std::is_floating_point_v<Real>) {
        if (prepared && heads_ == 1) {
            packed_product(gates_, batch, state_, prepared, h, state_, beta, z, apart, column);
            return;
        }
    }
    for (Index b = 0; column && b < batch; ++b) std::copy_n(column, gates_, z + b * apart);
    if (column) beta = Real{1};
    for_each_block([&](Index row, Index part, Index block, Index rows) {
        multiply('T', 'N', rows, batch, width_, U + block, width_, h + part, state_, beta, z + row, apart);
    });
}

template <class Real>
void RecurrentProduct<Real>::reverse(Index batch, const Real* U, const Real* prepared, const Real* dz, Index apart,
                                     Real beta, Real* dh) const {
    if constexpr (std::is_floating_point_v<Real>) {
        if (prepared && heads_ == 1) {
            packed_product(state_, batch, gates_, prepared + packed_size<Real>(gates_, state_), dz, apart, beta, dh,
                           state_);
            return;
        }
    }
    for_each_block([&](Index row, Index part, Index block, Index rows) {
        const Real kept = row < hidden_ ? beta : Real{1};
        multiply('N', 'N', width_, batch, rows, U + block, width_, dz + row, apart, kept, dh + part, state_);
    });
}

template <class Real>
void RecurrentProduct<Real>::gradient(Index positions, const Real* h, const Real* dz, Index apart, Real* dU) const {
    for_each_block([&](Index row, Index part, Index block, Index rows) {
        multiply('N', 'T', width_, rows, positions, h + part, state_, dz + row, apart, Real{1}, dU + block, width_);
    });
}

template <class Real>
void RecurrentProduct<Real>::gradients(Index positions, const Real* h, const Real* dz, Index apart, Real* dU,
                                       Index inputs, const Real* x, Real* dW) const {
    if constexpr (std::is_floating_point_v<Real>) {
        if (heads_ == 1) {
            const Outer<Real> outers[]{{state_, h, state_, dU, state_}, {inputs, x, inputs, dW, inputs}};
            add_outers(2, outers, gates_, positions, dz, apart);
            return;
        }
    }
    gradient(positions, h, dz, apart, dU);
    multiply('N', 'T', inputs, gates_, positions, x, inputs, dz, apart, Real{1}, dW, inputs);
}

template class RecurrentProduct<float>;
template class RecurrentProduct<double>;
template class RecurrentProduct<Dual<double>>;

}  // namespace backsweep::cpu
