// The inner loops of tables: minima of sums of two rows.
// Run-time dispatch to wider vectors where the compiler and the system can; the bits do not depend on it.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <cstdint>

namespace backsweep::min_plus {

/// out[k] = min(out[k], (a[k] + b[k]) + w) for k in [0, n). No two arrays overlap.
void lower(double* out, const double* a, const double* b, double w, Index n);

/// out[k] = min(out[k], (a[k] + b) + w).
void lower(double* out, const double* a, double b, double w, Index n);

/// Writes all k in [0, n) with (a[k] + b[k]) + w < bound[k] to `found`, rising, and returns how many.
Index below(std::int32_t* found, const double* bound, const double* a, const double* b, double w, Index n);

/// The same with b one number.
Index below(std::int32_t* found, const double* bound, const double* a, double b, double w, Index n);

}  // namespace backsweep::min_plus
