// Field cases that the engine alone answers for; numbers and expected values as in the collection of field cases.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE regression_engine
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/chain/audited.hpp"
#include "backsweep/chain/callback_chain.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/chain/gradient_check.hpp"
#include "backsweep/store/disk_store.hpp"
#include "backsweep/store/journal.hpp"
#include "support/counting_chain.hpp"
#include "support/every_schedule.hpp"
#include "support/scratch.hpp"
#include "support/toy_chains.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;

namespace {

/// One forward and one backward sweep.
template <class C>
typename C::Adjoint gradient(C& chain, std::unique_ptr<Schedule> schedule) {
    RamStore disk;
    Execution run(chain, std::move(schedule));
    run.use(Tier::disk, disk);
    run.forward();
    run.backward();
    return run.adjoint();
}

/// Calls f(schedule) for every schedule, under its name.
template <class F>
void under_every_schedule(Index steps, F&& f) {
    for (auto& [name, schedule] : test::every_schedule(steps)) {
        BOOST_TEST_CONTEXT(name) {
            f(std::move(schedule));
        }
    }
}

}  // namespace

// Side effects happen once per logical step: statistics and callbacks hang on the Execution, not on the links. A
// running mean (momentum 0.1) that is part of the state is as pure as the rest of it.
BOOST_AUTO_TEST_CASE(G07) {
    constexpr Index n = 30;
    using State = std::array<double, 2>;  // x, running mean
    CallbackChain chain(
        n, State{0.4, 0.0},
        [](Index i, State& s) {
            s[0] = std::cos(1.3 * s[0] + 0.1 * static_cast<double>(i));
            s[1] = 0.9 * s[1] + 0.1 * s[0];
        },
        [](const State& s, State& a) {
            a = {s[0], 0.0};
        },
        [](Index i, const State& s, State& a) {
            a = {-1.3 * std::sin(1.3 * s[0] + 0.1 * static_cast<double>(i)) * (a[0] + 0.1 * a[1]), 0.9 * a[1]};
        });
    State wanted = chain.initial();
    chain.advance({0, n}, wanted);
    under_every_schedule(n, [&](std::unique_ptr<Schedule> schedule) {
        RamStore disk;
        Execution run(chain, std::move(schedule));
        run.use(Tier::disk, disk);
        Index calls = 0;
        double mean = 0.0;  // the same statistics kept by a callback
        std::function<void(const State&)> each = [&](const State& s) {
            mean = 0.9 * mean + 0.1 * s[0];
            ++calls;
            run.watch(calls + 1, each);
        };
        run.watch(1, each);
        run.forward();
        BOOST_TEST(test::same_bits(run.state()[1], wanted[1]));
        run.backward();
        BOOST_CHECK_EQUAL(run.counts().reversed, n);
        BOOST_CHECK_EQUAL(calls, n);
        BOOST_TEST(test::same_bits(mean, wanted[1]));
    });
}

// k1 different from k2: the contribution of each loss reaches back exactly k2 steps, once. x' = w x, w = 0.5, x_0 = 2.
BOOST_AUTO_TEST_CASE(G10) {
    const double w = 0.5;
    std::array<double, 5> x{2.0};
    for (std::size_t k = 0; k < 4; ++k) x[k + 1] = w * x[k];
    // dL/dw over links [first, last), the adjoint entering at x_last; with `every` also at the links between.
    const auto window = [&](Index first, Index last, bool every) {
        double dw = 0.0;
        CallbackChain chain(
            last - first, x[static_cast<std::size_t>(first)], [w](Index, double& s) { s *= w; },
            [](const double&, double& a) { a = 1.0; },
            [&, every](Index i, const double& s, double& a) {
                dw += a * s;
                a = a * w + (every && i > 0 ? 1.0 : 0.0);
            });
        double first_dw = 0.0;
        under_every_schedule(last - first, [&](std::unique_ptr<Schedule> schedule) {
            dw = 0.0;
            gradient(chain, std::move(schedule));
            if (first_dw == 0.0) first_dw = dw;
            BOOST_TEST(test::same_bits(dw, first_dw));
        });
        return first_dw;
    };
    BOOST_TEST(window(3, 4, false) == 0.25);
    BOOST_TEST(window(2, 4, false) == 0.5);
    BOOST_TEST(window(1, 4, false) == 0.75);
    BOOST_TEST(window(0, 4, false) == 1.0);
    double dw = 0.0;  // loss x_1 + ... + x_4 with k1 = 1, k2 = 2: each loss by itself, two steps back
    for (Index k = 1; k <= 4; ++k) dw += window(std::max<Index>(k - 2, 0), k, false);
    BOOST_TEST(dw == 5.5);
    BOOST_TEST(window(0, 4, true) == 6.5);
}

