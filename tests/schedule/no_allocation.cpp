// Emission and rewind allocate nothing, and a stack of very many slots touches only what it uses.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_no_allocation
#include "support/unit_test.hpp"

#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/forward_only.hpp"
#include "backsweep/schedule/mixed.hpp"
#include "backsweep/schedule/multistage.hpp"
#include "backsweep/schedule/online.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "backsweep/schedule/two_level.hpp"
#include "support/every_family.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include <unistd.h>

namespace {

long allocations = 0;

}  // namespace

// Not inlined: the compiler would see malloc where it expects new.
[[gnu::noinline]] void* operator new(std::size_t size) {
    ++allocations;
    if (void* const block = std::malloc(size)) return block;
    throw std::bad_alloc();
}

[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    ++allocations;
    return std::malloc(size);
}

[[gnu::noinline]] void* operator new[](std::size_t size) {
    return operator new(size);
}

[[gnu::noinline]] void operator delete(void* block) noexcept {
    std::free(block);
}

[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
    std::free(block);
}

[[gnu::noinline]] void operator delete[](void* block) noexcept {
    std::free(block);
}

[[gnu::noinline]] void operator delete[](void* block, std::size_t) noexcept {
    std::free(block);
}

using namespace backsweep;

namespace {

// A sanitizer keeps books of its own on every allocation, and touches them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// Resident pages of this process, in bytes; 0 where the system does not say.
long resident_bytes() {
    long size = 0;
    long resident = 0;
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr) return 0;
    const int fields = std::fscanf(file, "%ld %ld", &size, &resident);
    std::fclose(file);
    return fields == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(emission_and_rewind_allocate_nothing) {
    const std::array stored{Stored{0, {Tier::ram, 4}}, Stored{3, {Tier::ram, 0}}, Stored{700, {Tier::disk, 1}},
                            Stored{900, {Tier::ram, 2}}};
    std::vector<std::unique_ptr<Schedule>> schedules;
    for (const bool needs_state : {false, true}) {
        schedules.push_back(revolve(5000, 7, AdvanceRule::fewest_writes, needs_state));
        schedules.push_back(revolve(5000, 7, AdvanceRule::shortest, needs_state));
        schedules.push_back(revolve(5000, 7, AdvanceRule::longest, needs_state));
        schedules.push_back(store_all(5000, needs_state));
        schedules.push_back(periodic(5000, 70, needs_state));
    }
    schedules.push_back(forward_only(5000));
    schedules.push_back(complete(stored, 5, 5000));
    // The other families; an open sweep is followed up to its end.
    for (const ScheduleOptions& options : test::every_family(500))
        if (!is_open_ended(options.family)) schedules.push_back(make_schedule(options));
    schedules.push_back(mixed({.steps = 500, .units = 9, .tape_units = 3}));
    schedules.push_back(mixed({.steps = 500, .units = 9, .tape_units = 1}));
    schedules.push_back(multistage({.steps = 500, .levels = {{Tier::ram, 3, 0.25, 0.5}, {Tier::disk, 4, 2.0, 1.0}}}));
    schedules.push_back(revolve(RevolveOptions{.steps = 500, .slots = 5, .rule = AdvanceRule::fewest_disk, .ram = 2}));
    std::array<Action, 100> block;
    const long before = allocations;
    BOOST_CHECK(before > 0);
    long actions = 0;
    for (const auto& schedule : schedules) {
        while (schedule->next().verb != Verb::done) ++actions;
        schedule->rewind();
        std::size_t came = 0;
        do {
            came = schedule->fill(block);
        } while (block[came - 1].verb != Verb::done);
    }
    const long after = allocations;
    BOOST_CHECK_EQUAL(after, before);
    BOOST_CHECK(actions > 100000);
}

BOOST_AUTO_TEST_CASE(an_open_sweep_allocates_nothing) {
    for (const OnlinePolicy policy : {OnlinePolicy::greedy, OnlinePolicy::wang_moin}) {
        const auto schedule = online({.slots = 20, .policy = policy});
        const auto blocks = two_level({.period = 7, .extra_slots = 2});
        std::array<Action, 16> out;
        const long before = allocations;
        for (int k = 0; k < 20000; ++k) schedule->fill(out);
        for (int k = 0; k < 2000; ++k) blocks->fill(out);
        BOOST_CHECK_EQUAL(allocations - before, 0);
    }
}

BOOST_AUTO_TEST_CASE(a_hundred_million_slots_start_without_touching_them) {
    if (sanitized) return;
    const long before = resident_bytes();
    const auto schedule = revolve(Index{1} << 40, 100000000);
    for (int k = 0; k < 1000; ++k) schedule->next();
    BOOST_CHECK(resident_bytes() - before < (4l << 20));
}
