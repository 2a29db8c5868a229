// A chain whose length nobody knows before it ends gives the gradient of store_all by hand, in bits.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE property_online
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/online.hpp"
#include "support/every_schedule.hpp"
#include "support/told.hpp"
#include "support/toy_chains.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// The inner chain without its length: an advance beyond its end stops there. Counts what is run.
template <Chain C>
class Endless {
public:
    using State = typename C::State;
    using Tape = typename C::Tape;
    using Adjoint = typename C::Adjoint;
    static constexpr bool needs_state = backsweep::needs_state<C>;

    Endless(C& inner, Index links) : links(links), inner_(&inner) {}

    Index links;
    Index advances = 0, records = 0, reverses = 0;
    Index reached = 0;
    bool learns = false;  ///< the length is known where the chain has reached its end

    std::optional<Index> length() const { return learns && reached == links ? std::optional(links) : std::nullopt; }
    State initial() const { return inner_->initial(); }
    Index advance(Range r, State& x) {
        const Range within{r.first, std::min(r.last, links)};
        if (within.size() > 0) inner_->advance(within, x);
        advances += within.size();
        reached = within.last;
        return within.last;
    }
    Index record(Range r, State& x, Tape& tape) {
        ++records;
        return inner_->record(r, x, tape);
    }
    void keep(Range r, State& x, Tape& tape) requires Keeps<C> {
        ++records;
        inner_->keep(r, x, tape);
    }
    void seed(const State& x, Adjoint& a) { inner_->seed(x, a); }
    void reverse(Range r, State& x, Tape& tape, Adjoint& a) {
        ++reverses;
        inner_->reverse(r, x, tape, a);
    }

private:
    C* inner_;
};

struct Truth {
    std::vector<double> adjoint;
    std::array<double, 5> gradient;
};

template <Flavour flavour>
Truth by_hand(Index links) {
    Oscillator<flavour> chain(links);
    const std::vector<double> adjoint = adjoint_by_hand(chain);
    return {adjoint, chain.gradient};
}

template <Flavour flavour>
void check(Endless<Oscillator<flavour>>& chain, Oscillator<flavour>& inner,
           Execution<Endless<Oscillator<flavour>>>& run, Index links, bool ahead, const OnlineOptions& options) {
    const Truth truth = by_hand<flavour>(links);
    inner.gradient = {};
    chain.links = links;
    chain.advances = chain.records = chain.reverses = chain.reached = 0;
    run.forward();
    run.backward();
    BOOST_CHECK(same_bits(run.adjoint(), truth.adjoint));
    BOOST_CHECK(same_bits(std::span<const double>(inner.gradient), std::span<const double>(truth.gradient)));
    BOOST_CHECK_EQUAL(chain.reverses, links);
    BOOST_CHECK_EQUAL(chain.records, links);
    BOOST_CHECK_EQUAL(run.counts().advances, chain.advances);
    if (ahead || (chain.learns && links > 0))
        BOOST_CHECK_EQUAL(chain.advances, online_advances(options, links, ahead));
}

template <Flavour flavour>
void over_a_grid() {
    constexpr Index lengths[] = {0, 1, 2, 3, 7, 23, 64, 131};
    for (const OnlinePolicy policy : {OnlinePolicy::greedy, OnlinePolicy::wang_moin}) {
        for (const Index slots : {1, 2, 3, 5, 16}) {
            const OnlineOptions options{slots, policy, flavour == Flavour::needs_state};
            Oscillator<flavour> inner(1000);
            Endless<Oscillator<flavour>> chain(inner, 0);
            // One Execution for all lengths: every sweep begins open-ended again.
            Execution run(chain, online(options));
            for (const Index links : lengths) {
                BOOST_TEST_CONTEXT(links << " links, " << slots << " slots, policy " << static_cast<int>(policy)) {
                    check(chain, inner, run, links, false, options);
                    chain.learns = true;
                    check(chain, inner, run, links, false, options);
                    chain.learns = false;
                    Oscillator<flavour> of_known_length(links);
                    Execution known(of_known_length, online(options));
                    of_known_length.gradient = {};
                    known.forward();
                    known.backward();
                    BOOST_CHECK(same_bits(known.adjoint(), by_hand<flavour>(links).adjoint));
                    BOOST_CHECK_EQUAL(known.counts().advances, online_advances(options, links, true));
                    Execution told(chain,
                                   std::make_unique<Told>(online(options), links, std::max<Index>(links - 1, 0)));
                    check(chain, inner, told, links, true, options);
                    check(chain, inner, told, links, true, options);
                }
            }
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(plain_chains) {
    over_a_grid<Flavour::plain>();
}

BOOST_AUTO_TEST_CASE(chains_that_keep) {
    over_a_grid<Flavour::keeps>();
}

BOOST_AUTO_TEST_CASE(chains_that_need_their_state) {
    over_a_grid<Flavour::needs_state>();
}

BOOST_AUTO_TEST_CASE(fields_in_counted_buffers) {
    constexpr Index links = 97;
    Field by_hand_chain(links, 33);
    const Field::State truth = adjoint_by_hand(by_hand_chain);
    Field inner(links, 33);
    Endless<Field> chain(inner, links);
    for (const Index slots : {1, 4, 9}) {
        Execution run(chain, online({.slots = slots}));
        run.forward();
        run.backward();
        BOOST_CHECK(
            same_bits(std::span<const double>(run.adjoint().u.span()), std::span<const double>(truth.u.span())));
    }
}
