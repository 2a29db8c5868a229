// The binomial reversal of one block of links as a part of larger schedules, its depths kept in slots of any tier.
// Griewank and Walther 2000 [GW00]; slots include the one of the block's first state.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/tiered_revolve.hpp"
#include "schedule/binomial_place.hpp"
#include "schedule/way_back.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace backsweep {

class BinomialWalk {
public:
    /// Depth d of `slots`, at most 2^31 - 1, is kept in the slot first.index + d. Memory is touched where a state is
    /// kept. Throws InvalidArgument if there is none.
    BinomialWalk(Index slots, Slot first, SweepRule rule = SweepRule::fewest_writes);
    /// Depth d is kept in places[d].
    BinomialWalk(std::vector<Slot> places, SweepRule rule);

    /// The working state is x_first, which lies in no slot; last > first. More than one link wants a slot.
    void begin(Index first, Index last);
    /// x_first lies in `base`, which takes the part of depth 0 and is empty at the end; reads it.
    Action* begin(Action* to, Index first, Index last, Slot base);

    bool walking() const noexcept { return walking_; }
    /// Forgets a walk under way.
    void rest() noexcept { walking_ = false; }

    /// Writes actions from `to` on until the block is reversed or no move may begin: one takes at most four actions and
    /// begins at `last_start` at the latest.
    Action* walk(Action* to, const Action* last_start, WayBack& way);

private:
    /// A kept state. Trivial, so that making the stack touches no memory.
    struct Depth {
        Index step;
        BinomialPlace place;
        Tier tier;
        std::int32_t index;

        Slot slot() const { return {tier, index}; }
    };

    Slot slot(Index depth) const {
        if (places_.empty()) return {first_.tier, first_.index + static_cast<std::int32_t>(depth)};
        return places_[static_cast<std::size_t>(depth)];
    }

    Index slots_;
    Slot first_{};
    std::vector<Slot> places_{};
    std::unique_ptr<Depth[]> depths_;
    SweepRule rule_;
    Index depth_ = 0;
    Index at_ = 0;   // the working state
    Index end_ = 0;  // links of the block below it are left
    BinomialPlace place_{};
    bool kept_here_ = false;  // the working state lies at the deepest depth too
    bool walking_ = false;
};

/// How often a depth is written and read.
struct DepthCount {
    Index writes = 0;
    Index reads = 0;
};

/// A number of blocks of one length.
struct BlockRun {
    Index links = 0;
    Index count = 0;
};

/// The reversal of all these blocks with `slots` slots, by depth as far as a state is kept. From the multiplicities of
/// the segments that the walk meets, not by walking.
std::vector<DepthCount> count_depths(std::span<const BlockRun> blocks, Index slots, SweepRule rule);

}  // namespace backsweep
