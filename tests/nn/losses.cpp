// Losses against their formulas written out in double: every kind and option, positions without a loss, conventions at
// kinks, extremes, rounding in float; last steps; the divisor of a mean.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE losses
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/loss.hpp"
#include "nn/cases.hpp"
#include "nn/cpu/kernels.hpp"

#include <cmath>
#include <numbers>

using namespace backsweep;
using namespace backsweep::test;

namespace {

using Kind = LossSpec::Kind;
constexpr Index steps = 5, batch = 3, classes = 6;
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

LossSpec of_kind(Kind kind) {
    LossSpec loss;
    loss.kind = kind;
    return loss;
}

/// The loss layer by itself on logits.
template <class Real>
Outcome<Real> loss_alone(Driver driver, const LossSpec& loss, const Problem<double>& problem, Index features,
                         Index chunk, Checks checks = Checks::laws) {
    const auto network = build<Real>(driver, ModelSpec{{DenseSpec{"head", features, features, true}}, loss});
    const std::vector<Real> parameters(static_cast<std::size_t>(network.parameters().size()));
    return sweep(network, parameters, cast<Real>(problem), chunk, network.depth() - 1, checks);
}

/// One position's loss as the definition has it, and its derivative.
struct Formula {
    long double loss = 0.0L;
    std::vector<long double> dx;
};

/// Through the derivative of log softmax.
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

/// Of the losses with value targets.
Formula value_formula(const LossSpec& s, const double* x, const double* target, Index features) {
    Formula f;
    f.dx.assign(static_cast<std::size_t>(features), 0.0L);
    const Index n = s.kind == Kind::gaussian_nll ? (s.shared_variance ? features - 1 : features / 2) : features;
    for (Index k = 0; k < n; ++k) {
        const long double t = target[k], d = x[k] - t, size = std::fabs(d), way = d > 0 ? 1 : d < 0 ? -1 : 0;
        long double& dx = f.dx[static_cast<std::size_t>(k)];
        switch (s.kind) {
            case Kind::cross_entropy:
                break;
            case Kind::mean_squared_error:
                f.loss += d * d, dx = 2 * d;
                break;
            case Kind::inner_product:
                f.loss += t * x[k], dx = t;
                break;
            case Kind::l1:
                f.loss += size, dx = way;
                break;
            case Kind::huber:
                f.loss += size <= s.delta ? d * d / 2 : s.delta * (size - s.delta / 2.0L);
                dx = size <= s.delta ? d : s.delta * way;
                break;
            case Kind::smooth_l1:
                f.loss += size < s.beta ? d * d / 2 / s.beta : size - s.beta / 2.0L;
                dx = size < s.beta ? d / s.beta : way;
                break;
            case Kind::binary_cross_entropy: {
                const long double w = s.pos_weight.empty() ? 1.0L : s.pos_weight[static_cast<std::size_t>(k)], e = x[k];
                const long double yes = std::log1p(std::exp(-e)), no = std::log1p(std::exp(e));
                f.loss += w * t * yes + (1 - t) * no;
                dx = (1 - t) / (1 + std::exp(-e)) - w * t / (1 + std::exp(e));
                break;
            }
            case Kind::gaussian_nll: {
                const std::size_t place = static_cast<std::size_t>(s.shared_variance ? n : n + k);
                const long double v = std::max(x[place], s.epsilon);
                f.loss += (std::log(v) + d * d / v) / 2 + (s.full ? std::log(2 * std::numbers::pi_v<long double>) / 2 : 0);
                dx = d / v;
                f.dx[place] += (v - d * d) / (2 * v * v);
                break;
            }
        }
    }
    return f;
}

/// What the whole problem must give: losses of positions, their weighted sum, the gradient. `silent(p)`: no loss there.
template <class Silent>
Outcome<double> expected(const LossSpec& loss, const Problem<double>& p, Index features, Silent silent) {
    Outcome<double> out;
    for (Index i = 0; i < p.steps * p.batch; ++i) {
        Formula f;
        if (silent(i))
            f.dx.assign(static_cast<std::size_t>(features), 0.0L);
        else if (loss.kind == Kind::cross_entropy)
            f = cross_entropy_formula(loss, p.x.data() + i * features, p.classes[static_cast<std::size_t>(i)]);
        else
            f = value_formula(loss, p.x.data() + i * features, p.values.data() + i * loss.targets(features), features);
        const double weight = silent(i) || p.weights.empty() ? 1.0 : p.weights[static_cast<std::size_t>(i)];
        out.losses.push_back(static_cast<double>(f.loss));
        out.loss += static_cast<double>(weight * f.loss);
        for (const long double d : f.dx) out.dx.push_back(static_cast<double>(weight * p.scale * d));
    }
    return out;
}

struct Losses {
    std::string name;
    LossSpec loss;
    Index features;
};

/// Every kind with value targets, each option also away from its default.
std::vector<Losses> value_losses() {
    std::vector<Losses> all;
    const auto add = [&](const char* name, Kind kind, Index features, auto change) {
        LossSpec loss = of_kind(kind);
        change(loss);
        all.push_back({name, loss, features});
    };
    const auto nothing = [](LossSpec&) {};
    add("squares", Kind::mean_squared_error, 3, nothing);
    add("product", Kind::inner_product, 3, nothing);
    add("l1", Kind::l1, 3, nothing);
    add("huber", Kind::huber, 3, nothing);
    add("huber 0.3", Kind::huber, 1, [](LossSpec& s) { s.delta = 0.3; });
    add("smooth l1", Kind::smooth_l1, 3, nothing);
    add("smooth l1 2.5", Kind::smooth_l1, 7, [](LossSpec& s) { s.beta = 2.5; });
    add("smooth l1 0", Kind::smooth_l1, 2, [](LossSpec& s) { s.beta = 0.0; });
    add("bce", Kind::binary_cross_entropy, 3, nothing);
    add("bce weighted", Kind::binary_cross_entropy, 3, [](LossSpec& s) { s.pos_weight = {0.5, 3.0, 0.0}; });
    add("gaussian", Kind::gaussian_nll, 6, nothing);
    add("gaussian full", Kind::gaussian_nll, 2, [](LossSpec& s) { s.full = true, s.epsilon = 0.4; });
    add("gaussian shared", Kind::gaussian_nll, 4, [](LossSpec& s) { s.shared_variance = true, s.epsilon = 0.4; });
    return all;
}

/// Data in no way tame; variances positive, most of them.
Problem<double> values_for(const Losses& l, Index T = steps, Index B = batch) {
    Problem<double> p;
    p.steps = T;
    p.batch = B;
    p.x = random_values(T * B * l.features, 41, 3.0);
    p.values = random_values(T * B * l.loss.targets(l.features), 42, 3.0);
    if (l.loss.kind == Kind::binary_cross_entropy)
        for (double& t : p.values) t = t > 1.0 ? 1.0 : t < -1.0 ? 0.0 : 0.5 * (t + 1.0);  // hard and soft ones
    if (l.loss.kind == Kind::gaussian_nll)
        for (std::size_t k = 0; k < p.x.size(); ++k)
            if (static_cast<Index>(k) % l.features >= l.loss.targets(l.features)) p.x[k] = std::abs(p.x[k]) + 0.05;
    p.weights = random_values(T * B, 43);
    p.scale = -0.6;
    return p;
}

void check_outcome(const Outcome<double>& out, const Outcome<double>& wanted) {
    BOOST_TEST(compare(out.losses, wanted.losses, {1e-14, 1e-15}));
    BOOST_TEST(compare(std::vector<double>{out.loss}, std::vector<double>{wanted.loss}, {1e-13, 1e-14}));
    BOOST_TEST(compare(out.dx, wanted.dx, {1e-13, 1e-15}));
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
                            const auto silent = [&](Index i) {
                                return i / batch < loss_from ||
                                       (ignore && p.classes[static_cast<std::size_t>(i)] == *ignore);
                            };
                            const auto wanted = expected(loss, p, classes, silent);
                            BOOST_TEST_CONTEXT(to_string(driver)
                                               << ", weights " << weights << ", smoothing " << smoothing << ", ignore "
                                               << ignore.value_or(-1) << ", from " << loss_from)
                            for (const Index chunk : {steps, Index{2}}) {
                                const auto out = loss_alone<double>(driver, loss, p, classes, chunk);
                                check_outcome(out, wanted);
                                for (std::size_t k = 0; k < out.dx.size(); ++k) {
                                    const std::size_t i = k / static_cast<std::size_t>(classes);
                                    if (silent(static_cast<Index>(i)))
                                        BOOST_TEST((out.dx[k] == 0.0 && out.losses[i] == 0.0));
                                }
                            }
                        }
}

