// Schedules over tiers: time to plan, memory of the tables, nanoseconds an action.
// SPDX-License-Identifier: MIT
#include "backsweep/schedule/multistage.hpp"
#include "backsweep/schedule/periodic_disk.hpp"
#include "backsweep/schedule/tiered_revolve.hpp"
#include "backsweep/schedule/two_level.hpp"
#include "rows.hpp"
#include "timing.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace backsweep;

namespace {

constexpr int runs = 5;

/// Plans, then plays the whole stream in bulk.
template <class Make>
void row(const std::string& what, std::size_t table_bytes, const Make& make, const char* floor) {
    std::unique_ptr<Schedule> schedule;
    const double plan = median_of<runs>([&] {
        const double begin = seconds();
        schedule = make();
        return seconds() - begin;
    });
    std::vector<Action> block(1024);
    Index actions = 0;
    const double bulk = median_of<runs>([&] {
        schedule = make();
        actions = 0;
        const double begin = seconds();
        std::size_t came = 0;
        do {
            came = schedule->fill(block);
            actions += static_cast<Index>(came);
            asm volatile("" : : "r"(block.data()) : "memory");
        } while (block[came - 1].verb != Verb::done);
        return seconds() - begin;
    });
    std::printf("%-44s %9.2f ms  %8.1f KB  %5.2f ns/action in bulk, %.1f M actions  %s\n", what.c_str(), 1e3 * plan,
                1e-3 * static_cast<double>(table_bytes), 1e9 * bulk / static_cast<double>(actions),
                1e-6 * static_cast<double>(actions), floor);
}

void levels_row(const char* what, Index steps, std::vector<Level> levels, const char* floor,
                LevelReads reads = LevelReads::many) {
    MultistageOptions options;
    options.steps = steps;
    options.levels = std::move(levels);
    options.reads = reads;
    row(
        what, multistage_table_bytes(options), [&] { return multistage(options); }, floor);
}

}  // namespace

void bench_tiers() {
    constexpr Index million = 1000000;
    std::puts("Levels with prices: time to plan, tables, emission");
    levels_row("n 10^4, 10 RAM + 10 disk", 10000, {{Tier::ram, 10}, {Tier::disk, 10, 2, 2}}, "floor 150 ms");
    levels_row("n 10^4, 10 + 10, RAM has prices", 10000, {{Tier::ram, 10, 0.5, 0.25}, {Tier::disk, 10, 5, 3}}, "");
    levels_row("n 10^4, 5 + 10 + 20", 10000, {{Tier::ram, 5}, {Tier::pinned, 10, 2, 1}, {Tier::disk, 20, 10, 5}}, "");
    for (const auto& [price, read, floor] :
         {std::tuple{2.0, 2.0, "floor 50 ms"}, {100.0, 50.0, "floor 300 ms"}, {1000.0, 1000.0, "floor 1500 ms"}}) {
        const std::string what = "n 10^6, 3 RAM + unlimited disk at " + std::to_string(static_cast<int>(price)) + "/" +
                                 std::to_string(static_cast<int>(read));
        levels_row(what.c_str(), million, {{Tier::ram, 3}, {Tier::disk, -1, price, read}}, floor);
        levels_row("    read once", million, {{Tier::ram, 3}, {Tier::disk, -1, price, read}}, "", LevelReads::one);
    }
    levels_row("n 10^6, 20 RAM + unlimited disk at 1000/1000", million, {{Tier::ram, 20}, {Tier::disk, -1, 1000, 1000}},
               "");
    std::puts("Tiers without a table");
    TieredRevolveOptions tiered;
    tiered.steps = million;
    tiered.ram_slots = tiered.disk_slots = 10;
    row(
        "tiered_revolve, n 10^6, 10 + 10", tiered_revolve_table_bytes(tiered), [&] { return tiered_revolve(tiered); },
        "");
    PeriodicDiskOptions periodic;
    periodic.steps = million;
    periodic.ram_slots = 3;
    periodic.write = periodic.read = 1000.0;
    row(
        "periodic_disk, n 10^6, 3 RAM at 1000/1000", 0, [&] { return periodic_disk(periodic); }, "");
    TwoLevelOptions two;
    two.period = 1000;
    two.extra_slots = 10;
    row(
        "two_level, n 10^6, period 1000, 10 extra", 0,
        [&] {
            auto schedule = two_level(two);
            schedule->finish(million);
            return schedule;
        },
        "");
}
