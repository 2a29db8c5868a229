// Rotary positions [Su21], as the CPU's loops and the plain loops share them: pair k = 0 .. dim/2 - 1 at position p is
// turned by the angle p base^(-2k/dim):  (a, b) -> (a cos - b sin, b cos + a sin).  Features from dim on stay.
// SPDX-License-Identifier: MIT
#pragma once

#include "nn/attend.hpp"

namespace backsweep {

struct Rotary {
    enum class Style : std::uint8_t {
        half,        ///< pair k is (k, k + dim/2)
        interleaved  ///< pair k is (2k, 2k + 1)
    };

    Index dim = 0;  ///< features that turn, even, the first of a head
    double base = 10000.0;
    Style style = Style::half;
};

/// Forward, or back: the inverse of a turn is its transpose, hence the reverse of adjoints too.
enum class Turn : std::uint8_t { forth, back };

}  // namespace backsweep
