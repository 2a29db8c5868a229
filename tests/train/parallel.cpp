// Threads that stay from one call to the next.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE parallel
#include "support/unit_test.hpp"

#include "train/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace backsweep;

BOOST_AUTO_TEST_CASE(every_part_runs_once_on_its_thread) {
    for (const Index threads : {0, 1, 2, 3, 5}) {
        Workers workers(threads);
        std::set<std::thread::id> all;
        for (const Index parts : {1, 7, 0, 2, 5, 4, 1, 6}) {
            std::vector<std::thread::id> on(static_cast<std::size_t>(parts));
            std::vector<int> times(on.size());
            workers.run(parts, [&](Index p) {
                on[static_cast<std::size_t>(p)] = std::this_thread::get_id();
                ++times[static_cast<std::size_t>(p)];
            });
            const Index used = std::max<Index>(1, std::min(threads, parts));
            for (std::size_t p = 0; p < on.size(); ++p) {
                BOOST_TEST(times[p] == 1);
                BOOST_TEST((on[p] == on[p % static_cast<std::size_t>(used)]));
            }
            if (parts > 0) BOOST_TEST((on[0] == std::this_thread::get_id()));
            all.insert(on.begin(), on.end());
        }
        BOOST_TEST(static_cast<Index>(all.size()) == std::max<Index>(1, threads));  // none is begun anew
    }
}

BOOST_AUTO_TEST_CASE(threads_left_over_are_dealt_evenly_and_stay) {
    using Sizes = std::vector<Index>;
    for (const auto& [threads, wanted] :
         {std::pair{1, Sizes{1}}, {4, {4}}, {2, {1, 1}}, {5, {3, 2}}, {8, {3, 3, 2}}, {2, {1, 1, 1}}}) {
        Workers workers(threads);
        std::vector<cpu::Team*> first;
        for (int call = 0; call < 3; ++call) {
            std::vector<cpu::Team*> teams(wanted.size());
            workers.run(static_cast<Index>(teams.size()),
                        [&](Index p) { teams[static_cast<std::size_t>(p)] = cpu::team_of_thread(); });
            Sizes sizes;
            for (const cpu::Team* team : teams) sizes.push_back(team ? team->members() : 1);
            BOOST_TEST(sizes == wanted);
            if (call == 0) first = teams;
            BOOST_TEST((teams == first));
        }
        BOOST_TEST(!cpu::team_of_thread());
    }
}

BOOST_AUTO_TEST_CASE(the_lowest_part_that_threw_is_heard_when_all_have_ended) {
    Workers workers(3);
    for (int call = 0; call < 200; ++call) {
        std::atomic<int> ended{0};
        const auto throws = [&](Index p) {
            ++ended;
            if (p >= 4) throw std::runtime_error(std::to_string(p));
        };
        BOOST_CHECK_EXCEPTION(workers.run(7, throws), std::runtime_error,
                              [](const std::runtime_error& e) { return e.what() == std::string("4"); });
        BOOST_TEST(ended == 7);
        workers.run(7, [&](Index) { ++ended; });
        BOOST_TEST(ended == 14);
    }
}
