// The executor beside its happy path: watchers, resting places, refusals, exceptions, memory.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_execution
#include "support/unit_test.hpp"

#include "backsweep/chain/callback_chain.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/chain/gradient_check.hpp"
#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/forward_only.hpp"
#include "schedule/emit.hpp"
#include "support/counting_chain.hpp"
#include "support/every_schedule.hpp"
#include "support/script.hpp"
#include "support/toy_chains.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::emit;
using test::Counting;
using test::Flavour;
using test::Oscillator;

namespace {

using Vector = std::vector<double>;

Vector state_at(Oscillator<>& chain, Index link) {
    Vector x = chain.initial();
    chain.advance({0, link}, x);
    return x;
}

/// Whether the message has all these words.
auto says(std::vector<std::string> words) {
    return [words](const std::exception& e) {
        const std::string text = e.what();
        for (const std::string& w : words)
            if (text.find(w) == std::string::npos) {
                BOOST_TEST_MESSAGE("'" << w << "' is not in: " << text);
                return false;
            }
        return true;
    };
}

constexpr Slot ram(std::int32_t index) {
    return {Tier::ram, index};
}
constexpr Slot disk(std::int32_t index) {
    return {Tier::disk, index};
}

/// Throws at the k-th call of advance, record or reverse, counted from 1; 0: never.
template <Chain C>
class Breaking {
public:
    using State = typename C::State;
    using Tape = typename C::Tape;
    using Adjoint = typename C::Adjoint;

    explicit Breaking(C& inner) : inner_(&inner) {}
    Index at = 0;
    Index calls = 0;