// Memory is not left behind when the reverse sweep never comes.
BOOST_AUTO_TEST_CASE(G17) {
    Ledger ledger;
    test::Field chain(60, 40, ledger);
    test::FaultStore disk(test::FaultStore::Fault::fails, 0, 0, ledger);
    const std::int64_t start = ledger.live_total();
    for (int sweep = 0; sweep < 400; ++sweep) {
        const bool abandoned = sweep < 200;
        {
            Execution run(chain, sweep % 2 == 0 ? revolve(60, 4) : std::make_unique<test::Spilled>(revolve(60, 4), 1));
            run.use(Tier::disk, disk);
            run.forward();
            if (!abandoned) run.backward();
        }
        BOOST_TEST_REQUIRE(ledger.live_total() == start);
        BOOST_TEST_REQUIRE(disk.full() == 0u);
    }

    // Slots in a file, and every third sweep commits: neither a file nor a descriptor is left either.
    const test::Scratch scratch;
    const auto descriptors = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
    };
    const auto open = descriptors();
    for (int sweep = 0; sweep < 400; ++sweep) {
        const bool abandoned = sweep < 200, commits = sweep % 3 == 0;
        {
            DiskStore slots({.folder = scratch.path(), .slots = 3, .slot_bytes = 40 + 40 * 8, .durable = false, .keep = commits}, ledger);
            std::optional<Journal> journal;
            if (commits) journal.emplace(JournalOptions{.path = scratch.path() / "journal", .durable = false});
            Execution run(chain, std::make_unique<test::Spilled>(revolve(60, 4), 1));
            run.use(Tier::disk, slots);
            if (commits) {
                run.commit_to(*journal, {.links = 10});
                run.recover(static_cast<std::uint64_t>(sweep));
            } else {
                run.forward();
            }
            if (!abandoned) run.backward();
            if (commits) {
                journal->remove();
                slots.remove();
            }
        }
        BOOST_TEST_REQUIRE(ledger.live_total() == start);
        BOOST_TEST_REQUIRE(scratch.files().empty());
        BOOST_TEST_REQUIRE(descriptors() == open);
    }
}

// The library itself keeps no references: at most s + 2 live states.
BOOST_AUTO_TEST_CASE(G18) {
    test::Oscillator<> inner(100);
    test::Counting chain(inner);
    Execution run(chain, revolve(100, 3));
    chain.restart();
    run.forward();
    run.backward();
    BOOST_TEST((decltype(chain)::State::counts.peak <= 3 + 2));

    // Nor does a sweep that goes on after a kill.
    struct Killed {};
    for (const Index stop : {9, 40, 150, 250}) {
        const test::Scratch scratch;
        Journal journal({.path = scratch.path() / "journal", .durable = false});
        for (const bool killed : {true, false}) {
            Execution again(chain, revolve(100, 3));
            again.commit_to(journal, {.links = 5});
            again.observe([&, k = Index{0}](const Action&, double, double) mutable {
                if (++k == stop && killed) throw Killed{};
            });
            run = Execution(chain, revolve(100, 3));
            chain.restart();
            decltype(chain)::State::counts.peak = 0;
            try {
                const Recovery found = again.recover(1);
                BOOST_TEST((killed || found.from != Recovery::From::start), "stopped at " << stop);
                again.backward();
            } catch (const Killed&) {}
            BOOST_TEST((decltype(chain)::State::counts.peak <= 3 + 2 + 1), "stopped at " << stop);  // `run` has one
        }
    }
}

// A value made early and used again later: it is part of the state, or its gradient is lost (4.29).
BOOST_AUTO_TEST_CASE(G19) {
    using State = std::array<double, 2>;  // z, q
    const double m = 0.5;
    CallbackChain chain(
        4, State{m, 3.0 * m}, [](Index i, State& s) { s[0] *= i == 2 ? s[1] : 1.25; },
        [](const State& s, State& a) {
            a = {s[0], 0.0};
        },
        [](Index i, const State& s, State& a) {
            a = i == 2 ? State{a[0] * s[1], a[1] + a[0] * s[0]} : State{1.25 * a[0], a[1]};
        });
    under_every_schedule(4, [&](std::unique_ptr<Schedule> schedule) {
        RamStore disk;
        Execution run(chain, std::move(schedule));
        run.use(Tier::disk, disk);
        run.forward();
        BOOST_TEST(0.5 * run.state()[0] * run.state()[0] == 1.0728836059570312);
        run.backward();
        BOOST_TEST(run.adjoint()[0] + 3.0 * run.adjoint()[1] == 8.58306884765625);
    });
}

