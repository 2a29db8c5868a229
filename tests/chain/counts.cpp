// What a counting link sees is what the referee foretells; growth of work and memory.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_counts
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/ended.hpp"
#include "backsweep/schedule/forward_only.hpp"
#include "backsweep/schedule/prediction.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/store/ram_store.hpp"
#include "support/counting_chain.hpp"
#include "support/every_schedule.hpp"
#include "support/toy_chains.hpp"

#include <memory>
#include <vector>

using namespace backsweep;
using test::Counting;

namespace {

/// Plays two schedules of one kind, one on the referee's machine and one on a chain, and compares.
/// Answers the most states alive.
template <class C>
Index compare(C& inner, Index n, std::unique_ptr<Schedule> judged, std::unique_ptr<Schedule> played) {
    Counting<C> chain(inner);
    const Play play = referee(*judged, n, {}, {.needs_state = C::needs_state});
    auto& states = Counting<C>::State::counts;
    BOOST_CHECK_EQUAL(states.live, 0);
    Index peak = 0;
    {
        Execution run(chain, std::move(played));
        for (int round = 0; round < 2; ++round) {
            chain.restart();
            run.forward();
            run.backward();
            BOOST_CHECK_EQUAL(chain.advances, play.advances);
            BOOST_CHECK_EQUAL(chain.records, play.recorded);
            BOOST_CHECK_EQUAL(chain.reverses, play.reversed);
            BOOST_CHECK_EQUAL(states.copies, play.saves + play.loads);  // `take` swaps
            const Counts& c = run.counts();
            BOOST_CHECK_EQUAL(c.advances, play.advances);
            BOOST_CHECK_EQUAL(c.recorded, play.recorded);
            BOOST_CHECK_EQUAL(c.reversed, play.reversed);
            BOOST_CHECK_EQUAL(c.saves, play.saves);
            BOOST_CHECK_EQUAL(c.loads, play.loads + play.takes + play.restarts);
            BOOST_CHECK_EQUAL(c.stows, play.stows);
            BOOST_CHECK_EQUAL(c.fetches, play.fetches);
            // Slots that held a state, the working state, and the start that forward() was given.
            BOOST_TEST(states.peak <= play.state_slots[static_cast<std::size_t>(Tier::ram)] + 2);
            peak = std::max(peak, states.peak);
        }
    }
    BOOST_CHECK_EQUAL(states.live, 0);
    return peak;
}

/// One number, one multiplication a link.
class Trivial {
public:
    using State = double;
    using Tape = double;
    using Adjoint = double;

    explicit Trivial(Index links) : links_(links) {}
    std::optional<Index> length() const { return links_; }
    State initial() const { return 1.25; }
    Index advance(Range r, State& x) {
        for (Index i = r.first; i < r.last; ++i) x = 0.999 * x + 0.001;
        return r.last;
    }
    Index record(Range r, State& x, Tape& tape) {
        tape = x;
        return advance(r, x);
    }
    void seed(const State&, Adjoint& a) { a = 1.0; }
    void reverse(Range, State&, Tape&, Adjoint& a) { a *= 0.999; }