BOOST_AUTO_TEST_CASE(losses_of_values_are_their_formulas) {
    for (const Losses& l : value_losses())
        for (const auto& [T, B] : {std::pair<Index, Index>{1, 1}, {1, 3}, {steps, batch}})
            for (const bool positions : {false, true})
                for (const Index loss_from : {Index{0}, Index{2}})
                    for (const Driver driver : drivers) {
                        Problem<double> p = values_for(l, T, B);
                        p.loss_from = loss_from;
                        if (!positions) p.weights.clear();
                        const auto wanted =
                            expected(l.loss, p, l.features, [&, b = B](Index i) { return i / b < loss_from; });
                        BOOST_TEST_CONTEXT(to_string(driver) << ", " << l.name << ", " << T << " steps from " << loss_from)
                        for (const Index chunk : {T, Index{2}})
                            check_outcome(loss_alone<double>(driver, l.loss, p, l.features, chunk), wanted);
                    }
}

BOOST_AUTO_TEST_CASE(losses_of_values_agree_with_finite_differences) {
    for (const Losses& l : value_losses())
        for (const Driver driver : drivers) BOOST_TEST_CONTEXT(to_string(driver) << ", " << l.name) {
                Problem<double> p = values_for(l, 3, 2);
                if (l.loss.kind == Kind::gaussian_nll)  // at the clamp the derivative is not that of the value
                    for (double& x : p.x) x = x > 0.0 ? x + 0.5 : x;
                const auto out = loss_alone<double>(driver, l.loss, p, l.features, 2);
                const auto d = central_differences(p.x, [&] {
                    return p.scale * loss_alone<double>(driver, l.loss, p, l.features, 2, Checks::none).loss;
                });
                BOOST_TEST(compare(out.dx, d, {1e-8, 1e-9}));
            }
}

