// Wide arithmetic behind the closed forms of revolve.hpp.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

namespace backsweep {

__extension__ using Wide = unsigned __int128;

/// a b / c of numbers >= 0, exact in between; mostly 64 bits suffice, and they are much faster.
inline Wide wide_mul_div(Index a, Index b, Index c) noexcept {
    Index product = 0;
    if (!__builtin_mul_overflow(a, b, &product)) return static_cast<Wide>(product / c);
    return static_cast<Wide>(a) * static_cast<Wide>(b) / static_cast<Wide>(c);
}

/// The same where the caller knows that the quotient fits.
inline Index mul_div(Index a, Index b, Index c) noexcept {
    return static_cast<Index>(wide_mul_div(a, b, c));
}

/// t(n, s), at most n (n - 1) / 2, and the longest of the optimal first advances (0 if n < 2); n >= 0, s >= 1.
struct Optimum {
    Wide advances;
    Index longest;
};
Optimum optimum(Index steps, Index slots);

}  // namespace backsweep
