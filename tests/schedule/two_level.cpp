// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_two_level
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/two_level.hpp"
#include "support/streams.hpp"

#include <algorithm>
#include <limits>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr auto in_ram = static_cast<std::size_t>(Tier::ram);
constexpr auto on_disk = static_cast<std::size_t>(Tier::disk);

TwoLevelOptions options_of(Index period, Index extra_slots, SweepRule rule = SweepRule::fewest_writes) {
    TwoLevelOptions options;
    options.period = period;
    options.extra_slots = extra_slots;
    options.rule = rule;
    return options;
}

/// The stream of a chain whose last link is found missing, or whose end is told before the first action.
std::vector<Action> stream_of(const TwoLevelOptions& options, Index steps, bool told_first) {
    const auto schedule = two_level(options);
    std::vector<Action> stream;
    if (told_first) schedule->finish(steps);
    bool open = !told_first;
    do {
        Action action = schedule->next();
        if (open && action.verb == Verb::advance && action.steps.last >= steps) {
            schedule->finish(steps);
            open = false;
            action.steps.last = steps;
            if (action.steps.empty()) continue;
        }
        stream.push_back(action);
    } while (stream.empty() || stream.back().verb != Verb::done);
    return stream;
}

}  // namespace

BOOST_AUTO_TEST_CASE(five_links_in_blocks_of_three) {
    const char* const wanted =
        "save x_0 to disk slot 0\n"
        "advance [0, 3)\n"
        "save x_3 to disk slot 1\n"
        "advance [3, 5)\n"
        "turn x_5\n"
        "load x_3 from disk slot 1\n"
        "advance [3, 4)\n"
        "tape [4, 5)\n"
        "reverse [4, 5)\n"
        "take x_3 from disk slot 1\n"
        "tape [3, 4)\n"
        "reverse [3, 4)\n"
        "load x_0 from disk slot 0\n"
        "advance [0, 1)\n"
        "save x_1 to ram slot 0\n"
        "advance [1, 2)\n"
        "tape [2, 3)\n"
        "reverse [2, 3)\n"
        "take x_1 from ram slot 0\n"
        "tape [1, 2)\n"
        "reverse [1, 2)\n"
        "take x_0 from disk slot 0\n"
        "tape [0, 1)\n"
        "reverse [0, 1)\n"
        "done\n";
    BOOST_CHECK_EQUAL(text_of(stream_of(options_of(3, 1), 5, false)), wanted);
    BOOST_CHECK_EQUAL(text_of(stream_of(options_of(3, 1), 5, true)), wanted);
}