BOOST_AUTO_TEST_CASE(conventions_at_kinks) {
    // d = x - target; what the derivative is where there are two.
    const auto derivative = [](const LossSpec& loss, Driver driver, double d) {
        Problem<double> p;
        p.x = {d};
        p.values = {0.0};
        return loss_alone<double>(driver, loss, p, 1, 1).dx[0];
    };
    LossSpec huber = of_kind(Kind::huber), smooth = of_kind(Kind::smooth_l1), sharp = smooth;
    huber.delta = smooth.beta = 0.25;
    sharp.beta = 0.0;
    const double above = std::nextafter(0.25, 1.0), below = std::nextafter(0.25, 0.0);
    for (const Driver driver : drivers) {
        BOOST_TEST(derivative(of_kind(Kind::l1), driver, 0.0) == 0.0);
        BOOST_TEST(derivative(of_kind(Kind::l1), driver, -0.0) == 0.0);
        BOOST_TEST(derivative(of_kind(Kind::l1), driver, -1e-300) == -1.0);
        BOOST_TEST(derivative(huber, driver, 0.25) == 0.25);
        BOOST_TEST(derivative(huber, driver, -above) == -0.25);
        BOOST_TEST(derivative(huber, driver, below) == below);
        BOOST_TEST(derivative(smooth, driver, 0.25) == 1.0);
        BOOST_TEST(derivative(smooth, driver, -below) == -below / 0.25);
        BOOST_TEST(derivative(sharp, driver, 0.0) == 0.0);
        BOOST_TEST(derivative(sharp, driver, -2.0) == -1.0);
        // The variance below epsilon: the value at epsilon, and the derivative there as well.
        Problem<double> p;
        p.x = {3.0, -7.0};
        p.values = {1.0};
        LossSpec gaussian = of_kind(Kind::gaussian_nll);
        gaussian.epsilon = 0.5;
        const auto out = loss_alone<double>(driver, gaussian, p, 2, 1);
        BOOST_TEST(std::abs(out.loss - (std::log(0.5) + 8.0) / 2.0) < 1e-15);
        BOOST_TEST(out.dx[0] == 4.0);
        BOOST_TEST(out.dx[1] == -7.0);
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

        p = {};
        p.x = {800.0, -800.0, 800.0, -800.0, 3e38, -0.0};
        p.values = {1.0, 0.0, 0.0, 1.0, 0.25, 0.5};
        const auto one = [&]<class Real>(Real) {
            const auto binary = loss_alone<Real>(driver, of_kind(Kind::binary_cross_entropy), p, classes, 1);
            const std::vector<Real> dx{0, 0, 1, -1, 0.75, 0};
            BOOST_TEST(compare(binary.dx, dx, {}));
            BOOST_TEST(std::abs(binary.loss / (0.75 * static_cast<double>(3e38F)) - 1.0) < 1e-6);
        };
        one(1.0F);
        one(1.0);
        p.x = {20.0};  // a small loss keeps its digits
        p.values = {1.0};
        const auto sure = loss_alone<float>(driver, of_kind(Kind::binary_cross_entropy), p, 1, 1);
        BOOST_TEST(std::abs(sure.loss / std::log1p(std::exp(-20.0)) - 1.0) < 1e-6);
        BOOST_TEST(std::abs(sure.dx[0] / std::exp(-20.0F) + 1.0F) < 1e-6F);
    }
}

