// Layer normalisation [Ba16] inside the recurrent cells, by plain loops: y = gain xhat + shift, where
// xhat = (x - mean) / sqrt(variance + 1e-5), the variance biased.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <cmath>

namespace backsweep::reference {

/// x [n] := xhat; returns 1 / sqrt(variance + 1e-5).
template <class Real>
Real normalise(Index n, Real* x) {
    Real mean = 0, variance = 0;
    for (Index k = 0; k < n; ++k) mean += x[k];
    mean /= static_cast<Real>(n);
    for (Index k = 0; k < n; ++k) variance += (x[k] - mean) * (x[k] - mean);
    variance /= static_cast<Real>(n);
    using std::sqrt;  // Dual has its own
    const Real inverse = 1 / sqrt(variance + static_cast<Real>(1e-5));
    for (Index k = 0; k < n; ++k) x[k] = (x[k] - mean) * inverse;
    return inverse;
}

/// dx [n], in: the adjoint of y, out: of x; `inverse` is what normalise returned. dgain and dshift are added to.
///   dxhat = gain dy;  dx = inverse (dxhat - mean(dxhat) - xhat mean(xhat dxhat))
template <class Real>
void normalise_reverse(Index n, const Real* xhat, Real inverse, const Real* gain, Real* dx, Real* dgain, Real* dshift) {
    Real mean = 0, along = 0;
    for (Index k = 0; k < n; ++k) {
        dgain[k] += dx[k] * xhat[k];
        dshift[k] += dx[k];
        dx[k] *= gain[k];
        mean += dx[k];
        along += dx[k] * xhat[k];
    }
    mean /= static_cast<Real>(n);
    along /= static_cast<Real>(n);
    for (Index k = 0; k < n; ++k) dx[k] = inverse * (dx[k] - mean - xhat[k] * along);
}

}  // namespace backsweep::reference
