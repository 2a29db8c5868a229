// Every rule of the abstract machine is broken once, and the message is read.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_referee
#include "support/unit_test.hpp"

#include "backsweep/schedule/referee.hpp"
#include "schedule/emit.hpp"
#include "support/streams.hpp"

#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

using Actions = std::vector<Action>;

constexpr Slot ram(std::int32_t index) {
    return {Tier::ram, index};
}

Action restart(Index step, Slot from) {
    return {Verb::restart, from, {}, 0, {step, step}};
}

Action move(Range steps, Slot from, Slot to) {
    return {Verb::move, from, to, 0, steps};
}

Action drop_tape(Index link, Slot from) {
    return {Verb::drop, from, {}, 0, {link, link + 1}};
}

/// One link back, all by the rules.
const Actions one_link{emit::record(0), emit::turn(1), emit::reverse(0)};

Play play(Actions actions, Index steps, std::vector<Stored> stored = {}, bool needs_state = false,
          bool reverses = true) {
    Script script(std::move(actions));
    return referee(script, steps, stored, {}, {}, needs_state, reverses);
}

void refused(Actions actions, Index steps, const char* words, bool needs_state = false) {
    Script script(std::move(actions));
    BOOST_TEST_CONTEXT(words) {
        BOOST_CHECK_EXCEPTION(referee(script, steps, {}, {}, {}, needs_state), ScheduleError, says(words));
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(counts_of_a_play_that_uses_every_verb) {
    const Slot disk{Tier::disk, 4};
    const Play result = play({emit::save(0, ram(0)),
                              emit::record(0),
                              emit::stow(0, ram(1)),
                              restart(1, ram(1)),
                              emit::save(1, ram(7)),
                              move({1, 1}, ram(7), disk),
                              emit::advance(1, 3),
                              emit::record(3),
                              emit::drop_working_tape(3),
                              emit::load(0, ram(0)),
                              emit::advance(0, 3),
                              emit::record(3),
                              emit::turn(4),
                              emit::reverse(3),
                              emit::load(1, disk),
                              emit::advance(1, 2),
                              emit::tape(2),
                              emit::reverse(2),
                              emit::take(1, disk),
                              emit::tape(1),
                              emit::reverse(1),
                              emit::drop_state(0, ram(0)),
                              emit::fetch(0, ram(1)),
                              emit::reverse(0)},
                             4);
    BOOST_CHECK_EQUAL(result.actions, 24);
    BOOST_CHECK_EQUAL(result.advances, 6);
    BOOST_CHECK_EQUAL(result.first_advance, 2);
    BOOST_CHECK_EQUAL(result.recorded, 5);
    BOOST_CHECK_EQUAL(result.reversed, 4);
    BOOST_CHECK_EQUAL(result.saves, 2);
    BOOST_CHECK_EQUAL(result.loads, 2);
    BOOST_CHECK_EQUAL(result.takes, 1);
    BOOST_CHECK_EQUAL(result.stows, 1);
    BOOST_CHECK_EQUAL(result.fetches, 1);
    BOOST_CHECK_EQUAL(result.drops, 2);
    BOOST_CHECK_EQUAL(result.restarts, 1);
    BOOST_CHECK_EQUAL(result.moves, 1);
    const auto in_ram = static_cast<std::size_t>(Tier::ram);
    const auto on_disk = static_cast<std::size_t>(Tier::disk);
    BOOST_CHECK_EQUAL(result.writes[in_ram], 3);
    BOOST_CHECK_EQUAL(result.reads[in_ram], 2);
    BOOST_CHECK_EQUAL(result.reads[on_disk], 2);
    BOOST_CHECK_EQUAL(result.peak_slots[in_ram], 3);
    BOOST_CHECK_EQUAL(result.peak_slots[on_disk], 1);
    BOOST_CHECK_EQUAL(result.state_slots[in_ram], 2);
    BOOST_CHECK_EQUAL(result.tape_slots[in_ram], 1);
    BOOST_CHECK_EQUAL(result.state_slots[on_disk], 1);
    BOOST_CHECK_EQUAL(result.peak_states, 3);
}

BOOST_AUTO_TEST_CASE(bytes_follow_the_sizes_of_steps_and_links) {
    Script script({emit::save(0, ram(0)), emit::record(0), emit::stow(0, ram(1)), emit::save(1, ram(2)),
                   emit::record(1), emit::turn(2), emit::reverse(1), emit::drop_state(1, ram(2)),
                   emit::fetch(0, ram(1)), emit::drop_state(0, ram(0)), emit::reverse(0)});
    const Sizes sizes{[](Index step) { return 100 + step; }, [](Index link) { return 1000 + link; }};
    const Play result = referee(script, 2, {}, sizes);
    BOOST_CHECK_EQUAL(result.peak_bytes[static_cast<std::size_t>(Tier::ram)], 100 + 1000 + 101);
}

BOOST_AUTO_TEST_CASE(slots) {
    refused({emit::save(0, ram(0)), emit::save(0, ram(0))}, 1, "action 2, save x_0 to ram slot 0: ram slot 0 is full");
    refused({emit::record(0), emit::stow(0, ram(0)), emit::save(1, ram(0))}, 1, "it holds the tape of link 0");
    refused({emit::save(0, {})}, 1, "a slot must be named");
    refused({emit::save(0, {static_cast<Tier>(4), 0})}, 1, "no such tier");
    refused({emit::load(0, ram(3))}, 1, "ram slot 3 must hold x_0, it holds nothing");
    refused({emit::save(0, ram(0)), emit::take(0, ram(0)), emit::take(0, ram(0))}, 1, "it holds nothing");
    refused({emit::save(0, ram(0)), emit::advance(0, 1), emit::load(1, ram(0))}, 2, "must hold x_1, it holds x_0");
    refused({emit::save(0, ram(0)), emit::fetch(0, ram(0))}, 1, "must hold the tape of link 0, it holds x_0");
    refused({emit::save(0, ram(0)), drop_tape(0, ram(0))}, 1, "must hold the tape of link 0, it holds x_0");
    refused({emit::drop_state(0, ram(0))}, 1, "it holds nothing");
    refused({emit::save(0, ram(0)), move({0, 0}, ram(0), ram(1))}, 1, "`move` changes the tier");
    refused({emit::record(0), emit::stow(0, ram(0)), emit::record(0)}, 2, "must be x_0, it is x_1");
    refused({emit::record(0), emit::stow(0, ram(0)), restart(0, ram(0))}, 2, "must hold the tape of link -1");
}

BOOST_AUTO_TEST_CASE(limits_on_slots) {
    Script script({emit::save(0, ram(5)), emit::advance(0, 1), emit::save(1, ram(9))});
    Limits limits;
    limits.slots[static_cast<std::size_t>(Tier::ram)] = 1;
    BOOST_CHECK_EXCEPTION(referee(script, 3, {}, {}, limits), ScheduleError, says("tier ram may use 1 slots at once"));
}

BOOST_AUTO_TEST_CASE(working_state) {
    refused({emit::advance(1, 2)}, 2, "the working state must be x_1, it is x_0");
    refused({emit::advance(0, 0)}, 2, "the range of links is empty");
    refused({emit::advance(0, 3)}, 2, "the chain has the links [0, 2)");
    refused({emit::save(1, ram(0))}, 2, "must be x_1, it is x_0");
    refused({{Verb::save, {}, ram(0), 0, {0, 1}}}, 2, "exactly one state is meant");
    refused({{Verb::record, {}, {}, 0, {0, 2}}}, 2, "exactly one link is meant");
    refused({emit::save(0, ram(0)), emit::advance(0, 1), emit::record(1), emit::turn(2), emit::reverse(1),
             emit::save(1, ram(1))},
            2, "it is no known state");
    refused({emit::save(0, ram(0)), emit::advance(0, 2), emit::turn(2), emit::load(0, ram(0)), emit::advance(0, 1),
             emit::tape(1), emit::reverse(1), emit::tape(0)},
            2, "must be x_0, it is no known state");
}

BOOST_AUTO_TEST_CASE(working_tape) {
    refused({emit::record(0), emit::record(1)}, 2, "the working tape of link 0 would be lost");
    refused({emit::record(0), emit::stow(0, ram(0)), emit::record(1), emit::fetch(0, ram(0))}, 2, "would be lost");
    refused({emit::stow(0, ram(0))}, 1, "must be that of link 0, it is empty");
    refused({emit::record(0), emit::stow(1, ram(0))}, 2, "must be that of link 1, it is that of link 0");
    refused({emit::drop_working_tape(0)}, 1, "it is empty");
    refused({emit::advance(0, 1), emit::record(1), emit::turn(2), emit::reverse(1), emit::reverse(0)}, 2,
            "it is empty");
    refused({emit::save(0, ram(0)), emit::advance(0, 2), emit::turn(2), emit::take(0, ram(0)), emit::tape(0),
             emit::reverse(1)},
            2, "must be that of link 1, it is that of link 0");
}

BOOST_AUTO_TEST_CASE(a_tape_is_followed_by_its_reverse) {
    refused({emit::tape(0), emit::turn(1)}, 1, "the reverse of link 0 must follow its `tape` at once");
    refused({emit::save(0, ram(0)), emit::advance(0, 1), emit::turn(1), emit::load(0, ram(0)), emit::tape(0),
             emit::drop_state(0, ram(0))},
            1, "must follow its `tape` at once");
    refused({emit::tape(0)}, 1, "must follow its `tape` at once");
}

BOOST_AUTO_TEST_CASE(order_of_reverses) {
    refused({emit::record(0), emit::reverse(0)}, 1, "`turn` must come before the first reverse");
    refused({emit::record(0), emit::stow(0, ram(0)), emit::record(1), emit::stow(1, ram(1)), emit::turn(2),
             emit::fetch(0, ram(0)), emit::reverse(0)},
            2, "link 1 is next");
    refused(
        {emit::save(0, ram(0)), emit::record(0), emit::turn(1), emit::reverse(0), emit::load(0, ram(0)), emit::tape(0)},
        1, "link 0 is reversed already");
    refused({emit::record(0), emit::turn(1)}, 1, "link 0 was never reversed");
    refused({emit::record(0), emit::turn(1), emit::turn(1)}, 1, "a sweep turns once");
    refused({emit::turn(1)}, 1, "must be x_1, it is x_0");
    refused({emit::record(0), emit::turn(2)}, 1, "the chain ends at x_1");
    refused({}, 0, "`turn` never came");
    BOOST_CHECK_EQUAL(play({emit::turn(0)}, 0).actions, 1);
    BOOST_CHECK_EQUAL(play(one_link, 1).reversed, 1);
}

BOOST_AUTO_TEST_CASE(nothing_is_left_behind) {
    Actions actions{emit::save(0, ram(6))};
    actions.insert(actions.end(), one_link.begin(), one_link.end());
    refused(actions, 1, "x_0 is left in ram slot 6");
    refused({emit::record(0), emit::stow(0, ram(2)), emit::record(1), emit::drop_working_tape(1), emit::turn(2)}, 2,
            "link 1 was never reversed");
    Script leaves_a_tape({emit::record(0)});
    BOOST_CHECK_EXCEPTION(referee(leaves_a_tape, 1, {}, {}, {}, false, false), ScheduleError,
                          says("the tape of link 0 is left as working tape"));
}

BOOST_AUTO_TEST_CASE(chains_that_need_their_state) {
    refused(one_link, 1, "the working state must be x_0, it is x_1", true);
    const Actions good{emit::save(0, ram(0)), emit::record(0), emit::turn(1), emit::take(0, ram(0)), emit::reverse(0)};
    BOOST_CHECK_EQUAL(play(good, 1, {}, true).reversed, 1);
    const Actions taped{emit::save(0, ram(0)), emit::advance(0, 1), emit::turn(1),
                        emit::take(0, ram(0)), emit::tape(0),       emit::reverse(0)};
    BOOST_CHECK_EQUAL(play(taped, 1, {}, true).reversed, 1);
}

BOOST_AUTO_TEST_CASE(a_sweep_that_reverses_nothing) {
    BOOST_CHECK_EQUAL(play({emit::advance(0, 3)}, 3, {}, false, false).advances, 3);
    Script turns({emit::advance(0, 3), emit::turn(3)});
    BOOST_CHECK_EXCEPTION(referee(turns, 3, {}, {}, {}, false, false), ScheduleError, says("reverse nothing"));
    Script stops({emit::advance(0, 2)});
    BOOST_CHECK_EXCEPTION(referee(stops, 3, {}, {}, {}, false, false), ScheduleError,
                          says("must end at x_3, it is at x_2"));
}

BOOST_AUTO_TEST_CASE(surviving_states) {
    const std::vector<Stored> stored{{0, ram(3)}, {1, {Tier::disk, 0}}};
    const Actions actions{emit::turn(2),    emit::take(1, {Tier::disk, 0}), emit::tape(1),
                          emit::reverse(1), emit::take(0, ram(3)),          emit::tape(0),
                          emit::reverse(0)};
    const Play result = play(actions, 2, stored);
    BOOST_CHECK_EQUAL(result.advances, 0);
    BOOST_CHECK_EQUAL(result.peak_slots[static_cast<std::size_t>(Tier::disk)], 1);
    Script begins_with_a_state({emit::advance(0, 1)});
    BOOST_CHECK_EXCEPTION(referee(begins_with_a_state, 2, stored), ScheduleError, says("it is no known state"));
    Script never(Actions{});
    const std::vector<Stored> outside{{3, ram(0)}};
    BOOST_CHECK_EXCEPTION(referee(never, 2, outside), ScheduleError, says("the chain has the states x_0 to x_2"));
    BOOST_CHECK_THROW(referee(never, -1), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(done_is_for_ever) {
    Actions actions = one_link;
    actions.push_back(emit::done());
    actions.push_back(emit::record(0));
    refused(actions, 1, "`done` must be repeated for ever");
    refused({{static_cast<Verb>(77), {}, {}, 0, {0, 0}}}, 1, "no such verb");
}