BOOST_AUTO_TEST_CASE(tiny_variances_stay_finite) {
    LossSpec loss = of_kind(Kind::gaussian_nll);
    for (const Driver driver : drivers) {
        Problem<double> p;
        p.x = {1.0, -20.0, 1e-30, 0.0};
        p.values = {1.0, 30.0};
        const auto out = loss_alone<float>(driver, loss, p, 4, 1);
        const double v = 1e-6F, wanted = std::log(v) + 2500.0 / v / 2.0;
        BOOST_TEST(std::abs(out.loss - wanted) < 1e-6 * wanted);
        const std::vector<double> dx{0.0, -50.0 / v, 0.5 / v, 0.5 / v - 1250.0 / v / v};
        for (std::size_t k = 0; k < 4; ++k) BOOST_TEST(std::abs(out.dx[k] - dx[k]) <= 1e-6 * std::abs(dx[k]));
    }
}

BOOST_AUTO_TEST_CASE(an_output_that_is_not_a_number_is_a_loss_that_is_none) {
    std::vector<Losses> all = value_losses();
    all.push_back({"cross_entropy", {}, classes});
    for (const Losses& l : all)
        for (const Driver driver : drivers)
            for (Index k = 0; k < l.features; ++k) BOOST_TEST_CONTEXT(to_string(driver) << ", " << l.name << ", output " << k) {
                    Problem<double> p = values_for(l, 1, 1);
                    p.classes = {3};
                    p.values.resize(static_cast<std::size_t>(l.features), 0.5);
                    p.x[static_cast<std::size_t>(k)] = no_number;
                    BOOST_TEST(std::isnan(loss_alone<float>(driver, l.loss, p, l.features, 1, Checks::none).loss));
                }
}

BOOST_AUTO_TEST_CASE(a_position_without_a_loss_is_not_read) {
    std::vector<Losses> all = value_losses();
    all.push_back({"cross_entropy", cross_entropy(classes, true, 0.1, 2), classes});
    constexpr Index T = 7, B = 3;
    for (const Losses& l : all)
        for (const Driver driver : drivers) BOOST_TEST_CONTEXT(to_string(driver) << ", " << l.name) {
                Problem<double> p = values_for(l, T, B);
                if (l.loss.kind == Kind::cross_entropy) p.classes = random_tokens(T * B, classes, 32);
                p.loss_from = 1;
                p.marks.assign(T * B, Mark::step);
                for (const std::size_t i : {11, 14, 17, 18, 20}) p.marks[i] = Mark::filler;
                for (const std::size_t i : {4, 8, 11}) p.weights[i] = 0.0;
                const auto silent = [&](Index i) {
                    const auto at = static_cast<std::size_t>(i);
                    return i / B < 1 || p.marks[at] == Mark::filler || p.weights[at] == 0.0;
                };
                const auto ignored = [&](Index i) {
                    return silent(i) || (l.loss.kind == Kind::cross_entropy && p.classes[static_cast<std::size_t>(i)] == 2);
                };
                const auto wanted = expected(l.loss, p, l.features, ignored);
                Outcome<double> first;
                for (const double garbage : {0.0, 1e30, no_number}) {
                    for (Index i = 0; i < T * B; ++i) {
                        if (!silent(i)) continue;
                        for (Index k = 0; k < l.features; ++k) p.x[static_cast<std::size_t>(i * l.features + k)] = garbage;
                        for (Index k = 0, n = l.loss.targets(l.features); k < n; ++k)
                            p.values[static_cast<std::size_t>(i * n + k)] = garbage;
                        if (!p.classes.empty()) p.classes[static_cast<std::size_t>(i)] = garbage == 0.0 ? -1 : 1 << 30;
                        if (i / B < 1 || p.marks[static_cast<std::size_t>(i)] == Mark::filler)
                            p.weights[static_cast<std::size_t>(i)] = garbage;
                    }
                    for (const Index chunk : {T, Index{2}}) {
                        const auto out = loss_alone<double>(driver, l.loss, p, l.features, chunk);
                        check_outcome(out, wanted);
                        for (Index i = 0; i < T * B; ++i)
                            for (Index k = 0; ignored(i) && k < l.features; ++k)
                                BOOST_TEST(out.dx[static_cast<std::size_t>(i * l.features + k)] == 0.0);
                        if (first.dx.empty()) first = out;
                        BOOST_TEST(same_bits(out.dx, first.dx));
                        BOOST_TEST(same_bits(out.losses, first.losses));
                    }
                }
            }
}

