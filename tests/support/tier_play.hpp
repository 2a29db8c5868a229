// A schedule over tiers before the referee, at the prices and within the slots that it was made for.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/multistage.hpp"
#include "backsweep/schedule/referee.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace backsweep::test {

inline bool same_price(double a, double b) {
    return std::abs(a - b) <= 1e-9 * std::max({std::abs(a), std::abs(b), 1e-3});
}

/// What the referee saw of multistage(options), and what each level was used for.
struct LevelPlay : Play {
    std::vector<Index> level_writes, level_reads;
};

/// Plays multistage(options). Levels may share a tier, one behind the other, so each access is priced by its slot.
inline LevelPlay play_levels(const MultistageOptions& options) {
    Machine machine;
    machine.costs.advance = [&](Index) { return options.advance; };
    machine.costs.reverse = [&](Index) { return options.reverse; };
    machine.costs.uniform = true;
    machine.limits.slots = {0, 0, 0, 0};
    machine.needs_state = options.needs_state;
    const Index links = options.steps + (options.needs_state ? 1 : 0);
    struct Place {
        Tier tier;
        Index first, last;
    };
    std::vector<Place> places;
    for (const Level& level : options.levels) {
        Index& limit = machine.limits.slots[static_cast<std::size_t>(level.tier)];
        if (level.slots < 0) {
            places.push_back({level.tier, limit, std::numeric_limits<Index>::max()});
            limit = -1;
        } else {
            const Index used = std::min(level.slots, std::max<Index>(links - 1, 0));
            places.push_back({level.tier, limit, limit + used});
            limit += used;
        }
    }
    LevelPlay all{referee(*multistage(options), options.steps, {}, machine), {}, {}};
    all.level_writes.assign(places.size(), 0);
    all.level_reads = all.level_writes;
    const auto count = [&](std::vector<Index>& of, Slot slot) {
        for (std::size_t k = 0; k < places.size(); ++k)
            if (places[k].tier == slot.tier && slot.index >= places[k].first && slot.index < places[k].last) ++of[k];
    };
    const auto schedule = multistage(options);
    for (Action a = schedule->next(); a.verb != Verb::done; a = schedule->next()) {
        if (a.verb == Verb::save) count(all.level_writes, a.to);
        if (a.verb == Verb::load || a.verb == Verb::take) count(all.level_reads, a.from);
    }
    for (std::size_t k = 0; k < places.size(); ++k)
        all.cost += static_cast<double>(all.level_writes[k]) * options.levels[k].write +
                    static_cast<double>(all.level_reads[k]) * options.levels[k].read;
    return all;
}

}  // namespace backsweep::test
