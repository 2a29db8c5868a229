// The gradient has the same bits under every schedule, and they are those of a plain loop that stores everything.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_bits
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/chain/gradient_check.hpp"
#include "backsweep/schedule/complete.hpp"
#include "support/every_schedule.hpp"
#include "support/toy_chains.hpp"

#include <array>
#include <cmath>
#include <vector>

using namespace backsweep;
using test::Flavour;
using test::Oscillator;

namespace {

std::vector<double> joined(const std::vector<double>& adjoint, const std::array<double, 5>& parameters) {
    std::vector<double> all = adjoint;
    all.insert(all.end(), parameters.begin(), parameters.end());
    return all;
}

/// Gradients with respect to x_0 and the parameters.
template <Flavour f>
std::vector<double> by_hand(Oscillator<f>& chain) {
    chain.gradient = {};
    const std::vector<double> a = adjoint_by_hand(chain);
    return joined(a, chain.gradient);
}

template <Flavour f>
void same_under_every_schedule() {
    for (const Index n : {1, 2, 3, 7, 37}) {
        Oscillator<f> chain(n);
        const std::vector<double> wanted = by_hand(chain);
        for (const double g : wanted) BOOST_TEST_REQUIRE((std::isfinite(g) && g != 0.0));
        for (auto& [name, schedule] : test::every_schedule(n, Oscillator<f>::needs_state)) {
            BOOST_TEST_CONTEXT(n << " links, " << name) {
                RamStore disk;
                Execution run(chain, std::move(schedule));
                run.use(Tier::disk, disk);
                for (int round = 0; round < 2; ++round) {
                    chain.gradient = {};
                    run.forward();
                    BOOST_TEST(run.resting());
                    run.backward();
                    BOOST_TEST(test::same_bits(joined(run.adjoint(), chain.gradient), wanted));
                    BOOST_CHECK_EQUAL(run.counts().reversed, n);
                }
            }
        }
    }
}

template <Flavour f>
void same_from_surviving_states() {
    constexpr Index n = 37;
    Oscillator<f> chain(n);
    const std::vector<double> wanted = by_hand(chain);
    std::vector<std::vector<double>> states{chain.initial()};
    for (Index i = 0; i < n; ++i) {
        states.push_back(states.back());
        chain.advance({i, i + 1}, states.back());
    }
    std::vector<double> terminal;
    chain.seed(states.back(), terminal);
    const std::vector<std::vector<Index>> survivors{{0},     {0, 36},           {0, 5}, {0, 3, 17, 30}, {0, 1, 2, 3, 4},
                                                    {0, 37}, {0, 9, 18, 27, 36}};
    for (const auto& steps : survivors)
        for (const Index slots : {Index{5}, Index{7}, n})
            for (const bool disk_too : {false, true}) {
                BOOST_TEST_CONTEXT(steps.size() << " states survive, the last of step " << steps.back() << ", " << slots
                                                << " slots, disk " << disk_too) {
                    std::vector<Stored> stored;
                    for (std::size_t k = 0; k < steps.size(); ++k) {
                        const Tier tier = disk_too && k % 2 == 0 ? Tier::disk : Tier::ram;
                        stored.push_back({steps[k], {tier, static_cast<std::int32_t>(steps.size() - 1 - k)}});
                    }
                    RamStore disk;
                    Execution run(chain, complete(stored, slots, n));
                    run.use(Tier::disk, disk);
                    chain.gradient = {};
                    for (const auto& [step, slot] : stored)
                        run.place(slot, step, states[static_cast<std::size_t>(step)]);
                    run.resume();
                    run.backward(terminal);
                    BOOST_TEST(test::same_bits(joined(run.adjoint(), chain.gradient), wanted));
                }
            }
}

}  // namespace

BOOST_AUTO_TEST_CASE(plain_chain) {
    same_under_every_schedule<Flavour::plain>();
}

BOOST_AUTO_TEST_CASE(chain_whose_keep_spoils_the_state) {
    same_under_every_schedule<Flavour::keeps>();
}

BOOST_AUTO_TEST_CASE(chain_whose_reverse_reads_the_state) {
    same_under_every_schedule<Flavour::needs_state>();
}

BOOST_AUTO_TEST_CASE(complete_from_surviving_states) {
    same_from_surviving_states<Flavour::plain>();
    same_from_surviving_states<Flavour::keeps>();
    same_from_surviving_states<Flavour::needs_state>();
}

BOOST_AUTO_TEST_CASE(the_flavours_agree_among_each_other) {
    Oscillator<Flavour::plain> plain(23);
    Oscillator<Flavour::keeps> keeps(23);
    Oscillator<Flavour::needs_state> needs(23);
    BOOST_TEST(test::same_bits(by_hand(plain), by_hand(keeps)));
    BOOST_TEST(test::same_bits(by_hand(plain), by_hand(needs)));
}

BOOST_AUTO_TEST_CASE(states_in_counted_buffers) {
    for (const Index n : {1, 2, 19}) {
        Ledger ledger;
        {
            test::Field chain(n, 33, ledger);
            test::Field::Adjoint wanted = adjoint_by_hand(chain);
            for (auto& [name, schedule] : test::every_schedule(n)) {
                BOOST_TEST_CONTEXT(n << " links, " << name) {
                    RamStore disk(ledger);
                    Execution run(chain, std::move(schedule));
                    run.use(Tier::disk, disk);
                    for (int round = 0; round < 2; ++round) {
                        run.forward();
                        run.backward();
                        BOOST_TEST(detail::same_bits(run.adjoint(), wanted));
                    }
                }
            }
        }
        BOOST_CHECK_EQUAL(ledger.live_total(), 0);
    }
}

// The right bits of a wrong gradient would be equal too.
BOOST_AUTO_TEST_CASE(the_gradient_is_that_of_central_differences) {
    Oscillator<> chain(37);
    const std::vector<double> gradient = by_hand(chain);
    const auto j = [&](std::span<const double> at) {
        std::copy(at.begin() + 2, at.end(), chain.parameters.begin());
        std::vector<double> x(at.begin(), at.begin() + 2);
        chain.advance({0, 37}, x);
        return 0.8 * x[0] + 0.5 * x[0] * x[0] - 1.3 * x[1];
    };
    const std::vector<double> at = joined(chain.initial(), chain.parameters);
    BOOST_TEST(finite_difference_error(j, at, gradient) < 1e-9);
    BOOST_TEST(taylor_slope(j, at, gradient, detail::directions(at.size(), 4)) > 1.95);
    std::vector<double> wrong = gradient;
    wrong[6] *= 1.0 + 1e-6;  // of the driving frequency, the largest
    BOOST_TEST(finite_difference_error(j, at, wrong) > 1e-7);
}
