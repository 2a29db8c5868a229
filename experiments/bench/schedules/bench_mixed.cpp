// Mixed, nonuniform and segmented schedules, and revolve's other rules: time to plan, memory of the tables, nanoseconds
// an action.
// SPDX-License-Identifier: MIT
#include "backsweep/schedule/mixed.hpp"
#include "backsweep/schedule/nonuniform.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/segments.hpp"
#include "rows.hpp"
#include "timing.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

constexpr int runs = 3;

/// Plans, then plays the stream one by one and in bulk.
template <class Make>
void row(const std::string& what, Index steps, std::size_t table_bytes, const Make& make, const char* floor) {
    std::unique_ptr<Schedule> schedule;
    const double plan = median_of<runs>([&] {
        const double begin = seconds();
        schedule = make();
        return seconds() - begin;
    });
    Index actions = 0;
    const double single = median_of<runs>([&] {
        schedule->rewind();
        actions = 0;
        const double begin = seconds();
        Action action;
        do {
            action = schedule->next();
            ++actions;
            asm volatile("" : : "r"(&action) : "memory");
        } while (action.verb != Verb::done);
        return seconds() - begin;
    });
    std::vector<Action> block(1024);
    const double bulk = median_of<runs>([&] {
        schedule->rewind();
        const double begin = seconds();
        std::size_t came = 0;
        do {
            came = schedule->fill(block);
            asm volatile("" : : "r"(block.data()) : "memory");
        } while (block[came - 1].verb != Verb::done);
        return seconds() - begin;
    });
    const auto count = static_cast<double>(actions);
    std::printf("%-44s %8.1f ms  %7.1f MB  %5.2f ns/action by next()  %5.2f in bulk  %5.3f actions/step  %s\n",
                what.c_str(), 1e3 * plan, 1e-6 * static_cast<double>(table_bytes), 1e9 * single / count,
                1e9 * bulk / count, count / static_cast<double>(steps), floor);
}

void mixed_row(const MixedOptions& options, const char* floor) {
    const std::string what = "mixed, n " + std::to_string(options.steps) + ", " + std::to_string(options.units) +
                             " units, tape " + std::to_string(options.tape_units) +
                             (options.restart ? "" : ", no restart");
    row(
        what, options.steps, mixed_table_bytes(options), [&] { return mixed(options); }, floor);
}

void nonuniform_row(Index steps, Index slots) {
    NonuniformOptions options;
    for (Index i = 0; i < steps; ++i) options.costs.push_back(static_cast<double>(1 + (i * 7919) % 101));
    options.slots = slots;
    row(
        "nonuniform, n " + std::to_string(steps) + ", " + std::to_string(slots) + " slots", steps,
        nonuniform_table_bytes(options), [&] { return nonuniform(options); }, "");
}

void revolve_row(const char* what, const RevolveOptions& options, const char* floor) {
    row(
        what, options.steps, revolve_table_bytes(options), [&] { return revolve(options); }, floor);
}

}  // namespace

void bench_mixed() {
    std::puts("States and tapes in one budget: time to plan, tables, emission");
    for (const bool restart : {true, false}) {
        for (const Index a : {4, 7}) mixed_row({10000, 64, a, restart}, "floor 1500 ms");
    }
    mixed_row({1000000, 64, 1, true}, "");
    std::puts("Unequal links");
    nonuniform_row(1000, 10);
    nonuniform_row(1000, 100);
    nonuniform_row(4000, 20);
    std::puts("Segments, and revolve's other rules");
    row(
        "segments, n 10^6, 1000", 1000000, 0,
        [] {
            return segments({1000000, 1000});
        },
        "");
    row(
        "segments, n 10^6, 10 in 6 levels", 1000000, 0,
        [] {
            return segments({1000000, 10, 0, 6});
        },
        "");
    RevolveOptions options{1000000, 20};
    revolve_row("revolve, n 10^6, 20 slots", options, "floor 4 ns/action");
    options.rule = AdvanceRule::aligned;
    options.align = 64;
    revolve_row("revolve, aligned to 64", options, "");
    options = {10000, 20, AdvanceRule::fewest_disk};
    options.ram = 10;
    revolve_row("revolve, n 10^4, fewest_disk, 10 in RAM", options, "");
}
