// What a mistyped name most likely means.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace backsweep {

/// Insertions, deletions and replacements of single bytes that make b of a.
inline std::size_t edits(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j)
            diagonal = std::exchange(
                row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u)}));
    }
    return row[b.size()];
}

/// The first of the nearest names; `names` is not empty.
inline std::string nearest(std::string_view name, const std::vector<std::string>& names) {
    return *std::min_element(names.begin(), names.end(),
                             [&](const auto& a, const auto& b) { return edits(name, a) < edits(name, b); });
}

}  // namespace backsweep