    static constexpr bool needs_state = false;

private:
    Index links_;
};

struct Growth {
    Index steps, slots, advances;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_counting_link_sees_what_the_referee_foretells) {
    for (Index n = 0; n <= 40; ++n) {
        test::Oscillator<> plain(n);
        test::Oscillator<test::Flavour::keeps> keeps(n);
        test::Oscillator<test::Flavour::needs_state> needs(n);
        for (Index s = 1; s <= 8; ++s) {
            BOOST_TEST_CONTEXT(n << " links, " << s << " slots") {
                BOOST_TEST(compare(plain, n, revolve(n, s), revolve(n, s)) <= s + 2);
                BOOST_TEST(compare(keeps, n, revolve(n, s, AdvanceRule::longest),
                                   revolve(n, s, AdvanceRule::longest)) <= s + 2);
                const auto rule = AdvanceRule::fewest_writes;
                BOOST_TEST(compare(needs, n, revolve(n, s, rule, true), revolve(n, s, rule, true)) <= s + 2);
                compare(plain, n, periodic(n, s), periodic(n, s));
                compare(needs, n, periodic(n, s, true), periodic(n, s, true));
            }
        }
        BOOST_TEST_CONTEXT(n << " links, store_all") {
            BOOST_TEST(compare(plain, n, store_all(n), store_all(n)) <= 2);
            compare(needs, n, store_all(n, true), store_all(n, true));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_counting_link_sees_what_is_predicted) {
    for (const Index n : {0, 1, 2, 3, 8, 23, 40}) {
        test::Oscillator<> inner(n);
        for (const ScheduleOptions& options : test::every_family(n)) {
            const bool open = is_open_ended(options.family);
            for (const Ending ending : {Ending::late, Ending::met, Ending::ahead}) {
                BOOST_TEST_CONTEXT(options.family << ", " << n << " links, " << static_cast<int>(ending)) {
                    const Play play = predict(options, n, {.ending = ending});
                    Counting chain(inner);
                    RamStore disk;
                    Execution run(chain,
                                  std::make_unique<Ended>(make_schedule(options), n, open ? ending : Ending::closed));
                    run.use(Tier::disk, disk);
                    chain.restart();
                    run.forward();
                    run.backward();
                    BOOST_CHECK_EQUAL(chain.advances, play.advances);
                    BOOST_CHECK_EQUAL(chain.records, play.recorded);
                    BOOST_CHECK_EQUAL(chain.reverses, n);
                    BOOST_CHECK_EQUAL(run.counts().saves, play.writes[2] + play.writes[3] - play.stows);
                    BOOST_CHECK_EQUAL(run.counts().loads, play.reads[2] + play.reads[3] - play.fetches);
                }
            }
        }
    }
    ScheduleOptions wrong;
    wrong.slots = 2;
    wrong.steps = 5;
    BOOST_CHECK_THROW(predict(wrong, 6), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(forward_only_runs_every_link_once) {
    for (const Index n : {0, 1, 13}) {
        test::Oscillator<> inner(n);
        Counting chain(inner);
        for (const bool loss : {true, false}) {
            chain.restart();
            Execution run(chain, forward_only(n, loss));
            run.forward();
            BOOST_CHECK_EQUAL(chain.records, loss ? n : 0);
            BOOST_CHECK_EQUAL(chain.advances, loss ? 0 : n);
            std::vector<double> x = inner.initial();
            inner.advance({0, n}, x);
            BOOST_TEST(test::same_bits(run.state().inner, x));
            BOOST_CHECK_EXCEPTION(run.backward(), ScheduleError, [](const ScheduleError& e) {
                return std::string(e.what()).find("this schedule may have no reverse sweep") != std::string::npos;
            });
        }
    }
}

// t(n, log2 n) = r n - B(s + 1, r - 1) [GW00, eq. (3)]: 3.667, 5.054 and 6.871 advances a step.
BOOST_AUTO_TEST_CASE(work_and_memory_grow_with_the_logarithm) {
    for (const auto& [steps, slots, advances] :
         {Growth{1 << 10, 10, 3755}, Growth{1 << 14, 14, 82800}, Growth{1 << 20, 20, 7204568}}) {
        BOOST_TEST_CONTEXT(steps << " links, " << slots << " slots") {
            Trivial inner(steps);
            Counting chain(inner);
            Execution run(chain, revolve(steps, slots));
            chain.restart();
            run.forward();
            run.backward();
            BOOST_CHECK_EQUAL(chain.advances, advances);
            BOOST_CHECK_EQUAL(chain.advances, revolve_advances(steps, slots));
            BOOST_CHECK_EQUAL(chain.records, steps);
            BOOST_CHECK_EQUAL(chain.reverses, steps);
            BOOST_TEST(Counting<Trivial>::State::counts.peak <= slots + 2);
            double a = 1.0;
            for (Index i = 0; i < steps; ++i) a *= 0.999;
            BOOST_TEST(test::same_bits(run.adjoint(), a));
        }
    }
}
