// Optimizers: parameter groups against whole runs of their parts, continuation in bits, moments in the ledger, and
// every wrong option refused in words. The formulas themselves are judged by the reference files.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE optimizer
#include "support/unit_test.hpp"

#include "backsweep/base/random.hpp"
#include "backsweep/train/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace backsweep;

namespace {

constexpr Index bias_at = 33, bias_size = 5;

ParameterLayout layout() {
    ParameterLayout layout;
    layout.append({.name = "rnn.weight", .rows = 11, .cols = 3});
    layout.append({.name = "rnn.bias", .rows = bias_size});
    layout.append({.name = "head.weight", .rows = 1, .cols = 1});
    return layout;
}

template <class Real>
std::vector<Real> numbers(std::uint64_t step) {
    std::vector<Real> x(static_cast<std::size_t>(layout().size()));
    const Random random(5, 1);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<Real>(random.normal(step, i));
    return x;
}

template <class Real>
void run(Optimizer<Real>& optimizer, std::vector<Real>& p, Index steps) {
    for (Index s = 0; s < steps; ++s) {
        const auto step = static_cast<std::uint64_t>(optimizer.updates());
        optimizer.step(p, numbers<Real>(1 + step), 0.01 / static_cast<double>(1 + step));
    }
}

template <class Real>
std::vector<Real> result(const OptimizerSpec& spec, Index steps) {
    Optimizer<Real> optimizer(spec, layout());
    auto p = numbers<Real>(0);
    run(optimizer, p, steps);
    return p;
}

const std::vector<OptimizerSpec> rules{
    {.rule = SgdSpec{.weight_decay = 0.1}},
    {.rule = SgdSpec{.momentum = 0.9, .dampening = 0.2, .weight_decay = 0.1}},
    {.rule = SgdSpec{.momentum = 0.9, .nesterov = true}},
    {.rule = AdamSpec{.weight_decay = 0.1}},
    {.rule = AdamSpec{.amsgrad = true}},
    {.rule = AdamWSpec{.amsgrad = true, .weight_decay = 0.3}},
};

template <class Real>
void continues_in_bits(const OptimizerSpec& spec) {
    Optimizer<Real> first(spec, layout());
    auto p = numbers<Real>(0);
    run(first, p, 4);

    Optimizer<Real> second(spec, layout());
    auto from = first.moments(), to = second.moments();
    BOOST_TEST_REQUIRE(from.size() == to.size());
    for (std::size_t m = 0; m < from.size(); ++m) {
        BOOST_TEST(from[m].name == to[m].name);
        std::copy(from[m].values.begin(), from[m].values.end(), to[m].values.begin());
    }
    second.set_updates(first.updates());
    run(second, p, 5);
    BOOST_TEST(p == result<Real>(spec, 9));

    second.reset();
    p = numbers<Real>(0);
    run(second, p, 9);
    BOOST_TEST(p == result<Real>(spec, 9));
}

void refused(const OptimizerSpec& spec, const char* word) {
    BOOST_TEST_CONTEXT(word) {
        BOOST_CHECK_EXCEPTION(Optimizer<double>(spec, layout()), InvalidArgument, [&](const InvalidArgument& e) {
            const bool found = std::string(e.what()).find(word) != std::string::npos;
            if (!found) BOOST_TEST_MESSAGE(e.what());
            return found;
        });
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_restored_optimizer_continues_in_bits) {
    for (const OptimizerSpec& spec : rules) {
        BOOST_TEST_CONTEXT(spec.name()) {
            continues_in_bits<double>(spec);
            continues_in_bits<float>(spec);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_group_obeys_its_own_rules_and_no_other_parameter_does) {
    for (const OptimizerSpec& spec : rules) {
        BOOST_TEST_CONTEXT(spec.name()) {
            OptimizerSpec grouped = spec, without = spec;
            grouped.groups = {{.patterns = {"*bias*"}, .weight_decay = 0.0}};
            std::visit([](auto& rule) { rule.weight_decay = 0.0; }, without.rule);
            const auto p = result<double>(grouped, 6), biases = result<double>(without, 6),
                       rest = result<double>(spec, 6);
            for (std::size_t i = 0; i < p.size(); ++i) {
                const bool bias = static_cast<Index>(i) >= bias_at && static_cast<Index>(i) < bias_at + bias_size;
                BOOST_TEST(p[i] == (bias ? biases : rest)[i]);
                if (bias && spec.weight_decay() > 0.0) BOOST_TEST(p[i] != rest[i]);
            }

            grouped.groups = {{.patterns = {"head.*", "rnn.w?ight"}, .rate_factor = 0.0}};
            const auto frozen = result<double>(grouped, 6), start = numbers<double>(0);
            for (std::size_t i = 0; i < p.size(); ++i) {
                const bool bias = static_cast<Index>(i) >= bias_at && static_cast<Index>(i) < bias_at + bias_size;
                BOOST_TEST(frozen[i] == (bias ? rest : start)[i]);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(moments_are_booked) {
    Ledger ledger;
    for (const auto& [spec, moments] : {std::pair{rules[0], 0}, {rules[1], 1}, {rules[3], 2}, {rules[4], 3}}) {
        const Optimizer<float> optimizer(spec, layout(), ledger);
        BOOST_TEST(ledger.live()[Kind::moments] == moments * layout().size() * 4);
        BOOST_TEST(ledger.live_total() == ledger.live()[Kind::moments]);
    }
    BOOST_TEST(ledger.live_total() == 0);
}

BOOST_AUTO_TEST_CASE(wrong_options_are_named) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    refused({.rule = SgdSpec{.momentum = -0.1}}, "sgd: momentum must be >= 0, not -0.1");
    refused({.rule = SgdSpec{.dampening = 0.5}}, "give a momentum");
    refused({.rule = SgdSpec{.nesterov = true}}, "nesterov needs a momentum");
    refused({.rule = SgdSpec{.momentum = 0.9, .dampening = 0.1, .nesterov = true}}, "no dampening");
    refused({.rule = SgdSpec{.weight_decay = nan}}, "weight_decay must be >= 0, not nan");
    refused({.rule = AdamSpec{.beta1 = 1.0}}, "adam: beta1");
    refused({.rule = AdamWSpec{.beta2 = -0.5}}, "adamw: beta2");
    refused({.rule = AdamSpec{.epsilon = -1e-8}}, "epsilon");
    refused({.groups = {{}}}, "needs a pattern");
    refused({.groups = {{.patterns = {"*"}, .weight_decay = -1.0}}}, "group \"*\": weight_decay");
    refused({.groups = {{.patterns = {"*"}, .rate_factor = nan}}}, "group \"*\": rate_factor");
    refused({.groups = {{.patterns = {"*biases"}}}},
            "matches the pattern \"*biases\"; there are: rnn.weight, rnn.bias");
    refused({.groups = {{.patterns = {"*bias"}}, {.patterns = {"rnn*"}}}}, "\"*bias\" and \"rnn*\" both match it");

    Optimizer<double> optimizer({}, layout());
    auto p = numbers<double>(0);
    const auto before = p;
    BOOST_CHECK_THROW(optimizer.step(p, std::vector<double>(3), 0.1), InvalidArgument);
    BOOST_CHECK_THROW(optimizer.step(p, numbers<double>(1), nan), InvalidArgument);
    BOOST_TEST(p == before);
    BOOST_TEST(optimizer.updates() == 0);
}
