// Optimizers: parameter groups against whole runs of their parts, continuation in bits, moments in the ledger, and
// every wrong option refused in words. The formulas are judged by the reference files, and here, once more, by loops
// in long double.
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
    {.rule = RmspropSpec{.alpha = 0.8, .weight_decay = 0.1}},
    {.rule = RmspropSpec{.centered = true, .momentum = 0.6}},
    {.rule = AdagradSpec{.rate_decay = 0.1, .initial_accumulator = 0.3, .weight_decay = 0.2}},
    {.rule = LambSpec{.weight_decay = 0.1}},
};

/// The formulas of the header, one parameter after the other, in long double.
using Wide = long double;
struct Plain {
    std::vector<Wide> p, first, second, buffer;

    explicit Plain(const std::vector<double>& start, double sum = 0.0)
        : p(start.begin(), start.end()),
          first(p.size()),
          second(p.size(), sum),
          buffer(p.size()) {}

    void rmsprop(const std::vector<double>& gradients, const RmspropSpec& r, Wide rate) {
        for (std::size_t i = 0; i < p.size(); ++i) {
            const Wide g = gradients[i] + r.weight_decay * p[i], alpha = r.alpha;
            second[i] = alpha * second[i] + (1 - alpha) * g * g;
            first[i] = alpha * first[i] + (1 - alpha) * g;
            const Wide spread = r.centered ? second[i] - first[i] * first[i] : second[i];
            const Wide step = g / (std::sqrt(spread) + r.epsilon);
            buffer[i] = r.momentum * buffer[i] + step;
            p[i] -= rate * (r.momentum > 0 ? buffer[i] : step);
        }
    }
    void adagrad(const std::vector<double>& gradients, const AdagradSpec& r, Wide rate, Index t) {
        for (std::size_t i = 0; i < p.size(); ++i) {
            const Wide g = gradients[i] + r.weight_decay * p[i];
            second[i] += g * g;
            p[i] -= rate / (1 + (t - 1) * static_cast<Wide>(r.rate_decay)) * g / (std::sqrt(second[i]) + r.epsilon);
        }
    }
    void lamb(const std::vector<double>& gradients, const LambSpec& r, Wide rate, Index t) {
        const Wide b1 = r.beta1, b2 = r.beta2;
        const ParameterLayout named = layout();
        for (const ParameterView& view : named.views()) {
            const auto begin = static_cast<std::size_t>(view.offset),
                       end = begin + static_cast<std::size_t>(view.size());
            std::vector<Wide> u(end);
            Wide weights = 0, updates = 0;
            for (std::size_t i = begin; i < end; ++i) {
                first[i] = b1 * first[i] + (1 - b1) * gradients[i];
                second[i] = b2 * second[i] + (1 - b2) * static_cast<Wide>(gradients[i]) * gradients[i];
                const Wide m = first[i] / (1 - std::pow(b1, t)), v = second[i] / (1 - std::pow(b2, t));
                u[i] = m / (std::sqrt(v) + r.epsilon) + r.weight_decay * p[i];
                weights = std::hypot(weights, p[i]);
                updates = std::hypot(updates, u[i]);
            }
            for (std::size_t i = begin; i < end; ++i) p[i] -= rate * weights / updates * u[i];
        }
    }
};

/// Ten updates of the optimizer and of `step`, side by side; the rate falls.
template <class Rule, class Step>
void check_formula(const Rule& rule, Plain plain, const Step& step) {
    Optimizer<double> twice({.rule = rule}, layout());
    Optimizer<float> once({.rule = rule}, layout());
    auto p = numbers<double>(0);
    auto q = numbers<float>(0);
    for (Index t = 1; t <= 10; ++t) {
        const double rate = 0.05 / static_cast<double>(t);
        auto gradients = numbers<float>(static_cast<std::uint64_t>(t));
        gradients[2] = 0.0F;
        const std::vector<double> wide(gradients.begin(), gradients.end());
        twice.step(p, wide, rate);
        once.step(q, gradients, rate);
        step(plain, wide, rate, t);
    }
    Wide worst = 0, worst_once = 0, moved = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        worst = std::max(worst, std::abs(p[i] - plain.p[i]));
        worst_once = std::max(worst_once, std::abs(q[i] - plain.p[i]));
        moved = std::max(moved, std::abs(plain.p[i] - numbers<double>(0)[i]));
    }
    BOOST_TEST(moved > 0.05L);
    BOOST_TEST(worst <= 2e-14L);
    BOOST_TEST(worst_once <= 4e-6L);
}

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

