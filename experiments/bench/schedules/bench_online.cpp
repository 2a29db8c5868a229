// Open-ended schedules: nanoseconds a step of the open sweep, and the time to plan the completion.
// SPDX-License-Identifier: MIT
#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/online.hpp"
#include "rows.hpp"
#include "timing.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

using namespace backsweep;

namespace {

constexpr int runs = 7;

void open_sweep(Index slots, Index steps, OnlinePolicy policy, const char* floor) {
    const auto schedule = online({.slots = slots, .policy = policy});
    const double whole = median_of<runs>([&] {
        schedule->rewind();
        const double begin = seconds();
        Action action;
        do {
            action = schedule->next();
            asm volatile("" : : "r"(&action) : "memory");
        } while (action.verb != Verb::advance || action.steps.last < steps);
        return seconds() - begin;
    });
    std::printf("%-9s %7lld slots, %8lld steps  %9.2f ns/step    %s\n",
                policy == OnlinePolicy::greedy ? "online" : "wang_moin", static_cast<long long>(slots),
                static_cast<long long>(steps), 1e9 * whole / static_cast<double>(steps), floor);
}

/// The states of an online sweep, at the end of it.
void completion_of(Index slots, Index steps) {
    const auto schedule = online({.slots = slots});
    std::vector<Stored> stored(static_cast<std::size_t>(slots));
    Action action;
    do {
        action = schedule->next();
        if (action.verb == Verb::save)
            stored[static_cast<std::size_t>(action.to.index)] = {action.steps.first, action.to};
    } while (action.verb != Verb::advance || action.steps.last < steps);
    Completion planned;
    const double begin = seconds();
    planned = completion(stored, slots, steps);
    std::printf("complete  %7lld slots, %8lld steps  %9.2f ms to plan, %lld segments priced\n",
                static_cast<long long>(slots), static_cast<long long>(steps), 1e3 * (seconds() - begin),
                static_cast<long long>(planned.priced));
}

/// Uneven gaps that no sweep would leave.
void completion_of_uneven(std::int32_t states) {
    std::vector<Stored> stored;
    Index step = 0;
    std::uint32_t random = 2027;
    for (std::int32_t i = 0; i < states; ++i) {
        stored.push_back({step, {Tier::ram, i}});
        random = random * 1664525u + 1013904223u;
        step += 1 + static_cast<Index>((random >> 8) % 200) * (i % 50 == 0 ? 50 : 1);
    }
    const double begin = seconds();
    const Completion planned = completion(stored, states, step + 1000);
    std::printf("complete  %7d uneven states          %9.2f ms to plan, %lld segments priced\n", states,
                1e3 * (seconds() - begin), static_cast<long long>(planned.priced));
}

}  // namespace

void bench_online() {
    std::puts("Open-ended chains");
    for (const Index slots : {5, 10, 20, 50, 100, 300, 1000}) {
        for (const Index steps : {5000, 50000, 1000000, 5000000}) {
            open_sweep(slots, steps, OnlinePolicy::greedy, slots == 100 ? "floor 30" : "");
        }
    }
    for (const Index slots : {20, 100, 1000}) open_sweep(slots, 1000000, OnlinePolicy::wang_moin, "");
    for (const Index slots : {20, 100, 300, 1000, 5000}) completion_of(slots, std::max<Index>(100000, slots * slots));
    for (const std::int32_t states : {300, 301, 1000, 10000, 100000}) completion_of_uneven(states);
}
