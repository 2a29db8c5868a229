// Every rule of the abstract machine is broken once, and the message is read.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_referee
#include "support/unit_test.hpp"

#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "schedule/emit.hpp"
#include "support/streams.hpp"

#include <cmath>
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
    return referee(script, steps, stored, {.needs_state = needs_state, .reverses = reverses});
}

void refused(Actions actions, Index steps, const char* words, bool needs_state = false) {
    Script script(std::move(actions));
    BOOST_TEST_CONTEXT(words) {
        BOOST_CHECK_EXCEPTION(referee(script, steps, {}, {.needs_state = needs_state}), ScheduleError, says(words));
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
    const Play result = referee(script, 2, {}, {.sizes = sizes});
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
    BOOST_CHECK_EXCEPTION(referee(script, 3, {}, {.limits = limits}), ScheduleError,
                          says("tier ram may use 1 slots at once"));
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
    BOOST_CHECK_EXCEPTION(referee(leaves_a_tape, 1, {}, {.reverses = false}), ScheduleError,
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
    BOOST_CHECK_EXCEPTION(referee(turns, 3, {}, {.reverses = false}), ScheduleError, says("reverse nothing"));
    Script stops({emit::advance(0, 2)});
    BOOST_CHECK_EXCEPTION(referee(stops, 3, {}, {.reverses = false}), ScheduleError,
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

BOOST_AUTO_TEST_CASE(prices_of_a_play) {
    // Every price is a power of two apart, so that the sum shows which were paid how often.
    const auto by_link = [](double price) {
        return [price](Index link) { return price * static_cast<double>(1 + link); };
    };
    Machine machine;
    machine.costs.advance = by_link(1.0);
    machine.costs.record = by_link(64.0);
    machine.costs.reverse = by_link(1024.0);
    machine.costs.write = {0.0, 0.0, 0.25, 1.0 / 64};
    machine.costs.read = {0.0, 0.0, 1.0 / 256, 1.0 / 2048};
    Script script({emit::save(0, ram(0)), emit::advance(0, 2), emit::save(2, {Tier::disk, 0}), emit::record(2),
                   emit::turn(3), emit::reverse(2), emit::take(2, {Tier::disk, 0}), emit::load(0, ram(0)),
                   emit::advance(0, 1), emit::tape(1), emit::reverse(1), move({0, 0}, ram(0), {Tier::disk, 0}),
                   emit::take(0, {Tier::disk, 0}), emit::tape(0), emit::reverse(0)});
    const Play result = referee(script, 3, {}, machine);
    const double links = (1 + 2 + 1) * 1.0 + (3 + 2 + 1) * 64.0 + (3 + 2 + 1) * 1024.0;
    const double tiers = 0.25 + 2.0 / 64 + 2.0 / 256 + 2.0 / 2048;  // the move reads RAM and writes the disk
    BOOST_TEST(result.cost == links + tiers);
}

BOOST_AUTO_TEST_CASE(uniform_prices_and_sizes_need_no_walk_along_the_links) {
    for (const Index steps : {1, 2, 3, 37}) {
        Machine walks, jumps;
        walks.sizes.state = [](Index) { return 3; };
        walks.sizes.tape = [](Index) { return 5; };
        walks.sizes.overhead = [](Verb verb, Index) -> std::int64_t { return verb == Verb::advance ? 100 : 0; };
        walks.costs.advance = [](Index) { return 0.1; };
        jumps = walks;
        jumps.sizes.uniform = jumps.costs.uniform = true;
        const Play slow = referee(*revolve(steps, 2), steps, {}, walks),
                   fast = referee(*revolve(steps, 2), steps, {}, jumps);
        BOOST_CHECK_EQUAL(slow.peak_total, fast.peak_total);
        BOOST_TEST(std::abs(slow.cost - fast.cost) <= 1e-12 * slow.cost);
    }
    // 5 * 10^11 advances of a million links are priced at once.
    Machine jumps;
    jumps.sizes.state = [](Index) { return 1; };
    jumps.costs.advance = [](Index) { return 2.0; };
    jumps.sizes.uniform = jumps.costs.uniform = true;
    const Play play = referee(*revolve(1000000, 1), 1000000, {}, jumps);
    BOOST_TEST(play.cost == 2.0 * 499999500000.0);
    BOOST_CHECK_EQUAL(play.peak_total, 3);  // x_0, and two states while an advance runs
}

BOOST_AUTO_TEST_CASE(bytes_of_a_tier_are_limited) {
    Machine machine;
    machine.sizes.state = [](Index step) { return 10 + step; };
    machine.limits.bytes[static_cast<std::size_t>(Tier::ram)] = 21;
    Script fits({emit::save(0, ram(0)), emit::advance(0, 1), emit::save(1, ram(1)), emit::drop_state(1, ram(1)),
                 emit::record(1), emit::turn(2), emit::reverse(1), emit::take(0, ram(0)), emit::tape(0),
                 emit::reverse(0)});
    BOOST_CHECK_EQUAL(referee(fits, 2, {}, machine).peak_bytes[2], 21);
    machine.limits.bytes[static_cast<std::size_t>(Tier::ram)] = 20;
    fits.rewind();
    BOOST_CHECK_EXCEPTION(referee(fits, 2, {}, machine), ScheduleError,
                          says("tier ram may hold 20 bytes at once, this makes 21"));
}

BOOST_AUTO_TEST_CASE(peak_of_everything_alive) {
    // A chain of two links, its sizes all different: states 1, 10, 100; tapes 1000, 2000; adjoints 4, 40, 400.
    Machine machine;
    machine.needs_state = true;
    machine.sizes.state = [](Index step) {
        return std::vector<std::int64_t>{1, 10, 100}.at(static_cast<std::size_t>(step));
    };
    machine.sizes.tape = [](Index link) { return 1000 * (1 + link); };
    machine.sizes.adjoint = [](Index step) {
        return std::vector<std::int64_t>{4, 40, 400}.at(static_cast<std::size_t>(step));
    };
    const Actions actions{emit::save(0, ram(0)), emit::advance(0, 1),   emit::save(1, ram(1)), emit::record(1),
                          emit::turn(2),         emit::take(1, ram(1)), emit::reverse(1),      emit::take(0, ram(0)),
                          emit::tape(0),         emit::reverse(0)};
    const auto peak = [&] {
        Script script(actions);
        return referee(script, 2, {}, machine).peak_total;
    };
    // At the turn: x_0 and x_1 kept, x_2 at work, its adjoint, the tape of link 1.
    BOOST_CHECK_EQUAL(peak(), 1 + 10 + 100 + 400 + 2000);
    // The tape holds x_2; at the reverse x_0 is kept, x_1 at work, both adjoints.
    machine.sizes.tape_holds_state = true;
    BOOST_CHECK_EQUAL(peak(), 1 + 10 + 2000 + 400 + 40);
    machine.sizes.overhead = [](Verb verb, Index link) -> std::int64_t {
        return verb == Verb::advance && link == 0 ? 5000 : 0;
    };
    BOOST_CHECK_EQUAL(peak(), 1 + 10 + 5000);  // x_0 is at work and kept: once
    machine.sizes.overhead = [](Verb verb, Index link) -> std::int64_t {
        return verb == Verb::reverse && link == 0 ? 5000 : 0;
    };
    BOOST_CHECK_EQUAL(peak(), 1 + 1000 + 40 + 4 + 5000);
}

namespace {

/// Advances link by link for ever; learns its length by finish() and reverses from x_0, which it kept.
class Endless final : public Schedule {
public:
    Action next() override {
        if (end_ < 0) {
            if (at_ < 0) return ++at_, emit::save(0, ram(0));
            ++at_;
            return emit::advance(at_ - 1, at_);
        }
        if (script_.empty()) return emit::done();
        const Action action = script_.front();
        script_.erase(script_.begin());
        return action;
    }
    void rewind() override {}
    void finish(Index steps) override {
        ahead = at_ == steps - 1;
        end_ = steps;
        if (ahead) script_.push_back(emit::record(steps - 1));
        script_.push_back(emit::turn(steps));
        if (ahead) script_.push_back(emit::reverse(steps - 1));
        for (Index link = steps - (ahead ? 1 : 0); link-- > 0;) {
            script_.push_back(link == 0 ? emit::take(0, ram(0)) : emit::load(0, ram(0)));
            if (link > 0) script_.push_back(emit::advance(0, link));
            script_.push_back(emit::tape(link));
            script_.push_back(emit::reverse(link));
        }
    }
    bool ahead = false;

private:
    Index at_ = -1, end_ = -1;
    Actions script_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_open_end_is_told_ahead_or_late) {
    Endless ahead, met, late, closed;
    const Play known = referee(ahead, 5, {}, {.ending = Ending::ahead});
    BOOST_CHECK(ahead.ahead);
    BOOST_CHECK_EQUAL(known.advances, 4 + (3 + 2 + 1));
    const Play there = referee(met, 5, {}, {.ending = Ending::met});
    BOOST_CHECK(!met.ahead);
    BOOST_CHECK_EQUAL(there.advances, 5 + (4 + 3 + 2 + 1));
    const Play unknown = referee(late, 5, {}, {.ending = Ending::late});
    BOOST_CHECK(!late.ahead);
    BOOST_CHECK_EQUAL(unknown.advances, 5 + (4 + 3 + 2 + 1));
    BOOST_CHECK_EQUAL(unknown.recorded, 5);
    BOOST_CHECK_THROW(referee(closed, 5), ScheduleError);
}