    std::optional<Index> length() const { return inner_->length(); }
    State initial() const { return inner_->initial(); }
    Index advance(Range r, State& x) {
        call();
        return inner_->advance(r, x);
    }
    Index record(Range r, State& x, Tape& tape) {
        call();
        return inner_->record(r, x, tape);
    }
    void seed(const State& x, Adjoint& a) { inner_->seed(x, a); }
    void reverse(Range r, State& x, Tape& tape, Adjoint& a) {
        call();
        inner_->reverse(r, x, tape, a);
    }

private:
    void call() {
        if (++calls == at) throw std::domain_error("call " + std::to_string(calls));
    }
    C* inner_;
};

/// Answers another link than it should.
class Lying : public Oscillator<> {
public:
    using Oscillator::Oscillator;
    Index offset = 0;
    Index advance(Range r, State& x) { return Oscillator::advance(r, x) + offset; }
    Index record(Range r, State& x, Tape& tape) { return Oscillator::record(r, x, tape) + offset; }
};

/// The next state can be had from a tape.
class Restartable : public Oscillator<> {
public:
    using Oscillator::Oscillator;
    void restart(Tape& tape, State& x) { x = {tape[8], tape[9]}; }
    Index record(Range r, State& x, Tape& tape) {
        const Index reached = Oscillator::record(r, x, tape);
        tape.insert(tape.end(), x.begin(), x.end());
        return reached;
    }
};

/// Makes its x_0 again, which may meanwhile have become another.
class Remaking : public test::Field {
public:
    using Field::Field;
    double drift = 0.0;
    mutable Index times = 0;
    void again(State& x) const {
        ++times;
        x = initial();
        x.u[0] += drift;
    }
};

/// One block of memory less: a tape takes the state's, the adjoint that of the last state, and gives it back.
class Sharing : public Remaking {
public:
    using Remaking::Remaking;
    void keep(Range r, State& x, Tape& tape) {
        record(r, x, tape);
        x.u.release();
    }
    void spend(State& x, Adjoint& a) {
        if (!a.u.data()) a.u.swap(x.u);
        seed(x, a);
    }
    void reuse(Adjoint& a) { a.u.release(); }
    void shape(Tape& tape) const { tape.resize(initial().u.size()); }
    void reverse(Range r, State& x, Tape& tape, Adjoint& a) {
        Field::reverse(r, x, tape, a);
        if (!x.u.data()) x.u.swap(tape);
    }
};

template <class C>
void play(C& chain, std::vector<Action> actions, Store* store = nullptr) {
    Execution run(chain, std::make_unique<test::Script>(std::move(actions)));
    if (store) run.use(Tier::disk, *store);
    run.forward();
    if (run.resting()) run.backward();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(watching)

BOOST_AUTO_TEST_CASE(a_state_inside_an_advance_at_a_recorded_link_at_both_ends_is_shown_once) {
    constexpr Index n = 11;
    Oscillator<> chain(n);
    const Vector wanted = test::adjoint_by_hand(chain);
    for (Index link = 0; link <= n; ++link)
        for (auto& [name, schedule] : test::every_schedule(n)) {
            BOOST_TEST_CONTEXT("link " << link << ", " << name) {
                RamStore store;
                Execution run(chain, std::move(schedule));
                run.use(Tier::disk, store);
                std::vector<Vector> shown;
                run.watch(link, [&](const Vector& x) { shown.push_back(x); });
                for (std::size_t round = 1; round <= 2; ++round) {
                    run.forward();
                    BOOST_CHECK_EQUAL(shown.size(), round);  // before the reverse sweep
                    run.backward();
                    BOOST_CHECK_EQUAL(shown.size(), round);  // and not in replays
                    BOOST_TEST(test::same_bits(shown.back(), state_at(chain, link)));
                    BOOST_TEST(test::same_bits(run.adjoint(), wanted));
                }
                const Index advances = run.counts().advances;
                run.watch(0, {});
                run.forward();
                run.backward();
                BOOST_CHECK_EQUAL(shown.size(), 2u);
                BOOST_CHECK_EQUAL(run.counts().advances, advances);
            }
        }
}

BOOST_AUTO_TEST_CASE(a_watcher_may_watch_on) {
    constexpr Index n = 11;
    Oscillator<> chain(n);
    const Vector wanted = test::adjoint_by_hand(chain);
    for (const Index stride : {1, 2, 5})
        for (auto& [name, schedule] : test::every_schedule(n)) {
            BOOST_TEST_CONTEXT("every " << stride << ", " << name) {
                RamStore store;
                Execution run(chain, std::move(schedule));
                run.use(Tier::disk, store);
                std::vector<Vector> shown;
                std::function<void(const Vector&)> each = [&](const Vector& x) {
                    shown.push_back(x);
                    run.watch(stride * std::ssize(shown), each);
                };
                run.watch(0, each);
                run.forward();
                run.backward();
                BOOST_TEST_REQUIRE(std::ssize(shown) == n / stride + 1);
                for (Index k = 0; k <= n / stride; ++k)
                    BOOST_TEST(test::same_bits(shown[static_cast<std::size_t>(k)], state_at(chain, k * stride)));
                BOOST_TEST(test::same_bits(run.adjoint(), wanted));
            }
        }
}

BOOST_AUTO_TEST_CASE(an_empty_chain_shows_its_start) {
    Oscillator<> chain(0);
    for (const bool turns : {true, false}) {
        Execution run(chain, turns ? revolve(0, 1) : forward_only(0, false));
        int shown = 0;
        run.watch(0, [&](const Vector& x) { shown += test::same_bits(x, chain.initial()); });
        run.forward();
        BOOST_CHECK_EQUAL(shown, 1);
    }
}

BOOST_AUTO_TEST_CASE(a_link_beyond_the_sweep_is_not_shown_and_a_negative_one_refused) {
    Oscillator<> chain(5);
    Execution run(chain, revolve(5, 2));
    run.watch(6, [](const Vector&) { BOOST_FAIL("there is no x_6"); });
    run.forward();
    run.backward();
    BOOST_CHECK_EXCEPTION(run.watch(-2, [](const Vector&) {}), InvalidArgument, says({"from 0", "-2"}));
    run.watch(-1, {});
}

BOOST_AUTO_TEST_CASE(forward_only_shows_too) {
    Oscillator<> chain(9);
    for (const bool loss : {true, false}) {
        Execution run(chain, forward_only(9, loss));
        Vector shown;
        run.watch(4, [&](const Vector& x) { shown = x; });
        run.forward();
        BOOST_TEST(test::same_bits(shown, state_at(chain, 4)));
        BOOST_TEST(test::same_bits(run.state(), state_at(chain, 9)));
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(starting_and_resting)

BOOST_AUTO_TEST_CASE(another_start_and_another_terminal_adjoint) {
    Oscillator<> chain(13);
    Execution run(chain, revolve(13, 3));
    const Vector start{-0.2, 0.9}, terminal{0.25, -4.0};
    run.forward(start);
    BOOST_TEST(run.resting());
    Vector x = start;
    chain.advance({0, 13}, x);
    BOOST_TEST(test::same_bits(run.state(), x));
    run.backward(terminal);
    BOOST_TEST(!run.resting());

    std::vector<Vector> tapes(13);
    x = start;
    for (Index i = 0; i < 13; ++i) chain.record({i, i + 1}, x, tapes[static_cast<std::size_t>(i)]);
    Vector a = terminal;
    for (Index i = 13; i-- > 0;) chain.reverse({i, i + 1}, x, tapes[static_cast<std::size_t>(i)], a);
    BOOST_TEST(test::same_bits(run.adjoint(), a));
}

BOOST_AUTO_TEST_CASE(a_resting_execution_moves) {
    static_assert(std::is_move_constructible_v<Execution<Oscillator<>>> &&
                  std::is_move_assignable_v<Execution<Oscillator<>>>);
    Oscillator<> chain(17);
    const Vector wanted = test::adjoint_by_hand(chain);
    for (auto& [name, schedule] : test::every_schedule(17)) {
        BOOST_TEST_CONTEXT(name) {
            RamStore store;
            Execution run(chain, std::move(schedule));
            run.use(Tier::disk, store);
            run.forward();
            Execution moved = std::move(run);
            Execution assigned(chain, revolve(17, 1));
            assigned = std::move(moved);
            assigned.backward();
            BOOST_TEST(test::same_bits(assigned.adjoint(), wanted));
        }
    }
}

BOOST_AUTO_TEST_CASE(another_schedule_can_be_followed) {
    Oscillator<> chain(17);
    const Vector wanted = test::adjoint_by_hand(chain);
    Execution run(chain, revolve(17, 4));
    run.forward();
    run.follow(periodic(17, 5));
    BOOST_TEST(!run.resting());
    BOOST_CHECK_THROW(run.backward(), ScheduleError);
    run.forward();
    run.backward();
    BOOST_TEST(test::same_bits(run.adjoint(), wanted));
    BOOST_CHECK_EXCEPTION(run.follow(nullptr), InvalidArgument, says({"needs a schedule", "make_schedule"}));
}

BOOST_AUTO_TEST_CASE(a_chain_without_links_hands_the_seed_back) {
    Oscillator<> chain(0);
    for (auto& [name, schedule] : test::every_schedule(0)) {
        BOOST_TEST_CONTEXT(name) {
            Execution run(chain, std::move(schedule));
            run.forward();
            run.backward();
            BOOST_TEST(test::same_bits(run.adjoint(), Vector{0.8 + 0.6, -1.3}));
            BOOST_TEST((run.counts() == Counts{}));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_killed_sweep_goes_on_below_its_adjoint) {
    constexpr Index n = 29, killed = 18;
    Oscillator<> chain(n);
    const Vector wanted = test::adjoint_by_hand(chain);
    Vector a;  // what was durable: the adjoint at x_18, and some states
    {
        std::vector<Vector> tapes(n);
        Vector x = chain.initial();
        for (Index i = 0; i < n; ++i) chain.record({i, i + 1}, x, tapes[static_cast<std::size_t>(i)]);
        chain.seed(x, a);
        for (Index i = n; i-- > killed;) chain.reverse({i, i + 1}, x, tapes[static_cast<std::size_t>(i)], a);
    }
    const std::vector<Stored> stored{{0, ram(0)}, {7, ram(2)}, {18, ram(1)}};
    Execution run(chain, complete(stored, 4, killed));
    run.watch(7, [](const Vector&) { BOOST_FAIL("a resumed sweep has no forward part to watch"); });
    for (int round = 0; round < 2; ++round) {
        for (const auto& [step, slot] : stored) run.place(slot, step, state_at(chain, step));
        run.resume();
        run.backward(a);
        BOOST_TEST(test::same_bits(run.adjoint(), wanted));
    }
    BOOST_CHECK_EXCEPTION(run.resume(), ScheduleError, says({"none was placed", "place()"}));
    run.place(ram(0), 0, chain.initial());
    BOOST_CHECK_EXCEPTION(run.place(ram(0), 7, chain.initial()), ScheduleError,
                          says({"ram slot 0", "still holds", "step 0"}));
    BOOST_CHECK_EXCEPTION(run.resume(), ScheduleError,
                          says({"ram slot 1 should hold the state of step 18, but holds nothing"}));
}

BOOST_AUTO_TEST_CASE(a_resumed_sweep_has_no_state_to_seed_from) {
    Oscillator<> chain(6);
    const std::vector<Stored> stored{{0, ram(0)}};
    Execution run(chain, complete(stored, 2, 6));
    run.place(ram(0), 0, chain.initial());
    run.resume();
    BOOST_CHECK_EXCEPTION(run.backward(), ScheduleError, says({"cannot seed", "terminal adjoint"}));
    run.backward(Vector{1.0, 0.0});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(refusals)

BOOST_AUTO_TEST_CASE(what_is_missing_is_named) {
    Oscillator<> chain(6);
    BOOST_CHECK_EXCEPTION(Execution(chain, nullptr), InvalidArgument, says({"needs a schedule", "make_schedule"}));
    Execution run(chain, revolve(6, 2));
    BOOST_CHECK_EXCEPTION(run.backward(), ScheduleError,
                          says({"backward()", "rests at the turn", "call forward() first"}));
    BOOST_CHECK_EXCEPTION(run.backward(Vector{1, 0}), ScheduleError,
                          says({"backward(adjoint)", "call forward() first"}));
    run.forward();
    run.backward();
    BOOST_CHECK_EXCEPTION(run.backward(), ScheduleError, says({"call forward() first"}));
    RamStore store;
    BOOST_CHECK_EXCEPTION(run.use(Tier::ram, store), InvalidArgument, says({"RAM slots", "device, pinned or disk"}));
}

BOOST_AUTO_TEST_CASE(a_schedule_for_another_length) {
    Oscillator<> chain(6);
    for (auto& [name, schedule] : test::every_schedule(7)) {
        BOOST_TEST_CONTEXT(name) {
            RamStore store;
            Execution run(chain, std::move(schedule));
            run.use(Tier::disk, store);
            BOOST_CHECK_EXCEPTION(run.forward(), ScheduleError,
                                  says({"the chain has 6 links", "make the schedule for that many steps"}));
        }
    }
    Execution run(chain, revolve(5, 2));
    run.forward();
    BOOST_CHECK_EXCEPTION(run.backward(), ScheduleError, says({"turns at link 5", "the chain has 6 links"}));
    run.backward(Vector{1.0, 1.0});  // an adjoint at x_5 is as good as any
    BOOST_CHECK_EQUAL(run.counts().reversed, 5);
}

BOOST_AUTO_TEST_CASE(a_chain_that_needs_its_state_and_a_schedule_that_knows_nothing_of_it) {
    Oscillator<Flavour::needs_state> chain(6);
    std::vector<std::unique_ptr<Schedule>> blind;
    blind.push_back(store_all(6));
    blind.push_back(revolve(6, 3));
    blind.push_back(periodic(6, 2));
    for (auto& schedule : blind) {
        Execution run(chain, std::move(schedule));
        run.forward();
        BOOST_CHECK_EXCEPTION(run.backward(), ScheduleError,
                              says({"reads the state before the link", "make the schedule with needs_state"}));
    }
}

BOOST_AUTO_TEST_CASE(a_tier_without_a_store_and_states_without_bytes) {
    Oscillator<> chain(6);
    Execution run(chain, std::make_unique<test::Spilled>(revolve(6, 3), 1));
    BOOST_CHECK_EXCEPTION(run.forward(), ScheduleError, says({"tier disk", "call use(tier, store)"}));
    struct Opaque {
        double x = 1.0;
    };
    CallbackChain opaque(
        6, Opaque{}, [](Index, Opaque& o) { o.x *= 0.9; }, [](const Opaque& o, Opaque& a) { a = o; },
        [](Index, const Opaque&, Opaque& a) { a.x *= 0.9; });
    Execution other(opaque, std::make_unique<test::Spilled>(revolve(6, 3), 1));
    RamStore store;
    other.use(Tier::disk, store);
    BOOST_CHECK_EXCEPTION(other.forward(), ScheduleError, says({"need the bytes", "std::vector<Blob> blobs(T&)"}));
}

BOOST_AUTO_TEST_CASE(a_chain_that_answers_a_wrong_link) {
    Lying chain(6);
    for (const bool by_record : {true, false}) {
        Execution run(chain, by_record ? store_all(6) : revolve(6, 1));
        for (const Index offset : {1, -7}) {
            chain.offset = offset;
            BOOST_CHECK_EXCEPTION(run.forward(), ScheduleError, says({"was sent over links [0, ", "says it reached"}));
        }
        chain.offset = -1;  // it ended early, which a closed schedule cannot use
        BOOST_CHECK_EXCEPTION(run.forward(), ScheduleError, says({"finish", "known number of steps"}));
        chain.offset = 0;
        run.forward();
        run.backward();
        BOOST_CHECK_EQUAL(run.counts().reversed, 6);
    }
    chain.offset = 0;
    Execution run(chain, revolve(6, 2));
    run.forward();
    chain.offset = 1;  // in a replay
    BOOST_CHECK_THROW(run.backward(), ScheduleError);
}

BOOST_AUTO_TEST_CASE(illegal_streams) {
    Oscillator<> chain(3);
    RamStore store;
    const auto refuses = [&](std::vector<Action> actions, std::vector<std::string> words) {
        BOOST_CHECK_EXCEPTION(play(chain, std::move(actions), &store), ScheduleError, says(std::move(words)));
    };
    refuses({advance(1, 3)}, {"advance [1, 3)", "x is at 0"});
    refuses({save(0, ram(0)), advance(0, 1), save(1, ram(0))},
            {"save x_1", "ram slot 0", "still holds the state of step 0"});
    refuses({save(0, ram(0)), advance(0, 1), save(0, ram(1))}, {"save x_0", "x is at 1"});
    refuses({save(0, disk(0)), advance(0, 1), save(1, disk(0))}, {"disk slot 0 still holds the state of step 0"});
    refuses({save(0, Slot{})}, {"from 0", "-1"});
    refuses({load(0, ram(3))}, {"ram slot 3 should hold the state of step 0, but holds nothing"});
    refuses({save(0, ram(0)), load(1, ram(0))}, {"should hold the state of step 1, but holds the state of step 0"});
    refuses({save(0, ram(0)), take(0, ram(0)), take(0, ram(0))}, {"holds nothing"});
    refuses({record(0), fetch(0, ram(0))}, {"working tape of link 0 would be lost"});
    refuses({record(0), record(1)}, {"record [1, 2)", "working tape of link 0 would be lost"});
    refuses({record(0), tape(1)}, {"working tape of link 0 would be lost"});
    refuses({stow(0, ram(0))}, {"the working tape belongs to link nowhere"});
    refuses({record(0), stow(1, ram(0))}, {"the working tape belongs to link 0"});
    refuses({record(0), stow(0, ram(0)), load(0, ram(0))}, {"but holds the tape of link 0"});
    refuses({record(0), stow(0, ram(0)), fetch(1, ram(0))}, {"should hold the tape of link 1"});
    refuses({drop_working_tape(0)}, {"the working tape belongs to link nowhere"});
    refuses({drop_state(0, ram(0))}, {"should hold the state of step 0, but holds nothing"});
    refuses({advance(0, 2), record(2), reverse(2)}, {"reverse [2, 3)", "`turn` comes first"});
    refuses({record(0), drop_working_tape(0), record(1), drop_working_tape(1), record(2), drop_working_tape(2), turn(3),
             reverse(2)},
            {"the working tape belongs to link nowhere"});
    refuses({save(0, ram(0)), advance(0, 3), turn(3), load(0, ram(0)), advance(0, 1), tape(1), reverse(1)},
            {"reverses fall one by one from x_3"});
    refuses({save(0, ram(0)), advance(0, 2), record(2), turn(3), reverse(2)}, {"links [0, 2) are not reversed yet"});
    refuses({advance(0, 2), record(2), turn(3), reverse(2), save(3, ram(0))}, {"save x_3", "x is at nowhere"});
    refuses({save(0, ram(0)), {Verb::move, ram(0), ram(1), 0, {0, 0}}}, {"changes the tier"});
    refuses({record(0), stow(0, ram(0)), {Verb::move, ram(0), disk(0), 0, {0, 1}}}, {"only states are moved"});
    refuses({record(0), stow(0, ram(0)), {Verb::restart, ram(0), {}, 0, {1, 1}}}, {"offers no restart"});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(rarer_verbs)

BOOST_AUTO_TEST_CASE(a_state_moves_between_tiers) {
    Oscillator<> chain(2);
    const Vector wanted = test::adjoint_by_hand(chain);
    RamStore one, two;
    const auto move = [](Index step, Slot from, Slot to) { return Action{Verb::move, from, to, 0, {step, step}}; };
    const Slot pinned{Tier::pinned, 4};
    Execution run(chain, std::make_unique<test::Script>(std::vector<Action>{
                             save(0, ram(3)), advance(0, 1), move(0, ram(3), disk(2)), record(1), turn(2), reverse(1),
                             move(0, disk(2), pinned), move(0, pinned, ram(0)), take(0, ram(0)), tape(0), reverse(0)}));
    run.use(Tier::disk, one);
    run.use(Tier::pinned, two);
    run.forward();
    run.backward();
    BOOST_TEST(test::same_bits(run.adjoint(), wanted));
}

BOOST_AUTO_TEST_CASE(a_state_comes_out_of_a_tape) {
    Restartable chain(3);
    const Vector wanted = test::adjoint_by_hand(chain);
    Execution run(chain, std::make_unique<test::Script>(std::vector<Action>{record(0),
                                                                            stow(0, ram(0)),
                                                                            advance(1, 2),
                                                                            record(2),
                                                                            turn(3),
                                                                            reverse(2),
                                                                            {Verb::restart, ram(0), {}, 0, {1, 1}},
                                                                            tape(1),
                                                                            reverse(1),
                                                                            fetch(0, ram(0)),
                                                                            reverse(0)}));
    run.forward();
    run.backward();
    BOOST_TEST(test::same_bits(run.adjoint(), wanted));
    BOOST_CHECK_EQUAL(run.counts().loads, 1);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(exceptions_and_memory)

BOOST_AUTO_TEST_CASE(an_exception_of_the_chain_leaves_the_execution_usable) {
    constexpr Index n = 12;
    test::Field field(n, 5);
    test::Field::Adjoint wanted = test::adjoint_by_hand(field);
    Counting counting(field);
    using Chain = Breaking<Counting<test::Field>>;
    auto& states = Counting<test::Field>::State::counts;
    std::size_t kinds = test::every_schedule(n).size();
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        RamStore store;
        const std::int64_t bytes = Ledger::process().live_total();
        {
            Chain chain(counting);
            auto [name, schedule] = std::move(test::every_schedule(n)[kind]);
            Execution run(chain, std::move(schedule));
            run.use(Tier::disk, store);
            const auto sweep = [&] {
                chain.calls = 0;
                run.forward();
                run.backward();
            };
            sweep();
            const Index calls = chain.calls;
            for (Index k = 1; k <= calls; ++k) {
                chain.at = k;
                BOOST_CHECK_THROW(sweep(), std::domain_error);
                BOOST_TEST(!run.resting());
                BOOST_CHECK_THROW(run.backward(), ScheduleError);
                BOOST_CHECK_THROW(run.resume(), ScheduleError);
                chain.at = 0;
                sweep();
                BOOST_TEST(detail::same_bits(run.adjoint(), wanted));
            }
        }
        BOOST_CHECK_EQUAL(states.live, 0);
        BOOST_CHECK_EQUAL(Ledger::process().live_total(), bytes);
    }
}

BOOST_AUTO_TEST_CASE(an_exception_of_initial_or_of_a_watcher_too) {
    struct Picky : Oscillator<> {
        using Oscillator::Oscillator;
        bool refuses = false;
        Vector initial() const {
            if (refuses) throw std::domain_error("no start");
            return Oscillator::initial();
        }
    };
    Picky chain(8);
    const Vector wanted = test::adjoint_by_hand(chain);
    Execution run(chain, revolve(8, 3));
    run.forward();
    chain.refuses = true;
    BOOST_CHECK_THROW(run.forward(), std::domain_error);
    BOOST_CHECK_THROW(run.backward(), ScheduleError);  // the old rest is gone
    chain.refuses = false;
    run.watch(5, [](const Vector&) { throw std::domain_error("watcher"); });
    BOOST_CHECK_THROW(run.forward(), std::domain_error);
    run.watch(0, {});
    run.forward();
    run.backward();
    BOOST_TEST(test::same_bits(run.adjoint(), wanted));
}

BOOST_AUTO_TEST_CASE(abandoned_sweeps_give_everything_back) {
    Ledger ledger;
    test::Field chain(24, 50, ledger);
    const std::int64_t start = ledger.live_total();
    test::FaultStore disk(test::FaultStore::Fault::fails, 0, 0, ledger);
    for (int sweep = 0; sweep < 200; ++sweep) {
        for (auto& [name, schedule] : test::every_schedule(24)) {
            if (sweep >= 5 && name.find("disk") == std::string::npos) continue;
            Execution run(chain, std::move(schedule));
            run.use(Tier::disk, disk);
            run.forward();
            if (sweep % 2 == 1) run.backward();
        }
        BOOST_TEST_REQUIRE(ledger.live_total() == start);
        BOOST_TEST_REQUIRE(disk.full() == 0u);
    }
}

BOOST_AUTO_TEST_CASE(one_execution_used_again_holds_no_more) {
    Ledger ledger;
    test::Field chain(24, 50, ledger);
    for (auto& [name, schedule] : test::every_schedule(24)) {
        BOOST_TEST_CONTEXT(name) {
            test::FaultStore disk(test::FaultStore::Fault::fails, 0, 0, ledger);
            Execution run(chain, std::move(schedule));
            run.use(Tier::disk, disk);
            run.forward();
            run.backward();
            ledger.reset_peaks();
            const std::int64_t before = ledger.live_total();
            run.forward();
            const std::int64_t resting = ledger.live_total();
            for (int sweep = 0; sweep < 200; ++sweep) {
                run.forward();
                BOOST_TEST_REQUIRE(ledger.live_total() == resting);
            }
            run.backward();
            BOOST_CHECK_EQUAL(ledger.live_total(), before);
            BOOST_CHECK_EQUAL(disk.full(), 0u);
        }
    }
}

// The states of revolve in bytes: slots as planned, one working state; the start is moved in, not copied.
BOOST_AUTO_TEST_CASE(peaks_by_kind_are_those_of_the_schedule) {
    constexpr Index n = 40, width = 96, state = 8 * width;
    for (const Index s : {1, 2, 3, 7}) {
        Ledger ledger;
        test::Field chain(n, width, ledger);
        Execution run(chain, revolve(n, s));
        run.forward();
        run.backward();
        BOOST_CHECK_EQUAL(ledger.peak()[Kind::slots], s * state);
        BOOST_CHECK_EQUAL(ledger.peak()[Kind::carry], state);
        BOOST_CHECK_EQUAL(ledger.peak()[Kind::tape], state);
        BOOST_CHECK_EQUAL(ledger.peak()[Kind::workspace], 2 * state);  // scratch and adjoint
        BOOST_CHECK_EQUAL(ledger.peak_total(), (s + 4) * state);
    }
}

// x_0 takes no slot's memory where the chain makes it again; the bits are those of a chain that keeps it.
BOOST_AUTO_TEST_CASE(a_start_that_is_made_again_takes_no_slot) {
    constexpr Index n = 24, width = 50, state = 8 * width;
    const auto bits = [](Execution<test::Field>& run) {
        run.forward();
        run.backward();
        const auto u = run.adjoint().u.span();
        return std::vector<double>(u.begin(), u.end());
    };
    for (auto& [name, schedule] : test::every_schedule(n)) {
        BOOST_TEST_CONTEXT(name) {
            test::Field plain(n, width);
            RamStore first, second;
            Execution<test::Field> whole(plain, std::move(schedule));
            whole.use(Tier::disk, first);
            const std::vector<double> wanted = bits(whole);
            for (auto& [other, again] : test::every_schedule(n)) {
                if (other != name) continue;
                Sharing chain(n, width);
                Execution<Sharing> run(chain, std::move(again));
                run.use(Tier::disk, second);
                for (const bool verify : {false, false, true}) {
                    run.verify(verify);
                    run.forward();
                    run.backward();
                    const auto u = run.adjoint().u.span();
                    BOOST_TEST(wanted == std::vector<double>(u.begin(), u.end()), boost::test_tools::per_element());
                }
            }
        }
    }
    for (const Index s : {1, 2, 3, 7}) {
        Ledger ledger;
        Sharing chain(n, width, ledger);
        Execution run(chain, revolve(n, s));
        for (int sweep = 0; sweep < 2; ++sweep) {
            run.forward();
            run.backward();
        }
        BOOST_CHECK_EQUAL(ledger.peak()[Kind::slots], (s - 1) * state);
        BOOST_CHECK(chain.times > 0);
        // A state that the caller hands over cannot be made again.
        run.forward(chain.initial());
        chain.drift = 1.0;
        const Index times = chain.times;
        run.backward();
        BOOST_CHECK_EQUAL(chain.times, times);
        BOOST_CHECK_EQUAL(ledger.peak()[Kind::slots], s * state);
    }
}

BOOST_AUTO_TEST_CASE(a_start_that_has_changed_is_found_in_verify_mode) {
    Remaking chain(24, 50);
    Execution run(chain, revolve(24, 3));
    run.verify(true);
    run.forward();
    chain.drift = 1e-9;
    BOOST_CHECK_EXCEPTION(run.backward(), StoreError, says({"ram slot 0", "step 0", "bits have changed"}));
    chain.drift = 0.0;
    run.forward();
    run.backward();
}

BOOST_AUTO_TEST_CASE(a_start_that_is_made_again_moves_to_disk_and_back) {
    constexpr Index n = 4;
    const auto script = [] {
        return std::make_unique<test::Script>(
            std::vector<Action>{save(0, ram(0)), advance(0, 3), record(3), turn(4), reverse(3),
                                Action{Verb::move, ram(0), disk(0), 0, {0, 0}}, load(0, disk(0)), advance(0, 2),
                                record(2), reverse(2), Action{Verb::move, disk(0), ram(1), 0, {0, 0}}, load(0, ram(1)),
                                advance(0, 1), record(1), reverse(1), take(0, ram(1)), record(0), reverse(0), done()});
    };
    test::Field plain(n, 6);
    Remaking chain(n, 6);
    RamStore first, second;
    Execution<test::Field> wanted(plain, script());
    Execution<Remaking> run(chain, script());
    wanted.use(Tier::disk, first);
    run.use(Tier::disk, second);
    for (const bool verify : {false, true}) {
        wanted.verify(verify);
        run.verify(verify);
        wanted.forward();
        wanted.backward();
        run.forward();
        run.backward();
        BOOST_TEST(wanted.adjoint().u.span() == run.adjoint().u.span(), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_SUITE_END()
