// The checkers themselves: right gradients pass, slightly wrong ones and NaN do not.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_gradient_check
#include "support/unit_test.hpp"

#include "backsweep/chain/callback_chain.hpp"
#include "backsweep/chain/chunked.hpp"
#include "backsweep/chain/gradient_check.hpp"
#include "support/toy_chains.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace backsweep;
using Vector = std::vector<double>;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

const Vector point{0.7, -1.3, 2.1}, along{0.4, -0.9, 0.6};

double curved(std::span<const double> x) {
    return std::exp(0.5 * x[0]) * std::sin(x[1]) + x[0] * x[2] * x[2];
}
const Vector curved_gradient{0.5 * std::exp(0.35) * std::sin(-1.3) + 2.1 * 2.1, std::exp(0.35) * std::cos(-1.3),
                             2 * 0.7 * 2.1};

double linear(std::span<const double> x) {
    return 3.0 * x[0] - 2.0 * x[1] + 0.125 * x[2];
}
const Vector linear_gradient{3.0, -2.0, 0.125};

Vector scaled(Vector g, double factor) {
    for (double& x : g) x *= factor;
    return g;
}
Vector with(Vector g, std::size_t k, double value) {
    g[k] = value;
    return g;
}

auto says(std::string words) {
    return [words](const InvalidArgument& e) { return std::string(e.what()).find(words) != std::string::npos; };
}

/// A chain of three lambdas whose adjoint is wrong by a factor.
auto cubic(double factor) {
    return CallbackChain(
        13, 0.8, [](Index i, double& x) { x = x - 0.05 * x * x * x + 0.01 * static_cast<double>(i); },
        [](const double& x, double& a) { a = x; },
        [factor](Index, const double& x, double& a) { a *= (1.0 - 0.15 * x * x) * factor; });
}

}  // namespace

BOOST_AUTO_TEST_CASE(finite_differences) {
    BOOST_TEST(finite_difference_error(curved, point, curved_gradient) < 1e-9);
    BOOST_TEST(finite_difference_error(linear, point, linear_gradient) < 1e-10);
    const double wrong =
        finite_difference_error(curved, point, with(curved_gradient, 0, curved_gradient[0] * (1 + 1e-6)));
    BOOST_TEST((wrong > 0.9e-6 && wrong < 1.1e-6));  // the first entry is the largest
    BOOST_TEST(finite_difference_error([](auto) { return 4.0; }, point, Vector{0, 0, 0}) == 0.0);
    BOOST_TEST(finite_difference_error([](auto) { return 4.0; }, point, Vector{0, 1e-30, 0}) == infinity);
}

BOOST_AUTO_TEST_CASE(finite_differences_never_pass_nan) {
    for (std::size_t k = 0; k < 3; ++k) {
        BOOST_TEST(std::isnan(finite_difference_error(curved, point, with(curved_gradient, k, not_a_number))));
        BOOST_TEST(std::isnan(finite_difference_error(curved, point, with(curved_gradient, k, infinity))));
    }
    BOOST_TEST(std::isnan(finite_difference_error([](auto) { return not_a_number; }, point, curved_gradient)));
    BOOST_TEST(std::isnan(finite_difference_error([](auto) { return infinity; }, point, curved_gradient)));
}

BOOST_AUTO_TEST_CASE(taylor_slopes) {
    const double right = taylor_slope(curved, point, curved_gradient, along);
    BOOST_TEST((right > 1.98 && right < 2.02));
    for (const double relative : {1e-1, 1e-2, 1e-3, 1e-4}) {
        const double wrong = taylor_slope(curved, point, scaled(curved_gradient, 1 + relative), along);
        BOOST_TEST_CONTEXT("relative error " << relative << " gives slope " << wrong) {
            BOOST_TEST((wrong > 0.9 && wrong < 1.1));
        }
    }
    // Third order where the second derivative vanishes.
    const double third = taylor_slope([](auto x) { return x[0] * x[0] * x[0]; }, Vector{0.0}, Vector{0.0}, Vector{1.0});
    BOOST_TEST((third > 2.9 && third < 3.1));
}

BOOST_AUTO_TEST_CASE(taylor_slope_of_a_linear_functional) {
    BOOST_TEST(taylor_slope(linear, point, linear_gradient, along) == 2.0);
    const double wrong = taylor_slope(linear, point, scaled(linear_gradient, 1 + 1e-4), along);
    BOOST_TEST((wrong > 0.99 && wrong < 1.01));
}

