// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_periodic_disk
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/multistage.hpp"
#include "backsweep/schedule/periodic_disk.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "support/streams.hpp"
#include "support/tier_play.hpp"
#include "support/tier_search.hpp"

#include <limits>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr auto in_ram = static_cast<std::size_t>(Tier::ram);
constexpr auto on_disk = static_cast<std::size_t>(Tier::disk);

PeriodicDiskOptions options_of(Index steps, Index ram, double write, double read, Index period = 0) {
    PeriodicDiskOptions options;
    options.steps = steps;
    options.ram_slots = ram;
    options.write = write;
    options.read = read;
    options.period = period;
    return options;
}

MultistageOptions unlimited(const PeriodicDiskOptions& options) {
    MultistageOptions all;
    all.steps = options.steps;
    all.levels = {{Tier::ram, options.ram_slots}, {Tier::disk, -1, options.write, options.read}};
    all.needs_state = options.needs_state;
    return all;
}

/// Legal, at the predicted counts and cost; each state on disk is written and read once.
Play check(const PeriodicDiskOptions& options) {
    const PeriodicDiskCounts counts = periodic_disk_counts(options);
    Machine machine;
    machine.needs_state = options.needs_state;
    machine.limits.slots = {0, 0, options.ram_slots, counts.disk_writes};
    machine.costs.advance = [&](Index) { return options.advance; };
    machine.costs.reverse = [&](Index) { return options.reverse; };
    machine.costs.write[on_disk] = options.write;
    machine.costs.read[on_disk] = options.read;
    const Play play = referee(*periodic_disk(options), options.steps, {}, machine);
    BOOST_CHECK(same_price(play.cost, counts.cost));
    BOOST_CHECK_EQUAL(play.advances, counts.advances);
    BOOST_CHECK_EQUAL(play.recorded, options.steps);
    BOOST_CHECK_EQUAL(play.writes[on_disk], counts.disk_writes);
    BOOST_CHECK_EQUAL(play.reads[on_disk], counts.disk_reads);
    BOOST_CHECK_EQUAL(counts.disk_reads, counts.disk_writes);
    BOOST_CHECK_EQUAL(play.writes[in_ram], counts.ram_writes);
    BOOST_CHECK_EQUAL(play.reads[in_ram], counts.ram_reads);
    BOOST_CHECK_EQUAL(play.drops, 0);
    return play;
}

}  // namespace

