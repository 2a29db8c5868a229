// Groups of layers: both parts of the peak against plain sums and the referee, the pick against every size, refusals.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE plan_groups
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/plan/groups.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/referee.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

using ByteList = std::vector<std::int64_t>;

auto says(const char* words) {
    return [words](const Error& error) { return std::string(error.what()).find(words) != std::string::npos; };
}

/// Layer by layer: a boundary where a group begins, and the largest sum of a group.
void check_parts(const LayerGroups& groups, const ByteList& boundaries, const ByteList& insides, Index size) {
    std::int64_t kept = 0, group = 0, largest = 0;
    Range at{};
    for (std::size_t i = 0; i < insides.size(); ++i) {
        const auto layer = static_cast<Index>(i);
        if (layer % size == 0) kept += boundaries[i], group = 0;
        group += insides[i];
        if ((layer + 1) % size != 0 && i + 1 < insides.size()) continue;
        if (at.empty() || group > largest) at = {layer / size * size, layer + 1};
        largest = std::max(largest, group);
    }
    BOOST_CHECK_EQUAL(groups.boundaries, kept);
    BOOST_CHECK_EQUAL(groups.inside, largest);
    BOOST_CHECK_EQUAL(groups.peak(), kept + largest);
    BOOST_CHECK(groups.largest == at);
}

}  // namespace

BOOST_AUTO_TEST_CASE(unequal_layers_against_plain_sums_and_every_size) {
    std::mt19937_64 random(27);
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
    for (int k = 0; k < 300; ++k) {
        const auto layers = static_cast<std::size_t>(1 + below(40));
        ByteList boundaries, insides;
        for (std::size_t i = 0; i < layers; ++i) {
            boundaries.push_back(below(k % 3 == 0 ? 3 : 1000));
            insides.push_back(below(k % 2 == 0 ? 4 : 5000));
        }
        BOOST_TEST_CONTEXT("chain " << k << " of " << layers << " layers") {
            const LayerGroups best = best_groups(boundaries, insides);
            for (Index size = 1; size <= static_cast<Index>(layers) + 2; ++size) {
                const LayerGroups groups = group_layers(boundaries, insides, size);
                check_parts(groups, boundaries, insides, size);
                BOOST_CHECK_EQUAL(groups.count(), (groups.layers + size - 1) / size);
                BOOST_CHECK(size < best.size ? groups.peak() > best.peak() : groups.peak() >= best.peak());
                if (size == best.size) BOOST_CHECK_EQUAL(groups.peak(), best.peak());
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(equal_layers_hold_what_the_referee_sees) {
    // Periodic records its last block straight away: all other boundaries are kept beside it.
    for (const Index layers : {1, 2, 7, 24, 100}) {
        const ByteList boundaries(static_cast<std::size_t>(layers), 3), insides(static_cast<std::size_t>(layers), 20);
        for (Index size = 1; size <= layers; ++size) {
            if (layers % size != 0) continue;
            const LayerGroups groups = group_layers(boundaries, insides, size);
            const Play play = referee(*periodic(layers, size), layers);
            constexpr auto ram = static_cast<std::size_t>(Tier::ram);
            BOOST_CHECK_EQUAL(play.state_slots[ram] + 1, groups.count());
            BOOST_CHECK_EQUAL(20 * (play.tape_slots[ram] + 1), groups.inside);
            BOOST_CHECK_EQUAL(3 * (play.state_slots[ram] + 1), groups.boundaries);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_pick_is_near_the_root) {
    for (const Index layers : {16, 50, 100, 333, 1024}) {
        for (const std::int64_t ratio : {1, 2, 6, 10, 40}) {
            BOOST_TEST_CONTEXT(layers << " layers, tapes of " << ratio << " boundaries") {
                const auto n = static_cast<std::size_t>(layers);
                const LayerGroups best = best_groups(ByteList(n, 1), ByteList(n, ratio));
                const double root = std::sqrt(static_cast<double>(layers) / static_cast<double>(ratio));
                BOOST_CHECK(std::abs(static_cast<double>(best.size) - root) <= 1.0 + 0.2 * root);
                const double least = 2.0 * std::sqrt(static_cast<double>(layers * ratio));
                BOOST_CHECK(static_cast<double>(best.peak()) >= least);
                BOOST_CHECK(static_cast<double>(best.peak()) <= least + 1.0 + static_cast<double>(ratio));
            }
        }
    }
    const LayerGroups best = best_groups(ByteList(100, 1), ByteList(100, 6));
    BOOST_CHECK_EQUAL(best.size, 4);
    BOOST_CHECK_EQUAL(best.count(), 25);
    BOOST_CHECK_EQUAL(best.peak(), 49);
}

BOOST_AUTO_TEST_CASE(ties_no_layers_and_words) {
    BOOST_CHECK_EQUAL(best_groups(ByteList{5, 5}, ByteList{0, 5}).size, 2);  // 10 + 5 against 5 + 5
    BOOST_CHECK_EQUAL(best_groups(ByteList{5, 5}, ByteList{5, 5}).size, 1);  // 15 both ways
    const LayerGroups none = best_groups({}, {});
    BOOST_CHECK_EQUAL(none.count(), 0);
    BOOST_CHECK_EQUAL(none.peak(), 0);
    BOOST_CHECK_EQUAL(
        group_layers(ByteList{1, 2, 2048}, ByteList{0, 5, 3072}, 2).in_words(),
        std::string("groups of 2: 2 boundaries, 2.00 KiB, and inside layers [2, 3), 3.00 KiB: peak 5.00 KiB"));
    BOOST_CHECK_EQUAL(
        group_layers(ByteList{7}, ByteList{9}, std::numeric_limits<Index>::max()).in_words(),
        std::string("groups of 9223372036854775807: 1 boundary, 7 B, and inside layers [0, 1), 9 B: peak 16 B"));
}

BOOST_AUTO_TEST_CASE(bad_input_is_refused_in_words) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    BOOST_CHECK_EXCEPTION(group_layers(ByteList{1}, ByteList{1}, 0), InvalidArgument,
                          says("size must be 1 or more, came 0"));
    BOOST_CHECK_EXCEPTION(best_groups(ByteList{1, 2}, ByteList{1}), InvalidArgument,
                          says("came 2 boundaries and 1 insides"));
    BOOST_CHECK_EXCEPTION(best_groups(ByteList{1, 2}, ByteList{1, -3}), InvalidArgument, says("came -3 for layer 1"));
    BOOST_CHECK_EXCEPTION(best_groups(ByteList{1, 2}, ByteList{1, most}), InvalidArgument, says("passes 2^63 - 1"));
    BOOST_CHECK_EQUAL(best_groups(ByteList{0}, ByteList{most}).peak(), most);
}
