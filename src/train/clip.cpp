// SPDX-License-Identifier: MIT
#include "backsweep/train/clip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace backsweep {

namespace {

/// The largest |g|; every gradient is finite afterwards.
template <class Real>
double largest(const ParameterLayout& layout, std::span<const Real> gradients) {
    double most = 0.0;
    for (const ParameterView& view : layout.views()) {
        const auto part =
            gradients.subspan(static_cast<std::size_t>(view.offset), static_cast<std::size_t>(view.size()));
        for (const Real& g : part) {
            if (!std::isfinite(g))
                throw NumericError(
                    fmt::format("the gradient of parameter '{}' must be finite, but its element {} is {}; no gradient "
                                "was changed and no "
                                "update made; lower the rate or look for overflow in the model",
                                view.name, &g - part.data(), g));
            most = std::max(most, std::abs(static_cast<double>(g)));
        }
    }
    return most;
}

/// The 2-norm, with the elements scaled by a power of two so that no square overflows or vanishes.
template <class Real>
double two_norm(std::span<const Real> gradients, double most) {
    if (most == 0.0) return 0.0;
    const int exponent = std::clamp(std::ilogb(most), -1000, 1000);
    const double scale = std::ldexp(1.0, -exponent);
    double sum = 0.0;
    for (const Real g : gradients) {
        const double x = static_cast<double>(g) * scale;
        sum += x * x;
    }
    return std::ldexp(std::sqrt(sum), exponent);
}

}  // namespace

std::string ClipSpec::problem() const {
    if (kind == Kind::none) {
        if (limit != 0.0)
            return fmt::format("a limit of {} was given, but gradients are not to be clipped; name the kind", limit);
    } else if (!(std::isfinite(limit) && limit > 0.0)) {
        return fmt::format("the limit of clipping must be positive and finite, not {}", limit);
    }
    return {};
}

template <class Real>
double clip(const ClipSpec& spec, const ParameterLayout& layout, std::span<Real> gradients) {
    if (const std::string problem = spec.problem(); !problem.empty()) throw InvalidArgument(problem);
    if (static_cast<Index>(gradients.size()) != layout.size())
        throw InvalidArgument(
            fmt::format("the parameters have {} elements, but {} gradients came", layout.size(), gradients.size()));

    using enum ClipSpec::Kind;
    const double most = largest(layout, std::span<const Real>(gradients));
    if (spec.kind == value) {
        const Real limit = static_cast<Real>(spec.limit);
        for (Real& g : gradients) g = std::clamp(g, -limit, limit);
        return most;
    }
    const double before = spec.kind == largest_norm ? most : two_norm(std::span<const Real>(gradients), most);
    if (!std::isfinite(before))
        throw NumericError(
            fmt::format("the 2-norm of the gradients must be finite, but overflows (largest element {}); no gradient "
                        "was changed and no update made; lower the rate",
                        most));
    const double factor = spec.limit / (before + 1e-6);
    if (spec.kind != none && factor < 1.0)
        for (Real& g : gradients) g = static_cast<Real>(static_cast<double>(g) * factor);
    return before;
}

template double clip<float>(const ClipSpec&, const ParameterLayout&, std::span<float>);
template double clip<double>(const ClipSpec&, const ParameterLayout&, std::span<double>);

}  // namespace backsweep
