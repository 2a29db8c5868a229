// The walk behind revolve and complete: a stack of kept states, each at the foot of what is left to reverse above it.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "schedule/binomial_place.hpp"
#include "schedule/block_schedule.hpp"
#include "schedule/way_back.hpp"

#include <memory>
#include <type_traits>
#include <vector>

namespace backsweep {

class BinomialSweep final : public BlockSchedule {
public:
    /// A first sweep from x_0. `align` is read by rule aligned; fewest_disk is not one of its rules.
    BinomialSweep(Index steps, Index slots, AdvanceRule rule, bool needs_state, Index align = 1);

    /// A surviving state that is not dropped.
    struct Kept {
        Stored state;
        bool launch;  ///< read once: the first advance of the segment of the state below begins here
    };

    /// The reverse from surviving states: drops `dropped`, turns, and goes on from `kept`, in rising order of steps and
    /// beginning with x_0. `names`: RAM slot indices in the order in which the stack takes them, those of `kept` first;
    /// from the end of `names` on the k-th slot is slot k.
    BinomialSweep(Index steps, Index slots, std::vector<Kept> kept, std::vector<Stored> dropped,
                  std::vector<std::int32_t> names);

private:
    /// A kept state; r = 0 marks a launch. Trivial, so that making the stack touches no memory.
    struct Level {
        Index step;
        BinomialPlace place;
        Tier tier;
        std::int32_t index;
    };
    static_assert(std::is_trivially_default_constructible_v<Level>);

    /// An advance, and the place of the state it reaches.
    struct Step {
        Index length;
        BinomialPlace place;
    };

    template <AdvanceRule rule>
    static Step next_step(BinomialPlace& place, Index left);
    static Step aligned_step(BinomialPlace& place, Index left, Index at, Index align);
    void begin() override;
    std::size_t generate(std::span<Action> out) override;
    template <AdvanceRule rule>
    std::size_t walk(std::span<Action> out);

    WayBack way_;
    std::int32_t slots_;
    AdvanceRule rule_;
    Index align_ = 1;
    bool completes_;
    std::vector<Kept> kept_;
    std::vector<Stored> dropped_;
    std::vector<std::int32_t> names_;
    std::unique_ptr<Level[]> levels_;  // uninitialised: a page is touched when a state is kept on it

    std::size_t drops_;
    Index at_;             // the working state
    Index end_;            // the adjoint: links below it are left
    BinomialPlace place_;  // of the working state, unless it is a link or less from the adjoint
    std::size_t depth_;
    bool kept_here_;  // the working state lies on top of the stack too
    bool finished_;
};

}  // namespace backsweep
