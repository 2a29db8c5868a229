// Rows of features within wider rows: what joins of layers are made of.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <algorithm>

namespace backsweep {

/// The first `width` numbers of each of `count` rows; a row begins `from_stride`, or `to_stride`, behind the last.
template <class Real>
void copy_rows(Index count, Index width, const Real* from, Index from_stride, Real* to, Index to_stride) {
    for (Index r = 0; r < count; ++r) std::copy_n(from + r * from_stride, width, to + r * to_stride);
}

/// The same, added to what is there.
template <class Real>
void add_rows(Index count, Index width, const Real* from, Index from_stride, Real* to, Index to_stride) {
    for (Index r = 0; r < count; ++r)
        for (Index k = 0; k < width; ++k) to[r * to_stride + k] += from[r * from_stride + k];
}

}  // namespace backsweep