BOOST_AUTO_TEST_CASE(without_a_single_loss_nothing_is_wanted) {
    std::vector<Losses> all = value_losses();
    all.push_back({"cross_entropy", {}, classes});
    for (const Losses& l : all)
        for (const Driver driver : drivers) {
            Problem<double> p;  // without targets
            p.steps = p.batch = 2;
            p.x = random_values(4 * l.features, 51);
            p.marks.assign(4, Mark::filler);
            const auto out = loss_alone<float>(driver, l.loss, p, l.features, 1);
            BOOST_TEST(out.loss == 0.0);
            for (const float d : out.dx) BOOST_TEST(d == 0.0F);
            p.marks.clear();
            BOOST_CHECK_THROW(loss_alone<float>(driver, l.loss, p, l.features, 1), InvalidArgument);
        }
}

BOOST_AUTO_TEST_CASE(rounding_in_float_is_that_of_plain_code) {
    std::vector<Losses> all = value_losses();
    all.push_back({"cross_entropy", cross_entropy(33, true, 0.1, 2), 33});
    all.push_back({"plain cross_entropy", {}, 33});
    for (const Losses& l : all) {
        Problem<double> p = values_for(l, 300, 4);
        p.classes = random_tokens(1200, l.features, 32);
        p.weights.clear();
        p.scale = 1.0;
        const Problem<double> rounded = cast<double>(cast<float>(p));
        const auto exact = loss_alone<double>(Driver::reference, l.loss, rounded, l.features, 300);
        const auto worst = [&](Driver driver) {
            const auto out = loss_alone<float>(driver, l.loss, rounded, l.features, 300);
            return std::array{compare(out.losses, exact.losses, {}).worst, compare(out.dx, exact.dx, {}).worst};
        };
        const auto plain = worst(Driver::reference), fast = worst(Driver::cpu);
        BOOST_TEST_CONTEXT(l.name << ": losses " << fast[0] << " (plain " << plain[0] << "), gradients " << fast[1]
                                  << " (plain " << plain[1] << ")")
        for (std::size_t k = 0; k < 2; ++k) BOOST_TEST(fast[k] <= 3.0 * plain[k]);
    }
}

BOOST_AUTO_TEST_CASE(divisors_of_means) {
    LossSpec loss = cross_entropy(4, false, 0.0, std::nullopt);
    std::vector<std::int32_t> targets{0, 3, 1, 1, 2};
    const auto divisor = [&](Index outputs) {
        Segment<double> all;
        all.steps = static_cast<Index>(targets.size());
        all.batch = 1;
        all.classes = targets.data();
        return loss_divisor(loss, outputs, all);
    };
    BOOST_TEST(divisor(4) == 5.0);
    loss.ignore_index = 1;
    BOOST_TEST(divisor(4) == 3.0);
    loss.class_weights = {0.5, 100.0, 2.0, 4.0};
    BOOST_TEST(divisor(4) == 6.5);
    loss.reduction = LossSpec::Reduction::sum;
    BOOST_TEST(divisor(4) == 1.0);
    loss.reduction = LossSpec::Reduction::mean;
    targets = {1, 1};
    BOOST_TEST(divisor(4) == 0.0);
    for (const std::int32_t bad : {4, -1}) {
        targets = {bad};
        BOOST_CHECK_THROW(divisor(4), InvalidArgument);
    }
}

