// Field cases of the planner; numbers and expected values as in the collection of field cases.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE regression_plan
#include "support/unit_test.hpp"

#include "backsweep/plan/groups.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;

// Larger groups do not always mean a lower peak: the kept boundaries and one group's inside are told apart.
BOOST_AUTO_TEST_CASE(G27) {
    const std::vector<std::int64_t> boundaries(24, 1), insides(24, 10);
    const std::pair<Index, std::int64_t> peaks[] = {{1, 34}, {2, 32}, {3, 38},   {4, 46},
                                                    {6, 64}, {8, 83}, {12, 122}, {24, 241}};
    for (const auto& [size, peak] : peaks) {
        BOOST_TEST_CONTEXT("groups of " << size) {
            const LayerGroups groups = group_layers(boundaries, insides, size);
            BOOST_CHECK_EQUAL(groups.boundaries, 24 / size);
            BOOST_CHECK_EQUAL(groups.inside, 10 * size);
            BOOST_CHECK_EQUAL(groups.peak(), peak);
        }
    }
    const LayerGroups best = best_groups(boundaries, insides);
    BOOST_CHECK_EQUAL(best.size, 2);
    BOOST_CHECK_EQUAL(best.in_words(),
                      std::string("groups of 2: 12 boundaries, 12 B, and inside layers [0, 2), 20 B: peak 32 B"));
}
