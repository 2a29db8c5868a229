// The one comparison of numbers that tests use: over whole arrays, against the size of what was wanted. NaN fails.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <span>

namespace backsweep::test {

/// Passes if max |got - wanted| <= relative * (max |wanted|, or the scale given) + absolute. Both are fractions, not
/// percents.
struct Tolerance {
    double relative = 0.0;
    double absolute = 0.0;
};

/// What a comparison found; converts to true if it passed, and prints itself.
struct Comparison {
    bool passed = false;
    double worst =
        0.0;  ///< largest difference; infinite if one value is not finite and the other is not the same infinity
    double limit = 0.0;
    Index at = -1;                   ///< where the worst is
    double got = 0.0, wanted = 0.0;  ///< the values there

    explicit operator bool() const noexcept { return passed; }
    friend std::ostream& operator<<(std::ostream& out, const Comparison& c) {
        if (c.at < 0) return out << (c.passed ? "equal" : "sizes differ or both are empty");
        const auto precision = out.precision(17);
        out << "element " << c.at << ": got " << c.got << ", wanted " << c.wanted;
        out.precision(3);
        out << ", difference " << c.worst << ", limit " << c.limit;
        out.precision(precision);
        return out;
    }
};

/// `scale` >= 0 stands for max |wanted|, where that may cancel. Arrays of different or no length do not pass.
template <class Got, class Wanted>
Comparison compare(const Got& got, const Wanted& wanted, Tolerance tolerance, double scale = -1.0) {
    Comparison result;
    if (std::size(got) != std::size(wanted) || std::size(wanted) == 0) return result;
    double largest = 0.0;
    for (std::size_t k = 0; k < std::size(wanted); ++k) {
        const double a = static_cast<double>(got[k]), b = static_cast<double>(wanted[k]);
        double difference = std::abs(a - b);
        if (!std::isfinite(a) || !std::isfinite(b)) difference = a == b ? 0.0 : std::numeric_limits<double>::infinity();
        if (std::isfinite(b)) largest = std::fmax(largest, std::abs(b));
        if (result.at < 0 || difference > result.worst) {
            result.at = static_cast<Index>(k);
            result.worst = difference;
            result.got = a;
            result.wanted = b;
        }
    }
    result.limit = tolerance.relative * (scale >= 0.0 ? scale : largest) + tolerance.absolute;
    result.passed = std::isfinite(result.worst) && result.worst <= result.limit;
    return result;
}

/// Passes if the arrays have the same length and the same bits (so that 0 and -0 differ and equal NaNs do not).
template <class Got, class Wanted>
Comparison same_bits(const Got& got, const Wanted& wanted) {
    Comparison result;
    if (std::size(got) != std::size(wanted)) return result;
    for (std::size_t k = 0; k < std::size(wanted); ++k) {
        static_assert(sizeof(got[k]) == sizeof(wanted[k]));
        if (std::memcmp(&got[k], &wanted[k], sizeof(wanted[k])) == 0) continue;
        result.at = static_cast<Index>(k);
        result.got = static_cast<double>(got[k]);
        result.wanted = static_cast<double>(wanted[k]);
        result.worst = std::abs(result.got - result.wanted);
        return result;
    }
    result.passed = true;
    return result;
}

}  // namespace backsweep::test
