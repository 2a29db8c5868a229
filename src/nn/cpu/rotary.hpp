// Rotary positions [Su21]: pairs of features are turned by angles that grow with the position, so that q.k depends on
// distances alone. Angles are made in double: a position of 10^6 is as good as one of 10.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/dual.hpp"
#include "nn/rotary.hpp"

namespace backsweep::cpu {

/// Turns the heads of x in place: [step][sequence] rows of `heads` heads of `width` features, row t * sequences + b for
/// the position first + t. Features of a head from rotary.dim on stay.
template <class Real>
void rotate(const Rotary& rotary, Turn turn, Index first, Index steps, Index sequences, Index heads, Index width,
            Rows<Real> x);

}  // namespace backsweep::cpu
