// store_all is the case of one block.
// SPDX-License-Identifier: MIT
#include "backsweep/schedule/periodic.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "schedule/block_schedule.hpp"
#include "schedule/emit.hpp"

#include <algorithm>
#include <limits>

namespace backsweep {
namespace {

class Blocks final : public BlockSchedule {
public:
    Blocks(Index steps, Index period, bool needs_state)
        : steps_(steps),
          period_(period),
          outer_(steps == 0 ? 0 : (steps - 1) / period),
          inner_(needs_state ? period : 0),
          needs_state_(needs_state) {
        begin();
    }

private:
    enum class Phase { sweep, record, reverse, done };

    void begin() override {
        phase_ = Phase::sweep;
        block_ = 0;
        link_ = 0;
        turned_ = false;
    }

    Index first() const { return block_ * period_; }
    Index last() const { return std::min(steps_, first() + period_); }

    static Slot ram(Index index) { return {Tier::ram, static_cast<std::int32_t>(index)}; }
    Slot tape_slot(Index link) const { return ram(outer_ + inner_ + link - first()); }

    /// Where x_link lies for its reverse: the block's own start in the first slots, the others behind them. The last
    /// block has no slot among the first.
    Slot state_slot(Index link) const {
        return link == first() && block_ < outer_ ? ram(block_) : ram(outer_ + link - first());
    }

    std::size_t generate(std::span<Action> out) override {
        Action* to = out.data();
        const Action* const end = to + out.size();
        while (static_cast<std::size_t>(end - to) >= reach) {
            switch (phase_) {
                case Phase::sweep:
                    to = sweep(to);
                    break;
                case Phase::record:
                    to = record(to);
                    break;
                case Phase::reverse:
                    to = reverse(to);
                    break;
                case Phase::done:
                    *to++ = emit::done();
                    return static_cast<std::size_t>(to - out.data());
            }
        }
        return static_cast<std::size_t>(to - out.data());
    }

    /// The first sweep: one block advanced, its start kept.
    Action* sweep(Action* to) {
        if (steps_ == 0) {
            *to++ = emit::turn(0);
            phase_ = Phase::done;
        } else if (block_ == outer_) {
            link_ = first();
            phase_ = Phase::record;
        } else {
            *to++ = emit::save(first(), ram(block_));
            *to++ = emit::advance(first(), last());
            ++block_;
        }
        return to;
    }

    /// One link of a block on the way up.
    Action* record(Action* to) {
        const bool final_link = link_ + 1 == last();
        if (block_ < outer_ && link_ == first()) {
            const bool kept = needs_state_ && !final_link;
            *to++ = kept ? emit::load(link_, state_slot(link_)) : emit::take(link_, state_slot(link_));
        } else if (needs_state_ && !(final_link && turned_)) {
            *to++ = emit::save(link_, state_slot(link_));
        }
        if (!final_link) {
            *to++ = emit::record(link_);
            *to++ = emit::stow(link_, tape_slot(link_));
            ++link_;
            return to;
        }
        if (turned_) {
            *to++ = emit::tape(link_);
        } else {
            *to++ = emit::record(link_);
            *to++ = emit::turn(steps_);
            turned_ = true;
            if (needs_state_) *to++ = emit::take(link_, state_slot(link_));
        }
        *to++ = emit::reverse(link_);
        phase_ = Phase::reverse;
        return to;
    }

    /// The link below on the way down, or the next block.
    Action* reverse(Action* to) {
        if (link_ == first()) {
            if (block_ == 0) {
                phase_ = Phase::done;
            } else {
                --block_;
                link_ = first();
                phase_ = Phase::record;
            }
            return to;
        }
        --link_;
        *to++ = emit::fetch(link_, tape_slot(link_));
        if (needs_state_) *to++ = emit::take(link_, state_slot(link_));
        *to++ = emit::reverse(link_);
        return to;
    }

    Index steps_;
    Index period_;
    Index outer_;  // states kept by the first sweep; the number of the last block
    Index inner_;  // slots for states inside a block
    bool needs_state_;

    Phase phase_ = Phase::sweep;
    Index block_ = 0;
    Index link_ = 0;
    bool turned_ = false;
};

std::unique_ptr<Schedule> make_blocks(const char* family, Index steps, Index period, bool needs_state) {
    if (steps < 0) {
        throw InvalidArgument(std::string(family) + ": steps must be 0 or more, came " + std::to_string(steps) +
                              "; give the number of links of the chain");
    }
    period = std::min(period, std::max<Index>(steps, 1));
    // Neither sum can overflow: period and the number of blocks are at most steps, and only one of them is large.
    const Index blocks = steps / period + (needs_state ? 2 : 1) * std::min(period, Index{1} << 32);
    if (blocks > std::numeric_limits<std::int32_t>::max()) {
        throw InvalidArgument(std::string(family) + ": " + std::to_string(steps) + " steps with " +
                              std::to_string(period) +
                              " in a block want more than the 2147483647 slots that have "
                              "numbers; take revolve, or a period near the square root of the steps");
    }
    return std::make_unique<Blocks>(steps, period, needs_state);
}

}  // namespace

std::unique_ptr<Schedule> periodic(Index steps, Index period, bool needs_state) {
    if (period < 1) {
        throw InvalidArgument("periodic: period must be 1 or more, came " + std::to_string(period) +
                              "; give the number of links between kept states");
    }
    return make_blocks("periodic", steps, period, needs_state);
}

std::unique_ptr<Schedule> store_all(Index steps, bool needs_state) {
    return make_blocks("store_all", steps, std::max<Index>(steps, 1), needs_state);
}

}  // namespace backsweep
