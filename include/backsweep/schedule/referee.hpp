// Plays a schedule on an abstract machine, throws at the first illegal action, and counts what it did.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace backsweep {

inline constexpr std::size_t tier_count = 4;

/// Sizes that the referee adds up, in bytes; empty functions count nothing.
struct Sizes {
    std::function<std::int64_t(Index step)> state;  ///< bytes of x_step
    std::function<std::int64_t(Index link)> tape;   ///< bytes of the tape of a link
};

/// What may be used at most; -1 is no limit.
struct Limits {
    std::array<Index, tier_count> slots{-1, -1, -1, -1};  ///< slots of a tier that may hold something at once
};

/// What one play did.
struct Play {
    Index actions = 0;   ///< `done` not counted
    Index advances = 0;  ///< links advanced
    Index recorded = 0;  ///< links recorded or taped
    Index reversed = 0;
    Index saves = 0, loads = 0, takes = 0, stows = 0, fetches = 0, drops = 0, restarts = 0, moves = 0;
    Index first_advance = 0;                            ///< length of the first `advance`, 0 if there is none
    std::array<Index, tier_count> writes{};             ///< saves and stows into a tier
    std::array<Index, tier_count> reads{};              ///< loads, takes and fetches out of a tier
    std::array<Index, tier_count> peak_slots{};         ///< most slots of a tier in use at once
    std::array<Index, tier_count> state_slots{};        ///< slots of a tier that ever held a state
    std::array<Index, tier_count> tape_slots{};         ///< slots of a tier that ever held a tape
    std::array<std::int64_t, tier_count> peak_bytes{};  ///< by `Sizes`; working state and tape not included
    Index peak_states = 0;                              ///< most states alive at once, all tiers and the working state
};

/// A state that is already stored when a schedule begins.
struct Stored {
    Index step = 0;
    Slot slot{};
};

/// Plays `schedule` from its present position (a fresh or rewound one) over a chain of `steps` links.
/// With `stored` the play begins after a forward sweep of which these states survive: no working state.
/// `reverses`: the schedule is expected to reverse every link (false for forward_only).
/// Throws ScheduleError at the first illegal action: it names the action's number, the action and the rule.
BACKSWEEP_API Play referee(Schedule& schedule, Index steps, std::span<const Stored> stored = {},
                           const Sizes& sizes = {}, const Limits& limits = {}, bool needs_state = false,
                           bool reverses = true);

}  // namespace backsweep
