// The whole range of the promise: every length up to 50,000, for every number of slots from 5 to 128.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_online_sweep
#include "support/unit_test.hpp"

#include "backsweep/schedule/online.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "support/told.hpp"

#include <algorithm>

using namespace backsweep;
using namespace backsweep::test;

BOOST_AUTO_TEST_CASE(excess_over_the_offline_optimum) {
    constexpr Index longest = 50000;
    for (Index c = 5; c <= 128; ++c) {
        const auto schedule = online({.slots = c});
        Shelved shelf;
        double worst = 0.0;
        long below = 0;
        for (Index j = 1; j <= longest; ++j) {
            step_on(*schedule, shelf);
            const Index all = shelf.keeping_all(j, c);
            const Index optimum = revolve_advances(j + 1, c);
            const Index met = 2 * j + all;
            const Index ahead = (j + 1) + j + all;
            below += met < j + optimum ? 1 : 0;
            if (j >= 20) worst = std::max(worst, static_cast<double>(met) / static_cast<double>(j + optimum) - 1.0);
            if (j >= 19 && j < longest) {
                worst = std::max(worst, static_cast<double>(ahead) / static_cast<double>(j + 1 + optimum) - 1.0);
            }
        }
        BOOST_TEST(worst <= (c == 20 ? 0.019 : 0.031), c << " slots, excess " << worst);
        BOOST_CHECK_EQUAL(below, 0);
        BOOST_TEST_MESSAGE(c << " slots: worst excess " << 100.0 * worst << " %");
    }
}
