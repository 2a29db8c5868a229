// Chains made of chains and of lambdas.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_adapters
#include "support/unit_test.hpp"

#include "backsweep/chain/callback_chain.hpp"
#include "backsweep/chain/chunked.hpp"
#include "backsweep/chain/execution.hpp"
#include "support/counting_chain.hpp"
#include "support/every_schedule.hpp"
#include "support/toy_chains.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using test::Oscillator;

namespace {

using Vector = std::vector<double>;

auto says(std::string words) {
    return [words](const Error& e) { return std::string(e.what()).find(words) != std::string::npos; };
}

template <class C>
auto gradient(C& chain, std::unique_ptr<Schedule> schedule) {
    RamStore store;
    Execution run(chain, std::move(schedule));
    run.use(Tier::disk, store);
    run.forward();
    run.backward();
    return run.adjoint();
}

/// Knows its end only when it comes.
struct Open : Oscillator<> {
    using Oscillator::Oscillator;
    std::optional<Index> length() const { return std::nullopt; }
};

/// Stops one link early.
struct Short : Oscillator<> {
    using Oscillator::Oscillator;
    Index advance(Range r, State& x) { return Oscillator::advance(r, x) - 1; }
    Index record(Range r, State& x, Tape& t) { return Oscillator::record(r, x, t) - 1; }
};

}  // namespace

