// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_tiered_revolve
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/tiered_revolve.hpp"
#include "support/streams.hpp"
#include "support/tier_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr SweepRule rules[] = {SweepRule::fewest_writes, SweepRule::maximum};

TieredRevolveOptions options_of(Index steps, Index ram, Index disk, SweepRule rule = SweepRule::fewest_writes) {
    TieredRevolveOptions options;
    options.steps = steps;
    options.ram_slots = ram;
    options.disk_slots = disk;
    options.rule = rule;
    return options;
}

/// Counts by depth of the stack of kept states, from the stream alone.
struct Counted {
    std::vector<Index> writes;
    std::vector<Index> reads;
    std::vector<Slot> slots;
    Index advances = 0;
};

Counted counted(const std::vector<Action>& stream) {
    Counted counts;
    std::vector<Index> stack;
    for (const Action& action : stream) {
        if (action.verb == Verb::advance) counts.advances += action.steps.size();
        if (action.verb == Verb::save) {
            stack.push_back(action.steps.first);
            if (counts.writes.size() < stack.size()) {
                counts.writes.push_back(0);
                counts.reads.push_back(0);
                counts.slots.push_back(action.to);
            }
            ++counts.writes[stack.size() - 1];
            BOOST_CHECK(counts.slots[stack.size() - 1] == action.to);
        }
        if (action.verb == Verb::load || action.verb == Verb::take) {
            BOOST_REQUIRE(!stack.empty());
            BOOST_CHECK_EQUAL(stack.back(), action.steps.first);
            ++counts.reads[stack.size() - 1];
            if (action.verb == Verb::take) stack.pop_back();
        }
    }
    BOOST_CHECK(stack.empty());
    return counts;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_most_accessed_states_lie_in_ram) {
    BOOST_CHECK_EQUAL(text_of(by_next(*tiered_revolve(options_of(4, 1, 1)))),
                      "save x_0 to disk slot 0\n"
                      "advance [0, 1)\n"
                      "save x_1 to ram slot 0\n"
                      "advance [1, 3)\n"
                      "record [3, 4)\n"
                      "turn x_4\n"
                      "reverse [3, 4)\n"
                      "load x_1 from ram slot 0\n"
                      "advance [1, 2)\n"
                      "tape [2, 3)\n"
                      "reverse [2, 3)\n"
                      "take x_1 from ram slot 0\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "take x_0 from disk slot 0\n"
                      "tape [0, 1)\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(grid) {
    for (Index n = 0; n <= 64; ++n) {
        for (Index s = 1; s <= 16; ++s) {
            for (const Index ram : {Index{0}, s / 3, s / 2, s}) {
                for (const SweepRule rule : rules) {
                    for (const bool needs_state : {false, true}) {
                        BOOST_TEST_CONTEXT(n << " steps, " << s << " slots, " << ram << " in RAM, rule "
                                             << static_cast<int>(rule) << ", needs_state " << needs_state) {
                            TieredRevolveOptions options = options_of(n, ram, s - ram, rule);
                            options.needs_state = needs_state;
                            const auto schedule = tiered_revolve(options);
                            Machine machine;
                            machine.needs_state = needs_state;
                            machine.limits.slots = {0, 0, ram, s - ram};
                            const Play play = referee(*schedule, n, {}, machine);
                            const TieredRevolveCounts counts = tiered_revolve_counts(options);
                            const RevolveOptions single{.steps = n, .slots = s, .needs_state = needs_state};
                            BOOST_CHECK_EQUAL(play.advances, revolve_advances(single));
                            BOOST_CHECK_EQUAL(counts.advances, play.advances);
                            schedule->rewind();
                            const std::vector<Action> stream = by_next(*schedule);
                            const Counted own = counted(stream);
                            BOOST_CHECK(own.writes == counts.writes);
                            BOOST_CHECK(own.reads == counts.reads);
                            Index least_in_ram = std::numeric_limits<Index>::max();
                            Index most_on_disk = 0;
                            for (std::size_t depth = 0; depth < counts.tiers.size(); ++depth) {
                                BOOST_CHECK(own.slots[depth].tier == counts.tiers[depth]);
                                const Index accesses = counts.writes[depth] + counts.reads[depth];
                                if (counts.tiers[depth] == Tier::ram) {
                                    least_in_ram = std::min(least_in_ram, accesses);
                                } else {
                                    most_on_disk = std::max(most_on_disk, accesses);
                                }
                            }
                            BOOST_CHECK(least_in_ram >= most_on_disk);
                            const auto disk = static_cast<std::size_t>(Tier::disk);
                            BOOST_CHECK_EQUAL(play.writes[disk], counts.disk_writes);
                            BOOST_CHECK_EQUAL(play.reads[disk], counts.disk_reads);
                            for (const std::size_t block : {1, 7, 9, 100}) {
                                schedule->rewind();
                                BOOST_CHECK(by_fill(*schedule, block) == stream);
                            }
                        }
                    }
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(no_reversal_of_a_small_chain_advances_less) {
    for (Index n = 0; n <= 7; ++n) {
        for (Index s = 1; s <= 3; ++s) {
            MultistageOptions search;
            search.steps = n;
            search.levels = {{Tier::ram, s}};
            search.reverse = 0.0;
            for (const SweepRule rule : rules) {
                const TieredRevolveCounts counts = tiered_revolve_counts(options_of(n, s - 1, 1, rule));
                BOOST_CHECK_EQUAL(static_cast<double>(counts.advances), cheapest_reversal(search));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(revolves_own_rule_writes_least) {
    for (Index n = 2; n <= 300; n += 7) {
        for (Index s = 1; s <= 12; ++s) {
            const auto sum = [](const std::vector<Index>& v) { return std::accumulate(v.begin(), v.end(), Index{0}); };
            const auto counts = tiered_revolve_counts(options_of(n, s, 0));
            const Play play = referee(*revolve(n, s), n);
            BOOST_CHECK_EQUAL(sum(counts.writes), play.saves);
            BOOST_CHECK_EQUAL(sum(counts.reads), play.loads + play.takes);
            BOOST_CHECK(sum(tiered_revolve_counts(options_of(n, s, 0, SweepRule::maximum)).writes) >= play.saves);
        }
    }
}

BOOST_AUTO_TEST_CASE(counts_of_chains_too_long_to_play) {
    const TieredRevolveCounts counts = tiered_revolve_counts(options_of(Index{1} << 40, 20, 20));
    BOOST_CHECK_EQUAL(counts.advances, revolve_advances(Index{1} << 40, 40));
    BOOST_CHECK_EQUAL(counts.writes.front(), 1);
    BOOST_CHECK(counts.disk_writes > 0 && counts.disk_reads > counts.disk_writes);
    const auto schedule = tiered_revolve(options_of(Index{1} << 62, 3, 2));
    for (int i = 0; i < 1000; ++i) BOOST_CHECK(schedule->next().verb != Verb::done);
}

BOOST_AUTO_TEST_CASE(refusals) {
    constexpr Index most = std::numeric_limits<Index>::max();
    const auto refuses = [](const TieredRevolveOptions& options, const char* words) {
        BOOST_CHECK_EXCEPTION(tiered_revolve(options), InvalidArgument, says(words));
        BOOST_CHECK_EXCEPTION(tiered_revolve_counts(options), InvalidArgument, says(words));
        BOOST_CHECK_EXCEPTION(tiered_revolve_table_bytes(options), InvalidArgument, says(words));
    };
    refuses(options_of(-1, 2, 2), "steps must lie in 0 ... 2^62, came -1");
    refuses(options_of(most, 2, 2), "steps must lie in 0 ... 2^62");
    refuses(options_of(5, -1, 2), "ram_slots must be 0 or more, came -1");
    refuses(options_of(5, 1, -7), "disk_slots must be 0 or more, came -7");
    refuses(options_of(5, 0, 0), "no slot was given");
    refuses(options_of(5, 1, 1, static_cast<SweepRule>(5)), "rule must be fewest_writes or maximum, came 5");
    refuses(options_of(Index{1} << 62, most, most), "2147483647 slots that have numbers");
    refuses(options_of(Index{1} << 40, 1 << 28, 1 << 28), "more than most_table_bytes, came 536870912 slots");
    BOOST_CHECK_EXCEPTION(tiered_revolve_counts(options_of(Index{1} << 62, 1, 0)), InvalidArgument,
                          says("pass 2^63 - 1"));
    BOOST_CHECK_EQUAL(tiered_revolve_table_bytes(options_of(10, most, most)), 9u * 48u);
}