BOOST_AUTO_TEST_CASE(divisors_count_positions_with_a_loss_by_their_weight) {
    // Sequences of 3 and 5 steps; the first step is looked back at; one weight is 0.
    using enum Mark;
    const std::vector<Mark> marks{first, first, step, step, step, step, filler, step, filler, step};
    const std::vector<double> weights{9.0, 9.0, 0.5, 0.0, 2.0, 0.25, no_number, 4.0, no_number, 8.0};
    const std::vector<std::int32_t> targets{-7, -7, 0, 99, 1, 2, 99, 0, 99, 1};
    Segment<double> all;
    all.steps = 5;
    all.batch = 2;
    all.marks = marks.data();
    all.loss_from = 1;
    all.classes = targets.data();
    LossSpec loss;
    BOOST_CHECK_THROW(loss_divisor(loss, 3, all), InvalidArgument);  // the class 99 of weight 1
    LossSpec squares = of_kind(Kind::mean_squared_error), gaussian = of_kind(Kind::gaussian_nll);
    BOOST_TEST(loss_divisor(squares, 4, all) == 24.0);
    BOOST_TEST(loss_divisor(gaussian, 4, all) == 12.0);
    gaussian.shared_variance = true;
    BOOST_TEST(loss_divisor(gaussian, 4, all) == 18.0);
    all.weights = weights.data();
    BOOST_TEST(loss_divisor(loss, 3, all) == 14.75);
    BOOST_TEST(loss_divisor(squares, 4, all) == 59.0);
    loss.ignore_index = 2;
    loss.class_weights = {3.0, 1.0, 5.0};
    BOOST_TEST(loss_divisor(loss, 3, all) == 23.5);
    loss.at = squares.at = LossSpec::At::last;
    BOOST_TEST(loss_divisor(loss, 3, all) == 10.0);
    BOOST_TEST(loss_divisor(squares, 4, all) == 40.0);
}

BOOST_AUTO_TEST_CASE(options_that_a_kind_does_not_read_are_refused_by_name) {
    const auto problem = [](const LossSpec& loss, Index outputs = 4) {
        return ModelSpec{{DenseSpec{"head", 2, outputs, true}}, loss}.problem();
    };
    const auto kinds = {Kind::cross_entropy, Kind::mean_squared_error,   Kind::inner_product, Kind::l1, Kind::huber,
                        Kind::smooth_l1,     Kind::binary_cross_entropy, Kind::gaussian_nll};
    struct Option {
        std::string name;
        Kind kind;
        void (*set)(LossSpec&);
    };
    const std::vector<Option> options{
        {"class_weights", Kind::cross_entropy, [](LossSpec& s) { s.class_weights = {1, 2, 3, 4}; }},
        {"label_smoothing", Kind::cross_entropy, [](LossSpec& s) { s.label_smoothing = 0.1; }},
        {"ignore_index", Kind::cross_entropy, [](LossSpec& s) { s.ignore_index = 0; }},
        {"save", Kind::cross_entropy, [](LossSpec& s) { s.save.clear(); }},
        {"delta", Kind::huber, [](LossSpec& s) { s.delta = 0.1; }},
        {"beta", Kind::smooth_l1, [](LossSpec& s) { s.beta = 0.1; }},
        {"pos_weight", Kind::binary_cross_entropy, [](LossSpec& s) { s.pos_weight = {1, 2, 3, 4}; }},
        {"epsilon", Kind::gaussian_nll, [](LossSpec& s) { s.epsilon = 0.1; }},
        {"full", Kind::gaussian_nll, [](LossSpec& s) { s.full = true; }},
        {"shared_variance", Kind::gaussian_nll, [](LossSpec& s) { s.shared_variance = true; }}};
    for (const Kind kind : kinds) {
        BOOST_TEST(problem(of_kind(kind)) == "");
        for (const Option& o : options) {
            LossSpec loss = of_kind(kind);
            o.set(loss);
            const std::string said = problem(loss);
            BOOST_TEST((kind == o.kind ? said.empty() : said.starts_with("loss: " + o.name + " belong")), o.name << ": " << said);
        }
    }
    LossSpec loss = of_kind(Kind::huber);
    loss.delta = 0.0;
    BOOST_TEST(problem(loss) == "loss: delta must be finite and > 0, but is 0.000000");
    loss = of_kind(Kind::smooth_l1);
    loss.beta = -1.0;
    BOOST_TEST(problem(loss) == "loss: beta must be finite and >= 0, but is -1.000000");
    loss = of_kind(Kind::binary_cross_entropy);
    loss.pos_weight = {1.0, 2.0};
    BOOST_TEST(problem(loss) == "loss: pos_weight must have one entry for each of the 4 features, but has 2");
    loss.pos_weight = {1.0, 2.0, no_number, 0.0};
    BOOST_TEST(problem(loss) == "loss: pos_weight must be finite and >= 0, but one is nan");
    loss = of_kind(Kind::gaussian_nll);
    loss.epsilon = no_number;
    BOOST_TEST(problem(loss) == "loss: epsilon must be finite and > 0, but is nan");
    loss.epsilon = 1.0;
    BOOST_TEST(problem(loss, 5) ==
               "loss: gaussian_nll reads as many means as variances, an even number of outputs, but the last layer has 5; "
               "change that, or set shared_variance");
    loss.shared_variance = true;
    BOOST_TEST(problem(loss, 5) == "");
    BOOST_TEST(problem(loss, 1) ==
               "loss: gaussian_nll with shared_variance reads the means and one variance, at least 2 outputs, but the last "
               "layer has 1");
    BOOST_TEST((ModelSpec{{DenseSpec{"head", 2, 5, true}}, loss}.targets()) == 4);
    BOOST_TEST((ModelSpec{{DenseSpec{"head", 2, 5, true}}, {}}.targets()) == 0);
}

