// The products of a cell with U = weight_hh (gates, state / heads), block-diagonal over heads: rows of part m of each
// gate block read part m of h. Arrays are [batch][...]; nothing aliases.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/dual.hpp"
#include "nn/described_layer.hpp"

namespace backsweep::cpu {

template <class Real>
class RecurrentProduct {
public:
    /// `gates`: rows of U, a multiple of hidden.
    RecurrentProduct(const RecurrentSpec& spec, Index gates);

    /// Elements of U.
    Index size() const noexcept { return gates_ * width_; }

    /// z [batch][gates] += U h, h [batch][state].
    void add(Index batch, const Real* U, const Real* h, Real* z) const;
    /// dh [batch][state] := U' dz.
    void reverse(Index batch, const Real* U, const Real* dz, Real* dh) const;
    /// dh += U' dz.
    void add_reverse(Index batch, const Real* U, const Real* dz, Real* dh) const;
    /// dU += sum over positions of dz h'.
    void gradient(Index positions, const Real* h, const Real* dz, Real* dU) const;

private:
    /// Calls f(first row of z, first row of h, elements of U before it) for every square block of more than one head.
    template <class F>
    void for_each_block(F f) const;

    Index gates_, hidden_, state_, heads_;
    Index width_;  // columns of U
};

}  // namespace backsweep::cpu