BOOST_AUTO_TEST_CASE(grid) {
    for (Index n = 0; n <= 64; ++n) {
        for (Index extra = 0; extra <= 15; ++extra) {
            for (const Index period : {1, 2, 5, 8, 63, 64, 100}) {
                const TwoLevelOptions options = options_of(period, extra);
                BOOST_TEST_CONTEXT(n << " steps, " << extra << " extra slots, period " << period) {
                    const TwoLevelCounts counts = two_level_counts(options, n);
                    Index advances = n;
                    for (Index first = 0; first < n; first += period) {
                        advances += revolve_advances(std::min(period, n - first), extra + 1);
                    }
                    BOOST_CHECK_EQUAL(counts.advances, advances);
                    for (const Ending ending : {Ending::ahead, Ending::late}) {
                        // The state at the end of the last block is written before the chain is known to end there.
                        const Index revoked = ending == Ending::late && n % period == 0 ? 1 : 0;
                        Machine machine;
                        machine.ending = ending;
                        machine.needs_state = true;
                        machine.limits.slots = {0, 0, extra, counts.disk_writes + revoked};
                        const auto schedule = two_level(options);
                        for (int round = 0; round < 2; ++round) {
                            const Play play = referee(*schedule, n, {}, machine);
                            BOOST_CHECK_EQUAL(play.advances, advances);
                            BOOST_CHECK_EQUAL(play.recorded, n);
                            BOOST_CHECK_EQUAL(play.writes[on_disk], counts.disk_writes + revoked);
                            BOOST_CHECK_EQUAL(play.reads[on_disk], counts.disk_reads);
                            BOOST_CHECK_EQUAL(play.writes[in_ram], counts.ram_writes);
                            BOOST_CHECK_EQUAL(play.reads[in_ram], counts.ram_reads);
                            BOOST_CHECK_EQUAL(play.drops, revoked);
                            schedule->rewind();
                        }
                    }
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(the_open_sweep_gives_out_an_advance_at_most) {
    const auto schedule = two_level(options_of(4, 2));
    std::vector<Action> block(50);
    for (Index k = 0; k < 20; ++k) {
        BOOST_CHECK_EQUAL(schedule->fill(block), 2u);
        BOOST_CHECK(block[0].verb == Verb::save && block[0].steps.first == 4 * k);
        BOOST_CHECK(block[1].verb == Verb::advance && block[1].steps == (Range{4 * k, 4 * k + 4}));
    }
    schedule->finish(78);
    BOOST_CHECK(schedule->next() == (Action{Verb::turn, {}, {}, 0, {78, 78}}));
    for (const std::size_t size : {1, 2, 7, 8, 9, 50}) {
        std::vector<std::vector<Action>> streams;
        for (const bool bulk : {false, true}) {
            schedule->rewind();
            schedule->finish(78);
            streams.push_back(bulk ? by_fill(*schedule, size) : by_next(*schedule));
        }
        BOOST_CHECK(streams[0] == streams[1]);
    }
}

BOOST_AUTO_TEST_CASE(told_in_the_middle_of_anything) {
    // After `given` actions of the open sweep, at every length that is still possible.
    for (int given = 0; given <= 8; ++given) {
        const Index came = given / 2 * 3;  // where the advances given out lead
        const Index least = given % 2 == 0 ? std::max<Index>(came - 3, 0) : came;
        for (Index steps = 0; steps <= 20; ++steps) {
            const auto schedule = two_level(options_of(3, 1));
            std::vector<Action> stream;
            for (int i = 0; i < given; ++i) stream.push_back(schedule->next());
            if (steps < least) {
                BOOST_CHECK_THROW(schedule->finish(steps), InvalidArgument);
                continue;
            }
            schedule->finish(steps);
            if (steps < came) stream.back().steps.last = steps;
            if (!stream.empty() && stream.back().verb == Verb::advance && stream.back().steps.empty())
                stream.pop_back();
            const std::vector<Action> rest = by_next(*schedule);
            stream.insert(stream.end(), rest.begin(), rest.end());
            Script whole(stream);
            const Play play = referee(whole, steps);
            BOOST_CHECK_EQUAL(play.advances, two_level_counts(options_of(3, 1), steps).advances);
        }
    }
}

BOOST_AUTO_TEST_CASE(refusals) {
    constexpr Index most = std::numeric_limits<Index>::max();
    const auto refuses = [](const TwoLevelOptions& options, const char* words) {
        BOOST_CHECK_EXCEPTION(two_level(options), InvalidArgument, says(words));
        BOOST_CHECK_EXCEPTION(two_level_counts(options, 5), InvalidArgument, says(words));
    };
    refuses(options_of(0, 1), "period must lie in 1 ... 2^61, came 0");
    refuses(options_of(most, 1), "period must lie in 1 ... 2^61");
    refuses(options_of(3, -1), "extra_slots must be 0 or more, came -1");
    refuses(options_of(3, 1, static_cast<SweepRule>(4)), "rule must be fewest_writes or maximum, came 4");
    refuses(options_of(Index{1} << 60, Index{1} << 31), "2147483647 slots in all");
    BOOST_CHECK_NO_THROW(two_level(options_of(3, most)));
    BOOST_CHECK_EXCEPTION(two_level_counts(options_of(3, 1), -1), InvalidArgument, says("came -1"));
    BOOST_CHECK_EXCEPTION(two_level_counts(options_of(Index{1} << 60, 0), Index{1} << 62), InvalidArgument,
                          says("pass 2^63 - 1"));
    const auto schedule = two_level(options_of(3, 1));
    BOOST_CHECK_EXCEPTION(schedule->finish(-1), InvalidArgument, says("finish(-1): the chain has come beyond x_0"));
    BOOST_CHECK_EXCEPTION(schedule->finish(most), InvalidArgument, says("2^62 at most"));
    schedule->finish(7);
    BOOST_CHECK_EXCEPTION(schedule->finish(7), ScheduleError, says("told already that the chain ends after 7 links"));
    // A caller that goes on for ever is told so.
    const auto endless = two_level(options_of(Index{1} << 61, 1));
    BOOST_CHECK_EXCEPTION(for (;;) endless->next(), ScheduleError, says("beyond 2^62 links"));
}
