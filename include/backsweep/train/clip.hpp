// Gradient clipping over all parameters together, with PyTorch's coefficient [Pascanu13].
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/parameters.hpp"

#include <span>
#include <string>

namespace backsweep {

/// How gradients are limited before an update.
struct ClipSpec {
    enum class Kind {
        none,
        norm,          ///< scaled by min(1, limit / (2-norm + 1e-6))
        largest_norm,  ///< the same with the infinity norm
        value          ///< each element forced into [-limit, limit]
    };

    Kind kind = Kind::none;
    double limit = 0.0;

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// Clips in place and returns the norm before clipping: the infinity norm for `largest_norm` and `value`, else the
/// 2-norm. Sums in double, scaled, so no finite float gradient overflows. Throws NumericError, naming the parameter, if
/// a gradient (or the norm) is not finite; then nothing was changed.
template <class Real>
double clip(const ClipSpec& spec, const ParameterLayout& layout, std::span<Real> gradients);

}  // namespace backsweep
