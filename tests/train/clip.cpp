// Clipping: the limit is met at any scale of the gradients, and a gradient that is not finite changes nothing.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE clip
#include "support/unit_test.hpp"

#include "backsweep/base/random.hpp"
#include "backsweep/train/clip.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace backsweep;
using Kind = ClipSpec::Kind;

namespace {

ParameterLayout layout() {
    ParameterLayout layout;
    layout.append({.name = "rnn.weight_ih_l0", .rows = 12, .cols = 7});
    layout.append({.name = "rnn.bias_ih_l0", .rows = 12});
    layout.append({.name = "head.weight", .rows = 5, .cols = 3});
    return layout;
}

template <class Real>
std::vector<Real> gradients(double scale) {
    std::vector<Real> g(static_cast<std::size_t>(layout().size()));
    const Random random(11, 3);
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = static_cast<Real>(scale * random.normal(0, i));
    return g;
}

/// The 2-norm by another way: a running hypotenuse in long double.
template <class Real>
double length(const std::vector<Real>& g) {
    long double sum = 0;
    for (const Real x : g) sum = std::hypot(sum, static_cast<long double>(x));
    return static_cast<double>(sum);
}

template <class Real>
void meets_the_limit(double scale, double limit, double tolerance) {
    BOOST_TEST_CONTEXT("scale " << scale << ", limit " << limit) {
        auto g = gradients<Real>(scale);
        const auto before = g;
        const double norm = clip<Real>({Kind::norm, limit}, layout(), g);
        BOOST_TEST(std::abs(norm / length(before) - 1.0) < 1e-14);
        BOOST_TEST(std::abs(length(g) / limit - 1.0) < tolerance);
        const double factor = limit / (norm + 1e-6);
        for (std::size_t i = 0; i < g.size(); ++i)
            BOOST_TEST(std::abs(static_cast<double>(g[i]) - factor * static_cast<double>(before[i])) <= 1e-7 * limit);
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(g41_large_finite_gradients_do_not_overflow) {
    meets_the_limit<float>(1e25, 0.25, 1e-5);
    meets_the_limit<float>(1e37, 1e-3, 1e-5);
    meets_the_limit<double>(1e25, 0.25, 1e-13);
    meets_the_limit<double>(1e300, 0.25, 1e-13);
}

BOOST_AUTO_TEST_CASE(g41_a_gradient_that_is_not_finite_changes_nothing) {
    for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
        for (const Kind kind : {Kind::none, Kind::norm, Kind::largest_norm, Kind::value}) {
            auto g = gradients<float>(3.0);
            g[12 * 7 + 4] = bad;
            const auto before = g;
            const ClipSpec spec{kind, kind == Kind::none ? 0.0 : 1.0};
            BOOST_CHECK_EXCEPTION(clip<float>(spec, layout(), g), NumericError, [](const NumericError& e) {
                const std::string message = e.what();
                return message.find("'rnn.bias_ih_l0'") != std::string::npos &&
                       message.find("element 4 is") != std::string::npos;
            });
            BOOST_TEST(std::equal(g.begin(), g.end(), before.begin(),
                                  [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }));
        }
    }
    auto g = gradients<double>(1e308 / 3.0);
    std::fill(g.begin(), g.end(), 1e308);
    BOOST_CHECK_THROW(clip<double>({Kind::norm, 1.0}, layout(), g), NumericError);
    BOOST_TEST(std::count(g.begin(), g.end(), 1e308) == layout().size());
}

BOOST_AUTO_TEST_CASE(gradients_below_the_limit_keep_their_bits) {
    for (const Kind kind : {Kind::none, Kind::norm, Kind::largest_norm, Kind::value}) {
        auto g = gradients<double>(1e-3);
        const auto before = g;
        const double norm = clip<double>({kind, kind == Kind::none ? 0.0 : 10.0}, layout(), g);
        BOOST_TEST(g == before);
        const auto by_size = [](double a, double b) { return std::abs(a) < std::abs(b); };
        const double most = std::abs(*std::max_element(g.begin(), g.end(), by_size));
        if (kind == Kind::largest_norm || kind == Kind::value)
            BOOST_TEST(norm == most);
        else
            BOOST_TEST(std::abs(norm / length(g) - 1.0) < 1e-14);
    }
    std::vector<double> zero(static_cast<std::size_t>(layout().size()), 0.0);
    BOOST_TEST(clip<double>({Kind::norm, 1.0}, layout(), zero) == 0.0);
    std::fill(zero.begin(), zero.end(), std::numeric_limits<double>::denorm_min());
    BOOST_TEST(clip<double>({Kind::norm, 1.0}, layout(), zero) > 0.0);
}

BOOST_AUTO_TEST_CASE(wrong_options_are_named) {
    BOOST_TEST(ClipSpec{}.problem() == "");
    BOOST_TEST((ClipSpec{Kind::norm, 0.0}.problem().find("positive and finite, not 0") != std::string::npos));
    BOOST_TEST((ClipSpec{Kind::value, -1.0}.problem().find("-1") != std::string::npos));
    BOOST_TEST((ClipSpec{Kind::none, 5.0}.problem().find("name the kind") != std::string::npos));
    std::vector<double> few(3);
    BOOST_CHECK_THROW(clip<double>({Kind::norm, 1.0}, layout(), few), InvalidArgument);
    auto g = gradients<double>(1.0);
    BOOST_CHECK_THROW(clip<double>({Kind::norm, 0.0}, layout(), g), InvalidArgument);
}
