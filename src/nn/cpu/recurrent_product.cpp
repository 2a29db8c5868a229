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
    for (Index gate = 0; gate < gates_; gate += hidden_)
        for (Index part = 0; part < hidden_; part += width_) f(gate + part, part, (gate + part) * width_);
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
                                     Real* z, const Real* column) const {
    if (heads_ > 1) {
        for (Index b = 0; column && b < batch; ++b) std::copy_n(column, gates_, z + b * gates_);
        if (column) beta = Real{1};
        for_each_block([&](Index row, Index part, Index block) {
            multiply('T', 'N', width_, batch, width_, U + block, width_, h + part, state_, beta, z + row, gates_);
        });
        return;
    }
    if constexpr (std::is_floating_point_v<Real>) {
        if (prepared) {
            packed_product(gates_, batch, state_, prepared, h, state_, beta, z, gates_, column);
            return;
        }
    }
    if (column)
        apply(gates_, state_, batch, U, h, column, z);
    else
        apply(gates_, state_, batch, U, h, beta, z);
}

template <class Real>
void RecurrentProduct<Real>::reverse(Index batch, const Real* U, const Real* prepared, const Real* dz, Real beta,
                                     Real* dh) const {
    if (heads_ > 1) {
        for_each_block([&](Index row, Index part, Index block) {
            const Real kept = row < hidden_ ? beta : Real{1};
            multiply('N', 'N', width_, batch, width_, U + block, width_, dz + row, gates_, kept, dh + part, state_);
        });
        return;
    }
    if constexpr (std::is_floating_point_v<Real>) {
        if (prepared) {
            packed_product(state_, batch, gates_, prepared + packed_size<Real>(gates_, state_), dz, gates_, beta, dh,
                           state_);
            return;
        }
    }
    apply_transposed(gates_, state_, batch, U, dz, beta, dh);
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

template <class Real>
void RecurrentProduct<Real>::gradients(Index positions, const Real* h, const Real* dz, Real* dU, Index inputs,
                                       const Real* x, Real* dW) const {
    if constexpr (std::is_floating_point_v<Real>) {
        if (heads_ == 1) {
            const Outer<Real> outers[]{{state_, h, state_, dU, state_}, {inputs, x, inputs, dW, inputs}};
            add_outers(2, outers, gates_, positions, dz, gates_);
            return;
        }
    }
    gradient(positions, h, dz, dU);
    add_outer(gates_, inputs, positions, dz, x, dW);
}

template class RecurrentProduct<float>;
template class RecurrentProduct<double>;
template class RecurrentProduct<Dual<double>>;

}  // namespace backsweep::cpu
