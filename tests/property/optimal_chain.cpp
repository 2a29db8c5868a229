// Through the Execution the gradient of a nonlinear chain has the bits of a plain loop under optimal_chain at any
// budget, and the chain itself counts what the plan says. Its reverse reads the state; its tapes give the next state
// back.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE property_optimal_chain
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/optimal_chain.hpp"
#include "support/chain_machine.hpp"
#include "support/counting_chain.hpp"
#include "support/every_schedule.hpp"
#include "support/toy_chains.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// An oscillator whose reverse reads x_i and whose tapes hold the state behind their link; it counts what it runs.
class Restartable : public Oscillator<Flavour::needs_state> {
public:
    using Oscillator::Oscillator;

    Index advanced = 0;
    Index recorded = 0;
    Index restarted = 0;

    Index advance(Range r, State& x) {
        advanced += r.size();
        return Oscillator::advance(r, x);
    }
    Index record(Range r, State& x, Tape& tape) {
        ++recorded;
        const Index reached = Oscillator::record(r, x, tape);
        tape.insert(tape.end(), x.begin(), x.end());
        return reached;
    }
    void keep(Range r, State& x, Tape& tape) {
        ++recorded;
        Oscillator::keep(r, x, tape);
    }
    void restart(Tape& tape, State& x) {
        ++restarted;
        x = {tape[8], tape[9]};
    }
};
static_assert(Restarts<Restartable>);

}  // namespace

BOOST_AUTO_TEST_CASE(the_gradient_has_the_same_bits) {
    long restarts = 0;
    long early = 0;
    for (const Index links : {1, 2, 5, 13, 29}) {
        Restartable by_hand(links);
        const std::vector<double> adjoint = adjoint_by_hand(by_hand);

        ChainCosts costs;
        costs.state_bytes.assign(static_cast<std::size_t>(links) + 1, 16);
        for (Index i = 0; i < links; ++i) {
            costs.forward_time.push_back(1.0 + 0.5 * static_cast<double>(i * 7 % 5));
            costs.backward_time.push_back(2.0 + 0.25 * static_cast<double>(i * 3 % 4));
            costs.tape_bytes.push_back(80 + 16 * (i * 5 % 3));
            costs.forward_overhead.push_back(8 * (i % 2));
            costs.backward_overhead.push_back(8 * (i % 3));
            costs.state_bytes[static_cast<std::size_t>(i)] += 16 * (i * 2 % 3);
        }
        const std::int64_t least = least_chain_budget(costs);
        const std::int64_t full = full_chain_budget(costs);
        for (int part = 0; part <= 8; ++part) {
            BOOST_TEST_CONTEXT(links << " links, budget part " << part) {
                ChainOptions options;
                options.chain = costs;
                options.budget = least + (full - least) * part / 8;
                const ChainPlan plan = plan_optimal_chain(options).value();
                const Play play = referee(*optimal_chain(plan), links, {}, chain_machine(costs));

                Restartable chain(links);
                Execution run(chain, optimal_chain(plan));
                for (int sweep = 1; sweep <= 2; ++sweep) {
                    chain.gradient = {};
                    run.forward();
                    run.backward();
                    BOOST_CHECK(same_bits(run.adjoint(), adjoint));
                    BOOST_CHECK(chain.gradient == by_hand.gradient);
                    BOOST_CHECK_EQUAL(chain.advanced, sweep * play.advances);
                    BOOST_CHECK_EQUAL(chain.recorded, sweep * play.recorded);
                    BOOST_CHECK_EQUAL(chain.restarted, sweep * play.restarts);
                }
                BOOST_CHECK_EQUAL(play.recorded, links);
                restarts += play.restarts;
                early += part < 8 ? play.advances : 0;
            }
        }
    }
    BOOST_CHECK(restarts > 0);
    BOOST_CHECK(early > 0);
}
