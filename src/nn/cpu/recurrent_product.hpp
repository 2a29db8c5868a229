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

    /// Elements of U and U' packed for products; 0 of several heads and of dual numbers.
    Index prepared() const noexcept;
    void prepare(const Real* U, Real* prepared) const;

    // `prepared` may be null; beta is 0 or 1; z and dz of two positions are `apart` elements apart.
    /// z [batch][gates] := U h + beta z, h [batch][state]; with `column` [gates], U h + its numbers.
    void forward(Index batch, const Real* U, const Real* prepared, const Real* h, Real beta, Real* z, Index apart,
                 const Real* column = nullptr) const;
    /// dh [batch][state] := U' dz + beta dh.
    void reverse(Index batch, const Real* U, const Real* prepared, const Real* dz, Index apart, Real beta,
                 Real* dh) const;
    /// dU += sum over positions of dz h'.
    void gradient(Index positions, const Real* h, const Real* dz, Index apart, Real* dU) const;
    /// And dW [gates][inputs] += that of dz x'.
    void gradients(Index positions, const Real* h, const Real* dz, Index apart, Real* dU, Index inputs, const Real* x,
                   Real* dW) const;

private:
    /// Calls f(first row of z, first row of h, elements of U before it, rows) for every block.
    template <class F>
    void for_each_block(F f) const;

    Index gates_, hidden_, state_, heads_;
    Index width_;  // columns of U
};

}  // namespace backsweep::cpu
