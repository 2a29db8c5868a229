// A sweep that is killed at any action, link, write or fsync goes on in another process and ends with the same bits,
// having lost no more than one commit interval.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_restart
#include "support/unit_test.hpp"

#include "backsweep/chain/callback_chain.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/forward_only.hpp"
#include "backsweep/schedule/online.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "backsweep/store/disk_store.hpp"
#include "base/fail_point.hpp"
#include "support/every_schedule.hpp"
#include "support/killed_sweep.hpp"
#include "support/toy_chains.hpp"

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

using Make = std::function<std::unique_ptr<Schedule>()>;

/// An oscillator with a loss log, that may end its process and tells how far it came.
template <Flavour flavour = Flavour::plain>
struct Mortal : Oscillator<flavour> {
    using Base = Oscillator<flavour>;
    using typename Base::Adjoint;
    using typename Base::State;
    using typename Base::Tape;

    Mortal(Index links, Told& told, bool knows_length = true)
        : Base(links),
          losses(static_cast<std::size_t>(links)),
          n(links),
          knows(knows_length),
          tell(&told) {}

    std::vector<double> losses;
    Index n;
    bool knows;
    Told* tell;

    std::optional<Index> length() const { return knows ? std::optional(n) : std::nullopt; }
    Index advance(Range r, State& x) {
        Index i = r.first;
        for (; i < r.last && i < n; ++i) {
            Base::advance({i, i + 1}, x);
            ++tell->advances;
            tell->reached = std::max(tell->reached, i + 1);
            tell->event();
        }
        return i;
    }
    Index record(Range r, State& x, Tape& tape) {
        if (r.first == n) return n;
        losses[static_cast<std::size_t>(r.first)] = x[0] * x[1];
        Base::record(r, x, tape);
        tell->reached = std::max(tell->reached, r.last);
        tell->event();
        return r.last;
    }
    void keep(Range r, State& x, Tape& tape) requires(flavour != Flavour::plain) {
        losses[static_cast<std::size_t>(r.first)] = x[0] * x[1];
        Base::keep(r, x, tape);
        tell->event();
    }
    void reverse(Range r, State& x, Tape& tape, Adjoint& a) {
        Base::reverse(r, x, tape, a);
        ++tell->reversed;
        tell->left = r.first;
        tell->event();
    }
    std::vector<Blob> sums() {
        return {blob(this->gradient.data(), this->gradient.size()), blob(losses.data(), losses.size())};
    }
};

/// How a program commits.
struct How {
    Index links = 0;  ///< of the chain
    Make make;
    Index interval = 2;
    double seconds = 0.0;
    bool knows_length = true;
    Index buffers = 0;
    bool durable = false;
    std::uint64_t sweep = 3;
};

/// One sweep, up to its end.
template <Flavour flavour>
int program(const std::filesystem::path& folder, const How& how, Told& told) {
    DiskStore disk({.folder = folder,
                    .slots = how.links + 2,
                    .slot_bytes = 128,
                    .buffers = how.buffers,
                    .durable = how.durable,
                    .keep = true,
                    .run = 7});
    Journal journal({.path = folder / "journal", .run = 7, .durable = how.durable});
    Mortal<flavour> chain(how.links, told, how.knows_length);
    Execution run(chain, how.make());
    run.use(Tier::disk, disk);
    run.observe([&](const Action&, double, double) { told.event(); });
    run.commit_to(journal, {.links = how.interval, .seconds = how.seconds});
    const Recovery found = run.recover(how.sweep);
    told.from = found.from;
    told.at = found.at;
    told.states = found.states;
    run.backward();
    told.event();
    told.take(run.adjoint());
    told.take(chain.gradient);
    told.take(chain.losses);
    journal.remove();
    disk.remove();
    return 0;
}