// Stored data must be what the control gradient needs: second order for every schedule, RAM and disk.
BOOST_AUTO_TEST_CASE(G20) {
    constexpr Index n = 20;
    double du = 0.0;
    double u = 0.3;
    CallbackChain chain(
        n, 1.0, [&u](Index, double& x) { x += 0.05 * u * x; }, [](const double& x, double& a) { a = 2.0 * x; },
        [&](Index, const double& x, double& a) {
            du += 0.05 * x * a;
            a += 0.05 * u * a;
        });
    const auto j = [&](double control) {
        u = control;
        double x = 1.0;
        chain.advance({0, n}, x);
        u = 0.3;
        return x * x;
    };
    under_every_schedule(n, [&](std::unique_ptr<Schedule> schedule) {
        du = 0.0;
        gradient(chain, std::move(schedule));
        std::vector<double> remainders;
        for (const double h : {1e-2, 1e-3, 1e-4}) remainders.push_back(std::abs(j(0.3 + h) - j(0.3) - h * du));
        for (std::size_t k = 1; k < remainders.size(); ++k)
            BOOST_TEST(std::log10(remainders[k - 1] / remainders[k]) >= 1.95);
    });
}

// A hidden warm start is found and its step named; in the state it is as good as anything.
BOOST_AUTO_TEST_CASE(G21) {
    constexpr Index n = 16;
    using State = std::array<double, 2>;  // x, last solution of y = x + 0.1 y^3
    double hidden = 0.4;
    const auto newton = [](double x, double y) { return y - (y - x - 0.1 * y * y * y) / (1.0 - 0.3 * y * y); };
    const auto solve = [newton](double x, double& guess) {
        for (int k = 0; k < 2; ++k) guess = newton(x, guess);
        return 0.9 * guess;
    };
    CallbackChain impure(
        n, 0.5, [&](Index, double& x) { x = solve(x, hidden); }, [](const double& x, double& a) { a = x; },
        [](Index, const double&, double&) {});
    Audited watched(impure);
    BOOST_CHECK_EXCEPTION(gradient(watched, revolve(n, 3)), NumericError, [](const NumericError& e) {
        return std::string(e.what()).find("link 15: record and advance differ") == 0;
    });

    // y_k = N(x, y_{k-1}): dN/dx and dN/dy of one Newton step, chained twice.
    CallbackChain pure(
        n, State{0.5, 0.4}, [solve](Index, State& s) { s[0] = solve(s[0], s[1]); },
        [](const State& s, State& a) {
            a = {s[0], 0.0};
        },
        [newton](Index, const State& s, State& a) {
            const double x = s[0], y0 = s[1], y1 = newton(x, y0);
            const auto dx = [](double y) { return 1.0 / (1.0 - 0.3 * y * y); };
            const auto dy = [x](double y) {
                const double d = 1.0 - 0.3 * y * y, r = y - x - 0.1 * y * y * y;
                return -r * 0.6 * y / (d * d);
            };
            const double dy2 = 0.9 * a[0] + a[1], dy1 = dy2 * dy(y1);
            a = {dy2 * dx(y1) + dy1 * dx(y0), dy1 * dy(y0)};
        });
    const auto j = [&](std::span<const double> at) {
        State s{at[0], at[1]};
        pure.advance({0, n}, s);
        return 0.5 * s[0] * s[0];
    };
    const State wanted = test::adjoint_by_hand(pure);
    BOOST_TEST(finite_difference_error(j, State{0.5, 0.4}, wanted) < 1e-7);
    under_every_schedule(
        n, [&](std::unique_ptr<Schedule> schedule) { BOOST_TEST((gradient(pure, std::move(schedule)) == wanted)); });
}

