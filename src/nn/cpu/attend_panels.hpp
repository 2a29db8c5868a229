// Attention of float or double in this processor's vectors, chosen when the program runs: tiles of queries by keys that
// the caches hold, a lane for a query, and nothing done for panels of queries by keys that none of them sees.
// SPDX-License-Identifier: MIT
#pragma once

#include "nn/attend.hpp"

namespace backsweep::cpu {

/// As attend_workspace, attend and attend_reverse of nn/cpu/attend.hpp; `a` has no r.
template <class Real>
Index panels_workspace(const Attend<Real>& a);

template <class Real>
void attend_by_panels(const Attend<Real>& a, Rows<const Real> q, Rows<const Real> k, Rows<const Real> v, Rows<Real> o,
                      Real* lse, Real* workspace);

template <class Real>
void attend_reverse_by_panels(const Attend<Real>& a, const AttendReverse<Real>& call, Real* workspace);

}  // namespace backsweep::cpu
