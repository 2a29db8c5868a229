// The products of a cell with its inputs, W = weight_ih [gates][inputs], block of steps after block of steps: W is
// packed once for all of them.
// SPDX-License-Identifier: MIT
#pragma once

#include "nn/cpu/multiply.hpp"

#include <algorithm>
#include <type_traits>

namespace backsweep::cpu {

/// Steps of a block: adjoints of the gates at so many stay in the caches, and their products with x and h are large.
inline Index block_steps(Index hidden, Index steps, Index batch) noexcept {
    return std::clamp<Index>((hidden < 512 ? 256 : 512) / batch, 1, steps);
}

/// Elements between the adjoints of the gates at two positions: of as many as a product takes together, those of one
/// gate lie in different sets of a cache.
template <class Real>
constexpr Index gates_apart(Index gates) noexcept {
    return gates + panel_rows<Real>;
}

template <class Real>
class InputProduct {
public:
    /// Elements of `room`: none where all steps are one block.
    static Index room(Index gates, Index inputs, Index steps, Index block) noexcept {
        if (!std::is_floating_point_v<Real> || steps <= block) return 0;
        return std::max(packed_size<Real>(gates, inputs), packed_size<Real>(inputs, gates));
    }

    /// `transposed`: for `reverse`, else for `forward`; `room` may be null: W is taken as it is.
    InputProduct(bool transposed, Index gates, Index inputs, const Real* W, Index steps, Index block, Real* room)
        : gates_(gates),
          inputs_(inputs),
          W_(W) {
        if constexpr (std::is_floating_point_v<Real>) {
            if (steps <= block || !room) return;
            packed_ = room;
            if (transposed)
                pack('N', inputs, gates, W, inputs, room);
            else
                pack('T', gates, inputs, W, inputs, room);
        }
    }

    // y and dy of two positions are `apart` elements apart.
    /// y [position][gates] := W x + the numbers of `column` [gates] at every position; null: W x.
    void forward(Index positions, const Real* x, const Real* column, Real* y, Index apart) const {
        if constexpr (std::is_floating_point_v<Real>) {
            if (packed_) {
                packed_product(gates_, positions, inputs_, packed_, x, inputs_, Real{0}, y, apart, column);
                return;
            }
        }
        apply(gates_, inputs_, positions, W_, x, column, y, apart);
    }
    /// dx [position][inputs] := W' dy.
    void reverse(Index positions, const Real* dy, Index apart, Real* dx) const {
        if constexpr (std::is_floating_point_v<Real>) {
            if (packed_) {
                packed_product(inputs_, positions, gates_, packed_, dy, apart, Real{0}, dx, inputs_);
                return;
            }
        }
        multiply('N', 'N', inputs_, positions, gates_, W_, inputs_, dy, apart, Real{0}, dx, inputs_);
    }

private:
    Index gates_, inputs_;
    const Real* W_;
    const Real* packed_ = nullptr;
};

}  // namespace backsweep::cpu
