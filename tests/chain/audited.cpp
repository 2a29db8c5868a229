// Verify mode: pure chains pass, impure ones are caught where they differ first.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_audited
#include "support/unit_test.hpp"

#include "backsweep/chain/audited.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/forward_only.hpp"
#include "support/every_schedule.hpp"
#include "support/toy_chains.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

using namespace backsweep;
using test::Flavour;
using test::Oscillator;

namespace {

using Vector = std::vector<double>;

auto says(std::string words) {
    return [words](const NumericError& e) {
        const bool found = std::string(e.what()).find(words) != std::string::npos;
        if (!found) BOOST_TEST_MESSAGE(e.what());
        return found;
    };
}

template <class C>
void sweep(C& chain, std::unique_ptr<Schedule> schedule) {
    RamStore store;
    Execution run(chain, std::move(schedule));
    run.use(Tier::disk, store);
    run.forward();
    if (run.resting()) run.backward();
}

/// Adds 1e-3 on every second call of a link.
struct EverySecondCall : Oscillator<> {
    using Oscillator::Oscillator;
    Index from = 0;
    Index calls = 0;
    void spoil(Range r, Vector& x) {
        if (r.last > from && ++calls % 2 == 0) x[0] += 1e-3;
    }
    Index advance(Range r, Vector& x) {
        for (Index i = r.first; i < r.last; ++i) {
            Oscillator::advance({i, i + 1}, x);
            spoil({i, i + 1}, x);
        }
        return r.last;
    }
    Index record(Range r, Vector& x, Vector& tape) {
        Oscillator::record(r, x, tape);
        spoil(r, x);
        return r.last;
    }
};

/// Draws noise from a generator that lives outside the state.
struct Generator : Oscillator<> {
    using Oscillator::Oscillator;
    std::uint32_t word = 1;
    Index advance(Range r, Vector& x) {
        for (Index i = r.first; i < r.last; ++i) {
            Oscillator::advance({i, i + 1}, x);
            x[1] += 1e-9 * static_cast<double>((word = word * 1664525 + 1013904223) >> 16);
        }
        return r.last;
    }
    Index record(Range r, Vector& x, Vector& tape) {
        const Vector before = x;
        Oscillator::record(r, x, tape);
        x = before;
        return advance(r, x);
    }
};

/// Two Newton steps for y = x + dt y^3 from where the last solve ended.
struct WarmStart : Oscillator<> {
    using Oscillator::Oscillator;
    double guess = 0.5;
    Index advance(Range r, Vector& x) {
        for (Index i = r.first; i < r.last; ++i) {
            for (int k = 0; k < 2; ++k)
                guess -= (guess - x[0] - 0.05 * guess * guess * guess) / (1 - 0.15 * guess * guess);
            x[0] = guess;
        }
        return r.last;
    }
    Index record(Range r, Vector& x, Vector& tape) {
        tape.assign(8, 0.0);
        return advance(r, x);
    }
};

/// record rounds otherwise than advance at one link.
struct TwoFaces : Oscillator<> {
    using Oscillator::Oscillator;
    Index at = 0;
    bool longer = false;
    Index record(Range r, Vector& x, Vector& tape) {
        Oscillator::record(r, x, tape);
        if (r.first == at) x[1] *= 1.0 + 0x1p-52;
        if (r.first == at && longer) x.push_back(0.0);
        return r.last;
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(pure_chains_pass_and_keep_their_bits) {
    constexpr Index n = 21;
    const auto check = [&](auto& inner) {
        const Vector wanted = test::adjoint_by_hand(inner);
        Audited chain(inner);
        constexpr bool needs = std::remove_reference_t<decltype(inner)>::needs_state;
        for (auto& [name, schedule] : test::every_schedule(n, needs)) {
            BOOST_TEST_CONTEXT(name) {
                RamStore store;
                Execution run(chain, std::move(schedule));
                run.use(Tier::disk, store);
                run.forward();
                run.backward();
                BOOST_TEST(test::same_bits(run.adjoint(), wanted));
            }
        }
        BOOST_CHECK_NO_THROW(sweep(chain, forward_only(n)));
        BOOST_CHECK_NO_THROW(sweep(chain, forward_only(n, false)));
    };
    Oscillator<> plain(n);
    Oscillator<Flavour::keeps> keeps(n);
    Oscillator<Flavour::needs_state> needs(n);
    check(plain);
    check(keeps);
    check(needs);
    test::Field field(n, 9);
    Audited audited(field);
    BOOST_CHECK_NO_THROW(sweep(audited, revolve(n, 3)));
    BOOST_CHECK_NO_THROW(sweep(audited, forward_only(n)));
}

BOOST_AUTO_TEST_CASE(something_added_on_every_second_call) {
    for (const Index from : {0, 7, 20}) {
        EverySecondCall inner(21);
        inner.from = from;
        Audited chain(inner);
        BOOST_CHECK_EXCEPTION(sweep(chain, forward_only(21)), NumericError,
                              says("link " + std::to_string(from) + ": record and advance differ"));
    }
    // Without records it shows when a link is run again: the first link that differs is named.
    EverySecondCall inner(5);
    inner.from = 3;  // first runs: link 3 without, link 4 with the addition; replays of link 3: with it
    Audited chain(inner);
    Vector x = chain.initial();
    chain.advance({0, 4}, x);
    x = chain.initial();
    BOOST_CHECK_EXCEPTION(chain.advance({0, 4}, x), NumericError, says("link 3 is not pure"));
}

BOOST_AUTO_TEST_CASE(a_generator_outside_the_state) {
    Generator inner(21);
    Audited chain(inner);
    sweep(chain, forward_only(21, false));  // run once, nothing shows
    BOOST_CHECK_EXCEPTION(sweep(chain, forward_only(21, false)), NumericError, says("link 0 is not pure"));
    chain.forget();
    BOOST_CHECK_EXCEPTION(sweep(chain, revolve(21, 3)), NumericError,
                          says("link 20: record and advance differ: value 1"));
}

BOOST_AUTO_TEST_CASE(a_hidden_warm_start) {
    WarmStart inner(21);
    Audited chain(inner);
    BOOST_CHECK_EXCEPTION(sweep(chain, revolve(21, 2)), NumericError, says("link 20: record and advance differ"));
    chain.forget();
    inner.guess = 0.5;
    Vector x = chain.initial();
    chain.advance({0, 21}, x);
    x = chain.initial();
    BOOST_CHECK_EXCEPTION(chain.advance({0, 21}, x), NumericError,
                          says("whatever the chain remembers between calls belongs into the state"));
}

BOOST_AUTO_TEST_CASE(a_record_that_differs_in_the_last_bit) {
    for (const Index at : {0, 11, 20}) {
        TwoFaces inner(21);
        inner.at = at;
        Audited chain(inner);
        BOOST_CHECK_EXCEPTION(sweep(chain, store_all(21)), NumericError,
                              says("link " + std::to_string(at) + ": record and advance differ: value 1"));
        inner.longer = true;
        BOOST_CHECK_EXCEPTION(sweep(chain, store_all(21)), NumericError,
                              says("link " + std::to_string(at) + ": record leaves 3 values, advance 2"));
    }
}

BOOST_AUTO_TEST_CASE(another_start_wants_forget) {
    Oscillator<> inner(9);
    Audited chain(inner);
    Execution run(chain, revolve(9, 2));
    run.forward();
    run.backward();
    BOOST_CHECK_EXCEPTION(run.forward(Vector{0.1, 0.2}), NumericError,
                          says("forget() where the start, parameters or data change"));
    chain.forget();
    run.forward(Vector{0.1, 0.2});
    run.backward();
}