BOOST_AUTO_TEST_CASE(formulas_by_plain_loops) {
    for (const bool centered : {false, true})
        for (const double momentum : {0.0, 0.7})
            for (const double decay : {0.0, 0.1}) {
                const RmspropSpec rule{
                    .alpha = 0.9, .epsilon = 1e-3, .centered = centered, .momentum = momentum, .weight_decay = decay};
                BOOST_TEST_CONTEXT("rmsprop, centered " << centered << ", momentum " << momentum)
                check_formula(rule, Plain(numbers<double>(0)),
                              [&](Plain& plain, const auto& g, double rate, Index) { plain.rmsprop(g, rule, rate); });
            }
    for (const AdagradSpec& rule :
         {AdagradSpec{},
          AdagradSpec{.rate_decay = 0.2, .initial_accumulator = 0.7, .epsilon = 0.1, .weight_decay = 0.3}})
        check_formula(rule, Plain(numbers<double>(0), rule.initial_accumulator),
                      [&](Plain& plain, const auto& g, double rate, Index t) { plain.adagrad(g, rule, rate, t); });
    for (const LambSpec& rule : {LambSpec{}, LambSpec{.beta1 = 0.7, .beta2 = 0.9, .epsilon = 0.1, .weight_decay = 0.3}})
        check_formula(rule, Plain(numbers<double>(0)),
                      [&](Plain& plain, const auto& g, double rate, Index t) { plain.lamb(g, rule, rate, t); });
}

// First step without epsilon: m / sqrt(v) = (1, -1), u = (1, -1) + 0.5 (3, 4) = (2.5, 1), |p| / |u| = 5 / sqrt(7.25);
// b is 0, so that its ratio is 1, and u = -1.
BOOST_AUTO_TEST_CASE(lamb_by_hand) {
    ParameterLayout two;
    two.append({.name = "a", .rows = 2});
    two.append({.name = "b", .rows = 1});
    Optimizer<double> optimizer({.rule = LambSpec{.epsilon = 0.0, .weight_decay = 0.5}}, two);
    std::vector<double> p{3.0, 4.0, 0.0};
    optimizer.step(p, std::vector<double>{0.2, -7.0, -0.01}, 0.1);
    BOOST_TEST(std::abs(p[0] - 2.5357616545573705) < 1e-14);
    BOOST_TEST(std::abs(p[1] - 3.814304661822948) < 1e-14);
    BOOST_TEST(std::abs(p[2] - 0.1) < 1e-15);
    // No gradient, no decay: |u| = 0, and nothing moves.
    Optimizer<double> still({.rule = LambSpec{}}, two);
    const auto before = p;
    still.step(p, std::vector<double>(3), 0.1);
    BOOST_TEST(p == before);
}

BOOST_AUTO_TEST_CASE(a_parameter_of_lamb_has_its_bits_in_any_company) {
    const OptimizerSpec spec{.rule = LambSpec{.weight_decay = 0.1}};
    const auto together = result<float>(spec, 6);
    ParameterLayout alone;
    alone.append({.name = "rnn.bias", .rows = bias_size});
    Optimizer<float> optimizer(spec, alone);
    const auto part = [](const std::vector<float>& x) {
        return std::vector<float>(x.begin() + bias_at, x.begin() + bias_at + bias_size);
    };
    auto p = part(numbers<float>(0));
    for (std::uint64_t s = 0; s < 6; ++s)
        optimizer.step(p, part(numbers<float>(1 + s)), 0.01 / static_cast<double>(1 + s));
    BOOST_TEST(p == part(together));
}

// A variance of rounding below zero: v - a^2 of equal gradients tends to 0 from both sides.
BOOST_AUTO_TEST_CASE(centered_rmsprop_of_equal_gradients_stays_finite) {
    ParameterLayout one;
    one.append({.name = "w", .rows = 1});
    for (const float g : {0.1F, 0.3F, 7.7F, 1e-3F}) {
        Optimizer<float> optimizer({.rule = RmspropSpec{.alpha = 0.5, .epsilon = 1e-3, .centered = true}}, one);
        std::vector<float> p{0.0F};
        for (int s = 0; s < 200; ++s) {
            optimizer.step(p, std::vector<float>{g}, 1e-3);
            BOOST_TEST_REQUIRE(std::isfinite(p[0]));
        }
    }
}

