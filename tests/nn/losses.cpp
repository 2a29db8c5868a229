// Losses against their formulas written out in double: class weights, smoothing, ignored targets, weights of
// positions, steps without a loss; the divisor of a mean.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE losses
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/loss.hpp"
#include "nn/cases.hpp"
#include "nn/cpu/kernels.hpp"

#include <cmath>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Index steps = 5, batch = 3, classes = 6;

/// The loss layer by itself on logits.
template <class Real>
Outcome<Real> loss_alone(Driver driver, const LossSpec& loss, const Problem<double>& problem, Index features,
                         Index chunk) {
    const auto network = build<Real>(driver, ModelSpec{{DenseSpec{"head", features, features, true}}, loss});
    const std::vector<Real> parameters(static_cast<std::size_t>(network.parameters().size()));
    return sweep(network, parameters, cast<Real>(problem), chunk, network.depth() - 1);
}

/// Cross-entropy of one position as the definition has it, and its derivative through the derivative of log softmax.
struct Formula {
    long double loss = 0.0L;
    std::vector<long double> dx;
};
Formula cross_entropy_formula(const LossSpec& s, const double* x, std::int32_t t) {
    Formula f;
    f.dx.assign(static_cast<std::size_t>(classes), 0.0L);
    if (s.ignore_index && t == *s.ignore_index) return f;
    long double sum = 0.0L;
    for (Index c = 0; c < classes; ++c) sum += std::exp(static_cast<long double>(x[c]));
    const auto weight = [&](Index c) {
        return s.class_weights.empty() ? 1.0L : static_cast<long double>(s.class_weights[static_cast<std::size_t>(c)]);
    };
    const long double e = s.label_smoothing;
    for (Index c = 0; c < classes; ++c) {
        const long double lp = static_cast<long double>(x[c]) - std::log(sum);
        const long double q =
            (c == t ? (1.0L - e) * weight(t) : 0.0L) + e / static_cast<long double>(classes) * weight(c);
        f.loss -= q * lp;
        for (Index k = 0; k < classes; ++k)
            f.dx[static_cast<std::size_t>(k)] -=
                q * ((c == k ? 1.0L : 0.0L) - std::exp(static_cast<long double>(x[k])) / sum);
    }
    return f;
}

}  // namespace

BOOST_AUTO_TEST_CASE(cross_entropy_is_its_formula_in_every_combination) {
    for (const Driver driver : drivers)
        for (const bool weights : {false, true})
            for (const double smoothing : {0.0, 0.15})
                for (const std::optional<Index> ignore :
                     {std::optional<Index>{}, std::optional<Index>{2}, std::optional<Index>{-100}})
                    for (const Index loss_from : {Index{0}, Index{2}, steps, steps + 4})
                        for (const bool positions : {false, true}) {
                            const LossSpec loss = cross_entropy(classes, weights, smoothing, ignore);
                            Problem<double> p;
                            p.steps = steps;
                            p.batch = batch;
                            p.x = random_values(steps * batch * classes, 31, 4.0);
                            p.classes = random_tokens(steps * batch, classes, 32);
                            if (ignore && *ignore < 0) p.classes[4] = p.classes[9] = -100;
                            if (positions) p.weights = random_values(steps * batch, 33);
                            p.loss_from = loss_from;
                            p.scale = -0.6;
                            double sum = 0.0;
                            std::vector<double> losses, dx;
                            for (Index i = 0; i < steps * batch; ++i) {
                                const Formula f = cross_entropy_formula(loss, p.x.data() + i * classes,
                                                                        p.classes[static_cast<std::size_t>(i)]);
                                const bool silent = i / batch < loss_from;
                                const long double w = positions ? p.weights[static_cast<std::size_t>(i)] : 1.0;
                                losses.push_back(silent ? 0.0 : static_cast<double>(f.loss));
                                if (!silent) sum += static_cast<double>(w * f.loss);
                                for (const long double d : f.dx)
                                    dx.push_back(
                                        silent ? 0.0 : static_cast<double>(w * d * static_cast<long double>(p.scale)));
                            }
                            BOOST_TEST_CONTEXT(to_string(driver)
                                               << ", weights " << weights << ", smoothing " << smoothing << ", ignore "
                                               << ignore.value_or(-1) << ", from " << loss_from)
                            for (const Index chunk : {steps, Index{2}}) {
                                const auto out = loss_alone<double>(driver, loss, p, classes, chunk);
                                BOOST_TEST(compare(out.losses, losses, {1e-14, 1e-15}));
                                BOOST_TEST(
                                    compare(std::vector<double>{out.loss}, std::vector<double>{sum}, {1e-13, 1e-14}));
                                BOOST_TEST(compare(out.dx, dx, {1e-13, 1e-15}));
                                for (std::size_t k = 0; k < dx.size(); ++k) {
                                    const std::size_t i = k / static_cast<std::size_t>(classes);
                                    const bool none = static_cast<Index>(i) / batch < loss_from ||
                                                      (ignore && p.classes[i] == *ignore);
                                    if (none) BOOST_TEST((out.dx[k] == 0.0 && out.losses[i] == 0.0));
                                }
                            }
                        }
}

