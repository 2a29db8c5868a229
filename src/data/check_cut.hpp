// The question that every source asks of a cut.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/data/batches.hpp"

#include <fmt/format.h>

namespace backsweep {

/// Throws InvalidArgument unless the cut lies in a source of `batch` sequences.
inline void check_cut(const Cut& cut, const std::string& name, Index batch) {
    const auto [first, last] = cut.sequences;
    if (cut.window < 0 || cut.look_back < 0 || first < 0 || first >= last || last > batch)
        throw InvalidArgument(fmt::format(
            "{}: no cut of window {} with {} steps before it and the sequences {} to {}; there are {} sequences", name,
            cut.window, cut.look_back, first, last, batch));
}

}  // namespace backsweep
