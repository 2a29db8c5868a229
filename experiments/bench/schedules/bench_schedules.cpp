// What a schedule costs: nanoseconds an action, in bulk and one by one, and the time to the first action.
// Process time, so that a busy neighbour disturbs less; medians of repeated runs.
// SPDX-License-Identifier: MIT
#include "rows.hpp"
#include "timing.hpp"

#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#ifdef BACKSWEEP_BENCH_ADOLC
#include <adolc/revolve.h>
#endif

using namespace backsweep;

namespace {

constexpr int runs = 9;

using Make = std::function<std::unique_ptr<Schedule>()>;

/// Plans and emits the whole stream; keeps the compiler from leaving the actions out.
struct Emission {
    double seconds;
    Index actions;
};

Emission emit_in_bulk(const Make& make) {
    std::vector<Action> block(1024);
    const double start = seconds();
    const auto schedule = make();
    Index actions = 0;
    std::size_t came = 0;
    do {
        came = schedule->fill(block);
        actions += static_cast<Index>(came);
        asm volatile("" : : "r"(block.data()) : "memory");
    } while (block[came - 1].verb != Verb::done);
    return {seconds() - start, actions};
}

Emission emit_one_by_one(const Make& make) {
    const double start = seconds();
    const auto schedule = make();
    Index actions = 0;
    Action action;
    do {
        action = schedule->next();
        ++actions;
        asm volatile("" : : "r"(&action) : "memory");
    } while (action.verb != Verb::done);
    return {seconds() - start, actions};
}

void emission(const char* name, Index steps, const Make& make) {
    const Index actions = emit_in_bulk(make).actions;
    const double bulk = median_of<runs>([&] { return emit_in_bulk(make).seconds; });
    const double single = median_of<runs>([&] { return emit_one_by_one(make).seconds; });
    const auto count = static_cast<double>(actions);
    std::printf("%-28s %9.2f ms  %5.2f ns/action in bulk  %5.2f by next()  %5.3f actions/step\n", name, 1e3 * bulk,
                1e9 * bulk / count, 1e9 * single / count, count / static_cast<double>(steps));
}

void start(const char* name, Index steps, Index slots) {
    const double first = median_of<runs>([&] {
        const double begin = seconds();
        const auto schedule = revolve(steps, slots);
        const Action action = schedule->next();
        asm volatile("" : : "r"(&action) : "memory");
        return seconds() - begin;
    });
    std::printf("%-28s %9.2f us to the first action\n", name, 1e6 * first);
}

void completion(const char* name, Index steps, Index slots) {
    std::vector<Stored> stored;
    for (std::int32_t i = 0; i < 300; ++i) stored.push_back({i * (steps / 300) + i % 7, {Tier::ram, i}});
    stored.front().step = 0;
    const double plan = median_of<runs>([&] {
        const double begin = seconds();
        const auto schedule = complete(stored, slots, steps);
        return seconds() - begin;
    });
    std::printf("%-28s %9.2f ms to plan\n", name, 1e3 * plan);
}

#ifdef BACKSWEEP_BENCH_ADOLC
void peer(const char* name, int steps, int slots) {
    Index actions = 0;
    const double bulk = median_of<runs>([&] {
        int check = -1;
        int capo = 0;
        int fine = steps;
        int info = 0;
        actions = 0;
        const double begin = seconds();
        for (;;) {
            const revolve_action action = ::revolve(&check, &capo, &fine, slots, &info);
            ++actions;
            if (action == revolve_terminate || action == revolve_error) break;
        }
        return seconds() - begin;
    });
    const auto count = static_cast<double>(actions);
    std::printf("%-28s %9.2f ms  %5.2f ns/action one by one  %5.3f actions/step\n", name, 1e3 * bulk,
                1e9 * bulk / count, count / static_cast<double>(steps));
}
#endif

}  // namespace

int main() {
    constexpr Index million = 1000000;
    std::puts("A million steps");
    for (const Index slots : {3, 10, 20, 100, 1000, 100000}) {
        const std::string name = "revolve, " + std::to_string(slots) + " slots";
        emission(name.c_str(), million, [slots] { return revolve(million, slots); });
    }
    emission("revolve, 20, needs_state", million,
             [] { return revolve(million, 20, AdvanceRule::fewest_writes, true); });
    emission("store_all", million, [] { return store_all(million); });
    emission("periodic, 1000", million, [] { return periodic(million, 1000); });
#ifdef BACKSWEEP_BENCH_ADOLC
    for (const int slots : {3, 10, 20, 100}) {
        const std::string name = "ADOL-C revolve, " + std::to_string(slots) + " slots";
        peer(name.c_str(), static_cast<int>(million), slots);
    }
#else
    std::puts("ADOL-C's revolve: not measured, libadolc-dev was not there when this was built");
#endif
    std::puts("Start");
    start("2^40 steps, 100,000 slots", Index{1} << 40, 100000);
    start("2^40 steps, 10^8 slots", Index{1} << 40, 100000000);
    start("10^9 steps, 20 slots", 1000000000, 20);
    start("10^9 steps, 1 slot", 1000000000, 1);
    start("2^62 steps, 3 slots", Index{1} << 62, 3);
    start("2^62 steps, 10^6 slots", Index{1} << 62, 1000000);
    std::puts("Completion from 300 stored states");
    completion("5,000 steps, 300 slots", 5000, 300);
    completion("10^6 steps, 400 slots", million, 400);
    bench_online();
    bench_tiers();
    bench_mixed();
    bench_optimal_chain();
    bench_graph();
    return 0;
}
