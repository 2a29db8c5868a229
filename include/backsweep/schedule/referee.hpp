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
    std::function<std::int64_t(Index step)> state{};    ///< bytes of x_step
    std::function<std::int64_t(Index link)> tape{};     ///< bytes of the tape of a link
    std::function<std::int64_t(Index step)> adjoint{};  ///< bytes of the adjoint of x_step
    std::function<std::int64_t(Verb verb, Index link)>
        overhead{};  ///< beside these while advance, record or reverse runs
    bool tape_holds_state =
        false;             ///< the tape of a link holds the state behind it, which then takes no bytes of its own
    bool uniform = false;  ///< the functions do not depend on step or link: an advance is weighed once
};

/// What may be used at most; -1 is no limit.
struct Limits {
    std::array<Index, tier_count> slots{-1, -1, -1, -1};         ///< slots of a tier that may hold something at once
    std::array<std::int64_t, tier_count> bytes{-1, -1, -1, -1};  ///< bytes of a tier's slots, by `Sizes`
};

/// Prices that the referee adds up, in any unit; an empty function costs nothing.
struct Costs {
    std::function<double(Index link)> advance{};
    std::function<double(Index link)> record{};  ///< of a `tape` too
    std::function<double(Index link)> reverse{};
    std::array<double, tier_count> write{};  ///< of a save or stow into a tier; a move writes and reads
    std::array<double, tier_count> read{};   ///< of a load, take or fetch out of a tier
    bool uniform = false;                    ///< the functions do not depend on the link: an advance is priced at once
};

/// When an open-ended schedule is told where the chain ends.
enum class Ending {
    closed,  ///< never: the schedule knows its length
    ahead,   ///< where one link is left, which is then recorded as it is run
    met,     ///< where no link is left, before a further advance is asked for
    late     ///< when an advance beyond the end was given out already, which finish() revokes: it saved for nothing
};

/// The abstract machine that a schedule is played on.
struct Machine {
    Sizes sizes{};
    Limits limits{};
    Costs costs{};
    bool needs_state = false;  ///< a reverse reads the state before its link
    bool reverses = true;      ///< every link is to be reversed (false for forward_only)
    Ending ending = Ending::closed;
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
    std::int64_t peak_total = 0;  ///< by `Sizes`, at any time also within an action: slots of all tiers but the disk,
                                  ///< working state (unless a slot or tape holds it), tape, adjoints and overhead
    Index peak_states = 0;        ///< most states alive at once, all tiers and the working state
    double cost = 0.0;            ///< by `Costs`
};

/// A state that is already stored when a schedule begins.
struct Stored {
    Index step = 0;
    Slot slot{};
};

/// Plays `schedule` from its present position (a fresh or rewound one) over a chain of `steps` links.
/// With `stored` the play begins after a forward sweep of which these states survive: no working state.
/// Throws ScheduleError at the first illegal action: it names the action's number, the action and the rule.
BACKSWEEP_API Play referee(Schedule& schedule, Index steps, std::span<const Stored> stored = {},
                           const Machine& machine = {});

}  // namespace backsweep
