// States and tapes share one budget: a kept tape saves its link from being run again, a kept state is smaller.
// After Gruslys et al. 2016 [Gruslys16] and Maddison 2024 [Maddison24]; the default rule is a recurrence over two
// tables that reaches fewer forwards than either. "Forwards" are links advanced, recorded or taped.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

namespace backsweep {

/// What may be kept where.
enum class MixedRule {
    optimal,   ///< anything; no exhaustive search has found fewer forwards
    hidden,    ///< BPTT-HSM [Gruslys16]: states only; the binomial schedule
    internal,  ///< BPTT-ISM [Gruslys16]: tapes only, beside x_0; each takes one unit
    mixed,     ///< BPTT-MSM [Gruslys16]: both, but the start of a segment is kept until the segment is reversed
    maddison   ///< mixed storage of [Maddison24]: a tape takes one unit and nothing restarts from it
};

/// x_0 is live at the beginning and takes a unit only if it is saved; the tape that is reversed next takes none.
struct BACKSWEEP_API MixedOptions {
    Index steps = 0;                      ///< links of the chain, 0 ... 2^62
    Index units = 0;                      ///< what kept states and tapes may take together; a state takes 1
    Index tape_units = 1;                 ///< what a kept tape takes, >= 1; `hidden` keeps none
    bool restart = true;                  ///< a tape gives the state behind its link (Restarts in chain/chain.hpp)
    MixedRule rule = MixedRule::optimal;  ///< `internal` and `mixed` want restart, `maddison` wants none
    bool needs_state = false;             ///< only `hidden` serves chains whose reverse reads a state
    std::size_t table_limit = std::size_t{1} << 30;  ///< bytes that planning may take

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// Forwards of the schedule: `steps` if every tape is kept, never fewer. Throws InvalidArgument with
/// options.problem(), or if the count passes 2^63 - 1.
BACKSWEEP_API Index mixed_forwards(const MixedOptions& options);

/// Bytes of the tables while the schedule is planned, which takes O(steps^2 units) time; the schedule itself keeps at
/// most 32 bytes a link. 0 where a closed form plans and O(units) memory suffices: every tape fits, no tape does, a
/// tape takes one unit and gives restarts, or the rule is `hidden` or `internal`. Saturates.
BACKSWEEP_API std::size_t mixed_table_bytes(const MixedOptions& options);

/// The schedule; item k of those kept at once has RAM slot k, state or tape (`internal`: slot 0
/// is x_0's). The last link of the first sweep is
/// recorded as it is run, and every link whose tape is kept; the others are taped just before their reverse.
/// Throws InvalidArgument with options.problem(), or if more slots are useful than have numbers.
BACKSWEEP_API std::unique_ptr<Schedule> mixed(const MixedOptions& options);

}  // namespace backsweep
