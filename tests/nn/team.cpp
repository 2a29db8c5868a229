// Parts of a few microseconds on a caller and its helpers.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE team
#include "support/unit_test.hpp"

#include "nn/cpu/team.hpp"

#include <pthread.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <numeric>
#include <thread>

using namespace backsweep;
using cpu::Team;
using cpu::TeamScope;

namespace {

std::atomic<bool> stopped{false};

/// Numbers that a part writes for its caller to read without another word.
struct Numbers {
    std::array<Index, Team::most_parts> times{}, by{};
    Index all() const { return std::accumulate(times.begin(), times.end(), Index{0}); }
};

void count(Team& team, Index parts, Numbers& numbers) {
    team.run(parts, [&](Index part, Index member) noexcept {
        ++numbers.times[static_cast<std::size_t>(part)];
        numbers.by[static_cast<std::size_t>(part)] = member;
    });
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_part_runs_once) {
    for (const Index members : {-1, 1, 2, 3, 5, 24, 100}) {
        Team team(members);
        BOOST_TEST(team.members() == std::clamp<Index>(members, 1, Team::most_parts));
        for (int call = 0; call < 3000; ++call) {
            const Index parts = call * 7 % (Team::most_parts + 1);
            Numbers numbers;
            count(team, parts, numbers);
            for (Index p = 0; p < Team::most_parts; ++p) {
                const auto at = static_cast<std::size_t>(p);
                if (numbers.times[at] != (p < parts ? 1 : 0)) BOOST_ERROR("part " << p << " of " << parts);
                if (numbers.by[at] < 0 || numbers.by[at] >= team.members()) BOOST_ERROR("member " << numbers.by[at]);
            }
        }
    }
}

// Helpers fall asleep between calls, and while the caller waits for one of them.
BOOST_AUTO_TEST_CASE(whoever_sleeps_is_woken) {
    using namespace std::chrono_literals;
    Team team(3);
    for (int call = 0; call < 30; ++call) {
        std::array<std::thread::id, 3> on;
        std::atomic<int> begun{0};
        // Nobody ends a part before all three have begun one.
        team.run(3, [&](Index part, Index) noexcept {
            on[static_cast<std::size_t>(part)] = std::this_thread::get_id();
            ++begun;
            begun.notify_all();
            for (int seen = begun; seen < 3; seen = begun) begun.wait(seen);
            if (part > 0) std::this_thread::sleep_for(1ms);
        });
        std::sort(on.begin(), on.end());
        BOOST_TEST((std::unique(on.begin(), on.end()) == on.end()));
        std::this_thread::sleep_for(1ms);
    }
}

// A signal stops the helper outside all parts, as another program does that takes its core.
BOOST_AUTO_TEST_CASE(nobody_waits_for_a_helper_that_has_not_begun) {
    Team team(2);
    std::atomic<bool> met{false};
    pthread_t helper{};
    team.run(2, [&](Index, Index member) noexcept {
        if (member == 0) return met.wait(false);
        helper = ::pthread_self();
        met = true;
        met.notify_all();
    });
    std::signal(SIGUSR1, [](int) {
        stopped = true;
        while (stopped) ::usleep(100);
    });
    ::pthread_kill(helper, SIGUSR1);
    while (!stopped) ::usleep(100);
    Numbers numbers;
    for (int call = 0; call < 100; ++call) count(team, 5, numbers);
    stopped = false;
    BOOST_TEST(numbers.all() == 500);
    BOOST_TEST((numbers.by == Numbers{}.by));
    std::signal(SIGUSR1, SIG_DFL);
}

BOOST_AUTO_TEST_CASE(a_scope_lends_a_team_to_its_thread_alone) {
    Team one(2), two(2);
    BOOST_TEST(!cpu::team_of_thread());
    {
        const TeamScope outer(&one);
        BOOST_TEST(cpu::team_of_thread() == &one);
        {
            const TeamScope inner(&two);
            BOOST_TEST(cpu::team_of_thread() == &two);
            two.run(2, [](Index, Index member) noexcept {
                if (member > 0 && cpu::team_of_thread()) std::terminate();
            });
            const std::jthread other([] { BOOST_TEST(!cpu::team_of_thread()); });
        }
        BOOST_TEST(cpu::team_of_thread() == &one);
    }
    BOOST_TEST(!cpu::team_of_thread());
}
