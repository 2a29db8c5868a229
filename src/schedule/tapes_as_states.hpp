// A binomial schedule that keeps tapes where revolve keeps states: a tape gives the state behind its link.
// SPDX-License-Identifier: MIT
#pragma once

#include "schedule/binomial_sweep.hpp"
#include "schedule/block_schedule.hpp"

namespace backsweep {

/// Where revolve stands on x_i of its chain, the working tape here is that of link i - 1 + d and x_{i + d} is at hand:
///   save x_i                  stow the tape
///   advance from x_i to x_j   run the links between, the last one recorded
///   load x_i                  restart from the tape
///   take and tape link i      fetch the tape: its link is not run again
/// d = 1: revolve's chain has `steps` links and link 0 is recorded first, forwards = 1 + t(steps, slots). d = 0: it has
/// one link more, its x_0 is x_0 itself, and forwards = t(steps + 1, slots); BPTT-ISM of [Gruslys16].
class TapesAsStates final : public BlockSchedule {
public:
    /// `keeps_start`: d = 0.
    TapesAsStates(Index steps, Index slots, bool keeps_start);

private:
    void begin() override;
    std::size_t generate(std::span<Action> out) override;
    Action* translate(const Action& action, const Action& ahead, Action* to) const;

    Index steps_;
    Index shift_;  // d
    BinomialSweep inner_;
    Action ahead_{};
    bool begun_ = false;
};

}  // namespace backsweep
