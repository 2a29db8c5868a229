// SPDX-License-Identifier: MIT
#include "backsweep/plan/groups.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace backsweep {
namespace {

class Layers {
public:
    Layers(std::span<const std::int64_t> boundaries, std::span<const std::int64_t> insides) : boundaries_(boundaries) {
        if (boundaries.size() != insides.size()) {
            throw InvalidArgument("groups: came " + std::to_string(boundaries.size()) + " boundaries and " +
                                  std::to_string(insides.size()) + " insides; give one of each for every layer");
        }
        std::int64_t all = 0;
        sums_.reserve(insides.size() + 1);
        sums_.push_back(0);
        for (std::size_t i = 0; i < insides.size(); ++i) {
            for (const std::int64_t bytes : {boundaries[i], insides[i]}) {
                if (bytes < 0) {
                    throw InvalidArgument("groups: bytes must be 0 or more, came " + std::to_string(bytes) +
                                          " for layer " + std::to_string(i));
                }
                if (__builtin_add_overflow(all, bytes, &all))
                    throw InvalidArgument("groups: the bytes' sum passes 2^63 - 1; give them in a larger unit");
            }
            sums_.push_back(sums_.back() + insides[i]);
        }
    }

    Index count() const noexcept { return static_cast<Index>(boundaries_.size()); }

    LayerGroups cut(Index size) const {
        LayerGroups groups;
        groups.layers = count();
        groups.size = size;
        for (Index first = 0; first < groups.layers;) {
            const Range group{first, first + std::min(size, groups.layers - first)};
            const std::int64_t inside = sum(group.last) - sum(group.first);
            groups.boundaries += boundaries_[static_cast<std::size_t>(first)];
            if (groups.largest.empty() || inside > groups.inside) {
                groups.inside = inside;
                groups.largest = group;
            }
            first = group.last;
        }
        return groups;
    }

private:
    std::int64_t sum(Index layers) const { return sums_[static_cast<std::size_t>(layers)]; }

    std::span<const std::int64_t> boundaries_;
    std::vector<std::int64_t> sums_;  // of the first k insides
};

}  // namespace

std::string LayerGroups::in_words() const {
    return "groups of " + std::to_string(size) + ": " + std::to_string(count()) +
           (count() == 1 ? " boundary, " : " boundaries, ") + bytes_in_words(boundaries) + ", and inside layers [" +
           std::to_string(largest.first) + ", " + std::to_string(largest.last) + "), " + bytes_in_words(inside) +
           ": peak " + bytes_in_words(peak());
}

LayerGroups group_layers(std::span<const std::int64_t> boundaries, std::span<const std::int64_t> insides, Index size) {
    const Layers layers(boundaries, insides);
    if (size < 1) {
        throw InvalidArgument("groups: size must be 1 or more, came " + std::to_string(size) +
                              "; give the layers of a group");
    }
    return layers.cut(size);
}

LayerGroups best_groups(std::span<const std::int64_t> boundaries, std::span<const std::int64_t> insides) {
    const Layers layers(boundaries, insides);
    LayerGroups best = layers.cut(1);
    for (Index size = 2; size <= layers.count(); ++size) {
        const LayerGroups groups = layers.cut(size);
        if (groups.peak() < best.peak()) best = groups;
    }
    return best;
}

}  // namespace backsweep
