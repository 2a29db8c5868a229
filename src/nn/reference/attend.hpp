// Attention and rotary positions by plain loops, row by row: the specification of nn/cpu/attend.hpp and rotary.hpp.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/dual.hpp"
#include "nn/rotary.hpp"

namespace backsweep::reference {

/// As cpu::attend, without workspace.
template <class Real>
void attend(const Attend<Real>& a, Rows<const Real> q, Rows<const Real> k, Rows<const Real> v, Rows<Real> o, Real* lse);

/// As cpu::attend_reverse, without workspace.
template <class Real>
void attend_reverse(const Attend<Real>& a, const AttendReverse<Real>& call);

/// As cpu::rotate.
template <class Real>
void rotate(const Rotary& rotary, Turn turn, Index first, Index steps, Index sequences, Index heads, Index width,
            Rows<Real> x);

}  // namespace backsweep::reference
