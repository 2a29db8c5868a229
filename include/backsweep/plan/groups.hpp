// Layers recomputed group by group [Chen16]: what is kept before the groups, and what one group holds inside.
// Larger groups keep fewer boundaries and hold more inside, so the least peak lies between.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/base/range.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace backsweep {

/// Both parts of the peak of a chain of layers that is cut into groups of `size` layers; the last may be smaller. All
/// boundaries are counted beside the largest group: where that is not the last one, fewer are left when it is reversed.
struct BACKSWEEP_API LayerGroups {
    Index layers = 0;
    Index size = 0;
    std::int64_t boundaries = 0;  ///< bytes of the activations kept before every group
    std::int64_t inside = 0;      ///< bytes of the tapes of the largest group
    Range largest{};              ///< its layers, the first of such groups

    Index count() const noexcept { return layers == 0 ? 0 : 1 + (layers - 1) / size; }
    std::int64_t peak() const noexcept { return boundaries + inside; }
    /// "groups of 2: 12 boundaries, 12 B, and inside layers [0, 2), 20 B: peak 32 B"
    std::string in_words() const;
};

/// The parts for one size. boundaries: [layers] bytes of the activation before each layer; insides: [layers] bytes of
/// each layer's tape. The schedule is periodic(layers, size).
/// Throws InvalidArgument if size < 1, the lengths differ, a number is negative, or their sum passes 2^63 - 1.
BACKSWEEP_API LayerGroups group_layers(std::span<const std::int64_t> boundaries, std::span<const std::int64_t> insides,
                                       Index size);

/// The size of the least peak, the smaller one on ties; size 1 for no layers. O(layers log layers) time.
/// Throws as group_layers does.
BACKSWEEP_API LayerGroups best_groups(std::span<const std::int64_t> boundaries, std::span<const std::int64_t> insides);

}  // namespace backsweep