template <Flavour flavour>
std::vector<double> undisturbed(Index links) {
    Told told;
    Mortal<flavour> chain(links, told);
    const auto a = adjoint_by_hand(chain);
    told.take(a);
    told.take(chain.gradient);
    told.take(chain.losses);
    return told.numbers();
}

/// How many sweeps went on from where.
struct Tally {
    Index start = 0, forward = 0, reverse = 0, states = 0;
    void count(const Told& told) {
        (told.from == Recovery::From::start ? start : told.from == Recovery::From::forward ? forward : reverse) += 1;
        states += told.states;
    }
};

/// What the killed process had done since its last commit.
Index lost(const Told& before, const Told& after, Index links) {
    const Index reversed_to = before.reversed > 0 ? before.left : links;
    if (after.from == Recovery::From::reverse) return after.at - reversed_to;
    return before.reached - after.at + links - reversed_to;
}

template <Flavour flavour>
Tally killed_at_every_event(const std::string& name, const How& how) {
    const std::vector<double> wanted = undisturbed<flavour>(how.links);
    Tally tally;
    Shared told(2);
    for (Index event = 1;; event += stride) {
        BOOST_TEST_CONTEXT(name << ", killed at event " << event) {
            const Scratch scratch;
            told[0] = {};
            told[0].dies_at = event;
            told[1] = {};
            const int end = end_of(start_process([&] { return program<flavour>(scratch.path(), how, told[0]); }));
            if (end == 0) {
                BOOST_TEST(same_bits(told[0].numbers(), wanted));
                BOOST_TEST(scratch.files().empty());
                return tally;
            }
            BOOST_TEST_REQUIRE(end == killed);
            BOOST_TEST_REQUIRE(end_of(start_process([&] { return program<flavour>(scratch.path(), how, told[1]); })) ==
                               0);
            BOOST_TEST_REQUIRE(same_bits(told[1].numbers(), wanted));
            BOOST_TEST(scratch.files().empty());
            tally.count(told[1]);
            if (how.knows_length && how.interval > 0) {
                const Index links = lost(told[0], told[1], how.links);
                BOOST_TEST(links <= how.interval, links << " links were lost, at most " << how.interval);
            }
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(killed_at_every_action_and_link_under_every_schedule) {
    constexpr Index n = 11;
    const std::size_t many = every_schedule(n).size();
    Tally all;
    for (std::size_t k = 0; k < many; ++k) {
        const std::string name = every_schedule(n)[k].name;
        if (name.ends_with(" longest") || name.ends_with(" shortest")) continue;  // the same states as fewest_writes
        const auto make = [k] { return std::move(every_schedule(n)[k].schedule); };
        const Tally t = killed_at_every_event<Flavour::plain>(name, {.links = n, .make = make});
        BOOST_TEST((t.start > 0 && t.forward > 0 && t.reverse > 0));
        all.states += t.states;
    }
    BOOST_TEST(all.states > 0);
}

BOOST_AUTO_TEST_CASE(chains_that_keep_or_need_their_state) {
    constexpr Index n = 13;
    for (const Index slots : {1, 3, 6}) {
        const auto make = [slots] {
            return std::make_unique<Spilled>(revolve(n, slots, AdvanceRule::fewest_writes, true), 2);
        };
        const How how{.links = n, .make = make, .interval = 3};
        killed_at_every_event<Flavour::keeps>("keeps, slots " + std::to_string(slots), how);
        killed_at_every_event<Flavour::needs_state>("needs_state, slots " + std::to_string(slots), how);
    }
    killed_at_every_event<Flavour::needs_state>("needs_state, store_all",
                                                {.links = n, .make = [] { return store_all(n, true); }});
}

BOOST_AUTO_TEST_CASE(any_interval) {
    constexpr Index n = 29;
    ScheduleOptions o{.family = "tiered_revolve", .steps = n};
    o.levels = {{Tier::ram, 2}, {Tier::disk, 3}};
    for (const Index interval : {1, 5, 1000})
        killed_at_every_event<Flavour::plain>(
            "a commit every " + std::to_string(interval) + " links",
            {.links = n, .make = [&] { return make_schedule(o); }, .interval = interval});
}

// The end is met while the sweep runs.
BOOST_AUTO_TEST_CASE(chains_of_unknown_length) {
    constexpr Index n = 17;
    ScheduleOptions two{.family = "two_level", .slots = 1, .period = 4};
    const How online_{.links = n, .make = [] { return online({.slots = 4}); }, .knows_length = false};
    const How two_{.links = n, .make = [&] { return make_schedule(two); }, .knows_length = false};
    for (const How& how : {online_, two_}) {
        const Tally t = killed_at_every_event<Flavour::plain>("of unknown length", how);
        BOOST_TEST((t.start > 0 && t.forward > 0 && t.reverse > 0));
    }
}

// Whatever the store and the journal were about to do.
BOOST_AUTO_TEST_CASE(killed_at_every_write_and_fsync) {
    constexpr Index n = 13;
    ScheduleOptions o{.family = "tiered_revolve", .steps = n};
    o.levels = {{Tier::ram, 1}, {Tier::disk, 3}};
    const std::vector<double> wanted = undisturbed<Flavour::plain>(n);
    for (const Index buffers : {0, 2}) {
        const How how{.links = n, .make = [&] { return make_schedule(o); }, .buffers = buffers, .durable = true};
        Shared told(2);
        int end = killed;
        Index point = 0;
        while (end == killed) {
            const std::string wish = "any:" + std::to_string(++point);
            BOOST_TEST_CONTEXT(wish << " with " << buffers << " buffers") {
                const Scratch scratch;
                told[0] = told[1] = {};
                end = end_of(start_process([&] {
                    ask_for_fail_point(wish.c_str());
                    return program<Flavour::plain>(scratch.path(), how, told[0]);
                }));
                if (end == killed)
                    BOOST_TEST_REQUIRE(end_of(start_process([&] {
                                           return program<Flavour::plain>(scratch.path(), how, told[1]);
                                       })) == 0);
                BOOST_TEST_REQUIRE(same_bits(told[end == killed].numbers(), wanted));
                BOOST_TEST(scratch.files().empty());
            }
        }
        BOOST_TEST(end == 0);
        BOOST_TEST(point > 40);
    }
}

BOOST_AUTO_TEST_CASE(killed_twice) {
    constexpr Index n = 9;
    ScheduleOptions o{.family = "multistage", .steps = n};
    o.levels = {{Tier::ram, 1, 0.0, 0.0}, {Tier::disk, 2, 1.5, 1.0}};
    const How how{.links = n, .make = [&] { return make_schedule(o); }};
    const std::vector<double> wanted = undisturbed<Flavour::plain>(n);
    Shared told(3);
    int first = killed;
    for (Index one = 1; first == killed; one += 3 * stride) {
        int second = killed;
        for (Index two = 1; second == killed && first == killed; two += stride) {
            BOOST_TEST_CONTEXT("killed at event " << one << " and then at " << two) {
                const Scratch scratch;
                for (std::size_t k = 0; k < 3; ++k) told[k] = {};
                told[0].dies_at = one;
                told[1].dies_at = two;
                const auto run = [&](std::size_t k) {
                    return end_of(start_process([&] { return program<Flavour::plain>(scratch.path(), how, told[k]); }));
                };
                first = run(0);
                if (first != killed) break;
                second = run(1);
                if (second == killed) BOOST_TEST_REQUIRE(run(2) == 0);
                BOOST_TEST_REQUIRE(same_bits(told[second == killed ? 2 : 1].numbers(), wanted));
            }
        }
    }
}

// A machine that gives a process time for a few links only: commits by time hold what was computed again, too, so that
// a sweep always ends.
BOOST_AUTO_TEST_CASE(killed_again_and_again) {
    constexpr Index n = 40;
    const std::vector<double> wanted = undisturbed<Flavour::plain>(n);
    const How how{.links = n, .make = [] { return revolve(n, 3); }, .interval = 0, .seconds = 1e-9};
    const Scratch scratch;
    Shared told(1);
    int end = killed;
    int processes = 0;
    for (; end == killed && processes < 1000; ++processes) {
        told[0] = {};
        told[0].dies_at = 8;
        end = end_of(start_process([&] { return program<Flavour::plain>(scratch.path(), how, told[0]); }));
    }
    BOOST_TEST(end == 0);
    BOOST_TEST(same_bits(told[0].numbers(), wanted));
    BOOST_TEST_MESSAGE(processes << " processes");
}

// A slot that was damaged, or a store that has gone, costs time and no bit.
BOOST_AUTO_TEST_CASE(slots_are_verified) {
    constexpr Index n = 23;
    const How how{.links = n, .make = [] { return std::make_unique<Spilled>(revolve(n, 5), 0); }};
    const std::vector<double> wanted = undisturbed<Flavour::plain>(n);
    Shared told(2);
    for (const Index event : {20, 45}) {
        std::vector<Index> states;
        for (const int damage : {0, 1, 2}) {
            const Scratch scratch;
            told[0] = told[1] = {};
            told[0].dies_at = event;
            BOOST_TEST_REQUIRE(
                end_of(start_process([&] { return program<Flavour::plain>(scratch.path(), how, told[0]); })) == killed);
            for (const std::string& name : scratch.files()) {
                if (!name.ends_with(".slots")) continue;
                if (damage == 1) flip_a_byte_of_every_slot(scratch.path() / name);
                if (damage == 2) std::filesystem::remove(scratch.path() / name);
            }
            BOOST_TEST_REQUIRE(
                end_of(start_process([&] { return program<Flavour::plain>(scratch.path(), how, told[1]); })) == 0);
            BOOST_TEST(same_bits(told[1].numbers(), wanted));
            BOOST_TEST((told[1].from != Recovery::From::start));
            states.push_back(told[1].states);
        }
        BOOST_TEST((states[0] > 0 && states[1] == 0 && states[2] == 0));
    }
}

// With one slot in RAM the states that survive would be far apart: free slots on disk are used again.
BOOST_AUTO_TEST_CASE(free_slots_on_disk_are_used) {
    constexpr Index n = 400;
    ScheduleOptions o{.family = "tiered_revolve", .steps = n};
    o.levels = {{Tier::ram, 1}, {Tier::disk, 6}};
    const Index advances = referee(*make_schedule(o), n).advances;
    const std::vector<double> wanted = undisturbed<Flavour::plain>(n);
    Shared told(2);
    for (const Index event : {n + 30, 3 * n, 6 * n}) {
        const Scratch scratch;
        const How how{.links = n, .make = [&] { return make_schedule(o); }, .interval = 10};
        told[0] = told[1] = {};
        told[0].dies_at = event;
        BOOST_TEST_REQUIRE(
            end_of(start_process([&] { return program<Flavour::plain>(scratch.path(), how, told[0]); })) == killed);
        BOOST_TEST_REQUIRE(
            end_of(start_process([&] { return program<Flavour::plain>(scratch.path(), how, told[1]); })) == 0);
        BOOST_TEST(same_bits(told[1].numbers(), wanted));
        BOOST_TEST(told[1].advances < 3 * advances,
                   told[1].advances << " advances after " << told[0].advances << ", undisturbed " << advances);
    }
}

namespace {

struct Killed {};

/// Ends a sweep within this process: its slots in RAM are gone, the journal stays.
template <class Run>
void stop_at(Run& run, Index action) {
    run.observe([action, k = Index{0}](const Action&, double, double) mutable {
        if (++k == action) throw Killed{};
    });
}

}  // namespace

// Bytes do not grow: the schedule that goes on has the slots of the one that was killed.
BOOST_AUTO_TEST_CASE(bytes_do_not_grow) {
    constexpr Index n = 60, width = 1000;
    Index recovered = 0;
    for (const Index slots : {1, 2, 4}) {
        std::int64_t peak = 0;
        std::vector<double> wanted;
        for (Index stop = 0; stop < 200; stop += 7) {
            const Scratch scratch;
            Ledger ledger;
            Field chain(n, width, ledger);
            Journal journal({.path = scratch.path() / "journal", .durable = false});
            if (stop > 0) {
                Execution run(chain, revolve(n, slots));
                run.commit_to(journal, {.links = 3, .seconds = stop % 2 == 0 ? 1e-9 : 0.0});
                stop_at(run, stop);
                BOOST_CHECK_THROW(run.recover(1); run.backward(), Killed);
            }
            ledger.reset_peaks();
            Execution run(chain, revolve(n, slots));
            run.commit_to(journal, {.links = 3});
            recovered += run.recover(1).from == Recovery::From::reverse;
            run.backward();
            const auto a = run.adjoint().u.span();
            if (stop == 0) {
                peak = ledger.peak_total();
                wanted.assign(a.begin(), a.end());
            }
            BOOST_TEST(ledger.peak_total() <= peak, "slots " << slots << ", stopped at " << stop);
            BOOST_TEST(same_bits<double>(a, wanted));
        }
    }
    BOOST_TEST(recovered > 20);
}

BOOST_AUTO_TEST_CASE(what_was_watched_is_found_again) {
    constexpr Index n = 20;
    for (Index stop = 1; stop < 40; ++stop) {
        const Scratch scratch;
        Journal journal({.path = scratch.path() / "journal", .durable = false});
        std::vector<double> seen(2);
        Index shown = 0;
        const auto sweep = [&](Index stops) {
            Oscillator<> chain(n);
            Execution run(chain, revolve(n, 3));
            seen.assign(2, 0.0);
            run.watch(9, [&](const std::vector<double>& x) { seen = x, ++shown; });
            run.commit_to(journal, {.links = 2, .more = [&] { return blobs(seen); }});
            if (stops > 0) stop_at(run, stops);
            run.recover(1);
            run.backward();
        };
        try {
            sweep(stop);
        } catch (const Killed&) {
            sweep(0);
        }
        Oscillator<> chain(n);
        std::vector<double> x = chain.initial();
        chain.advance({0, 9}, x);
        BOOST_TEST(same_bits(seen, x), "stopped at " << stop);
        BOOST_TEST((shown == 1 || shown == 2));
    }
}

// No reverse follows: the loss log is what is wanted.
BOOST_AUTO_TEST_CASE(forward_only_goes_on) {
    constexpr Index n = 12;
    const std::vector<double> wanted = [] {
        Told told;
        Mortal chain(n, told);
        Execution run(chain, forward_only(n));
        run.forward();
        return chain.losses;
    }();
    for (Index stop = 1; stop < 2 * n; ++stop) {
        const Scratch scratch;
        Journal journal({.path = scratch.path() / "journal", .durable = false});
        for (const bool killed_ : {true, false}) {
            Told told;
            Mortal chain(n, told);
            Execution run(chain, forward_only(n));
            run.commit_to(journal, {.links = 3});
            if (killed_) {
                stop_at(run, stop);
                BOOST_CHECK_THROW(run.recover(1), Killed);
            } else {
                const Recovery found = run.recover(1);
                BOOST_TEST((found.from == Recovery::From::forward) == (stop >= 5));
                BOOST_TEST(std::max(told.reached, found.at) == n);
                BOOST_TEST(same_bits(chain.losses, wanted));
            }
        }
    }
}

namespace {

/// Adds to v what q was four links before, which it keeps in rows beside the state.
struct Remembers : Oscillator<> {
    explicit Remembers(Index links)
        : Oscillator(links),
          rows(static_cast<std::size_t>(links), std::numeric_limits<double>::quiet_NaN()) {}
    std::vector<double> rows;
    bool self_contained() const { return false; }
    Index advance(Range r, State& x) {
        for (Index i = r.first; i < r.last; ++i) {
            const double before = remember(i, x);
            Oscillator::advance({i, i + 1}, x);
            x[1] += 0.01 * before;
        }
        return r.last;
    }
    Index record(Range r, State& x, Tape& tape) {
        const double before = remember(r.first, x);
        Oscillator::record(r, x, tape);
        x[1] += 0.01 * before;
        return r.last;
    }
    double remember(Index i, const State& x) {
        rows[static_cast<std::size_t>(i)] = x[0];
        return i < 4 ? 0.0 : rows[static_cast<std::size_t>(i - 4)];
    }
};

}  // namespace

// A chain that remembers outside its state goes on from x_0 only, in the reverse sweep.
BOOST_AUTO_TEST_CASE(states_that_do_not_suffice) {
    constexpr Index n = 20;
    Remembers plain(n);
    const std::vector<double> wanted = adjoint_by_hand(plain);
    Index reverse = 0;
    for (Index stop = 1; stop < 60; ++stop) {
        const Scratch scratch;
        Journal journal({.path = scratch.path() / "journal", .durable = false});
        RamStore disk;
        for (const bool killed_ : {true, false}) {
            Remembers chain(n);
            Execution run(chain, std::make_unique<Spilled>(revolve(n, 4), 2));
            run.use(Tier::disk, disk);
            run.commit_to(journal, {.links = 2, .seconds = 1e-9});
            if (killed_) stop_at(run, stop);
            try {
                const Recovery found = run.recover(1);
                run.backward();
                BOOST_TEST((found.from != Recovery::From::forward));
                BOOST_TEST(found.states == 0);
                reverse += found.from == Recovery::From::reverse;
                BOOST_TEST(same_bits(run.adjoint(), wanted), "stopped at " << stop);
                BOOST_TEST(same_bits<double>(chain.gradient, plain.gradient));
            } catch (const Killed&) {
                BOOST_TEST(killed_);
            }
        }
    }
    BOOST_TEST(reverse > 10);
}

BOOST_AUTO_TEST_CASE(records_of_another_sweep_are_not_used) {
    constexpr Index n = 20;
    const Scratch scratch;
    const auto journal_of = [&](std::uint64_t run) {
        return Journal({.path = scratch.path() / "journal", .run = run, .durable = false});
    };
    {
        Journal journal = journal_of(1);
        Oscillator<> chain(n);
        Execution run(chain, revolve(n, 3));
        run.commit_to(journal, {.links = 1});
        stop_at(run, 30);
        BOOST_CHECK_THROW(run.recover(5); run.backward(), Killed);
    }
    const auto text = [&](std::uint64_t run_number, std::uint64_t sweep, auto chain) {
        Journal journal = journal_of(run_number);
        Execution run(chain, revolve(n, 3));
        run.commit_to(journal, {.links = 1000});
        return run.recover(sweep).text;
    };
    struct Elsewhere : Oscillator<> {
        using Oscillator::Oscillator;
        State initial() const { return {0.6, -0.34}; }
    };
    struct More : Oscillator<> {
        using Oscillator::Oscillator;
        std::vector<double> log = std::vector<double>(3);
        std::vector<Blob> sums() { return {blob(gradient.data(), 5), blob(log.data(), 3)}; }
    };
    BOOST_TEST(text(1, 6, Oscillator<>(n)) == "sweep 6 begins: the journal's record is of sweep 5, not 6");
    BOOST_TEST(text(1, 5, Elsewhere(n)) == "sweep 5 begins: the journal's record of sweep 5 began at another x_0");
    BOOST_CHECK_EXCEPTION(text(1, 5, More(n)), InvalidArgument, [](const InvalidArgument& e) {
        return std::string(e.what()).starts_with(
            "the journal holds 40 bytes of sums, but the sweep that is to go on has 64");
    });
    BOOST_TEST((Commits::sweep_in(journal_of(1)) == std::uint64_t{5}));
    BOOST_TEST(!Commits::sweep_in(journal_of(2)));
    const std::string goes_on = text(1, 5, Oscillator<>(n));
    BOOST_TEST(goes_on.starts_with("sweep 5 goes on with "), goes_on);
    BOOST_TEST(text(2, 5, Oscillator<>(n)) == "sweep 5 begins: the journal is empty");
}

// The end of a sweep is committed too: who was killed before the gradient was used has lost nothing.
BOOST_AUTO_TEST_CASE(the_end_is_committed_until_the_journal_is_cleared) {
    constexpr Index n = 20;
    const Scratch scratch;
    Journal journal({.path = scratch.path() / "journal", .durable = false});
    std::vector<double> wanted;
    std::array<double, 5> gradient{};
    for (const int process : {0, 1, 2}) {
        Oscillator<> chain(n);
        Execution run(chain, revolve(n, 3));
        run.commit_to(journal, {.links = 7});
        const Recovery found = run.recover(1);
        run.backward();
        if (process == 0) {
            wanted = run.adjoint();
            gradient = chain.gradient;
        }
        BOOST_TEST(same_bits(run.adjoint(), wanted));
        BOOST_TEST(same_bits<double>(chain.gradient, gradient));
        BOOST_TEST((run.counts().reversed == (process == 1 ? 0 : n)));
        BOOST_TEST((found.from == (process == 1 ? Recovery::From::reverse : Recovery::From::start)));
        if (process == 1) journal.clear();
    }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_refused) {
    const auto says = [](const char* text) {
        return [text](const Error& e) { return std::string(e.what()).find(text) != std::string::npos; };
    };
    const Scratch scratch;
    Journal journal({.path = scratch.path() / "journal"});
    Oscillator<> chain(5);
    Execution run(chain, revolve(5, 2));
    BOOST_CHECK_EXCEPTION(run.recover(1), ScheduleError, says("call commit_to"));
    BOOST_CHECK_EXCEPTION(run.commit_to(journal, {}), InvalidArgument, says("neither links nor seconds"));
    BOOST_CHECK_EXCEPTION(run.commit_to(journal, {.links = -1}), InvalidArgument, says("links is -1"));
    BOOST_CHECK_EXCEPTION(run.commit_to(journal, {.seconds = std::numeric_limits<double>::infinity()}), InvalidArgument,
                          says("seconds is inf"));
    BOOST_CHECK_EXCEPTION(run.commit_to(journal, {.links = 1, .ram_slots = -2}), InvalidArgument,
                          says("ram_slots is -2"));

    CallbackChain lambdas(
        5, 1.0, [](Index, double& x) { x *= 1.5; }, [](const double&, double& a) { a = 1.0; },
        [](Index, const double&, double& a) { a *= 1.5; });
    Execution calls(lambdas, revolve(5, 2));
    calls.commit_to(journal, {.links = 1});
    BOOST_CHECK_EXCEPTION(calls.recover(1), InvalidArgument, says("call sum_in()"));
    lambdas.sum_in([] { return std::vector<Blob>{}; });
    calls.recover(1);
    calls.backward();
    BOOST_TEST(calls.adjoint() == 1.5 * 1.5 * 1.5 * 1.5 * 1.5);

    // The killed run's schedule turned elsewhere.
    Oscillator<> longer(9);
    Execution killed_(longer, revolve(9, 3));
    killed_.commit_to(journal, {.links = 8});
    stop_at(killed_, 6);
    BOOST_CHECK_THROW(killed_.recover(2), Killed);
    Execution other(longer, revolve(6, 3));
    other.commit_to(journal, {.links = 8});
    BOOST_CHECK_EXCEPTION(other.recover(2), ScheduleError, says("go on with its schedule"));
}
