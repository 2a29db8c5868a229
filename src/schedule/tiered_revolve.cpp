// SPDX-License-Identifier: MIT
#include "backsweep/schedule/tiered_revolve.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "schedule/binomial_walk.hpp"
#include "schedule/block_schedule.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace backsweep {
namespace {

constexpr Index longest_chain = Index{1} << 62;
constexpr Index most_slots = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t bytes_a_depth = 48;  // two slots, a step and its place among the binomials

Index links_of(const TieredRevolveOptions& options) {
    return options.steps + (options.needs_state ? 1 : 0);
}

/// Depths that a schedule can use; the sum of the slots may pass 2^63.
Index depths_of(const TieredRevolveOptions& options) {
    const Index useful = std::max<Index>(links_of(options) - 1, 0);
    const Index ram = std::min(options.ram_slots, useful);
    return ram + std::min(options.disk_slots, useful - ram);
}

void require(const TieredRevolveOptions& options) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
}

std::vector<DepthCount> depth_counts(const TieredRevolveOptions& options) {
    const BlockRun whole{links_of(options), 1};
    std::vector<DepthCount> counts = count_depths({&whole, 1}, depths_of(options), options.rule);
    counts.resize(static_cast<std::size_t>(depths_of(options)));
    return counts;
}

/// The most accessed depths in RAM, the lower one if two are equal [SW09].
std::vector<Tier> tiers_of(const std::vector<DepthCount>& counts, Index ram_slots) {
    std::vector<std::size_t> order(counts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return counts[a].writes + counts[a].reads > counts[b].writes + counts[b].reads;
    });
    std::vector<Tier> tiers(counts.size(), Tier::disk);
    for (std::size_t i = 0; i < order.size() && static_cast<Index>(i) < ram_slots; ++i) tiers[order[i]] = Tier::ram;
    return tiers;
}

class TieredRevolve final : public BlockSchedule {
public:
    TieredRevolve(const TieredRevolveOptions& options, std::vector<Slot> places)
        : way_{options.steps, options.needs_state},
          walk_(std::move(places), options.rule) {
        begin();
    }

private:
    void begin() override {
        way_.turned = false;
        walk_.rest();
        if (way_.links() > 0) walk_.begin(0, way_.links());
    }

    std::size_t generate(std::span<Action> out) override {
        Action* to = walk_.walk(out.data(), out.data() + (out.size() - reach), way_);
        if (!walk_.walking()) {
            if (!way_.turned) *to++ = emit::turn(way_.steps);  // no link at all
            way_.turned = true;
            *to++ = emit::done();
        }
        return static_cast<std::size_t>(to - out.data());
    }

    WayBack way_;
    BinomialWalk walk_;
};

}  // namespace

std::string TieredRevolveOptions::problem() const {
    const auto came = [](const char* what, Index value) {
        return std::string("tiered_revolve: ") + what + ", came " + std::to_string(value);
    };
    if (steps < 0 || steps > longest_chain) {
        return came("steps must lie in 0 ... 2^62", steps) + "; give the number of links of the chain";
    }
    if (ram_slots < 0) return came("ram_slots must be 0 or more", ram_slots);
    if (disk_slots < 0) return came("disk_slots must be 0 or more", disk_slots);
    if (ram_slots == 0 && disk_slots == 0) {
        return "tiered_revolve: no slot was given, but x_0 takes one; give a RAM slot or a disk slot";
    }
    if (rule != SweepRule::fewest_writes && rule != SweepRule::maximum) {
        return came("rule must be fewest_writes or maximum", static_cast<Index>(rule));
    }
    if (depths_of(*this) > most_slots) {
        return came("more than the 2147483647 slots that have numbers would be used", depths_of(*this)) +
               "; give fewer slots";
    }
    if (static_cast<std::size_t>(depths_of(*this)) > most_table_bytes / bytes_a_depth) {
        return came("the slots that would be used take more than most_table_bytes", depths_of(*this)) + " slots of " +
               std::to_string(bytes_a_depth) + " bytes; give fewer slots, or allow more bytes";
    }
    return {};
}

TieredRevolveCounts tiered_revolve_counts(const TieredRevolveOptions& options) {
    require(options);
    TieredRevolveCounts result;
    const std::vector<DepthCount> counts = depth_counts(options);
    result.advances = counts.empty() ? 0 : revolve_advances(links_of(options), static_cast<Index>(counts.size()));
    if (options.needs_state && options.steps > 0) --result.advances;  // the first sweep records the last link
    result.tiers = tiers_of(counts, options.ram_slots);
    for (std::size_t depth = 0; depth < counts.size(); ++depth) {
        result.writes.push_back(counts[depth].writes);
        result.reads.push_back(counts[depth].reads);
        if (result.tiers[depth] == Tier::ram) continue;
        result.disk_writes += counts[depth].writes;
        result.disk_reads += counts[depth].reads;
    }
    return result;
}

std::size_t tiered_revolve_table_bytes(const TieredRevolveOptions& options) {
    require(options);
    return static_cast<std::size_t>(depths_of(options)) * bytes_a_depth;
}

std::unique_ptr<Schedule> tiered_revolve(const TieredRevolveOptions& options) {
    require(options);
    std::vector<Slot> places;
    std::int32_t ram = 0;
    std::int32_t disk = 0;
    for (const Tier tier : tiers_of(depth_counts(options), options.ram_slots)) {
        places.push_back({tier, tier == Tier::ram ? ram++ : disk++});
    }
    return std::make_unique<TieredRevolve>(options, std::move(places));
}

}  // namespace backsweep
