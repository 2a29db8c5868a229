// Mixed, nonuniform, segmented and chosen binomial schedules: the stream is the same pulled in any way, and through the
// Execution the gradient of a nonlinear chain has the bits of a plain loop; the chain itself counts its links.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE property_mixed
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/mixed.hpp"
#include "backsweep/schedule/nonuniform.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/segments.hpp"
#include "support/every_schedule.hpp"
#include "support/streams.hpp"
#include "support/toy_chains.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// An oscillator whose tapes hold the state behind their link too, and that counts what is run.
template <Flavour f>
class Restarting {
public:
    using Inner = Oscillator<f>;
    using State = typename Inner::State;
    using Adjoint = typename Inner::Adjoint;
    struct Tape {
        std::vector<double> inner;
        State next;
    };
    static constexpr bool needs_state = Inner::needs_state;

    explicit Restarting(Index links) : oscillator(links) {}

    Inner oscillator;
    Index advanced = 0;
    Index recorded = 0;
    Index restarted = 0;

    std::optional<Index> length() const { return oscillator.length(); }
    State initial() const { return oscillator.initial(); }
    Index advance(Range r, State& x) {
        advanced += r.size();
        return oscillator.advance(r, x);
    }
    Index record(Range r, State& x, Tape& tape) {
        ++recorded;
        const Index reached = oscillator.record(r, x, tape.inner);
        tape.next = x;
        return reached;
    }
    void keep(Range r, State& x, Tape& tape) requires(f != Flavour::plain) {
        ++recorded;
        oscillator.keep(r, x, tape.inner);
        tape.next.assign(2, std::numeric_limits<double>::quiet_NaN());
    }
    void restart(Tape& tape, State& x) {
        ++restarted;
        x = tape.next;
    }
    void seed(const State& x, Adjoint& a) { oscillator.seed(x, a); }
    void reverse(Range r, State& x, Tape& tape, Adjoint& a) { oscillator.reverse(r, x, tape.inner, a); }
};

template <class C>
std::vector<double> gradient_of(C& chain, const std::vector<double>& adjoint) {
    std::vector<double> all = adjoint;
    all.insert(all.end(), chain.oscillator.gradient.begin(), chain.oscillator.gradient.end());
    chain.oscillator.gradient = {};
    return all;
}

std::vector<Named> mixed_schedules(Index n, bool restart) {
    std::vector<Named> all;
    for (const Index units : {1, 2, 3, 5, 8, 200}) {
        for (const Index a : {1, 2, 3, 7}) {
            const auto add = [&](const char* name, MixedRule rule) {
                const MixedOptions options{n, units, a, restart, rule};
                if (options.problem().empty())
                    all.push_back(
                        {std::string(name) + " " + std::to_string(units) + "/" + std::to_string(a), mixed(options)});
            };
            add("optimal", MixedRule::optimal);
            add("hidden", MixedRule::hidden);
            add("internal", MixedRule::internal);
            add("mixed", MixedRule::mixed);
            add("maddison", MixedRule::maddison);
        }
    }
    return all;
}

std::vector<Named> state_schedules(Index n, bool needs_state) {
    std::vector<Named> all;
    NonuniformOptions uneven;
    uneven.needs_state = needs_state;
    for (Index i = 0; i < n; ++i) {
        uneven.costs.push_back(static_cast<double>((i * 7) % 5));
        uneven.sizes.push_back(1 + (i * 3) % 4);
    }
    for (const Index slots : {1, 2, 3, 5, 11, 400}) {
        uneven.slots = slots;
        all.push_back({"nonuniform " + std::to_string(slots), nonuniform(uneven)});
        all.push_back(
            {"nonuniform, equal sizes " + std::to_string(slots), nonuniform({uneven.costs, slots, {}, needs_state})});
        RevolveOptions options;
        options.steps = n;
        options.slots = slots;
        options.needs_state = needs_state;
        options.first = FirstState::external;
        all.push_back({"external " + std::to_string(slots), revolve(options)});
        options.rule = AdvanceRule::aligned;
        options.align = 4;
        all.push_back({"aligned " + std::to_string(slots), revolve(options)});
        options.rule = AdvanceRule::fewest_disk;
        options.align = 1;
        options.ram = 1;
        all.push_back({"fewest_disk " + std::to_string(slots), revolve(options)});
        for (const Index levels : {1, 2, 5}) {
            all.push_back({"segments " + std::to_string(slots) + ", levels " + std::to_string(levels),
                           segments({n, slots, 0, levels, needs_state})});
        }
    }
    if (n > 2) all.push_back({"segments at 0, 1, 2", segments_at(n, {0, 1, 2}, needs_state)});
    return all;
}

