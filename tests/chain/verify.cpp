// Verify mode of an Execution: bits that change in a slot, and replays that reach other states.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_verify
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/complete.hpp"
#include "support/every_schedule.hpp"
#include "support/toy_chains.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using test::Flavour;
using test::Oscillator;

namespace {

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

/// Values whose living objects are known, so that a test can reach those in slots.
struct Known {
    std::vector<double> values;
    static inline std::set<Known*> living;

    Known() { living.insert(this); }
    explicit Known(std::vector<double> v) : values(std::move(v)) { living.insert(this); }
    Known(const Known& o) : values(o.values) { living.insert(this); }
    Known(Known&& o) noexcept : values(std::move(o.values)) { living.insert(this); }
    Known& operator=(const Known&) = default;
    Known& operator=(Known&&) = default;
    ~Known() { living.erase(this); }
    friend void swap(Known& a, Known& b) noexcept { a.values.swap(b.values); }
    friend std::vector<Blob> blobs(Known& x) { return backsweep::blobs(x.values); }
};

/// An Oscillator whose states and tapes a test can reach, and that may drift: the k-th run of a link, counted over all,
/// ends elsewhere.
template <Flavour flavour = Flavour::plain>
class Reachable {
public:
    using State = Known;
    using Tape = Known;
    using Adjoint = std::vector<double>;
    static constexpr bool needs_state = flavour == Flavour::needs_state;

    explicit Reachable(Index links) : inner_(links) {}
    Index drifts_at = 0, runs = 0;

    std::optional<Index> length() const { return inner_.length(); }
    State initial() const { return State(inner_.initial()); }
    Index advance(Range r, State& x) {
        for (Index i = r.first; i < r.last; ++i) {
            inner_.advance({i, i + 1}, x.values);
            drift(x);
        }
        return r.last;
    }
    Index record(Range r, State& x, Tape& tape) {
        const Index reached = inner_.record(r, x.values, tape.values);
        drift(x);
        return reached;
    }
    void keep(Range r, State& x, Tape& tape)
        requires(flavour != Flavour::plain)
    {
        inner_.keep(r, x.values, tape.values);
    }
    void seed(const State& x, Adjoint& a) { inner_.seed(x.values, a); }
    void reverse(Range r, State& x, Tape& tape, Adjoint& a) { inner_.reverse(r, x.values, tape.values, a); }

private:
    void drift(State& x) {
        if (++runs == drifts_at) flip(x.values[1]);
    }
    static void flip(double& v) { v = std::nextafter(v, 2.0); }

