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

    /// y [position][gates] := W x + the numbers of `column` [gates] at every position; null: W x.
    void forward(Index positions, const Real* x, const Real* column, Real* y) const {
        if constexpr (std::is_floating_point_v<Real>) {
            if (packed_) {
                packed_product(gates_, positions, inputs_, packed_, x, inputs_, Real{0}, y, gates_, column);
                return;
            }
        }
        if (column)
            apply(gates_, inputs_, positions, W_, x, column, y);
        else
            apply(gates_, inputs_, positions, W_, x, Real{0}, y);
    }
    /// dx [position][inputs] := W' dy.
    void reverse(Index positions, const Real* dy, Real* dx) const {
        if constexpr (std::is_floating_point_v<Real>) {
            if (packed_) {
                packed_product(inputs_, positions, gates_, packed_, dy, gates_, Real{0}, dx, inputs_);
                return;
            }
        }
        apply_transposed(gates_, inputs_, positions, W_, dy, Real{0}, dx);
    }

private:
    Index gates_, inputs_;
    const Real* W_;
    const Real* packed_ = nullptr;
};

}  // namespace backsweep::cpu
