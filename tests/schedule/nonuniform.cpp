// Unequal links against an exhaustive search over what a machine can hold, against the recurrence without search
// bounds, and in a grid under the referee's budget.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_nonuniform
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/nonuniform.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "support/streams.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

std::size_t at(Index i) {
    return static_cast<std::size_t>(i);
}

/// x_n is never kept.
Index size_of(const NonuniformOptions& options, Index step) {
    return options.sizes.empty() || at(step) == options.sizes.size() ? 1 : options.sizes[at(step)];
}

Play play_within(const NonuniformOptions& options) {
    Machine machine;
    machine.sizes.state = [&](Index step) { return size_of(options, step); };
    machine.limits.bytes = {0, 0, options.slots, 0};
    machine.costs.advance = [&](Index link) { return options.costs[at(link)]; };
    machine.needs_state = options.needs_state;
    return referee(*nonuniform(options), static_cast<Index>(options.costs.size()), {}, machine);
}

double draw(std::mt19937& random, unsigned below) {
    return static_cast<double>(random() % below);
}

bool close(double a, double b) {
    return std::abs(a - b) <= 1e-12 * std::abs(b);
}

/// The least cost of any sequence of actions: a shortest path over (links left, working state, set of kept states, link
/// of the working tape). With needs_state the chain has to come to x_n before the first reverse, a reverse wants the
/// state before its link, and the tape of any one link may be recorded ahead and wait: every link is recorded once.
double searched(const NonuniformOptions& options) {
    const int n = static_cast<int>(options.costs.size());
    const int unturned = n + 1;
    using Point = std::tuple<int, int, int, int>;
    std::map<Point, double> best;
    using Entry = std::pair<double, Point>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const auto offer = [&](double cost, int left, int x, int kept, int tape) {
        Index used = 0;
        for (int i = 0; i < n; ++i) used += (kept >> i & 1) != 0 ? size_of(options, i) : 0;
        if (used > options.slots) return;
        const auto [entry, fresh] = best.try_emplace({left, x, kept, tape}, never);
        if (cost >= entry->second) return;
        entry->second = cost;
        queue.push({cost, {left, x, kept, tape}});
    };
    offer(0.0, options.needs_state ? unturned : n, 0, 0, -1);
    while (!queue.empty()) {
        const auto [cost, point] = queue.top();
        queue.pop();
        const auto [left, x, kept, tape] = point;
        if (cost > best[point]) continue;
        if (left == 0) return cost;
        for (int i = 0; i < n; ++i) {
            if ((kept >> i & 1) == 0) continue;
            offer(cost, left, i, kept, tape);
            offer(cost, left, x, kept & ~(1 << i), tape);
        }
        if (left == unturned && x == n) offer(cost, n, x, kept, tape);
        if (x < 0 || x >= std::min(left, n)) continue;
        offer(cost, left, x, kept | 1 << x, tape);
        offer(cost + options.costs[at(x)], left, x + 1, kept, tape);
        if (options.needs_state && tape < 0) offer(cost, left, x + 1, kept, x);
        if (x == left - 1 && (tape < 0 || tape == x)) offer(cost, left - 1, -1, kept, -1);
    }
    return never;
}

/// The recurrence with every split looked at.
double plain(const NonuniformOptions& options) {
    const auto n = static_cast<Index>(options.costs.size());
    if (n < 2) return 0.0;
    std::map<std::tuple<Index, Index, Index>, double> known;
    const std::function<double(Index, Index, Index)> least = [&](Index i, Index j, Index free) -> double {
        if (j - i < 2) return 0.0;
        const auto [entry, fresh] = known.try_emplace({i, j, free}, never);
        if (!fresh) return entry->second;
        double value = never;
        double way = 0.0;
        for (Index k = i + 1; k < j; ++k) {
            way += options.costs[at(k - 1)];
            const Index rest = free - size_of(options, k);
            if (k + 1 < j && rest < 0) continue;
            value = std::min(value, way + (k + 1 < j ? least(k, j, rest) : 0.0) + least(i, k, free));
        }
        return known[{i, j, free}] = value;
    };
    return least(0, n, options.slots - size_of(options, 0));
}

}  // namespace