// Multistep methods: the history is part of the state. Adams-Bashforth 2 for x' = -x, first step Euler.
BOOST_AUTO_TEST_CASE(G22) {
    using State = std::array<double, 2>;  // x, slope of the step before
    const double dt = 0.1;
    CallbackChain chain(
        6, State{1.0, 0.0},
        [dt](Index i, State& s) {
            const double slope = -s[0];
            s = {s[0] + dt * (i == 0 ? slope : 1.5 * slope - 0.5 * s[1]), slope};
        },
        [](const State&, State& a) {
            a = {1.0, 0.0};
        },
        [dt](Index i, const State&, State& a) {
            const double dslope = (i == 0 ? dt : 1.5 * dt) * a[0] + a[1];
            a = {a[0] - dslope, i == 0 ? 0.0 : -0.5 * dt * a[0]};
        });
    const State wanted = test::adjoint_by_hand(chain);
    under_every_schedule(6, [&](std::unique_ptr<Schedule> schedule) {
        RamStore disk;
        Execution run(chain, std::move(schedule));
        run.use(Tier::disk, disk);
        run.forward();
        BOOST_TEST(std::abs(run.state()[0] - 0.54725884375) < 1e-15);
        run.backward();
        BOOST_TEST(std::abs(run.adjoint()[0] - 0.54725884375) < 1e-15);
        BOOST_TEST((run.adjoint() == wanted));
    });
}

// Time travels with the step index; the last step may be shorter.
BOOST_AUTO_TEST_CASE(G23) {
    const auto forced = [](double t0, double end, double dt, Index n) {
        double dp = 0.0;
        const auto step = [=](Index i) { return std::min(dt, end - (t0 + dt * static_cast<double>(i))); };
        CallbackChain chain(
            n, 0.0, [=](Index i, double& x) { x += step(i) * (-x + 1.0 * (t0 + dt * static_cast<double>(i))); },
            [](const double&, double& a) { a = 1.0; },
            [&, step](Index i, const double&, double& a) {
                dp += step(i) * (t0 + dt * static_cast<double>(i)) * a;
                a -= step(i) * a;
            });
        double first = 0.0;
        under_every_schedule(n, [&](std::unique_ptr<Schedule> schedule) {
            dp = 0.0;
            gradient(chain, std::move(schedule));
            if (first == 0.0) first = dp;
            BOOST_TEST(test::same_bits(dp, first));
        });
        return first;
    };
    BOOST_TEST(forced(5.0, 6.0, 0.25, 4) == 3.734375);
    BOOST_TEST(forced(0.0, 1.0, 0.25, 4) == 0.31640625);
    // dt 0.5 to 1.9: steps 0.5 0.5 0.5 0.4; dx_4/dp = 0.6 (0.5 0.5 (0.5 0) + 0.5 0.5 0.5 + 0.5 1.0) + 0.4 1.5
    BOOST_TEST(std::abs(forced(0.0, 1.9, 0.5, 4) - (0.6 * (0.5 * 0.5 * 0.5 + 0.5 * 1.0) + 0.4 * 1.5)) < 1e-15);
}

// Provably minimal, the convention written down: the start takes a slot, the taped runs are not counted.
BOOST_AUTO_TEST_CASE(G24) {
    const Index cases[][3] = {{4, 4, 3},    {5, 2, 6},      {10, 3, 15},      {30, 5, 62},         {50, 3, 180},
                              {60, 6, 144}, {225, 15, 522}, {1000, 10, 3636}, {81912, 286, 204120}};
    for (const auto& [n, s, advances] : cases) {
        BOOST_TEST_CONTEXT(n << " links, " << s << " slots") {
            CallbackChain inner(
                n, 0.5, [](Index, double& x) { x *= 0.99; }, [](const double&, double& a) { a = 1.0; },
                [](Index, const double&, double& a) { a *= 0.99; });
            test::Counting chain(inner);
            gradient(chain, revolve(n, s));
            BOOST_CHECK_EQUAL(chain.advances, advances);
            BOOST_CHECK_EQUAL(chain.advances, revolve_advances(n, s));
            BOOST_CHECK_EQUAL(chain.records, n);
        }
    }
}

// States come from checkpoints and forward runs: x' = -10 x to time 5 in 5000 Euler steps; integrating backwards would
// amplify rounding by 5e21.
BOOST_AUTO_TEST_CASE(G30) {
    constexpr Index n = 5000;
    const double dt = 5.0 / n;
    double dx0 = 0.0;
    CallbackChain chain(
        n, 1.0, [dt](Index, double& x) { x -= 10.0 * dt * x; }, [](const double& x, double& a) { a = 1.0 + x; },
        [dt](Index, const double&, double& a) { a -= 10.0 * dt * a; });
    const long double factor = 1.0L - 10.0L * static_cast<long double>(dt),
                      end = std::pow(factor, static_cast<long double>(n));
    const auto closed = static_cast<double>((1.0L + end) * end);
    dx0 = gradient(chain, revolve(n, 5));
    BOOST_TEST(std::abs(dx0 / closed - 1.0) < 1e-12);
    BOOST_TEST(test::same_bits(dx0, test::adjoint_by_hand(chain)));
}