    Oscillator<flavour> inner_;
};

constexpr Index n = 13;

template <class Run>
void sweep(Run& run, Store& store) {
    run.use(Tier::disk, store);
    run.forward();
    run.backward();
}

/// Flips the lowest bit of what was kept last: the object that lies in a slot and has the bits of x.
bool flip_copy(const std::vector<double>& bits, const Known* not_this) {
    for (Known* k : Known::living)
        if (k != not_this && k->values == bits) {
            k->values.back() = std::nextafter(k->values.back(), 3.0);
            return true;
        }
    return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_honest_chain_passes_under_every_schedule_with_the_same_bits) {
    Oscillator<> plain(n);
    const std::vector<double> wanted = test::adjoint_by_hand(plain);
    const auto check = [&](auto chain) {
        for (auto& [name, schedule] : test::every_schedule(n)) {
            BOOST_TEST_CONTEXT(name) {
                RamStore store;
                Execution run(chain, std::move(schedule));
                run.verify(true);
                for (int round = 0; round < 2; ++round) {
                    sweep(run, store);
                    BOOST_TEST(test::same_bits(run.adjoint(), wanted));
                }
                run.verify(false);
                sweep(run, store);
                BOOST_TEST(test::same_bits(run.adjoint(), wanted));
            }
        }
    };
    check(Oscillator<>(n));
    check(Oscillator<Flavour::keeps>(n));
}

// Verify finds a drift exactly where an observer who keeps copies of the states that were saved sees one at the end of
// an action.
BOOST_AUTO_TEST_CASE(a_replay_that_differs_is_found) {
    for (const Index slots : {1, 2, 3, 5}) {
        Reachable<> chain(n);
        {
            Execution count(chain, revolve(n, slots));
            count.forward();
            count.backward();
        }
        const Index runs = chain.runs;
        Index drifts = 0;
        for (Index at = 1; at <= runs; ++at) {
            chain.drifts_at = at, chain.runs = 0;
            Execution run(chain, revolve(n, slots));
            std::map<Index, std::vector<double>> kept;
            Index differs = -1;
            run.observe([&](const Action& a, double, double) {
                const std::vector<double>& x = run.state().values;
                if (a.verb == Verb::save) kept.emplace(a.steps.first, x);
                const bool runs_links = a.verb == Verb::advance || a.verb == Verb::record || a.verb == Verb::tape;
                if (!runs_links && a.verb != Verb::save) return;
                const auto first = kept.find(a.steps.last);
                if (differs < 0 && first != kept.end() && first->second != x) differs = a.steps.last;
            });
            run.forward();
            BOOST_CHECK_NO_THROW(run.backward());  // nobody notices
            drifts += differs >= 0;

            chain.runs = 0;
            run.observe({});
            run.verify(true);
            run.forward();
            if (differs < 0)
                BOOST_CHECK_NO_THROW(run.backward());
            else
                BOOST_CHECK_EXCEPTION(run.backward(), NumericError,
                                      says({"state of step " + std::to_string(differs) + " ", "other bits", "remembers"}));
        }
        BOOST_TEST_MESSAGE(slots << " slots: " << drifts << " of " << runs << " drifts reach a kept state again");
        BOOST_TEST((drifts > runs / 3) == (slots > 1));
    }
}

BOOST_AUTO_TEST_CASE(a_differing_replay_names_its_step) {
    // x_4 is kept on the way forward; link 3 is recorded later, and ends elsewhere.
    Reachable<> chain(6);
    Execution run(chain, revolve(6, 2));
    Index kept = -1;
    run.observe([&](const Action& a, double, double) {
        if (a.verb == Verb::save && a.steps.first > 0 && kept < 0) kept = a.steps.first;
        if (kept > 0 && a.verb == Verb::reverse && a.steps.first == kept) chain.drifts_at = chain.runs + kept;
    });
    run.verify(true);
    run.forward();
    BOOST_TEST(kept > 0);
    BOOST_CHECK_EXCEPTION(run.backward(), NumericError, says({"state of step " + std::to_string(kept) + " "}));
}

BOOST_AUTO_TEST_CASE(a_bit_that_changes_in_a_slot_is_found_when_it_is_read) {
    for (const bool on : {false, true}) {
        Reachable<> chain(n);
        Execution run(chain, revolve(n, 3));
        run.verify(on);
        Index flipped = -1;
        std::int32_t slot = -1;
        run.observe([&](const Action& a, double, double) {
            if (flipped >= 0 || a.verb != Verb::save || a.steps.first == 0) return;
            if (flip_copy(run.state().values, &run.state())) flipped = a.steps.first, slot = a.to.index;
        });
        run.forward();
        BOOST_TEST_REQUIRE(flipped > 0);
        if (on)
            BOOST_CHECK_EXCEPTION(run.backward(), StoreError,
                                  says({"ram slot " + std::to_string(slot), "state of step " + std::to_string(flipped),
                                        "bits have changed"}));
        else
            BOOST_CHECK_NO_THROW(run.backward());
    }
}

BOOST_AUTO_TEST_CASE(a_bit_that_changes_in_a_kept_tape_is_found_too) {
    Reachable<> chain(n);
    Execution run(chain, store_all(n));
    run.verify(true);
    Index stowed = -1;
    run.observe([&](const Action& a, double, double) {
        if (a.verb != Verb::stow || a.steps.first != 4) return;
        stowed = a.steps.first;
        Oscillator<> by_hand(n);
        std::vector<double> x = by_hand.initial(), tape;
        for (Index i = 0; i <= stowed; ++i) by_hand.record({i, i + 1}, x, tape);
        BOOST_TEST(flip_copy(tape, nullptr));
    });
    run.forward();
    BOOST_TEST_REQUIRE(stowed == 4);
    BOOST_CHECK_EXCEPTION(run.backward(), StoreError, says({"tape of link 4", "bits have changed"}));
}

BOOST_AUTO_TEST_CASE(a_sweep_from_surviving_states_is_verified_too) {
    Reachable<> chain(9);
    const std::vector<Stored> stored{{0, {Tier::ram, 0}}, {5, {Tier::ram, 1}}};
    for (const bool wrong : {false, true}) {
        Execution run(chain, complete(stored, 3, 9));
        run.verify(true);
        for (const auto& [step, slot] : stored) {
            Known x = chain.initial();
            chain.advance({0, step}, x);
            if (wrong && step == 5) x.values[0] += 0.25;  // of another run
            run.place(slot, step, x);
        }
        run.resume();
        if (wrong)
            BOOST_CHECK_EXCEPTION(run.backward({1.0, 0.5}), NumericError, says({"state of step 5 ", "other bits"}));
        else
            BOOST_CHECK_NO_THROW(run.backward({1.0, 0.5}));
    }
}

BOOST_AUTO_TEST_CASE(a_type_without_bytes_is_refused) {
    struct Opaque {
        double x = 0.0;
    };
    struct Plain {
        using State = Opaque;
        using Tape = Opaque;
        using Adjoint = Opaque;
        std::optional<Index> length() const { return 1; }
        State initial() const { return {}; }
        Index advance(Range r, State&) { return r.last; }
        Index record(Range r, State&, Tape&) { return r.last; }
        void seed(const State&, Adjoint&) {}
        void reverse(Range, State&, Tape&, Adjoint&) {}
    } chain;
    Execution run(chain, revolve(1, 1));
    BOOST_CHECK_EXCEPTION(run.verify(true), InvalidArgument, says({"blobs(T&)"}));
    BOOST_CHECK_NO_THROW(run.verify(false));
}
