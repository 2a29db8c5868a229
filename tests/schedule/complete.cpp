// Completion against an exhaustive search over everything a machine with these slots could do.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_complete
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "support/streams.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <deque>
#include <limits>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Slot ram(std::int32_t index) {
    return {Tier::ram, index};
}

constexpr Slot disk(std::int32_t index) {
    return {Tier::disk, index};
}

Play play(std::span<const Stored> stored, Index slots, Index steps, bool needs_state = false) {
    Limits limits;
    limits.slots[static_cast<std::size_t>(Tier::ram)] = slots;
    return referee(*complete(stored, slots, steps), steps, stored, {.limits = limits, .needs_state = needs_state});
}

/// Least advances over all sequences of load, save, drop, advance and reverse: a shortest path over (states in RAM,
/// working state, adjoint). States on disk can be read for ever.
Index exhaustive(std::uint32_t in_ram, std::uint32_t on_disk, int slots, int steps) {
    const int none = steps;  // working state unspecified
    const auto number = [&](std::uint32_t set, int at, int end) {
        return (static_cast<std::size_t>(set) * (steps + 1) + at) * (steps + 1) + end;
    };
    struct Node {
        std::uint32_t set;
        int at;
        int end;
    };
    std::vector<Index> best((std::size_t{1} << steps) * (steps + 1) * (steps + 1), std::numeric_limits<Index>::max());
    std::deque<std::pair<Index, Node>> open;
    const auto reach = [&](Index cost, bool free, const Node& node) {
        Index& known = best[number(node.set, node.at, node.end)];
        if (cost >= known) return;
        known = cost;
        free ? open.emplace_front(cost, node) : open.emplace_back(cost, node);
    };
    reach(0, true, {in_ram, none, steps});
    while (!open.empty()) {
        const auto [cost, node] = open.front();
        open.pop_front();
        if (cost > best[number(node.set, node.at, node.end)]) continue;
        if (node.end == 0) return cost;
        for (int i = 0; i < node.end; ++i) {
            const std::uint32_t bit = 1u << i;
            if ((node.set | on_disk) & bit) reach(cost, true, {node.set, i, node.end});
            if (node.set & bit) reach(cost, true, {node.set & ~bit, node.at, node.end});
        }
        if (node.at == none) continue;
        if (__builtin_popcount(node.set) < slots) reach(cost, true, {node.set | (1u << node.at), node.at, node.end});
        if (node.at + 1 == node.end) {
            reach(cost, true, {node.set & ~(1u << node.at), none, node.at});
        } else {
            reach(cost + 1, false, {node.set, node.at + 1, node.end});
        }
    }
    return -1;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stream_by_hand) {
    // x_5 is the end: nothing above it is left. The slot of x_4 serves x_1 later.
    const std::vector<Stored> stored{{0, ram(1)}, {4, ram(3)}, {5, disk(2)}};
    BOOST_CHECK_EQUAL(text_of(by_next(*complete(stored, 2, 5))),
                      "drop x_5 from disk slot 2\n"
                      "turn x_5\n"
                      "take x_4 from ram slot 3\n"
                      "tape [4, 5)\n"
                      "reverse [4, 5)\n"
                      "load x_0 from ram slot 1\n"
                      "advance [0, 1)\n"
                      "save x_1 to ram slot 3\n"
                      "advance [1, 3)\n"
                      "tape [3, 4)\n"
                      "reverse [3, 4)\n"
                      "load x_1 from ram slot 3\n"
                      "advance [1, 2)\n"
                      "tape [2, 3)\n"
                      "reverse [2, 3)\n"
                      "take x_1 from ram slot 3\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "take x_0 from ram slot 1\n"
                      "tape [0, 1)\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(a_state_that_is_only_a_start_on_the_way_to_a_better_place) {
    // Keeping x_1 leaves one slot for [1, 5): 6 advances; dropping it leaves two for [0, 5): 6 too. This takes 5.
    const std::vector<Stored> stored{{0, ram(0)}, {1, ram(1)}};
    BOOST_CHECK_EQUAL(text_of(by_next(*complete(stored, 2, 5))),
                      "turn x_5\n"
                      "take x_1 from ram slot 1\n"
                      "advance [1, 3)\n"
                      "save x_3 to ram slot 1\n"
                      "advance [3, 4)\n"
                      "tape [4, 5)\n"
                      "reverse [4, 5)\n"
                      "take x_3 from ram slot 1\n"
                      "tape [3, 4)\n"
                      "reverse [3, 4)\n"
                      "load x_0 from ram slot 0\n"
                      "advance [0, 1)\n"
                      "save x_1 to ram slot 1\n"
                      "advance [1, 2)\n"
                      "tape [2, 3)\n"
                      "reverse [2, 3)\n"
                      "take x_1 from ram slot 1\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "take x_0 from ram slot 0\n"
                      "tape [0, 1)\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(never_worse_than_any_choice_of_what_to_keep) {
    std::uint32_t random = 2024;
    const auto below = [&random](Index limit) {
        random = random * 1664525u + 1013904223u;
        return static_cast<Index>(random >> 8) % limit;
    };
    for (int trial = 0; trial < 300; ++trial) {
        const Index steps = 20 + below(600);
        std::vector<Stored> stored{{0, ram(0)}};
        for (std::int32_t i = 1; i < 8; ++i) {
            const Index gap = 1 + below(steps / 8);
            if (stored.back().step + gap < steps) stored.push_back({stored.back().step + gap, ram(i)});
        }
        const auto count = static_cast<Index>(stored.size());
        const Index slots = count + below(4);
        Index least = revolve_advances(steps, slots);
        for (std::uint32_t set = 1; set < (1u << count); set += 2) {
            Index advances = 0;
            Index free = slots;
            for (Index i = 0, next = 0; i < count; i = next) {
                for (next = i + 1; next < count && !(set & (1u << next)); ++next) {}
                const Index end = next < count ? stored[static_cast<std::size_t>(next)].step : steps;
                advances += revolve_advances(end - stored[static_cast<std::size_t>(i)].step, free--);
            }
            least = std::min(least, advances);
        }
        BOOST_CHECK(play(stored, slots, steps).advances <= least);
    }
}

BOOST_AUTO_TEST_CASE(equal_to_the_exhaustive_optimum) {
    long cases = 0;
    for (int steps = 1; steps <= 7; ++steps) {
        for (std::uint32_t set = 1; set < (1u << steps); set += 2) {
            std::vector<Stored> stored;
            for (std::int32_t i = 0; i < steps; ++i) {
                if (set & (1u << i)) stored.push_back({i, ram(i)});
            }
            for (int slots = __builtin_popcount(set); slots <= std::min(steps, 4); ++slots) {
                ++cases;
                BOOST_TEST_CONTEXT(steps << " steps, set " << set << ", slots " << slots) {
                    BOOST_CHECK_EQUAL(play(stored, slots, steps).advances, exhaustive(set, 0, slots, steps));
                }
            }
        }
    }
    BOOST_CHECK_EQUAL(cases, 185);
}

BOOST_AUTO_TEST_CASE(equal_to_the_exhaustive_optimum_with_states_on_disk) {
    constexpr int steps = 6;
    for (std::uint32_t in_ram = 0; in_ram < (1u << steps); ++in_ram) {
        for (std::uint32_t on_disk = 1; on_disk < (1u << steps); on_disk += 3) {
            if (((in_ram | on_disk) & 1u) == 0) continue;
            std::vector<Stored> stored;
            for (std::int32_t i = steps - 1; i >= 0; --i) {  // the order they are given in does not matter
                if (in_ram & (1u << i)) stored.push_back({i, ram(10 - i)});
                if (on_disk & (1u << i)) stored.push_back({i, disk(i)});
            }
            for (int slots = __builtin_popcount(in_ram); slots <= 3; ++slots) {
                BOOST_TEST_CONTEXT("ram " << in_ram << ", disk " << on_disk << ", slots " << slots) {
                    BOOST_CHECK_EQUAL(play(stored, slots, steps).advances, exhaustive(in_ram, on_disk, slots, steps));
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(from_x_0_alone_it_is_revolve) {
    const std::vector<Stored> in_ram{{0, ram(0)}};
    const std::vector<Stored> on_disk{{0, disk(7)}};
    for (const Index steps : {1, 2, 9, 100, 5000}) {
        for (const Index slots : {1, 2, 5, 40}) {
            BOOST_CHECK_EQUAL(play(in_ram, slots, steps).advances, revolve_advances(steps, slots));
            // x_0 on disk leaves every RAM slot free, and even none will do.
            BOOST_CHECK_EQUAL(play(on_disk, slots, steps).advances, revolve_advances(steps, slots + 1));
            BOOST_CHECK_EQUAL(play(on_disk, 0, steps).advances, revolve_advances(steps, 1));
        }
    }
}

BOOST_AUTO_TEST_CASE(an_empty_chain_only_drops) {
    const std::vector<Stored> stored{{0, ram(3)}, {0, disk(1)}};
    BOOST_CHECK_EQUAL(text_of(by_next(*complete(stored, 1, 0))),
                      "drop x_0 from ram slot 3\ndrop x_0 from disk slot 1\nturn x_0\ndone\n");
    BOOST_CHECK_EQUAL(play(stored, 1, 0).advances, 0);
}

BOOST_AUTO_TEST_CASE(chains_that_need_their_state) {
    const std::vector<Stored> stored{{0, ram(0)}, {40, ram(1)}, {77, disk(0)}, {99, ram(2)}};
    BOOST_CHECK_EQUAL(play(stored, 5, 100, true).reversed, 100);
}

BOOST_AUTO_TEST_CASE(many_states_rewind_and_blocks) {
    std::vector<Stored> stored;
    std::uint32_t random = 12345;
    for (std::int32_t i = 0; i < 300; ++i) {
        random = random * 1664525u + 1013904223u;
        const Index step = i == 0 ? 0 : Index{i} * 40 + static_cast<Index>((random >> 8) % 40);
        stored.push_back({step, i % 7 == 3 ? disk(i) : ram(2 * i)});
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto schedule = complete(stored, 280, 12500);
    BOOST_CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
    const std::vector<Action> stream = by_next(*schedule);
    for (const std::size_t block : {1, 3, 8, 17, 64, 4096}) {
        schedule->rewind();
        BOOST_CHECK(by_fill(*schedule, block) == stream);
    }
    const Play result = play(stored, 280, 12500);
    BOOST_CHECK(result.advances >= revolve_advances(12500, 280 + 43) - 12499);
    BOOST_CHECK(result.advances <= revolve_advances(12500, 280));
}

BOOST_AUTO_TEST_CASE(refusals) {
    const auto refused = [](std::vector<Stored> stored, Index slots, Index steps, const char* words) {
        BOOST_CHECK_EXCEPTION(complete(stored, slots, steps), InvalidArgument, says(words));
    };
    refused({{1, ram(0)}}, 4, 9, "x_0 is not among the stored states");
    refused({}, 4, 9, "x_0 is not among the stored states");
    refused({{0, ram(0)}, {3, ram(0)}}, 4, 9, "x_3 in ram slot 0: the slot is named twice");
    refused({{0, ram(0)}, {3, ram(1)}}, 1, 9, "2 states lie in RAM but slots is 1");
    refused({{0, ram(0)}, {10, ram(1)}}, 2, 9, "x_10 in ram slot 1 lies outside the chain of 9");
    refused({{0, ram(-1)}}, 2, 9, "give the slot that holds it");
    refused({{0, disk(0)}}, -1, 9, "slots is -1");
    refused({{0, ram(0)}}, 1, -9, "steps must lie in 0 ... 2^62, came -9");
}

namespace {

/// A set that no sweep would leave: mostly short gaps and some long ones; one state in `disk_every` on disk (0: none).
std::vector<Stored> uneven(std::int32_t count, std::uint32_t seed, std::int32_t disk_every) {
    std::vector<Stored> stored;
    Index step = 0;
    for (std::int32_t i = 0; i < count; ++i) {
        stored.push_back({step, disk_every > 0 && i % disk_every == 1 ? disk(i) : ram(i)});
        seed = seed * 1664525u + 1013904223u;
        step += 1 + static_cast<Index>((seed >> 8) % 40) * ((seed >> 16) % 29 == 0 ? 40 : 1);
    }
    return stored;
}

Index in_ram(std::span<const Stored> stored) {
    return std::count_if(stored.begin(), stored.end(), [](const Stored& s) { return s.slot.tier == Tier::ram; });
}

Index keeping_all(std::span<const Stored> stored, Index slots, Index steps) {
    Index sum = 0;
    for (std::size_t i = 0; i < stored.size(); ++i) {
        const bool on_disk = stored[i].slot.tier == Tier::disk;
        const Index end = i + 1 < stored.size() ? stored[i + 1].step : steps;
        sum += revolve_advances(end - stored[i].step, slots + (on_disk ? 1 : 0));
        slots -= on_disk ? 0 : 1;
    }
    return sum;
}

/// The least over all sets of kept states, whatever is dropped, disk states too: every pair, every number of states.
Index least_of_all_sets(std::span<const Stored> stored, Index slots, Index steps) {
    const std::size_t none = stored.size();
    const std::size_t most = static_cast<std::size_t>(in_ram(stored));
    constexpr Index never = std::numeric_limits<Index>::max() / 4;
    std::vector<std::vector<Index>> best(none + 1, std::vector<Index>(most + 2, never));
    for (Index& value : best[none]) value = 0;
    for (std::size_t i = none; i-- > 0;) {
        const std::size_t ram_state = stored[i].slot.tier == Tier::ram ? 1 : 0;
        for (std::size_t below = 0; below + ram_state <= most && below <= i; ++below) {
            const Index room = slots - static_cast<Index>(below) + (ram_state == 1 ? 0 : 1);
            if (room < 1) continue;
            for (std::size_t j = i + 1; j <= none; ++j) {
                const Index end = j == none ? steps : stored[j].step;
                const Index sum = revolve_advances(end - stored[i].step, room) + best[j][below + ram_state];
                best[i][below] = std::min(best[i][below], sum);
            }
        }
    }
    return best[0][0];
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_forecast_is_what_is_played) {
    for (const std::int32_t count : {1, 2, 17, 120, 301, 340}) {
        for (const std::int32_t disk_every : {0, 5}) {
            const std::vector<Stored> stored = uneven(count, 77u, disk_every);
            const Index steps = stored.back().step + 90;
            const Index slots = in_ram(stored) + 2;
            BOOST_CHECK_EQUAL(play(stored, slots, steps).advances, completion(stored, slots, steps).advances);
        }
    }
    BOOST_CHECK_EQUAL(completion(std::vector<Stored>{{0, ram(0)}}, 1, 0).advances, 0);
    BOOST_CHECK_EXCEPTION(completion(std::vector<Stored>{{0, ram(0)}}, 1, Index{1} << 40), InvalidArgument,
                          says("pass 2^63 - 1"));
}

BOOST_AUTO_TEST_CASE(large_sets_are_the_least_of_all_sets) {
    long better_than_all = 0;
    for (std::uint32_t seed = 1; seed <= 12; ++seed) {
        const std::int32_t disk_every = seed % 3 == 0 ? 23 : seed % 3 == 1 ? 0 : 150;
        std::vector<Stored> stored = uneven(301 + static_cast<std::int32_t>(seed) * 3, seed, disk_every);
        const Index steps = stored.back().step + 17 * seed * seed;
        const Index slots = in_ram(stored) + static_cast<Index>(seed % 4) * 20;
        const Index least = least_of_all_sets(stored, slots, steps);
        BOOST_TEST_CONTEXT("seed " << seed) {
            const Completion planned = completion(stored, slots, steps);
            BOOST_CHECK_EQUAL(planned.advances, least);
            BOOST_CHECK(planned.advances <= keeping_all(stored, slots, steps));
            better_than_all += planned.advances < keeping_all(stored, slots, steps) ? 1 : 0;
            // Doubles in RAM of what lies on disk, and of what lies in RAM, change nothing if they bring their slots.
            std::vector<Stored> doubled = stored;
            for (std::int32_t i = 0; i < 40; ++i)
                doubled.push_back({stored[static_cast<std::size_t>(i)].step, disk(5000 + i)});
            BOOST_CHECK(completion(doubled, slots, steps).advances <= least);
            BOOST_CHECK(play(doubled, slots, steps).advances == completion(doubled, slots, steps).advances);
        }
    }
    BOOST_CHECK(better_than_all >= 8);
}

BOOST_AUTO_TEST_CASE(the_two_ways_meet_at_the_border) {
    // One state more and the mere starts are not looked for; the rest must not be worse.
    for (std::uint32_t seed = 1; seed <= 3; ++seed) {
        const std::vector<Stored> small = uneven(300, seed, 0);
        std::vector<Stored> large = small;
        const Index steps = small.back().step + 200;
        large.push_back({steps - 1, disk(0)});
        const Index exact = completion(small, 300, steps).advances;
        BOOST_CHECK(exact <= least_of_all_sets(small, 300, steps));
        BOOST_CHECK(completion(large, 300, steps).advances <= least_of_all_sets(small, 300, steps));
    }
}

BOOST_AUTO_TEST_CASE(planning_prices_few_segments) {
    for (const std::int32_t count : {301, 1000, 3000, 20000, 100000}) {
        for (const std::int32_t disk_every : {0, 100}) {
            const std::vector<Stored> stored = uneven(count, 5u, disk_every);
            const Index steps = stored.back().step + 1000;
            const Index slots = in_ram(stored);
            const Completion planned = completion(stored, slots, steps);
            const Index m = count;
            const Index doublings = static_cast<Index>(std::bit_width(static_cast<std::uint32_t>(count)));
            BOOST_TEST_CONTEXT(count << " states: " << planned.priced << " segments") {
                BOOST_CHECK(planned.priced <= completion_work);
                BOOST_CHECK(planned.priced <= m * doublings * m);
                BOOST_CHECK(planned.advances <= keeping_all(stored, slots, steps));
                // What the states allow at best: a sweep of its own with a slot for each of them.
                BOOST_CHECK(planned.advances >= revolve_advances(steps + 1, m) - steps);
                if (disk_every > 0) continue;
                // 30 states or fewer are within the layers of every size here.
                const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(count) - 1;
                for (const std::ptrdiff_t states : {1, 7, 30}) {
                    std::vector<Stored> spread{stored[0]};
                    std::vector<Stored> lowest{stored[0]};
                    std::vector<Stored> highest{stored[0]};
                    for (std::ptrdiff_t i = 1; i < states; ++i) {
                        spread.push_back(stored[static_cast<std::size_t>(i * last / states)]);
                        lowest.push_back(stored[static_cast<std::size_t>(i)]);
                        highest.push_back(stored[static_cast<std::size_t>(last - states + i)]);
                    }
                    BOOST_CHECK(planned.advances <= keeping_all(spread, slots, steps));
                    BOOST_CHECK(planned.advances <= keeping_all(lowest, slots, steps));
                    BOOST_CHECK(planned.advances <= keeping_all(highest, slots, steps));
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_huge_set_with_little_worth_keeping) {
    // 100,000 states at the foot of a long chain: a handful is kept, the slots of the others serve the long rest.
    std::vector<Stored> stored;
    for (std::int32_t i = 0; i < 100000; ++i) stored.push_back({i, ram(i)});
    const Index steps = 40000000;
    const Completion planned = completion(stored, 100000, steps);
    BOOST_CHECK(planned.advances <= revolve_advances(steps, 100000));
    BOOST_CHECK(planned.advances <= revolve_advances(99999, 100000) + revolve_advances(steps - 99999, 99999));
    BOOST_CHECK(planned.advances < keeping_all(stored, 100000, steps) / 1000);
    BOOST_CHECK(planned.priced <= completion_work);
}