template <class C>
void same_bits_under(C& chain, const std::vector<double>& wanted, std::vector<Named> schedules) {
    for (auto& [name, schedule] : schedules) {
        BOOST_TEST_CONTEXT(name) {
            RamStore disk;
            Execution<C> run(chain, std::move(schedule));
            run.use(Tier::disk, disk);
            for (int round = 0; round < 2; ++round) {
                run.forward();
                run.backward();
                BOOST_CHECK(same_bits(gradient_of(chain, run.adjoint()), wanted));
            }
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stream_is_the_same_pulled_in_any_way_and_again) {
    std::vector<Named> all;
    for (const Index n : {0, 1, 2, 3, 31, 64}) {
        for (const bool flag : {false, true}) {
            for (Named& each : mixed_schedules(n, flag)) all.push_back(std::move(each));
            if (n == 0) continue;
            for (Named& each : state_schedules(n, flag)) all.push_back(std::move(each));
        }
    }
    for (auto& [name, schedule] : all) {
        BOOST_TEST_CONTEXT(name) {
            const std::vector<Action> stream = by_next(*schedule);
            BOOST_CHECK(schedule->next().verb == Verb::done);
            for (const std::size_t block : {1, 2, 7, 8, 9, 64, 1000}) {
                schedule->rewind();
                BOOST_CHECK(by_fill(*schedule, block) == stream);
                BOOST_CHECK(schedule->next().verb == Verb::done);
            }
            schedule->rewind();
            schedule->next();
            schedule->rewind();
            BOOST_CHECK(by_next(*schedule) == stream);
        }
    }
}

template <Flavour f>
void mixed_gradients() {
    for (const Index n : {1, 2, 3, 7, 37}) {
        BOOST_TEST_CONTEXT(n << " links") {
            Restarting<f> chain(n);
            const std::vector<double> adjoint = adjoint_by_hand(chain);
            const std::vector<double> wanted = gradient_of(chain, adjoint);
            for (const double g : wanted) BOOST_TEST_REQUIRE((std::isfinite(g) && g != 0.0));
            same_bits_under(chain, wanted, mixed_schedules(n, true));
            chain.restarted = 0;
            same_bits_under(chain, wanted, mixed_schedules(n, false));
            BOOST_CHECK_EQUAL(chain.restarted, 0);
            same_bits_under(chain, wanted, state_schedules(n, false));
        }
    }
}

BOOST_AUTO_TEST_CASE(gradients_are_those_of_a_plain_loop) {
    mixed_gradients<Flavour::plain>();
    mixed_gradients<Flavour::keeps>();
}

BOOST_AUTO_TEST_CASE(gradients_of_chains_that_need_their_states) {
    for (const Index n : {1, 2, 3, 7, 37}) {
        BOOST_TEST_CONTEXT(n << " links") {
            Restarting<Flavour::needs_state> chain(n);
            const std::vector<double> adjoint = adjoint_by_hand(chain);
            const std::vector<double> wanted = gradient_of(chain, adjoint);
            same_bits_under(chain, wanted, state_schedules(n, true));
        }
    }
}

BOOST_AUTO_TEST_CASE(the_chain_counts_what_was_predicted) {
    for (const Index n : {1, 2, 19, 61}) {
        for (const Index units : {1, 2, 4, 9, 30}) {
            for (const Index a : {1, 2, 4}) {
                for (const bool restart : {false, true}) {
                    for (const MixedRule rule : {MixedRule::optimal, MixedRule::mixed, MixedRule::internal}) {
                        const MixedOptions options{n, units, a, restart, rule};
                        if (!options.problem().empty()) continue;
                        BOOST_TEST_CONTEXT(n << " links, " << units << "/" << a << ", restart " << restart) {
                            Restarting<Flavour::keeps> chain(n);
                            Execution run(chain, mixed(options));
                            run.forward();
                            run.backward();
                            BOOST_CHECK_EQUAL(chain.advanced + chain.recorded, mixed_forwards(options));
                        }
                    }
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_chain_without_restart_is_refused_by_the_execution) {
    Oscillator<Flavour::plain> chain(9);
    Execution run(chain, mixed({9, 3, 1, true}));
    run.forward();
    BOOST_CHECK_EXCEPTION(run.backward(), ScheduleError, says("offers no restart"));
    run.follow(mixed({9, 3, 1, false}));
    run.forward();
    BOOST_CHECK_NO_THROW(run.backward());
}
