// Rates of the warm-up and the cosines at hand-computed updates, and every wrong option refused in words.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE rate
#include "support/unit_test.hpp"

#include "backsweep/train/rate.hpp"

#include <cmath>
#include <limits>

using namespace backsweep;
using Law = RateSpec::Law;

namespace {

bool near(double a, double b) {
    return std::abs(a - b) <= 1e-15;
}

}  // namespace

BOOST_AUTO_TEST_CASE(warm_up_is_a_straight_line_to_the_peak) {
    const RateSpec rate{.peak = 0.3, .warm_up = 7, .warm_up_from = 0.2};
    BOOST_TEST(rate.problem() == "");
    for (Index u = 0; u < 7; ++u) BOOST_TEST(near(rate.at(u), 0.06 + 0.24 * static_cast<double>(u) / 7.0));
    BOOST_TEST(rate.at(7) == 0.3);
    BOOST_TEST(rate.at(Index{1} << 40) == 0.3);
    BOOST_TEST((RateSpec{.warm_up = 3, .warm_up_from = 0.0}.at(0) == 0.0));
}

BOOST_AUTO_TEST_CASE(cosine_meets_peak_middle_and_floor) {
    const RateSpec rate{.law = Law::cosine, .peak = 0.05, .floor = 0.001, .length = 107, .warm_up = 7};
    BOOST_TEST(rate.problem() == "");
    BOOST_TEST(rate.at(7) == 0.05);
    BOOST_TEST(near(rate.at(57), (0.05 + 0.001) / 2));
    BOOST_TEST(near(rate.at(7 + 25), 0.001 + 0.049 * (1.0 + std::sqrt(0.5)) / 2));
    BOOST_TEST(rate.at(107) == 0.001);
    BOOST_TEST(rate.at(150) == 0.001);
    for (Index u = 7; u < 107; ++u) BOOST_TEST(rate.at(u + 1) < rate.at(u));
}

BOOST_AUTO_TEST_CASE(annealing_rises_again) {
    const RateSpec rate{.law = Law::annealing, .peak = 0.05, .floor = 0.001, .length = 107, .warm_up = 7};
    for (Index u = 0; u < 40; ++u) BOOST_TEST(near(rate.at(107 + u), rate.at(107 - u)));
    BOOST_TEST(near(rate.at(207), 0.05));
    BOOST_TEST(near(rate.at(207 + 50), rate.at(57)));
}

BOOST_AUTO_TEST_CASE(wrong_options_are_named) {
    const auto refused = [](const RateSpec& rate, const char* word) {
        BOOST_TEST_CONTEXT(word) {
            BOOST_TEST(rate.problem().find(word) != std::string::npos);
        }
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    refused({.peak = 0.0}, "peak rate must be positive");
    refused({.peak = nan}, "nan");
    refused({.warm_up = -1}, "warm_up must be >= 0");
    refused({.warm_up = 2, .warm_up_from = 1.5}, "1.5");
    refused({.length = 10}, "a constant rate has no length");
    refused({.floor = 1e-4}, "no floor");
    refused({.law = Law::cosine, .floor = 0.1, .length = 10}, "floor must lie between");
    refused({.law = Law::cosine, .floor = nan, .length = 10}, "floor must lie between");
    refused({.law = Law::cosine, .length = 5, .warm_up = 5}, "must exceed the warm_up of 5");
    refused({.law = Law::annealing}, "must exceed the warm_up of 0, but is 0");
    BOOST_TEST(RateSpec{}.problem() == "");
}