// G46: one answer per sequence, lengths 4, 1, 7 and 0 in one batch.
BOOST_AUTO_TEST_CASE(g46_the_loss_of_last_steps) {
    constexpr Index T = 7, B = 4, outputs = 2, hidden = 5;
    const std::array<Index, B> lengths{4, 1, 7, 0};
    ModelSpec last{{RecurrentSpec{"rnn", 3, hidden, 1, true}, DenseSpec{"head", hidden, outputs, true}},
                   of_kind(Kind::mean_squared_error)};
    ModelSpec every = last;
    last.loss.at = LossSpec::At::last;
    Problem<double> p;
    p.steps = T;
    p.batch = B;
    p.x = random_values(T * B * 3, 61, 1.5);
    p.carry = random_values(2 * hidden * B, 62, 0.5);
    p.marks.assign(T * B, Mark::step);
    for (Index b = 0; b < B; ++b)
        for (Index t = lengths[static_cast<std::size_t>(b)]; t < T; ++t) p.marks[static_cast<std::size_t>(t * B + b)] = Mark::filler;
    const std::vector<double> answers = random_values(B * outputs, 63);
    Problem<double> by_weights = p;
    p.values = at_last_steps<double>(answers, outputs, p.marks.data(), T, B);
    // The per-step form: other targets everywhere else, and weights that are 0 there.
    by_weights.values = random_values(T * B * outputs, 64);
    by_weights.weights.assign(T * B, 0.0);
    for (Index b = 0; b < B; ++b)
        if (const Index length = lengths[static_cast<std::size_t>(b)]; length > 0) {
            const Index at = (length - 1) * B + b;
            by_weights.weights[static_cast<std::size_t>(at)] = 1.0;
            std::copy_n(answers.begin() + b * outputs, outputs, by_weights.values.begin() + at * outputs);
        }
    for (const Driver driver : drivers) {
        const auto one = build<double>(driver, last), other = build<double>(driver, every);
        const auto parameters = parameters_for(one);
        for (const Index chunk : {T, Index{3}, Index{1}}) {
            const auto a = sweep(one, parameters, p, chunk), b = sweep(other, parameters, by_weights, chunk);
            BOOST_TEST(a.loss == b.loss);
            BOOST_TEST(same_bits(a.gradients, b.gradients));
            BOOST_TEST(same_bits(a.dx, b.dx));
            BOOST_TEST(same_bits(a.losses, b.losses));
            // Each sequence by itself.
            double loss = 0.0;
            std::vector<double> gradients(a.gradients.size());
            for (Index s = 0; s < B; ++s) {
                const Index length = lengths[static_cast<std::size_t>(s)];
                if (length == 0) continue;
                Problem<double> alone;
                alone.steps = length;
                for (Index t = 0; t < length; ++t) alone.x.insert(alone.x.end(), p.x.begin() + (t * B + s) * 3, p.x.begin() + (t * B + s + 1) * 3);
                for (Index k = 0; k < 2; ++k)  // h and c
                    alone.carry.insert(alone.carry.end(), p.carry.begin() + (k * B + s) * hidden, p.carry.begin() + (k * B + s + 1) * hidden);
                alone.values = at_last_steps<double>(std::span(answers).subspan(static_cast<std::size_t>(s * outputs), outputs), outputs, nullptr, length, 1);
                const auto own = sweep(one, parameters, alone, chunk);
                loss += own.loss;
                for (std::size_t k = 0; k < gradients.size(); ++k) gradients[k] += own.gradients[k];
            }
            BOOST_TEST(std::abs(a.loss - loss) <= 1e-13 * loss);
            BOOST_TEST(compare(a.gradients, gradients, {1e-13, 0.0}));
        }
    }
}

