// A schedule over tiers before the referee, at the prices and within the slots that it was made for.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/multistage.hpp"
#include "backsweep/schedule/referee.hpp"

#include <algorithm>
#include <cmath>

namespace backsweep::test {

inline bool same_price(double a, double b) {
    return std::abs(a - b) <= 1e-9 * std::max({std::abs(a), std::abs(b), 1e-3});
}

/// Plays multistage(options); each level lies on a tier of its own, so that the referee can tell them apart.
inline Play play_levels(const MultistageOptions& options) {
    Machine machine;
    machine.costs.advance = [&](Index) { return options.advance; };
    machine.costs.reverse = [&](Index) { return options.reverse; };
    machine.costs.uniform = true;
    machine.limits.slots = {0, 0, 0, 0};
    machine.needs_state = options.needs_state;
    for (const Level& level : options.levels) {
        const auto tier = static_cast<std::size_t>(level.tier);
        machine.costs.write[tier] = level.write;
        machine.costs.read[tier] = level.read;
        machine.limits.slots[tier] = level.slots;
    }
    return referee(*multistage(options), options.steps, {}, machine);
}

}  // namespace backsweep::test