BOOST_AUTO_TEST_CASE(equal_sizes_no_search_finds_less) {
    std::mt19937 random(3);
    for (int n = 0; n <= 7; ++n) {
        for (Index slots = 1; slots <= 8; ++slots) {
            for (int sample = 0; sample < 4; ++sample) {
                NonuniformOptions options;
                options.slots = slots;
                options.needs_state = sample >= 2 && n <= 5;
                for (int i = 0; i < n; ++i)
                    options.costs.push_back(sample % 2 == 0 ? draw(random, 3) : 0.25 * draw(random, 100));
                BOOST_TEST_CONTEXT(n << " links, " << slots << " slots, sample " << sample) {
                    const double least = searched(options);
                    BOOST_CHECK(close(nonuniform_cost(options), least));
                    BOOST_CHECK(close(play_within(options).cost, least));
                    options.sizes.assign(at(n), 3);
                    options.slots = 3 * slots + 2;
                    BOOST_CHECK(close(nonuniform_cost(options), least));
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(unequal_sizes_are_bounded_by_search_and_recurrence) {
    std::mt19937 random(5);
    int cases = 0;
    int above = 0;
    for (int n = 2; n <= 7; ++n) {
        for (int sample = 0; sample < 40; ++sample) {
            NonuniformOptions options;
            for (int i = 0; i < n; ++i) {
                options.costs.push_back(draw(random, 20));
                options.sizes.push_back(1 + random() % 5);
            }
            options.slots = options.sizes[0] + random() % 9;
            BOOST_TEST_CONTEXT(n << " links, sample " << sample) {
                const double cost = nonuniform_cost(options);
                BOOST_CHECK(close(cost, plain(options)));
                BOOST_CHECK(close(play_within(options).cost, cost));
                const double least = searched(options);
                BOOST_CHECK(cost >= least);
                above += cost > least ? 1 : 0;
            }
            ++cases;
        }
    }
    BOOST_CHECK(100 * above <= 3 * cases);
}

BOOST_AUTO_TEST_CASE(search_bounds_lose_nothing) {
    std::mt19937 random(7);
    for (const unsigned spread : {1u, 2u, 3u, 1000u}) {
        for (const Index n : {3, 10, 33, 60}) {
            for (const Index slots : {1, 2, 3, 4, 6, 11, 30, 58, 59, 80}) {
                NonuniformOptions options;
                options.slots = slots;
                for (Index i = 0; i < n; ++i) {
                    const double wide = draw(random, spread);
                    options.costs.push_back(random() % 7 == 0 ? 50.0 * wide : wide);
                }
                BOOST_TEST_CONTEXT(n << " links, " << slots << " slots, costs below " << spread) {
                    const double least = plain(options);
                    BOOST_CHECK(close(nonuniform_cost(options), least));
                    BOOST_CHECK(close(play_within(options).cost, least));
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_grid_of_equal_links_is_revolve) {
    for (Index n = 0; n <= 64; ++n) {
        for (Index slots = 1; slots <= 16; ++slots) {
            for (const bool needs_state : {false, true}) {
                BOOST_TEST_CONTEXT(n << " links, " << slots << " slots, needs_state " << needs_state) {
                    const NonuniformOptions options{std::vector<double>(at(n), 1.0), slots, {}, needs_state};
                    const RevolveOptions single{.steps = n, .slots = slots, .needs_state = needs_state};
                    const Index advances = revolve_advances(single);
                    BOOST_CHECK_EQUAL(nonuniform_cost(options), static_cast<double>(advances));
                    const Play play = play_within(options);
                    BOOST_CHECK_EQUAL(play.advances, advances);
                    BOOST_CHECK_EQUAL(play.recorded, n);
                    BOOST_CHECK_EQUAL(play.drops, 0);
                    BOOST_CHECK(play.peak_slots[static_cast<std::size_t>(Tier::ram)] <= slots);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(three_links_of_unequal_cost) {
    BOOST_CHECK_EQUAL(text_of(by_next(*nonuniform({{1.0, 100.0, 1.0, 1.0}, 2, {}}))),
                      "save x_0 to ram slot 0\n"
                      "advance [0, 2)\n"
                      "save x_2 to ram slot 1\n"
                      "advance [2, 3)\n"
                      "record [3, 4)\n"
                      "turn x_4\n"
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

BOOST_AUTO_TEST_CASE(memory_is_counted) {
    const std::vector<double> ones(1000, 1.0);
    BOOST_CHECK_EQUAL(nonuniform_table_bytes({ones, 1}), 0u);
    BOOST_CHECK_EQUAL(nonuniform_table_bytes({ones, 999}), 0u);
    constexpr std::size_t pairs = 999 * 1000 / 2;
    BOOST_CHECK_EQUAL(nonuniform_table_bytes({ones, 2}), pairs * 8);
    BOOST_CHECK_EQUAL(nonuniform_table_bytes({ones, 20}), pairs * (2 * 8 + 18 * 2));
    BOOST_CHECK_EQUAL(nonuniform_table_bytes({{}, 5}), 0u);
}

BOOST_AUTO_TEST_CASE(refusals) {
    const auto refused = [](const NonuniformOptions& options, const char* words) {
        BOOST_TEST_CONTEXT(words) {
            BOOST_CHECK_MESSAGE(options.problem().find(words) != std::string::npos, options.problem());
            BOOST_CHECK_EXCEPTION(nonuniform(options), InvalidArgument, says(words));
            BOOST_CHECK_EXCEPTION(nonuniform_cost(options), InvalidArgument, says(words));
        }
    };
    constexpr Index most = std::numeric_limits<Index>::max();
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    refused({{1.0, nan}, 2}, "the cost of link 1 must be finite and 0 or more, came nan");
    refused({{never, 1.0}, 2}, "the cost of link 0 must be finite and 0 or more, came inf");
    refused({{1.0, -0.5}, 2}, "the cost of link 1 must be finite and 0 or more, came -0.5");
    refused({{1.0}, 0}, "slots must be 1 or more (x_0 takes that), came 0");
    refused({{1.0, 1.0}, -9}, "slots must be 1 or more (x_0 takes that), came -9");
    refused({{1.0, 1.0}, 3, {4, 1}}, "slots must be 4 or more (x_0 takes that), came 3");
    refused({{1.0, 1.0}, 3, {1}}, "sizes has 1 entries for 2 links");
    refused({{1.0, 1.0}, 3, {1, 0}}, "the size of x_1 must be 1 or more, came 0");
    refused({std::vector<double>(70000, 1.0), 3}, "at most 65534 links, came 70000");
    refused({std::vector<double>(20000, 1.0), 50}, "table_limit allows 1073741824");
    refused({{1.0, 1.0, 1.0, 1.0}, 3, {most / 4, most / 3, most / 2, most}}, "slots must be");
    BOOST_CHECK_EXCEPTION(nonuniform({{1e308, 1e308, 1.0}, 3}), InvalidArgument, says("add up beyond the range"));
    BOOST_CHECK_EXCEPTION(nonuniform({std::vector<double>(40, 1e307), 2}), InvalidArgument, says("add up beyond"));
    refused({{1.0, 1.0, 1.0, 1.0}, most, {most / 4, most / 3, most / 2, most}, false, 1000}, "in coarser units");
    BOOST_CHECK_EQUAL(nonuniform_cost({{1.0, 1.0, 1.0, 1e308}, most}), 3.0);
    BOOST_CHECK_EQUAL(nonuniform_cost({std::vector<double>(30, 0.0), 3}), 0.0);
}