BOOST_AUTO_TEST_CASE(g46_answers_of_another_shape_are_refused) {
    const auto refused = [](auto call, const std::string& word) {
        BOOST_CHECK_EXCEPTION(call(), InvalidArgument,
                              [&](const InvalidArgument& e) { return std::string(e.what()).find(word) != std::string::npos; });
    };
    const std::vector<double> five(5);
    refused([&] { at_last_steps<double>(five, 2, nullptr, 4, 3); },
            "answers, one per sequence, must have shape [batch][feature] = [3][2], but there are 5 numbers");
    using enum Mark;
    const std::vector<Mark> marks{first, first, step, first, step, step};
    const std::vector<std::int32_t> classes_of_two{1, 2};
    refused([&] { at_last_steps<std::int32_t>(classes_of_two, 1, marks.data(), 3, 2); },
            "row 1 of the batch holds several sequences");
    const std::vector<Mark> one_each{first, first, step, filler, step, filler};
    BOOST_TEST((at_last_steps<std::int32_t>(classes_of_two, 1, one_each.data(), 3, 2) ==
                std::vector<std::int32_t>{0, 2, 0, 0, 1, 0}));
}

// Packed sequences, and a chunk's end that is no sequence's end.
BOOST_AUTO_TEST_CASE(last_steps_by_marks) {
    using enum Mark;
    const std::vector<Mark> marks{step, first, filler, first, step, filler, step, step, first, first, filler, step};
    const std::vector<double> x(12, 1.0), zeros(12);
    for (const Driver driver : drivers)
        for (const Index chunk : {Index{4}, Index{1}, Index{3}}) {
            LossSpec loss = of_kind(Kind::mean_squared_error);
            loss.at = LossSpec::At::last;
            const auto network = build<double>(driver, ModelSpec{{DenseSpec{"head", 1, 1, true}}, loss});
            const Layer<double>& layer = network.layer(1);
            std::vector<double> losses(12, no_number), tape(12);
            for (Index t = 0; t < 4; t += chunk) {
                Segment<double> at;
                at.steps = std::min(chunk, 4 - t);
                at.batch = 3;
                at.behind = 4 - t - at.steps;
                at.marks = marks.data() + t * 3;
                at.values = zeros.data() + t * 3;
                at.losses = losses.data() + t * 3;
                layer.record({at, nullptr, x.data(), nullptr, nullptr, nullptr, tape.data(), nullptr});
            }
            const std::vector<double> wanted{1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1};
            BOOST_TEST((losses == wanted));
        }
}

// G15 at the loss: lengths 2 and 10 with losses 1 and 3 a step; divided once by 12, whole or in two micro-batches.
BOOST_AUTO_TEST_CASE(g15_one_division_by_all_valid_steps) {
    constexpr Index T = 10;
    const LossSpec loss = of_kind(Kind::mean_squared_error);
    const auto network = [&](Driver driver) { return build<double>(driver, ModelSpec{{DenseSpec{"head", 1, 1, false}}, loss}); };
    const auto batch_of = [&](std::vector<Index> lengths) {
        Problem<double> p;
        p.steps = T;
        p.batch = static_cast<Index>(lengths.size());
        for (Index t = 0; t < T; ++t)
            for (const Index length : lengths) {
                p.x.push_back(length == 2 ? 1.0 : std::sqrt(3.0));
                p.values.push_back(t < length ? 0.0 : no_number);
                p.marks.push_back(t < length ? Mark::step : Mark::filler);
            }
        return p;
    };
    const auto share = [&](const Problem<double>& p) {
        Segment<double> all;
        all.steps = p.steps;
        all.batch = p.batch;
        all.marks = p.marks.data();
        return loss_divisor(loss, 1, all);
    };
    for (const Driver driver : drivers)
        for (const Index chunk : {Index{5}, T, Index{3}}) {
            Problem<double> both = batch_of({2, 10}), brief = batch_of({2}), lengthy = batch_of({10});
            BOOST_TEST(share(both) == 12.0);
            BOOST_TEST(share(brief) + share(lengthy) == 12.0);
            const std::vector<double> weight{1.0};
            for (Problem<double>* p : {&both, &brief, &lengthy}) p->scale = 1.0 / 12.0;
            const auto whole = sweep(network(driver), weight, both, chunk), a = sweep(network(driver), weight, brief, chunk),
                       b = sweep(network(driver), weight, lengthy, chunk);
            BOOST_TEST(std::abs(whole.loss / 12.0 - 32.0 / 12.0) < 1e-14);
            BOOST_TEST(std::abs((a.loss + b.loss) / 12.0 - 32.0 / 12.0) < 1e-14);
            BOOST_TEST(std::abs(whole.gradients[0] - 64.0 / 12.0) < 1e-13);
            BOOST_TEST(std::abs(a.gradients[0] + b.gradients[0] - whole.gradients[0]) <= 1e-13 * whole.gradients[0]);
        }
}
