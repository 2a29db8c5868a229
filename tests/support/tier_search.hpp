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
/// there are steps. With needs_state the chain has to come to its end before the first reverse, a reverse wants the
/// state before its link, and the tape of any one link may be recorded ahead and wait, as long as every link is
/// recorded once. At most 7 steps, 4 levels.
inline double cheapest_reversal(const MultistageOptions& options) {
    const int steps = static_cast<int>(options.steps);
    // What stands where, in one number: the working state (15: none), the links left, a bit for each state kept on
    // each level, and with needs_state the working tape (0: none, else its link + 1) and whether the chain has turned.
    using State = std::uint64_t;
    constexpr int none = 15;
    const auto bit = [](std::size_t level, int step) { return State{1} << (8 + 8 * static_cast<int>(level) + step); };
    constexpr State tapes = State{7} << 40;
    constexpr State turned = State{8} << 40;
    const auto tape_of = [](int link) { return static_cast<State>(link + 1) << 40; };
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
    reach(0.0, options.needs_state ? 0 : turned, 0, steps);
    while (!queue.empty()) {
        const double cost = queue.top().first;
        const State state = queue.top().second;
        queue.pop();
        const int at = static_cast<int>(state & 15);
        const int left = static_cast<int>(state >> 4 & 15);
        const State kept = state >> 8 << 8;
        if (left == 0 && (kept & turned) != 0) return cost;
        if (best.at(state) < cost) continue;
        const State tape = kept & tapes;
        const bool back = (kept & turned) != 0;
        if (at < (back ? left - 1 : steps)) {
            reach(cost + options.advance, kept, at + 1, left);
            if (options.needs_state && tape == 0) reach(cost + options.reverse, kept | tape_of(at), at + 1, left);
        }
        if (!back && at == steps) reach(cost, kept | turned, at, left);
        if (back && at == left - 1 && tape == 0) reach(cost + options.reverse, kept, none, left - 1);
        if (back && at == left - 1 && tape == tape_of(at)) reach(cost, kept & ~tapes, none, left - 1);
        for (std::size_t k = 0; k < options.levels.size(); ++k) {
            const Level& level = options.levels[k];
            const bool room = level.slots < 0 || __builtin_popcountll(kept & bit(k, 0) * 255) < level.slots;
            if (at < left - (options.needs_state ? 0 : 1) && room && (kept & bit(k, at)) == 0) {
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
