// SPDX-License-Identifier: MIT
#include "backsweep/schedule/periodic_disk.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "schedule/binomial_walk.hpp"
#include "schedule/block_schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace backsweep {
namespace {

constexpr Index longest_chain = Index{1} << 62;
constexpr Index most_slots = std::numeric_limits<std::int32_t>::max();

/// The chain cut into blocks of `period` links and a tail; useful RAM slots.
struct Cut {
    Index period;
    Index blocks;
    Index tail;
    Index slots;
};

Cut cut(const PeriodicDiskOptions& options) {
    const Index period = periodic_disk_period(options);
    const Index links = options.steps + (options.needs_state ? 1 : 0);
    const Index blocks = links > 2 ? (links - 2) / period : 0;
    if (blocks > most_slots) {
        throw InvalidArgument("periodic_disk: " + std::to_string(blocks) +
                              " states on disk are more than the 2147483647 slots that have numbers; give a longer "
                              "period or more RAM slots");
    }
    const Index tail = links - blocks * period;
    const Index useful = std::max<Index>(std::max(tail, blocks > 0 ? period : 0) - 1, 1);
    if (std::min(options.ram_slots, useful) > most_slots) {
        throw InvalidArgument("periodic_disk: " + std::to_string(options.ram_slots) +
                              " RAM slots are more than the 2147483647 that have numbers; give fewer");
    }
    return {period, blocks, tail, std::min(options.ram_slots, useful)};
}

class PeriodicDisk final : public BlockSchedule {
public:
    PeriodicDisk(const PeriodicDiskOptions& options, const Cut& cut)
        : cut_(cut),
          way_{options.steps, options.needs_state},
          walk_(cut.slots, {Tier::ram, 0}) {
        begin();
    }

private:
    void begin() override {
        way_.turned = false;
        block_ = 0;
        sweeping_ = way_.links() > 0;
        walk_.rest();
    }

    static Slot disk(Index block) { return {Tier::disk, static_cast<std::int32_t>(block)}; }

    std::size_t generate(std::span<Action> out) override {
        Action* to = out.data();
        const Action* const last_start = to + (out.size() - reach);
        while (to <= last_start) {
            const Index at = block_ * cut_.period;
            if (walk_.walking()) {
                to = walk_.walk(to, last_start, way_);
            } else if (sweeping_ && block_ < cut_.blocks) {
                *to++ = emit::save(at, disk(block_++));
                *to++ = emit::advance(at, at + cut_.period);
            } else if (sweeping_) {
                sweeping_ = false;
                walk_.begin(at, at + cut_.tail);
            } else if (block_ > 0) {
                --block_;
                *to++ = emit::take(at - cut_.period, disk(block_));
                walk_.begin(at - cut_.period, at);
            } else {
                if (!way_.turned) *to++ = emit::turn(way_.steps);  // no link at all
                way_.turned = true;
                *to++ = emit::done();
                break;
            }
        }
        return static_cast<std::size_t>(to - out.data());
    }

    Cut cut_;
    WayBack way_;
    BinomialWalk walk_;
    Index block_ = 0;  // blocks before the working state
    bool sweeping_ = false;
};

}  // namespace

std::string PeriodicDiskOptions::problem() const {
    const auto came = [](const char* what, const auto& value) {
        return std::string("periodic_disk: ") + what + ", came " + std::to_string(value);
    };
    const auto is_price = [](double price) { return std::isfinite(price) && price >= 0.0; };
    if (steps < 0 || steps > longest_chain) {
        return came("steps must lie in 0 ... 2^62", steps) + "; give the number of links of the chain";
    }
    if (ram_slots < 1) return came("ram_slots must be 1 or more", ram_slots) + "; a block is reversed in RAM";
    if (!is_price(write)) return came("write must be a price of 0 or more", write);
    if (!is_price(read)) return came("read must be a price of 0 or more", read);
    if (!is_price(advance)) return came("advance must be a price of 0 or more", advance);
    if (!is_price(reverse)) return came("reverse must be a price of 0 or more", reverse);
    if (period < 0) return came("period must be 1 or more, or 0 for the best one", period);
    return {};
}

Index periodic_disk_period(const PeriodicDiskOptions& options) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
    if (options.period > 0) return std::min(options.period, longest_chain);
    const double both = options.write + options.read;
    const Index slots = std::min(options.ram_slots, longest_chain);
    const auto suffices = [&](Index t) { return static_cast<double>(binomial(slots + 1, t)) * options.advance > both; };
    Index high = 1;
    while (!suffices(high)) {
        if (binomial(slots, high) >= longest_chain) return longest_chain;
        high *= 2;
    }
    Index low = 0;
    while (low < high) {
        const Index middle = low + (high - low) / 2;
        if (suffices(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return std::min(binomial(slots, low), longest_chain);
}

PeriodicDiskCounts periodic_disk_counts(const PeriodicDiskOptions& options) {
    const Cut cut = backsweep::cut(options);
    PeriodicDiskCounts counts;
    counts.period = cut.period;
    counts.disk_writes = counts.disk_reads = cut.blocks;
    if (options.needs_state && options.steps > 0) --counts.advances;  // the first sweep records the last link
    const std::array<BlockRun, 2> blocks{{{cut.period, cut.blocks}, {cut.tail, 1}}};
    for (const BlockRun& block : blocks) {
        if (block.count == 0) continue;
        Index advances = revolve_advances(block.links, cut.slots);
        if (&block == blocks.data()) advances += block.links;
        if (__builtin_mul_overflow(advances, block.count, &advances) ||
            __builtin_add_overflow(counts.advances, advances, &counts.advances)) {
            throw InvalidArgument("periodic_disk: the advances of " + std::to_string(options.steps) +
                                  " steps pass 2^63 - 1; give more RAM slots or a shorter period");
        }
    }
    for (const DepthCount& depth : count_depths(blocks, cut.slots, SweepRule::fewest_writes)) {
        counts.ram_writes += depth.writes;
        counts.ram_reads += depth.reads;
    }
    counts.cost = options.advance * static_cast<double>(counts.advances) +
                  options.reverse * static_cast<double>(options.steps) +
                  (options.write + options.read) * static_cast<double>(cut.blocks);
    return counts;
}

std::unique_ptr<Schedule> periodic_disk(const PeriodicDiskOptions& options) {
    return std::make_unique<PeriodicDisk>(options, cut(options));
}

}  // namespace backsweep