BOOST_AUTO_TEST_CASE(squared_error_and_inner_product_are_their_formulas) {
    constexpr Index features = 3;
    for (const Driver driver : drivers) {
        Problem<double> p;
        p.steps = 4;
        p.batch = 2;
        p.x = random_values(24, 41, 3.0);
        p.values = random_values(24, 42, 3.0);
        p.weights = random_values(8, 43);
        p.loss_from = 1;
        p.scale = 2.5;
        for (const auto kind : {LossSpec::Kind::mean_squared_error, LossSpec::Kind::inner_product}) {
            LossSpec loss;
            loss.kind = kind;
            double sum = 0.0;
            std::vector<double> dx(24), losses(8);
            for (std::size_t i = 2; i < 8; ++i) {
                for (std::size_t k = i * features; k < (i + 1) * features; ++k) {
                    const double d = p.x[k] - p.values[k];
                    const bool squares = kind == LossSpec::Kind::mean_squared_error;
                    losses[i] += squares ? d * d : p.x[k] * p.values[k];
                    dx[k] = p.scale * p.weights[i] * (squares ? 2.0 * d : p.values[k]);
                }
                sum += p.weights[i] * losses[i];
            }
            const auto out = loss_alone<double>(driver, loss, p, features, 3);
            BOOST_TEST(compare(out.losses, losses, {1e-15, 0.0}));
            BOOST_TEST(compare(std::vector<double>{out.loss}, std::vector<double>{sum}, {1e-14, 0.0}));
            BOOST_TEST(compare(out.dx, dx, {1e-15, 0.0}));
        }
    }
}

BOOST_AUTO_TEST_CASE(large_logits_do_not_overflow) {
    for (const Driver driver : drivers) {
        Problem<double> p;
        p.x = {800.0, -800.0, 0.0, 799.0, -3e38, 3.0};
        p.classes = {1};
        const auto out = loss_alone<float>(driver, LossSpec{}, p, classes, 1);
        BOOST_TEST(std::abs(out.losses[0] - 1600.3133F) < 2e-4F);
        BOOST_TEST(std::abs(out.dx[0] - 0.7310586F) < 2e-7F);
        BOOST_TEST(out.dx[1] == -1.0F);
        BOOST_TEST(out.dx[4] == 0.0F);
    }
}

BOOST_AUTO_TEST_CASE(a_logit_that_is_not_a_number_is_a_loss_that_is_none) {
    for (const Driver driver : drivers)
        for (Index k = 0; k < classes; ++k) {
            const auto network =
                build<float>(driver, ModelSpec{{DenseSpec{"head", classes, classes, true}}, LossSpec{}});
            const Layer<float>& layer = network.layer(network.depth() - 1);
            std::vector<float> x(static_cast<std::size_t>(classes), 0.5F), tape(x.size());
            x[static_cast<std::size_t>(k)] = std::numeric_limits<float>::quiet_NaN();
            const std::int32_t target = 3;
            double loss = 0.0;
            Segment<float> at;
            at.steps = at.batch = 1;
            at.classes = &target;
            at.loss = &loss;
            layer.record({at, nullptr, x.data(), nullptr, nullptr, nullptr, tape.data(), nullptr});
            BOOST_TEST(std::isnan(loss));
        }
}

BOOST_AUTO_TEST_CASE(divisors_of_means) {
    LossSpec loss = cross_entropy(4, false, 0.0, std::nullopt);
    const std::vector<std::int32_t> targets{0, 3, 1, 1, 2};
    BOOST_TEST(loss_divisor(loss, 4, targets, 0) == 5.0);
    loss.ignore_index = 1;
    BOOST_TEST(loss_divisor(loss, 4, targets, 0) == 3.0);
    loss.class_weights = {0.5, 100.0, 2.0, 4.0};
    BOOST_TEST(loss_divisor(loss, 4, targets, 0) == 6.5);
    BOOST_TEST(loss_divisor(loss, 4, std::vector<std::int32_t>{1, 1}, 0) == 0.0);
    BOOST_CHECK_THROW(loss_divisor(loss, 4, std::vector<std::int32_t>{4}, 0), InvalidArgument);
    BOOST_CHECK_THROW(loss_divisor(loss, 4, std::vector<std::int32_t>{-1}, 0), InvalidArgument);
    loss.reduction = LossSpec::Reduction::sum;
    BOOST_TEST(loss_divisor(loss, 4, targets, 0) == 1.0);
    loss = {};
    loss.kind = LossSpec::Kind::mean_squared_error;
    BOOST_TEST(loss_divisor(loss, 4, {}, 30) == 120.0);
    loss.reduction = LossSpec::Reduction::none;
    BOOST_TEST(loss_divisor(loss, 4, {}, 30) == 1.0);
}