BOOST_AUTO_TEST_CASE(seven_links_in_blocks_of_two) {
    BOOST_CHECK_EQUAL(text_of(by_next(*periodic_disk(options_of(7, 1, 1.0, 1.0)))),
                      "save x_0 to disk slot 0\n"
                      "advance [0, 2)\n"
                      "save x_2 to disk slot 1\n"
                      "advance [2, 4)\n"
                      "save x_4 to ram slot 0\n"
                      "advance [4, 6)\n"
                      "record [6, 7)\n"
                      "turn x_7\n"
                      "reverse [6, 7)\n"
                      "load x_4 from ram slot 0\n"
                      "advance [4, 5)\n"
                      "tape [5, 6)\n"
                      "reverse [5, 6)\n"
                      "take x_4 from ram slot 0\n"
                      "tape [4, 5)\n"
                      "reverse [4, 5)\n"
                      "take x_2 from disk slot 1\n"
                      "save x_2 to ram slot 0\n"
                      "advance [2, 3)\n"
                      "tape [3, 4)\n"
                      "reverse [3, 4)\n"
                      "take x_2 from ram slot 0\n"
                      "tape [2, 3)\n"
                      "reverse [2, 3)\n"
                      "take x_0 from disk slot 0\n"
                      "save x_0 to ram slot 0\n"
                      "advance [0, 1)\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "take x_0 from ram slot 0\n"
                      "tape [0, 1)\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(grid) {
    for (Index n = 0; n <= 64; ++n) {
        for (Index c = 1; c <= 16; ++c) {
            for (const bool needs_state : {false, true}) {
                PeriodicDiskOptions options = options_of(n, c, 2.5, 1.0);
                options.needs_state = needs_state;
                const double optimum = multistage_cost(unlimited(options));
                for (const Index period : {0, 1, 3, 8}) {
                    options.period = period;
                    BOOST_TEST_CONTEXT(n << " steps, " << c << " slots, period " << period << ", needs_state "
                                         << needs_state) {
                        const Play play = check(options);
                        BOOST_CHECK(play.cost >= optimum * (1.0 - 1e-12));
                        const auto schedule = periodic_disk(options);
                        const std::vector<Action> stream = by_next(*schedule);
                        for (const std::size_t block : {1, 8, 9, 100}) {
                            schedule->rewind();
                            BOOST_CHECK(by_fill(*schedule, block) == stream);
                        }
                    }
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(never_cheaper_than_the_cheapest_reversal) {
    for (Index n = 0; n <= 6; ++n) {
        const PeriodicDiskOptions options = options_of(n, 1, 0.5, 0.25);
        BOOST_CHECK(check(options).cost >= cheapest_reversal(unlimited(options)) - 1e-12);
    }
}

// The best length of a block is the one with the least price a link.
BOOST_AUTO_TEST_CASE(no_other_period_has_cheaper_blocks) {
    for (const Index c : {1, 2, 3, 7, 20}) {
        for (const double price : {0.0, 0.5, 3.0, 17.0, 250.0, 4000.0}) {
            const Index period = periodic_disk_period(options_of(9, c, price, price));
            const auto each = [&](Index m) {
                return (2.0 * price + static_cast<double>(m + revolve_advances(m, c))) / static_cast<double>(m);
            };
            for (Index m = 1; m < 2 * period + 10; m += 1 + m / 100) BOOST_CHECK(each(m) >= each(period) - 1e-9);
        }
    }
}

BOOST_AUTO_TEST_CASE(chains_too_long_to_play) {
    const PeriodicDiskCounts counts = periodic_disk_counts(options_of(1000000000, 20, 30000.0, 30000.0));
    BOOST_CHECK_EQUAL(counts.disk_writes, (1000000000 - 2) / counts.period);
    const auto schedule = periodic_disk(options_of(Index{1} << 62, 20, 1e15, 1e15));
    for (int i = 0; i < 1000; ++i) BOOST_CHECK(schedule->next().verb != Verb::done);
    BOOST_CHECK_EQUAL(periodic_disk_period(options_of(5, 3, 1e300, 0.0)), Index{1} << 62);
    PeriodicDiskOptions free = options_of(5, 3, 1.0, 1.0);
    free.advance = 0.0;
    BOOST_CHECK_EQUAL(periodic_disk_period(free), Index{1} << 62);
    check(free);
}

BOOST_AUTO_TEST_CASE(refusals) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr Index most = std::numeric_limits<Index>::max();
    const auto refuses = [](const PeriodicDiskOptions& options, const char* words) {
        BOOST_CHECK_EXCEPTION(periodic_disk(options), InvalidArgument, says(words));
        BOOST_CHECK_EXCEPTION(periodic_disk_counts(options), InvalidArgument, says(words));
    };
    refuses(options_of(-1, 2, 1.0, 1.0), "steps must lie in 0 ... 2^62, came -1");
    refuses(options_of(most, 2, 1.0, 1.0), "steps must lie in 0 ... 2^62");
    refuses(options_of(5, 0, 1.0, 1.0), "ram_slots must be 1 or more, came 0");
    refuses(options_of(5, 2, nan, 1.0), "write must be a price of 0 or more, came nan");
    refuses(options_of(5, 2, 1.0, -1.0), "read must be a price of 0 or more, came -1");
    refuses(options_of(5, 2, 1.0, 1.0, -3), "period must be 1 or more, or 0 for the best one, came -3");
    refuses(options_of(Index{1} << 62, 2, 1.0, 1.0), "states on disk are more than the 2147483647 slots");
    refuses(options_of(Index{1} << 62, most, 0.0, 1e300), "RAM slots are more than the 2147483647");
    PeriodicDiskOptions options = options_of(5, 2, 1.0, 1.0);
    options.advance = std::numeric_limits<double>::infinity();
    refuses(options, "advance must be a price of 0 or more, came inf");
    options.advance = 1.0;
    options.reverse = -2.0;
    refuses(options, "reverse must be a price of 0 or more");
    BOOST_CHECK_EXCEPTION(periodic_disk_counts(options_of(Index{1} << 62, 1, 1e18, 1e300)), InvalidArgument,
                          says("pass 2^63 - 1"));
}

BOOST_AUTO_TEST_CASE(a_disk_that_never_pays_is_counted_too) {
    for (const double advance : {0.0, 1.0}) {
        PeriodicDiskOptions options = options_of(100, 3, advance == 0.0 ? 2.0 : 1e30, 0.0);
        options.advance = advance;
        const PeriodicDiskCounts counts = periodic_disk_counts(options);
        BOOST_CHECK_EQUAL(counts.disk_writes, 0);
        const Play play = referee(*periodic_disk(options), 100);
        BOOST_CHECK_EQUAL(counts.advances, play.advances);
        BOOST_CHECK_EQUAL(counts.ram_writes, play.saves);
    }
}