BOOST_AUTO_TEST_CASE(taylor_slope_never_passes_nan) {
    for (std::size_t k = 0; k < 3; ++k) {
        BOOST_TEST(std::isnan(taylor_slope(curved, point, with(curved_gradient, k, not_a_number), along)));
        BOOST_TEST(std::isnan(taylor_slope(curved, point, with(curved_gradient, k, infinity), along)));
    }
    BOOST_TEST(std::isnan(taylor_slope([](auto) { return not_a_number; }, point, curved_gradient, along)));
    BOOST_TEST(
        std::isnan(taylor_slope([](auto x) { return x[0] > 0.7 ? infinity : 0.0; }, point, curved_gradient, along)));
}

BOOST_AUTO_TEST_CASE(dot_products) {
    BOOST_TEST(dot_product_error(Vector{1, 2}, Vector{3, 4}, Vector{5, 1}, Vector{2, 1}) == 0.0);  // 11 and 11
    BOOST_TEST(dot_product_error(Vector{1, 2}, Vector{3, 4}, Vector{5, 1}, Vector{2, 0}) == 1.0 / 11);
    BOOST_TEST(dot_product_error(Vector{0, 0}, Vector{3, 4}, Vector{0}, Vector{2}) == 0.0);
    BOOST_TEST(std::isnan(dot_product_error(Vector{1, not_a_number}, Vector{3, 4}, Vector{5}, Vector{2})));
    BOOST_TEST(std::isnan(dot_product_error(Vector{1, 1}, Vector{3, 4}, Vector{not_a_number}, Vector{2})));
}

BOOST_AUTO_TEST_CASE(sizes_that_do_not_fit_are_named) {
    BOOST_CHECK_EXCEPTION(finite_difference_error(curved, point, Vector{1, 2}), InvalidArgument,
                          says("3 values, but a gradient of 2"));
    BOOST_CHECK_EXCEPTION(taylor_slope(curved, point, curved_gradient, Vector{1, 2}), InvalidArgument,
                          says("3 and 2 values"));
    BOOST_CHECK_EXCEPTION(taylor_slope(curved, point, Vector{1, 2}, Vector{1, 2}), InvalidArgument,
                          says("3 values, but a direction of 2"));
    BOOST_CHECK_EXCEPTION(dot_product_error(Vector{1}, Vector{1, 2}, Vector{1}, Vector{1}), InvalidArgument,
                          says("1 and 2 values"));
}

BOOST_AUTO_TEST_CASE(good_chains_pass_every_check) {
    const auto check = [](auto& chain) {
        const ChainReport report = check_chain(chain);
        BOOST_TEST(report.passed());
        BOOST_TEST(report.checks.size() >= 11u);
        BOOST_TEST(report.text().find("ok      advance = record: equal bits after every link\n") == 0u);
        BOOST_TEST(report.text().find("FAILED") == std::string::npos);
        if (!report.passed()) BOOST_TEST_MESSAGE(report.text());
    };
    for (const Index n : {1, 2, 3, 17}) {
        test::Oscillator<> plain(n);
        test::Oscillator<test::Flavour::keeps> keeps(n);
        test::Oscillator<test::Flavour::needs_state> needs(n);
        test::Field field(n, 7);
        Chunked chunked(plain, 3);
        check(plain);
        check(keeps);
        check(needs);
        check(field);
        check(chunked);
    }
    auto lambdas = cubic(1.0);
    check(lambdas);
}

BOOST_AUTO_TEST_CASE(a_wrong_adjoint_fails_slope_and_dot_product_and_no_other_line) {
    for (const double factor : {1.0 + 1e-5, 0.0, -1.0, not_a_number}) {
        auto chain = cubic(factor);
        const ChainReport report = check_chain(chain);
        BOOST_TEST(!report.passed());
        for (const Check& c : report.checks) {
            const bool judged_by_value = c.name == "Taylor slope" || c.name == "dot product";
            BOOST_TEST_CONTEXT(factor << ": " << c.name << ": " << c.detail) {
                BOOST_TEST(c.passed == !judged_by_value);
            }
        }
        BOOST_TEST(report.text().find("FAILED  dot product: ") != std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(a_range_taken_wrongly_fails_its_line) {
    struct Careless : test::Oscillator<> {
        using Oscillator::Oscillator;
        Index advance(Range r, State& x) {  // uses the first link's time for all
            for (Index i = r.first; i < r.last; ++i) Oscillator::advance({r.first, r.first + 1}, x);
            return r.last;
        }
    };
    Careless chain(12);
    const ChainReport report = check_chain(chain);
    for (const Check& c : report.checks) {
        if (c.name == "advance = record") BOOST_TEST(c.passed);
        if (c.name == "whole range = split ranges") BOOST_TEST(!c.passed);
    }
}

BOOST_AUTO_TEST_CASE(check_chain_wants_links) {
    test::Oscillator<> empty(0);
    BOOST_CHECK_EXCEPTION(check_chain(empty), InvalidArgument, says("known length >= 1, came 0"));
}
