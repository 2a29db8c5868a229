// Who observes an Execution is told of every action once, in order, with times that do not overlap.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_observer
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/referee.hpp"
#include "support/every_schedule.hpp"
#include "support/toy_chains.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace backsweep;
using test::Oscillator;

namespace {

struct Seen {
    Action action;
    double begin, end;
};

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Every advance takes a while.
class Slow : public Oscillator<> {
public:
    using Oscillator::Oscillator;
    Index advance(Range r, State& x) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return Oscillator::advance(r, x);
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_action_of_the_schedule_is_seen_once_and_in_order) {
    constexpr Index n = 11;
    Oscillator<> chain(n);
    const std::vector<double> wanted = test::adjoint_by_hand(chain);
    auto schedules = test::every_schedule(n), same = test::every_schedule(n);
    for (std::size_t k = 0; k < schedules.size(); ++k)
        BOOST_TEST_CONTEXT(schedules[k].name) {
            std::vector<Action> actions;
            Schedule& stream = *same[k].schedule;
            if (stream.open()) continue;  // its stream depends on what the Execution tells it
            do actions.push_back(stream.next());
            while (actions.back().verb != Verb::done);
            RamStore store;
            Execution run(chain, std::move(schedules[k].schedule));
            run.use(Tier::disk, store);
            std::vector<Seen> seen;
            run.observe([&](const Action& a, double begin, double end) { seen.push_back({a, begin, end}); });
            for (int round = 0; round < 2; ++round) {
                seen.clear();
                const double before = now();
                run.forward();
                run.backward();
                const double after = now();
                BOOST_TEST_REQUIRE(seen.size() == actions.size());
                double last = before;
                for (std::size_t i = 0; i < seen.size(); ++i) {
                    BOOST_TEST((seen[i].action == actions[i]));
                    BOOST_TEST(seen[i].begin >= last);
                    BOOST_TEST(seen[i].end >= seen[i].begin);
                    last = seen[i].end;
                }
                BOOST_TEST(last <= after);
                BOOST_TEST(test::same_bits(run.adjoint(), wanted));
            }
            const std::size_t so_far = seen.size();
            run.observe({});
            run.forward();
            BOOST_CHECK_EQUAL(seen.size(), so_far);
        }
}

BOOST_AUTO_TEST_CASE(an_open_ended_sweep_is_seen_too) {
    Oscillator<> chain(11);
    for (auto& [name, schedule] : test::every_schedule(11))
        BOOST_TEST_CONTEXT(name) {
            RamStore store;
            Execution run(chain, std::move(schedule));
            run.use(Tier::disk, store);
            Index reversed = 0, advanced = 0;
            run.observe([&](const Action& a, double, double) {
                reversed += a.verb == Verb::reverse;
                if (a.verb == Verb::advance) advanced += a.steps.size();
            });
            run.forward();
            run.backward();
            BOOST_CHECK_EQUAL(reversed, 11);
            BOOST_CHECK_EQUAL(advanced, run.counts().advances);
        }
}

BOOST_AUTO_TEST_CASE(the_time_of_an_action_is_its_own) {
    Slow chain(7);
    Execution run(chain, revolve(7, 2));
    double advancing = 0.0, rest = 0.0;
    Index advances = 0;
    run.observe([&](const Action& a, double begin, double end) {
        (a.verb == Verb::advance ? advancing : rest) += end - begin;
        advances += a.verb == Verb::advance;
    });
    run.forward();
    run.backward();
    BOOST_TEST(advancing >= 0.002 * static_cast<double>(advances));
    BOOST_TEST(rest < advancing);
}

BOOST_AUTO_TEST_CASE(what_throws_is_not_seen_and_what_an_observer_throws_ends_the_sweep) {
    Oscillator<> chain(5);
    Execution run(chain, revolve(5, 2));
    int seen = 0;
    run.observe([&](const Action&, double, double) {
        if (++seen == 3) throw std::runtime_error("enough");
    });
    BOOST_CHECK_THROW(run.forward(), std::runtime_error);
    BOOST_CHECK_EQUAL(seen, 3);
    run.forward();
    run.backward();
    BOOST_TEST(test::same_bits(run.adjoint(), test::adjoint_by_hand(chain)));

    Execution wrong(chain, revolve(6, 2));
    std::vector<Action> actions;
    wrong.observe([&](const Action& a, double, double) { actions.push_back(a); });
    BOOST_CHECK_THROW(wrong.forward(), ScheduleError);
    for (const Action& a : actions) BOOST_TEST(a.steps.last <= 5);
}
