// Index arithmetic of the whole library: 64-bit indices and half-open ranges of links.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace backsweep {

using Index = std::int64_t;

/// Half-open range [first, last) of links; counts links, never bytes.
struct Range {
    Index first = 0;
    Index last = 0;

    constexpr Index size() const noexcept { return last - first; }
    constexpr bool empty() const noexcept { return last <= first; }
    friend constexpr bool operator==(const Range&, const Range&) = default;
};

}  // namespace backsweep
