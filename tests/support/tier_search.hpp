// The cheapest reversal of a small chain by search over all states of an abstract machine; knows no recurrence.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/multistage.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace backsweep::test {

/// Dijkstra's search over advance, save, load, drop and reverse in any order. A level with slots -1 has as many as
/// there are steps. With needs_state the chain has to come to its end before the first reverse. At most 7 steps, 4
/// levels.
inline double cheapest_reversal(const MultistageOptions& options) {
    const int steps = static_cast<int>(options.steps);
    const int first_end = steps + (options.needs_state ? 1 : 0);
    if (first_end == 0) return 0.0;
    // What stands where, in one number: the working state (15: none), the links left, and a bit for each state kept on
    // each level.
    using State = std::uint64_t;
    constexpr int none = 15;
    const auto bit = [](std::size_t level, int step) { return State{1} << (8 + 8 * static_cast<int>(level) + step); };
    std::unordered_map<State, double> best;
    using Entry = std::pair<double, State>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const auto reach = [&](double cost, State kept, int at, int left) {
        const State state = kept | static_cast<State>(at) | static_cast<State>(left) << 4;
        const auto [known, fresh] = best.try_emplace(state, cost);
        if (!fresh && known->second <= cost) return;
        known->second = cost;
        queue.emplace(cost, state);
    };
    reach(0.0, 0, 0, first_end);
    while (!queue.empty()) {
        const double cost = queue.top().first;
        const State state = queue.top().second;
        queue.pop();
        const int at = static_cast<int>(state & 15);
        const int left = static_cast<int>(state >> 4 & 15);
        const State kept = state >> 8 << 8;
        if (left == 0) return cost;
        if (best.at(state) < cost) continue;
        if (at < left - 1) reach(cost + options.advance, kept, at + 1, left);
        // With needs_state the first "reverse" is the turn, at x_steps and for nothing.
        if (at == left - 1) reach(cost + (left > steps ? 0.0 : options.reverse), kept, none, left - 1);
        for (std::size_t k = 0; k < options.levels.size(); ++k) {
            const Level& level = options.levels[k];
            const bool room = level.slots < 0 || __builtin_popcountll(kept & bit(k, 0) * 255) < level.slots;
            if (at < left - 1 && room && (kept & bit(k, at)) == 0) {
                reach(cost + level.write, kept | bit(k, at), at, left);
            }
            for (int step = 0; step <= steps; ++step) {
                if ((kept & bit(k, step)) == 0) continue;
                if (step < left) reach(cost + level.read, kept, step, left);
                // A drop pays only where a slot is wanted, or the step lies behind what is left.
                if (!room || step >= left) reach(cost, kept & ~bit(k, step), at, left);
            }
        }
    }
    return std::numeric_limits<double>::infinity();
}

}  // namespace backsweep::test
