// The question that every source asks of a cut.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/data/batches.hpp"

#include <fmt/format.h>

namespace backsweep {

/// Throws InvalidArgument unless the cut lies in a source of `batch` sequences; `length`: their steps, if they may be cut
/// anywhere, else 0.
inline void check_cut(const Cut& cut, const std::string& name, Index batch, Index length = 0) {
    const auto [first, last] = cut.sequences;
    if (cut.window < 0 || cut.look_back < 0 || first < 0 || first >= last || last > batch)
        throw InvalidArgument(fmt::format(
            "{}: no cut of window {} with {} steps before it and the sequences {} to {}; there are {} sequences", name,
            cut.window, cut.look_back, first, last, batch));
    if (cut.steps.size() == 0) return;
    if (length == 0)
        throw InvalidArgument(fmt::format("{}: its windows stand by themselves and cannot be cut otherwise; leave "
                                          "Cut::steps empty",
                                          name));
    if (cut.steps.first < 0 || cut.steps.size() < 0 || cut.steps.last > length)
        throw InvalidArgument(fmt::format("{}: the sequences have {} steps, none in [{}, {})", name, length,
                                          cut.steps.first, cut.steps.last));
}

}  // namespace backsweep
