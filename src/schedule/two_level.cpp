// SPDX-License-Identifier: MIT
#include "backsweep/schedule/two_level.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "schedule/binomial_walk.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace backsweep {
namespace {

constexpr Index longest_chain = Index{1} << 62;
constexpr Index most_slots = std::numeric_limits<std::int32_t>::max();

void require(const TwoLevelOptions& options) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
}

/// RAM slots that a block of `links` can use beside its start.
Index useful_slots(const TwoLevelOptions& options) {
    return std::min(options.extra_slots, std::max<Index>(options.period - 2, 0));
}

class TwoLevel final : public Schedule {
public:
    explicit TwoLevel(const TwoLevelOptions& options)
        : period_(options.period),
          walk_(useful_slots(options) + 1, {Tier::ram, -1}, options.rule) {}  // depth 0 is the block's start on disk

    Action next() override {
        if (head_ == tail_) {
            head_ = 0;
            tail_ = generate(block_);
        }
        return block_[head_++];
    }

    std::size_t fill(std::span<Action> out) override {
        std::size_t written = 0;
        while (written < out.size()) {
            if (head_ == tail_ && out.size() - written >= reach) {
                written += generate(out.subspan(written));
            } else {
                out[written++] = next();
            }
            const Verb last = out[written - 1].verb;
            if (last == Verb::done || (steps_ < 0 && last == Verb::advance)) break;
        }
        return written;
    }

    void rewind() override {
        head_ = tail_ = 0;
        steps_ = -1;
        at_ = 0;
        kept_ = 0;
        way_.turned = false;
        walk_.rest();
    }

    bool open() const noexcept override { return steps_ < 0; }

    void finish(Index steps) override {
        const std::string call = "finish(" + std::to_string(steps) + "): ";
        if (steps_ >= 0) {
            throw ScheduleError(call + "it was told already that the chain ends after " + std::to_string(steps_) +
                                " links; call finish once a sweep");
        }
        // Where the last advance began that was given out.
        const Index least = std::max<Index>(kept_ - 1, 0) * period_;
        if (steps < least || steps > longest_chain) {
            throw InvalidArgument(call + "the chain has come beyond x_" + std::to_string(least) +
                                  ", so it ends after that many links or more, 2^62 at most; give the number of links");
        }
        steps_ = way_.steps = steps;
        at_ = std::min(at_, steps);
    }

private:
    static constexpr std::size_t reach = 8;

    static Slot disk(Index block) { return {Tier::disk, static_cast<std::int32_t>(block)}; }

    /// One action of the first sweep, or as many as there is room for afterwards.
    std::size_t generate(std::span<Action> out) {
        Action* to = out.data();
        if (!way_.turned) {
            *to = sweep();
            return 1;
        }
        const Action* const last_start = to + (out.size() - reach);
        while (to <= last_start) {
            if (walk_.walking()) {
                to = walk_.walk(to, last_start, way_);
            } else if (kept_ > 0) {
                --kept_;
                const Index first = kept_ * period_;
                to = walk_.begin(to, first, at_, disk(kept_));
                at_ = first;
            } else {
                *to++ = emit::done();
                break;
            }
        }
        return static_cast<std::size_t>(to - out.data());
    }

    Action sweep() {
        if (at_ == steps_) {
            if (kept_ > 0 && (kept_ - 1) * period_ == steps_) {  // kept for an advance that was revoked
                --kept_;
                return emit::drop_state(steps_, disk(kept_));
            }
            way_.turned = true;
            return emit::turn(steps_);
        }
        if (kept_ * period_ == at_) {
            if (kept_ == most_slots || at_ > longest_chain) {
                throw ScheduleError("two_level: the chain has come to x_" + std::to_string(at_) +
                                    ", beyond 2^62 links or the 2147483647 disk slots that have numbers; call finish, "
                                    "or give a longer period");
            }
            return emit::save(at_, disk(kept_++));
        }
        const Index first = at_;
        at_ = kept_ * period_;
        if (steps_ >= 0) at_ = std::min(at_, steps_);
        return emit::advance(first, at_);
    }

    Index period_;
    BinomialWalk walk_;
    WayBack way_{};
    std::array<Action, 64> block_{};
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
    Index steps_ = -1;  // -1 until it is told
    Index at_ = 0;      // where the advances given out lead; on the way back, the end of what is left
    Index kept_ = 0;    // states on disk
};

}  // namespace

std::string TwoLevelOptions::problem() const {
    const auto came = [](const char* what, Index value) {
        return std::string("two_level: ") + what + ", came " + std::to_string(value);
    };
    if (period < 1 || period > longest_chain / 2) {
        return came("period must lie in 1 ... 2^61", period) + "; give the number of links between states on disk";
    }
    if (extra_slots < 0) return came("extra_slots must be 0 or more", extra_slots);
    if (rule != SweepRule::fewest_writes && rule != SweepRule::maximum) {
        return came("rule must be fewest_writes or maximum", static_cast<Index>(rule));
    }
    if (useful_slots(*this) >= most_slots) {
        return came("extra_slots must leave numbers for 2147483647 slots in all", extra_slots) + "; give fewer";
    }
    return {};
}

TwoLevelCounts two_level_counts(const TwoLevelOptions& options, Index steps) {
    require(options);
    if (steps < 0 || steps > longest_chain) {
        throw InvalidArgument("two_level: steps must lie in 0 ... 2^62, came " + std::to_string(steps));
    }
    const Index slots = useful_slots(options) + 1;
    const Index whole = steps / options.period;
    const Index rest = steps % options.period;
    const std::array<BlockRun, 2> blocks{{{options.period, whole}, {rest, rest > 0 ? 1 : 0}}};
    TwoLevelCounts counts;
    counts.advances = steps;
    counts.disk_writes = counts.disk_reads = whole + blocks[1].count;
    for (const BlockRun& block : blocks) {
        if (block.count == 0) continue;
        Index advances = revolve_advances(block.links, slots);
        if (__builtin_mul_overflow(advances, block.count, &advances) ||
            __builtin_add_overflow(counts.advances, advances, &counts.advances)) {
            throw InvalidArgument("two_level: the advances of " + std::to_string(steps) +
                                  " steps pass 2^63 - 1; give more slots or a shorter period");
        }
    }
    const std::vector<DepthCount> depths = count_depths(blocks, slots, options.rule);
    for (std::size_t depth = 1; depth < depths.size(); ++depth) {
        counts.ram_writes += depths[depth].writes;
        counts.ram_reads += depths[depth].reads;
    }
    if (!depths.empty()) counts.disk_reads += depths[0].reads;  // beside the first read of each block
    return counts;
}

std::unique_ptr<Schedule> two_level(const TwoLevelOptions& options) {
    require(options);
    return std::make_unique<TwoLevel>(options);
}

}  // namespace backsweep
