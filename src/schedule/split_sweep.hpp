// A walk that was decided beforehand: where every segment is split, and whether a state or a tape is kept there.
// SPDX-License-Identifier: MIT
#pragma once

#include "schedule/block_schedule.hpp"
#include "schedule/way_back.hpp"

#include <vector>

namespace backsweep {

/// How a segment of two or more links is reversed: advance to a place, keep something there, reverse what lies above,
/// go back to the start of the segment and reverse what lies below.
struct Split {
    Index links;  ///< of the lower part, a kept tape's own link included
    bool tape;    ///< the lower part's last link is recorded and its tape kept, not the state behind it
};

/// The splits of a whole reversal in the order in which a walk meets them: upper part first. The start of a segment is
/// saved when something of it is left below, and taken at its last read.
class SplitSweep final : public BlockSchedule {
public:
    /// `restart`: a segment that begins behind a kept tape takes its start out of that tape and saves none.
    /// `needs_state` (no tapes then): the splits are those of a chain one link longer. Slots from number `ram` on, in
    /// order of keeping, are disk slots 0, 1, ...
    SplitSweep(Index steps, std::vector<Split> splits, bool restart, bool needs_state, Index ram);

private:
    /// Where the start of a segment lies beside the working state.
    enum class Origin : std::int32_t { nowhere, state, tape };

    /// What is left to do below: a segment, or, if it is empty, the tape of the link at `first`.
    struct Frame {
        Range links;
        Origin origin;
        std::int32_t slot;
    };

    void begin() override;
    std::size_t generate(std::span<Action> out) override;
    Action* split(Action* to);
    Action* resume(Action* to);
    Slot slot(std::int32_t number) const;

    WayBack way_;
    std::vector<Split> splits_;
    bool restart_;
    Index ram_;

    std::vector<Frame> frames_;  // capacity from a first walk in the constructor
    std::size_t met_ = 0;        // splits
    std::int32_t used_ = 0;      // slots
    Frame now_{};                // the segment at whose start the working state is
    bool finished_ = false;
};

}  // namespace backsweep
