// Attention in linear memory: tiles of scores, softmax online, and a reverse that makes the scores again [Dao22, Dao23].
// The workspace depends neither on queries nor on keys.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/dual.hpp"
#include "nn/attend.hpp"

namespace backsweep::cpu {

/// Elements of scratch for one call of either function. Reads width, value_width and whether r is set.
template <class Real>
Index attend_workspace(const Attend<Real>& a);

/// Assigns o, and lse [queries], the natural log of the sum of exp(logit) (-inf: saw nothing). Nothing aliases.
template <class Real>
void attend(const Attend<Real>& a, Rows<const Real> q, Rows<const Real> k, Rows<const Real> v, Rows<Real> o, Real* lse,
            Real* workspace);

/// Its reverse; key tiles and their order are those of `attend`. P = exp(logit - lse) inherits the rounding of lse: half a
/// unit in the last place of the largest logits, as an error relative to P.
template <class Real>
void attend_reverse(const Attend<Real>& a, const AttendReverse<Real>& call, Real* workspace);

}  // namespace backsweep::cpu