BOOST_AUTO_TEST_CASE(an_update_may_bring_its_momentum) {
    const std::vector<double> momenta{0.9, 0.3, 0.0, 0.7, 0.85};
    const auto with = [&](const OptimizerSpec& spec) {
        Optimizer<double> optimizer(spec, layout());
        auto p = numbers<double>(0);
        for (std::size_t s = 0; s < momenta.size(); ++s) optimizer.step(p, numbers<double>(1 + s), 0.01, momenta[s]);
        return p;
    };
    const auto sgd = with({.rule = SgdSpec{.momentum = 0.5}}), adam = with({.rule = AdamSpec{}}),
               rmsprop = with({.rule = RmspropSpec{.momentum = 0.5}});
    for (std::size_t i = 0; i < sgd.size(); ++i) {
        double p = numbers<double>(0)[i], q = p, r = p, m = 0.0, first = 0.0, second = 0.0, mean = 0.0, buffer = 0.0;
        for (std::size_t s = 0; s < momenta.size(); ++s) {
            const double g = numbers<double>(1 + s)[i], mu = momenta[s], t = static_cast<double>(1 + s);
            m = s == 0 ? g : mu * m + g;
            p -= 0.01 * m;
            first = mu * first + (1.0 - mu) * g;
            second = 0.999 * second + 0.001 * g * g;
            q -= 0.01 * first / (1.0 - std::pow(mu, t)) / (std::sqrt(second / (1.0 - std::pow(0.999, t))) + 1e-8);
            mean = 0.99 * mean + 0.01 * g * g;
            buffer = mu * buffer + g / (std::sqrt(mean) + 1e-8);
            r -= 0.01 * buffer;
        }
        BOOST_TEST(std::abs(sgd[i] - p) < 1e-14);
        BOOST_TEST(std::abs(adam[i] - q) < 1e-13);
        BOOST_TEST(std::abs(rmsprop[i] - r) < 1e-13);
    }

    const auto refuse = [](const OptimizerSpec& spec, double momentum, const char* words) {
        Optimizer<double> optimizer(spec, layout());
        auto p = numbers<double>(0);
        BOOST_CHECK_EXCEPTION(
            optimizer.step(p, numbers<double>(1), 0.1, momentum), InvalidArgument,
            [&](const InvalidArgument& e) { return std::string(e.what()).find(words) != std::string::npos; });
        BOOST_TEST(p == numbers<double>(0));
        BOOST_TEST(optimizer.updates() == 0);
    };
    BOOST_TEST(!OptimizerSpec{.rule = AdagradSpec{}}.has_momentum());
    BOOST_TEST(!OptimizerSpec{.rule = SgdSpec{}}.has_momentum());
    BOOST_TEST(!OptimizerSpec{.rule = RmspropSpec{}}.has_momentum());
    BOOST_TEST(OptimizerSpec{.rule = LambSpec{}}.has_momentum());
    refuse({.rule = AdagradSpec{}}, 0.9, "given the momentum 0.9, but adagrad has none");
    refuse({.rule = SgdSpec{}}, 0.9, "sgd has none");
    refuse({.rule = AdamSpec{}}, 1.0, "must lie in [0, 1), not at 1");
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
    for (const auto& [spec, moments] : {std::pair{rules[0], 0},
                                        {rules[1], 1},
                                        {rules[3], 2},
                                        {rules[4], 3},
                                        {rules[6], 1},
                                        {rules[7], 3},
                                        {rules[8], 1},
                                        {rules[9], 2}}) {
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
    refused({.rule = RmspropSpec{.alpha = 1.0}}, "rmsprop: alpha must lie in [0, 1), not at 1");
    refused({.rule = RmspropSpec{.epsilon = nan}}, "rmsprop: epsilon must be >= 0, not nan");
    refused({.rule = RmspropSpec{.momentum = -0.5}}, "rmsprop: momentum must be >= 0, not -0.5");
    refused({.rule = RmspropSpec{.weight_decay = -1.0}}, "rmsprop: weight_decay");
    refused({.rule = AdagradSpec{.rate_decay = -0.1}}, "adagrad: rate_decay must be >= 0, not -0.1");
    refused({.rule = AdagradSpec{.initial_accumulator = -2.0}}, "adagrad: initial_accumulator must be >= 0, not -2");
    refused({.rule = AdagradSpec{.epsilon = -1.0}}, "adagrad: epsilon must be >= 0, not -1");
    refused({.rule = LambSpec{.beta1 = 1.0}}, "lamb: beta1 must lie in [0, 1), not at 1");
    refused({.rule = LambSpec{.beta2 = nan}}, "lamb: beta2");
    refused({.rule = LambSpec{.epsilon = -1.0}}, "lamb: epsilon");
    refused({.rule = LambSpec{.weight_decay = nan}}, "lamb: weight_decay must be >= 0, not nan");
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
