// States at the starts of blocks, blocks in blocks in blocks; the innermost are recorded with their tapes kept.
// SPDX-License-Identifier: MIT
#pragma once

#include "schedule/block_schedule.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace backsweep {

/// How a range of links is cut: blocks of equal length, but that the last one ends where the range does; or blocks that
/// begin at given links, the first at 0.
struct Cut {
    Index count = 1;
    Index length = 0;
    std::vector<Index> starts{};

    /// `count` blocks, as many as there are links at most.
    static Cut into(Index count, Index links) {
        count = std::clamp<Index>(count, 1, std::max<Index>(links, 1));
        return {count, links / count, {}};
    }
    /// Blocks of `length` links, and a last one of what is left.
    static Cut every(Index length, Index links) { return {links == 0 ? 1 : (links - 1) / length + 1, length, {}}; }

    Index start(Index block) const { return starts.empty() ? block * length : starts[static_cast<std::size_t>(block)]; }
    Index end(Index block, Index links) const { return block + 1 == count ? links : start(block + 1); }
    /// The last block of a range; without given starts all others have `length`.
    Index last(Index links) const { return links - start(count - 1); }
};

/// The ranges that occur when a chain is cut by `outermost` (without given starts) and its blocks `deeper` more times
/// into `count` each: [level] from lengths to how often. Few lengths occur in a level.
std::vector<std::map<Index, Index>> ranges_by_length(Index steps, const Cut& outermost, Index deeper, Index count);

/// The slots of a plan: first the states at starts of blocks, then with needs_state the states inside an innermost
/// block, then its tapes but for the last one, which stays the working tape.
struct BlockSlots {
    Index starts = 0;
    Index states = 0;
    Index tapes = 0;

    /// Whether 31 bits number them all.
    bool have_numbers() const {
        constexpr Index numbers = Index{1} << 31;
        return starts < numbers && states < numbers && tapes < numbers && starts + states + tapes < numbers;
    }
};

class Blocks final : public BlockSchedule {
public:
    /// Cuts the chain by `outermost`, and its blocks `deeper` more times into `count` blocks each.
    Blocks(Index steps, Cut outermost, Index deeper, Index count, bool needs_state);

    static BlockSlots slots(Index steps, const Cut& outermost, Index deeper, Index count, bool needs_state);

private:
    enum class Phase { descend, sweep, record, reverse, done };

    /// A range that is cut, and the block of it in work.
    struct Level {
        Range range;
        Index count;
        Index length;
        Index block;
    };

    void begin() override;
    std::size_t generate(std::span<Action> out) override;
    Action* descend(Action* to);
    Action* sweep(Action* to);
    Action* record(Action* to, const Action* last_start);
    Action* reverse(Action* to, const Action* last_start);
    Index start(const Level& level, Index block) const;
    Slot state_slot(Index link) const;

    Index steps_;
    Cut outermost_;
    Index depth_;
    Index count_;
    bool needs_state_;
    BlockSlots slots_;

    std::vector<Level> levels_;  // those that are open; never more than depth_
    Phase phase_ = Phase::descend;
    Range now_{};        // the block that is cut or recorded next
    bool held_ = false;  // its start lies in the topmost slot of starts, not in the working state
    Index kept_ = 0;     // starts
    Index link_ = 0;
    Index tapes_ = 0;  // the tape of link i of this block has slot tapes_ + i
    bool turned_ = false;
};

}  // namespace backsweep
