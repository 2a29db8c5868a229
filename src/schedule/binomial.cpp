// SPDX-License-Identifier: MIT
#include "schedule/binomial.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/revolve.hpp"

#include <algorithm>
#include <limits>

namespace backsweep {
namespace {

constexpr Index most = std::numeric_limits<Index>::max();

void require(Index steps, Index least_steps, Index slots) {
    if (steps < least_steps) {
        throw InvalidArgument("revolve: steps must be " + std::to_string(least_steps) + " or more, came " +
                              std::to_string(steps) + "; give the number of links of the chain");
    }
    if (slots < 1) {
        throw InvalidArgument("revolve: slots must be 1 or more (x_0 takes one), came " + std::to_string(slots) +
                              "; give the number of states that may be kept");
    }
}

/// r = repetitions(steps, slots) and B(slots, r - 1), for steps >= 2.
struct Reach {
    Index r;
    Index whole;
};

Reach reach_of(Index steps, Index slots) {
    if (slots == 1) return {steps - 1, steps - 1};
    if (slots >= steps - 1) return {1, 1};
    constexpr Index near = 16;
    Index whole = 1;
    for (Index r = 1; r <= near; ++r) {
        const Wide next = wide_mul_div(whole, slots + r, r);
        if (next >= static_cast<Wide>(steps)) return {r, whole};
        whole = static_cast<Index>(next);
    }
    Index below = near;  // B(slots, below) < steps
    Index enough = 2 * near;
    while (binomial(slots, enough) < steps) {
        below = enough;
        enough *= 2;
    }
    while (enough - below > 1) {
        const Index middle = below + (enough - below) / 2;
        (binomial(slots, middle) < steps ? below : enough) = middle;
    }
    return {enough, binomial(slots, below)};
}

}  // namespace

Index binomial(Index slots, Index repetitions) noexcept {
    if (slots < 0 || repetitions < 0) return 0;
    const Wide small = static_cast<Wide>(std::min(slots, repetitions));
    const Wide large = static_cast<Wide>(std::max(slots, repetitions));
    Wide value = 1;
    for (Wide i = 1; i <= small; ++i) {
        value = value * (large + i) / i;
        if (value >= static_cast<Wide>(most)) return most;
    }
    return static_cast<Index>(value);
}

Index repetitions(Index steps, Index slots) {
    require(steps, 0, slots);
    return steps <= 1 ? 0 : reach_of(steps, slots).r;
}

Optimum optimum(Index steps, Index slots) {
    if (steps <= 1) return {0, 0};
    const Wide n = static_cast<Wide>(steps);
    if (slots == 1) return {n * (n - 1) / 2, steps - 1};
    if (slots >= steps - 1) return {n - 1, 1};
    const auto [r, whole] = reach_of(steps, slots);
    const Index diagonal = mul_div(whole, slots, slots + r - 1);  // B(s - 1, r - 1)
    // B(s + 1, r - 1) = B(s, r - 1) (s + r) / (s + 1)
    const Wide saved = wide_mul_div(whole, slots + r, slots + 1);
    return {static_cast<Wide>(r) * n - saved, std::min({steps - 1, whole, steps - diagonal})};
}

Index revolve_advances(Index steps, Index slots) {
    require(steps, 0, slots);
    const Wide advances = optimum(steps, slots).advances;
    if (advances > static_cast<Wide>(most)) {
        throw InvalidArgument("revolve: the advances of " + std::to_string(steps) + " steps with " +
                              std::to_string(slots) + " slots pass 2^63 - 1; give more slots");
    }
    return static_cast<Index>(advances);
}

AdvanceInterval first_advance_interval(Index steps, Index slots) {
    require(steps, 2, slots);
    if (slots == 1) return {steps - 1, steps - 1};
    const Index r = repetitions(steps, slots);
    return {std::max({Index{1}, binomial(slots, r - 2), steps - binomial(slots - 1, r)}),
            std::min({steps - 1, binomial(slots, r - 1), steps - binomial(slots - 1, r - 1)})};
}

Index least_slots(Index steps, Index max_advances) {
    require(steps, 0, 1);
    if (max_advances < std::max<Index>(steps - 1, 0)) {
        throw InvalidArgument("least_slots: a reversal of " + std::to_string(steps) + " steps advances at least " +
                              std::to_string(std::max<Index>(steps - 1, 0)) + " links, at most " +
                              std::to_string(max_advances) + " were allowed; allow more");
    }
    Index low = 1;
    Index high = std::max<Index>(steps - 1, 1);  // t(n, n - 1) = n - 1
    while (low < high) {
        const Index middle = low + (high - low) / 2;
        if (optimum(steps, middle).advances <= static_cast<Wide>(max_advances)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

}  // namespace backsweep
