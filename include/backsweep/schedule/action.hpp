// The vocabulary of every schedule: a stream of small plain actions.
// C and Fortran read the same 40 bytes (backsweep/c/backsweep.h), so the layout is asserted.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/base/range.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace backsweep {

/// What to do. `x` is the working state, `tape` the working tape, `a` the working adjoint.
enum class Verb : std::int32_t {
    advance,  ///< run links [first, last) from x at first; x ends at last
    record,   ///< run one link and make its tape; x ends at last
    tape,     ///< make the tape of one link whose reverse follows at once; x is unspecified after it
    reverse,  ///< spend the tape of one link: a from last to first, parameter gradients added to
    save,     ///< copy x (at first) into slot `to`, which must be empty
    load,     ///< copy slot `from` into x; the slot keeps its state
    take,     ///< load and drop in one
    restart,  ///< x := the state after the link whose tape lies in slot `from`
    stow,     ///< move the working tape into slot `to`, which must be empty
    fetch,    ///< move the tape in slot `from` into the working tape; the slot is empty after it
    drop,     ///< empty slot `from`; slot -1 is the working tape
    move,     ///< move the content of slot `from` to slot `to` of another tier
    turn,     ///< the end of the forward sweep: the adjoint is seeded here
    done      ///< nothing is left to do; repeated for ever
};

enum class Tier : std::int32_t { device, pinned, ram, disk };

/// A place to keep a state or a tape; index -1 is "no slot". States and tapes of a tier share one numbering.
struct Slot {
    Tier tier = Tier::ram;
    std::int32_t index = -1;

    friend constexpr bool operator==(const Slot&, const Slot&) = default;
};

/// One action. Fields that a verb does not use hold their defaults.
/// `steps`: advance, record, tape, reverse: the links; save, load, take, restart: {i, i}, the state x_i;
/// stow, fetch and drop or move of a tape: {i, i + 1}, its link; drop or move of a state: {i, i}; turn: {n, n}.
struct Action {
    Verb verb = Verb::done;
    Slot from{};
    Slot to{};
    std::int32_t reserved = 0;
    Range steps{};

    friend constexpr bool operator==(const Action&, const Action&) = default;
};

static_assert(sizeof(Action) == 40 && alignof(Action) == 8);
static_assert(std::is_standard_layout_v<Action> && std::is_trivially_copyable_v<Action>);
static_assert(offsetof(Action, verb) == 0 && offsetof(Action, from) == 4 && offsetof(Action, to) == 12);
static_assert(offsetof(Action, reserved) == 20 && offsetof(Action, steps) == 24);

/// The verb's name in lower case ("advance").
BACKSWEEP_API const char* to_string(Verb verb) noexcept;
/// The tier's name in lower case ("ram").
BACKSWEEP_API const char* to_string(Tier tier) noexcept;
/// "ram slot 3", or "no slot".
BACKSWEEP_API std::string to_string(Slot slot);
/// One line for messages and prints: "advance [0, 12)", "save x_12 to ram slot 1".
BACKSWEEP_API std::string to_string(const Action& action);

}  // namespace backsweep
