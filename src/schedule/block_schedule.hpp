// A schedule that writes its actions in runs: next() serves them from a small block, fill() writes them where they go.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace backsweep {

class BlockSchedule : public Schedule {
public:
    Action next() final {
        if (head_ == tail_) refill();
        return block_[head_++];
    }

    std::size_t fill(std::span<Action> out) final {
        std::size_t written = 0;
        while (written < out.size()) {
            if (head_ == tail_ && out.size() - written >= reach) {
                written += generate(out.subspan(written));
            } else {
                out[written++] = next();
            }
            if (out[written - 1].verb == Verb::done) break;
        }
        return written;
    }

    void rewind() final {
        head_ = tail_ = 0;
        begin();
    }

protected:
    /// The least room that generate() is given: no family writes more actions between two looks at the room left.
    static constexpr std::size_t reach = 8;

    /// Writes the next actions (at least one) and returns how many; the first `done` is the last one written.
    virtual std::size_t generate(std::span<Action> out) = 0;

    /// Back to the first action.
    virtual void begin() = 0;

private:
    [[gnu::noinline]] void refill() {
        head_ = 0;
        tail_ = generate(block_);
    }

    /// Long enough that the branch to refill() is seldom mispredicted: at 64 actions next() takes nearly twice as long.
    std::array<Action, 256> block_{};
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
};

}  // namespace backsweep