// No option does nothing: each changes a counter, or is refused.
BOOST_AUTO_TEST_CASE(G31) {
    constexpr Index n = 64;
    test::Oscillator<> inner(n);
    const auto counts = [&](const ScheduleOptions& options) {
        Execution run(inner, make_schedule(options));
        run.forward();
        if (run.resting()) run.backward();
        return run.counts();
    };
    const auto refused = [&](const ScheduleOptions& options, const char* option) {
        BOOST_CHECK_EXCEPTION(make_schedule(options), InvalidArgument, [option](const InvalidArgument& e) {
            return std::string(e.what()).find(option) != std::string::npos;
        });
    };
    ScheduleOptions revolve, store_all, periodic, forward_only;
    store_all.family = "store_all";
    periodic.family = "periodic";
    forward_only.family = "forward_only";
    revolve.steps = store_all.steps = periodic.steps = forward_only.steps = n;

    revolve.slots = 1;
    BOOST_CHECK_EQUAL(counts(revolve).advances, 2016);
    revolve.slots = 64;
    BOOST_CHECK_EQUAL(counts(revolve).advances, 63);
    revolve.slots = 9;
    const Counts fewest = counts(revolve);
    revolve.rule = "longest";
    const Counts longest = counts(revolve);
    revolve.rule = "shortest";
    const Counts shortest = counts(revolve);
    BOOST_CHECK_EQUAL(longest.advances, fewest.advances);
    BOOST_CHECK_EQUAL(shortest.advances, fewest.advances);
    BOOST_TEST((longest.saves > fewest.saves || shortest.saves > fewest.saves));
    BOOST_TEST((longest.saves >= fewest.saves && shortest.saves >= fewest.saves));

    periodic.period = 8;
    const Counts eights = counts(periodic);
    periodic.period = 16;
    BOOST_TEST(counts(periodic).advances != eights.advances);
    BOOST_TEST(counts(periodic).stows != eights.stows);

    BOOST_CHECK_EQUAL(counts(forward_only).recorded, n);
    forward_only.loss = false;
    BOOST_CHECK_EQUAL(counts(forward_only).recorded, 0);
    BOOST_CHECK_EQUAL(counts(store_all).advances, 0);

    for (ScheduleOptions o : {store_all, periodic, forward_only}) {
        o.slots = 5;
        refused(o, "slots");
        o.slots = 0;
        o.rule = "longest";
        refused(o, "rule");
    }
    for (ScheduleOptions o : {store_all, revolve, forward_only}) {
        o.period = 3;
        refused(o, "period");
    }
    for (ScheduleOptions o : {store_all, revolve, periodic}) {
        o.loss = false;
        refused(o, "loss");
    }
    revolve.slots = 0;
    refused(revolve, "slots");
    revolve.slots = -1;
    refused(revolve, "-1");
    revolve.slots = 4;
    revolve.rule = "quickest";
    refused(revolve, "quickest");
    revolve.family = "revolver";
    refused(revolve, "revolver");

    // needs_state keeps states beside the tapes.
    store_all.needs_state = true;
    BOOST_CHECK_EQUAL(counts(store_all).saves, n);
}

// Cost at some times only: the adjoint jumps at exactly these steps.
BOOST_AUTO_TEST_CASE(G44) {
    constexpr Index n = 10;
    const auto jumps = [](Index k) { return k == 3 || k == 7; };
    using State = std::array<double, 2>;  // x, the cost so far
    CallbackChain chain(
        n, State{1.0, 0.0},
        [jumps](Index i, State& s) {
            if (jumps(i)) s[1] += 0.5 * s[0] * s[0];
            s[0] *= 0.9;
        },
        [](const State& s, State& a) {
            a = {s[0], 1.0};
        },
        [jumps](Index i, const State& s, State& a) {
            a[0] *= 0.9;
            if (jumps(i)) a[0] += s[0] * a[1];
        });
    const State wanted = test::adjoint_by_hand(chain);
    under_every_schedule(n, [&](std::unique_ptr<Schedule> schedule) {
        RamStore disk;
        Execution run(chain, std::move(schedule));
        run.use(Tier::disk, disk);
        run.forward();
        BOOST_TEST(std::abs(run.state()[1] + 0.5 * run.state()[0] * run.state()[0] - 0.44089278957008987) < 1e-15);
        run.backward();
        BOOST_TEST(std::abs(run.adjoint()[0] - 0.8817855791401795) < 1e-15);
        BOOST_TEST((run.adjoint() == wanted));
    });
}