// Each link of the inner chain is pure, so that even the chunking changes no bit here.
BOOST_AUTO_TEST_CASE(chunks_change_no_bit_and_need_not_divide_the_length) {
    for (const Index n : {1, 2, 31, 32, 33, 97}) {
        Oscillator<> inner(n);
        const Vector wanted = test::adjoint_by_hand(inner);
        const std::array<double, 5> parameters = std::exchange(inner.gradient, {});
        for (const Index chunk : {1, 3, 32, 1000}) {
            Chunked chain(inner, chunk);
            const Index links = (n + chunk - 1) / chunk;
            BOOST_TEST_REQUIRE((chain.length() == links));
            for (auto& [name, schedule] : test::every_schedule(links)) {
                if (name.find("all, on disk") != std::string::npos ||
                    name.find("periodic 3, on disk") != std::string::npos)
                    continue;  // a chunk's tapes have no bytes of their own
                BOOST_TEST_CONTEXT(n << " links in chunks of " << chunk << ", " << name) {
                    inner.gradient = {};
                    BOOST_TEST(test::same_bits(gradient(chain, std::move(schedule)), wanted));
                    BOOST_TEST((inner.gradient == parameters));
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_chunk_is_advanced_in_one_call_and_recorded_link_by_link) {
    Oscillator<> inner(10);
    test::Counting counting(inner);
    Chunked chain(counting, 4);
    auto x = chain.initial();
    BOOST_CHECK_EQUAL(chain.advance({0, 2}, x), 2);
    BOOST_CHECK_EQUAL(counting.advances, 8);
    decltype(chain)::Tape tape;
    BOOST_CHECK_EQUAL(chain.record({2, 3}, x, tape), 3);
    BOOST_CHECK_EQUAL(counting.records, 2);
    BOOST_CHECK_EQUAL(tape.size(), 2u);
}

BOOST_AUTO_TEST_CASE(chunks_of_an_empty_chain) {
    Oscillator<> inner(0);
    Chunked chain(inner, 3);
    BOOST_TEST((chain.length() == Index{0}));
}

BOOST_AUTO_TEST_CASE(the_longest_possible_chunk_overflows_nothing) {
    constexpr Index most = std::numeric_limits<Index>::max();
    CallbackChain<double> inner(
        most, 1.0, [](Index, double&) {}, [](const double&, double&) {}, [](Index, const double&, double&) {});
    BOOST_TEST((Chunked(inner, most).length() == Index{1}));
    BOOST_TEST((Chunked(inner, most - 1).length() == Index{2}));
    BOOST_TEST((Chunked(inner, 2).length() == most / 2 + 1));
}

BOOST_AUTO_TEST_CASE(chunked_refuses_in_words) {
    Oscillator<> inner(10);
    BOOST_CHECK_EXCEPTION(Chunked(inner, 0), InvalidArgument, says("chunk must be at least 1, came 0"));
    BOOST_CHECK_EXCEPTION(Chunked(inner, -3), InvalidArgument, says("came -3"));
    Open open(10);
    BOOST_CHECK_EXCEPTION(Chunked(open, 2), InvalidArgument, says("knows its length"));
    Short early(10);
    Chunked chain(early, 4);
    Vector x = chain.initial();
    BOOST_CHECK_EXCEPTION(chain.advance({0, 2}, x), InvalidArgument, says("sent to link 8 and says it reached 7"));
    Chunked<Short>::Tape tape;
    BOOST_CHECK_EXCEPTION(chain.record({0, 1}, x, tape), InvalidArgument, says("sent to link 1 and says it reached 0"));
}

// Three lambdas are the logistic map with its adjoint; the derivative of a composition is a product.
BOOST_AUTO_TEST_CASE(three_lambdas_make_a_chain) {
    constexpr Index n = 23;
    const double r = 3.3;
    CallbackChain chain(
        n, 0.37, [r](Index, double& x) { x = r * x * (1.0 - x); }, [](const double& x, double& a) { a = 2.0 * x; },
        [r](Index, const double& x, double& a) { a *= r - 2.0 * r * x; });
    double x = 0.37, product = 1.0;
    std::vector<double> factors;
    for (Index i = 0; i < n; ++i) {
        factors.push_back(r - 2.0 * r * x);
        x = r * x * (1.0 - x);
    }
    product = 2.0 * x;
    for (Index i = n; i-- > 0;) product *= factors[static_cast<std::size_t>(i)];
    for (auto& [name, schedule] : test::every_schedule(n)) {
        BOOST_TEST_CONTEXT(name) {
            BOOST_TEST(test::same_bits(gradient(chain, std::move(schedule)), product));
        }
    }
}

// With parameters, which the lambdas own; state and adjoint are of different types; the step uses its number.
BOOST_AUTO_TEST_CASE(three_lambdas_with_parameters) {
    constexpr Index n = 19;
    struct Adjoint {
        double position = 0.0, speed = 0.0;
    };
    using State = std::array<double, 2>;
    const double stiffness = 1.7, dt = 0.05;
    std::vector<double> force(n), dforce(n);
    for (Index i = 0; i < n; ++i) force[static_cast<std::size_t>(i)] = std::sin(1.0 + 0.3 * static_cast<double>(i));
    double dstiffness = 0.0;
    CallbackChain<State, Adjoint> chain(
        n, State{0.4, -0.7},
        [&](Index i, State& x) {
            const State old = x;
            x[0] += dt * old[1];
            x[1] += dt * (force[static_cast<std::size_t>(i)] - stiffness * old[0] * old[0]);
        },
        [](const State& x, Adjoint& a) {
            a = {x[0], 0.5};
        },
        [&](Index i, const State& x, Adjoint& a) {
            dforce[static_cast<std::size_t>(i)] += dt * a.speed;
            dstiffness += -dt * x[0] * x[0] * a.speed;
            a = {a.position - 2.0 * dt * stiffness * x[0] * a.speed, dt * a.position + a.speed};
        });
    const auto j = [&] {
        State x = chain.initial();
        chain.advance({0, n}, x);
        return 0.5 * x[0] * x[0] + 0.5 * x[1];
    };
    const Adjoint wanted = test::adjoint_by_hand(chain);
    const double wanted_stiffness = dstiffness;
    const std::vector<double> wanted_force = dforce;
    for (std::size_t i = 0; i < n; ++i) {
        const double h = 1e-5, at = force[i];
        force[i] = at + h;
        const double above = j();
        force[i] = at - h;
        const double below = j();
        force[i] = at;
        BOOST_TEST(std::abs((above - below) / (2 * h) - wanted_force[i]) < 1e-10);
    }
    for (auto& [name, schedule] : test::every_schedule(n)) {
        BOOST_TEST_CONTEXT(name) {
            dstiffness = 0.0;
            dforce.assign(n, 0.0);
            const Adjoint a = gradient(chain, std::move(schedule));
            BOOST_TEST(test::same_bits(a.position, wanted.position));
            BOOST_TEST(test::same_bits(a.speed, wanted.speed));
            BOOST_TEST(test::same_bits(dstiffness, wanted_stiffness));
            BOOST_TEST(test::same_bits(dforce, wanted_force));
        }
    }
}

BOOST_AUTO_TEST_CASE(callback_chain_refuses_in_words) {
    const auto step = [](Index, double&) {};
    const auto seed = [](const double&, double&) {};
    const auto reverse = [](Index, const double&, double&) {};
    using Chain = CallbackChain<double>;
    BOOST_CHECK_EXCEPTION(Chain(-1, 1.0, step, seed, reverse), InvalidArgument,
                          says("links must be 0 or more, came -1"));
    BOOST_CHECK_EXCEPTION(Chain(3, 1.0, nullptr, seed, reverse), InvalidArgument, says("three functions"));
    BOOST_CHECK_EXCEPTION(Chain(3, 1.0, step, nullptr, reverse), InvalidArgument, says("three functions"));
    BOOST_CHECK_EXCEPTION(Chain(3, 1.0, step, seed, nullptr), InvalidArgument, says("three functions"));
}
