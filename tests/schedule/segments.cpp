// Segments, segments within segments and Chen's search: counts and peaks that a referee sees, against formulas and
// plain loops.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_segments
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/segments.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "support/streams.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr auto ram = static_cast<std::size_t>(Tier::ram);
constexpr Index most = std::numeric_limits<Index>::max();

/// Slots hold states of 3 units and tapes of 5; the working tape comes on top.
Play play(Schedule& schedule, Index steps, bool needs_state = false) {
    Machine machine;
    machine.sizes.state = [](Index) { return std::int64_t{3}; };
    machine.sizes.tape = [](Index) { return std::int64_t{5}; };
    machine.needs_state = needs_state;
    return referee(schedule, steps, {}, machine);
}

/// Advances of a range that is cut `levels` times into `count` segments, written as the definition says it.
Index advanced(Index links, Index count, Index levels) {
    if (levels == 0 || links < 2) return 0;
    const Index segments = std::min(count, links);
    const Index length = links / segments;
    Index total = 0;
    for (Index s = 0; s < segments; ++s) {
        const bool last = s + 1 == segments;
        if (!last) total += length;
        total += advanced(last ? links - s * length : length, count, levels - 1);
    }
    return total;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_grid_of_numbers_lengths_and_levels) {
    for (Index n = 0; n <= 64; ++n) {
        for (Index k = 1; k <= 16; ++k) {
            for (Index levels = 1; levels <= 5; ++levels) {
                for (const bool needs_state : {false, true}) {
                    BOOST_TEST_CONTEXT(n << " steps, " << k << " segments, " << levels << " levels, " << needs_state) {
                        const SegmentsOptions options{n, k, 0, levels, needs_state};
                        const Play played = play(*segments(options), n, needs_state);
                        BOOST_CHECK_EQUAL(played.advances, advanced(n, k, levels));
                        BOOST_CHECK_EQUAL(segments_advances(options), played.advances);
                        BOOST_CHECK_EQUAL(played.recorded, n);
                        BOOST_CHECK_EQUAL(played.drops, 0);
                        if (n > 0) BOOST_CHECK_EQUAL(segments_peak(options, 3, 5), played.peak_bytes[ram] + 5);
                    }
                }
            }
            for (const bool needs_state : {false, true}) {
                BOOST_TEST_CONTEXT(n << " steps, segments of " << k << ", " << needs_state) {
                    const SegmentsOptions options{n, 0, k, 1, needs_state};
                    const auto schedule = segments(options);
                    BOOST_CHECK(by_next(*schedule) == by_next(*periodic(n, k, needs_state)));
                    schedule->rewind();
                    const Play played = play(*schedule, n, needs_state);
                    BOOST_CHECK_EQUAL(segments_advances(options), played.advances);
                    if (n > 0) BOOST_CHECK_EQUAL(segments_peak(options, 3, 5), played.peak_bytes[ram] + 5);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(seven_links_in_two_levels_of_two) {
    BOOST_CHECK_EQUAL(text_of(by_next(*segments({5, 2, 0, 2}))),
                      "save x_0 to ram slot 0\n"
                      "advance [0, 2)\n"
                      "save x_2 to ram slot 1\n"
                      "advance [2, 3)\n"
                      "record [3, 4)\n"
                      "stow [3, 4) to ram slot 2\n"
                      "record [4, 5)\n"
                      "turn x_5\n"
                      "reverse [4, 5)\n"
                      "fetch [3, 4) from ram slot 2\n"
                      "reverse [3, 4)\n"
                      "take x_2 from ram slot 1\n"
                      "tape [2, 3)\n"
                      "reverse [2, 3)\n"
                      "load x_0 from ram slot 0\n"
                      "advance [0, 1)\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "take x_0 from ram slot 0\n"
                      "tape [0, 1)\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(memory_of_levels_grows_like_a_root_and_like_a_logarithm) {
    BOOST_CHECK_EQUAL(segments_peak({10000, 100}), 99 + 100);
    BOOST_CHECK_EQUAL(segments_peak({1000000, 100, 0, 2}), 2 * 99 + 100);
    BOOST_CHECK_EQUAL(segments_peak({Index{1} << 20, 2, 0, 20}), 20 + 1);
    BOOST_CHECK_EQUAL(segments_advances({Index{1} << 20, 2, 0, 20}), 20 * (Index{1} << 19));
    BOOST_CHECK_EQUAL(segments_advances({Index{1} << 57, 2, 0, 57}), 57 * (Index{1} << 56));
    const auto enormous = segments({Index{1} << 62, 2, 0, 62});
    BOOST_CHECK(enormous->next().verb == Verb::save);
}

BOOST_AUTO_TEST_CASE(the_best_number_of_segments) {
    for (Index n = 0; n <= 200; ++n) {
        for (const auto& [state, tape] : {std::pair<Index, Index>{1, 1}, {1, 7}, {5, 2}, {0, 1}, {1, 0}, {0, 0}}) {
            Index best = 1;
            for (Index k = 2; k <= n; ++k) {
                if (segments_peak({n, k}, state, tape) < segments_peak({n, best}, state, tape)) best = k;
            }
            BOOST_TEST_CONTEXT(n << " steps, state " << state << ", tape " << tape) {
                BOOST_CHECK_EQUAL(best_segments(n, state, tape), best);
            }
        }
    }
    BOOST_CHECK_EQUAL(best_segments(1000000), 1000);
}

BOOST_AUTO_TEST_CASE(segments_by_size) {
    std::mt19937 random(11);
    for (const std::size_t n : {0, 1, 2, 7, 40, 150}) {
        std::vector<Index> states;
        std::vector<Index> tapes;
        Index all = 0;
        for (std::size_t i = 0; i < n; ++i) {
            states.push_back(random() % 9);
            tapes.push_back(random() % 40);
            all += tapes.back();
        }
        Machine machine;
        machine.sizes.state = [&](Index step) {
            return step < static_cast<Index>(n) ? states[static_cast<std::size_t>(step)] : 0;
        };
        machine.sizes.tape = [&](Index link) { return tapes[static_cast<std::size_t>(link)]; };
        const auto steps = static_cast<Index>(n);
        Index least = most;
        for (Index budget = 0; budget <= all + 1; ++budget) {
            const SegmentStarts plan = budget_segments(states, tapes, budget);
            least = std::min(least, plan.peak);
            for (std::size_t s = 0; s < plan.starts.size(); ++s) {
                const auto first = static_cast<std::size_t>(plan.starts[s]);
                const std::size_t last = s + 1 < plan.starts.size() ? static_cast<std::size_t>(plan.starts[s + 1]) : n;
                Index sum = 0;
                Index positive = 0;
                for (std::size_t i = first; i < last; ++i) {
                    sum += tapes[i];
                    positive += tapes[i] > 0 ? 1 : 0;
                }
                BOOST_CHECK(sum <= budget || positive == 1);
            }
            if (budget % 16 != 0) continue;
            const Play played = referee(*segments_at(steps, plan.starts), steps, {}, machine);
            // The states of the plan's peak are those of the segments below; the slots hold no working tape.
            BOOST_CHECK(played.peak_bytes[ram] <= plan.peak);
            BOOST_CHECK_EQUAL(played.recorded, steps);
            BOOST_CHECK_EQUAL(played.advances, n == 0 ? 0 : plan.starts.back());
            for (const bool needs_state : {false, true}) {
                Machine plain;
                plain.needs_state = needs_state;
                BOOST_CHECK_NO_THROW(referee(*segments_at(steps, plan.starts, needs_state), steps, {}, plain));
            }
        }
        const Index found = search_segments(states, tapes).peak;
        BOOST_CHECK(found >= least);
        BOOST_TEST_MESSAGE(n << " links: search " << found << ", best budget " << least << ", all tapes " << all);
        BOOST_CHECK(n < 7 || 2 * found < 3 * least);
    }
}

BOOST_AUTO_TEST_CASE(equal_sizes_are_found_near_the_best_number) {
    const std::vector<Index> ones(400, 1);
    BOOST_CHECK_EQUAL(search_segments(ones, ones).peak, segments_peak({400, best_segments(400)}));
}

BOOST_AUTO_TEST_CASE(refusals) {
    const auto refused = [](const SegmentsOptions& options, const char* words) {
        BOOST_TEST_CONTEXT(words) {
            BOOST_CHECK_MESSAGE(options.problem().find(words) != std::string::npos, options.problem());
            BOOST_CHECK_EXCEPTION(segments(options), InvalidArgument, says(words));
            BOOST_CHECK_EXCEPTION(segments_advances(options), InvalidArgument, says(words));
            BOOST_CHECK_EXCEPTION(segments_peak(options), InvalidArgument, says(words));
        }
    };
    refused({-1, 3}, "steps must be 0 or more, came -1");
    refused({9, 0, 0}, "exactly one of segments and length must be 1 or more, came 0 and 0");
    refused({9, 3, 3}, "exactly one of segments and length must be 1 or more, came 3 and 3");
    refused({9, -3, 0}, "exactly one of segments and length");
    refused({9, 3, -1}, "exactly one of segments and length");
    refused({9, 3, 0, 0}, "levels must lie in 1 ... 64, came 0");
    refused({9, 3, 0, most}, "levels must lie in 1 ... 64");
    refused({9, 0, 3, 2}, "give segments instead of length");
    refused({Index{1} << 40, 5}, "more than the 2147483647 slots");
    refused({most, 0, 1}, "more than the 2147483647 slots");
    refused({most, most, 0, 64}, "more than the 2147483647 slots");
    BOOST_CHECK_EXCEPTION(segments_peak({9, 3}, most, 1), InvalidArgument, says("passes 2^63 - 1"));
    BOOST_CHECK_EXCEPTION(segments_peak({9, 3}, -1, 1), InvalidArgument, says("sizes must be 0 or more, came -1"));
    BOOST_CHECK_EXCEPTION(segments_advances({most, 2, 0, 63}), InvalidArgument, says("passes 2^63 - 1"));
    BOOST_CHECK_EXCEPTION(best_segments(-1), InvalidArgument, says("steps must be 0 or more"));
    BOOST_CHECK_EXCEPTION(best_segments(9, 1, -1), InvalidArgument, says("sizes must be 0 or more"));
    BOOST_CHECK_EXCEPTION(best_segments(9, most, most), InvalidArgument, says("passes 2^63 - 1"));
    const std::vector<Index> three(3, 1);
    const std::vector<Index> two(2, 1);
    const std::vector<Index> huge(3, most / 4);
    const std::vector<Index> negative{1, -1, 1};
    BOOST_CHECK_EXCEPTION(budget_segments(three, two, 5), InvalidArgument, says("3 states and 2 tapes"));
    BOOST_CHECK_EXCEPTION(budget_segments(three, three, -5), InvalidArgument,
                          says("budget must be 0 or more, came -5"));
    BOOST_CHECK_EXCEPTION(search_segments(huge, huge), InvalidArgument, says("passes 2^63 - 1"));
    BOOST_CHECK_EXCEPTION(search_segments(three, negative), InvalidArgument, says("sizes must be 0 or more"));
    BOOST_CHECK_EXCEPTION(segments_at(5, {}), InvalidArgument, says("must begin at link 0"));
    BOOST_CHECK_EXCEPTION(segments_at(5, {1, 2}), InvalidArgument, says("must begin at link 0"));
    BOOST_CHECK_EXCEPTION(segments_at(5, {0, 2, 2}), InvalidArgument, says("starts must rise below 5, came 2 after 2"));
    BOOST_CHECK_EXCEPTION(segments_at(5, {0, 5}), InvalidArgument, says("starts must rise below 5"));
    BOOST_CHECK_EXCEPTION(segments_at(-5, {0}), InvalidArgument, says("steps must be 0 or more, came -5"));
    BOOST_CHECK_EXCEPTION(segments_at(Index{1} << 40, {0}), InvalidArgument, says("2147483647 slots"));
}
