// Rates of every law at hand-computed updates, the warm-up before each, plateaus told apart and resumed, and every
// wrong option refused in words.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE rate
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/train/rate.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

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

BOOST_AUTO_TEST_CASE(steps_and_powers) {
    const RateSpec steps{.law = Law::step, .peak = 0.8, .factor = 0.5, .period = 3};
    BOOST_TEST(steps.problem() == "");
    const std::vector<double> wanted{0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1};
    for (std::size_t u = 0; u < wanted.size(); ++u) BOOST_TEST(steps.at(static_cast<Index>(u)) == wanted[u]);
    const RateSpec powers{.law = Law::exponential, .peak = 0.8, .factor = 1.25};
    BOOST_TEST(powers.problem() == "");
    double rate = 0.8;
    for (Index u = 0; u < 20; ++u, rate *= 1.25) BOOST_TEST(std::abs(powers.at(u) / rate - 1.0) < 1e-14);
}

// 40 updates: up to number 0.3 * 40 - 1 = 11, down to the last, 39.
BOOST_AUTO_TEST_CASE(one_cycle_meets_its_corners) {
    const RateSpec rate{.law = Law::one_cycle, .peak = 0.2, .length = 40};
    BOOST_TEST(rate.problem() == "");
    BOOST_TEST(near(rate.at(0), 0.2 / 25));
    BOOST_TEST(near(rate.at(11), 0.2));
    BOOST_TEST(near(rate.at(25), (0.2 + 0.2 / 25e4) / 2));
    BOOST_TEST(near(rate.at(39), 0.2 / 25e4));
    BOOST_TEST(rate.at(1000) == rate.at(39));
    BOOST_TEST(near(*rate.momentum_at(0), 0.95));
    BOOST_TEST(near(*rate.momentum_at(11), 0.85));
    BOOST_TEST(near(*rate.momentum_at(25), 0.90));
    BOOST_TEST(near(*rate.momentum_at(39), 0.95));
    for (Index u = 0; u < 39; ++u) {
        BOOST_TEST((rate.at(u) < rate.at(u + 1)) == (u < 11));
        BOOST_TEST((*rate.momentum_at(u) > *rate.momentum_at(u + 1)) == (u < 11));
    }

    RateSpec lines = rate;
    lines.length = 41;
    lines.warm_up = 1;  // as long a cycle, one update later
    lines.one_cycle = {.rise = 0.275,
                       .start_divisor = 10.0,
                       .end_divisor = 100.0,
                       .linear = true,
                       .three_phase = true,
                       .momentum_high = 0.9,
                       .momentum_low = 0.5};
    BOOST_TEST(lines.problem() == "");
    // Corners at 10, 20 and 39 behind the warm-up.
    BOOST_TEST(near(lines.at(0), 0.1 * 0.02));
    BOOST_TEST(near(lines.at(1), 0.02));
    BOOST_TEST(near(lines.at(1 + 5), 0.11));
    BOOST_TEST(near(lines.at(1 + 10), 0.2));
    BOOST_TEST(near(lines.at(1 + 15), 0.11));
    BOOST_TEST(near(lines.at(1 + 20), 0.02));
    BOOST_TEST(near(lines.at(1 + 39), 0.0002));
    BOOST_TEST(near(lines.at(1 + 29), 0.02 - 0.0198 * 9 / 19));
    for (const auto& [update, momentum] :
         {std::pair{0, 0.9}, {1, 0.9}, {6, 0.7}, {11, 0.5}, {16, 0.7}, {21, 0.9}, {30, 0.9}, {40, 0.9}, {99, 0.9}})
        BOOST_TEST(near(*lines.momentum_at(update), momentum));
    lines.one_cycle = {.cycle_momentum = false};
    BOOST_TEST(lines.problem() == "");
    BOOST_TEST(!lines.momentum_at(3));
    BOOST_TEST(!RateSpec{}.momentum_at(3));
}

BOOST_AUTO_TEST_CASE(a_warm_up_precedes_every_law) {
    Plateau lowered;
    lowered.factor = 0.25;
    for (const RateSpec& plain :
         {RateSpec{}, RateSpec{.law = Law::cosine, .floor = 1e-5, .length = 30},
          RateSpec{.law = Law::annealing, .length = 30}, RateSpec{.law = Law::step, .factor = 0.5, .period = 3},
          RateSpec{.law = Law::exponential, .factor = 0.9}, RateSpec{.law = Law::one_cycle, .length = 30},
          RateSpec{.law = Law::plateau, .factor = 0.5}}) {
        RateSpec warm = plain;
        warm.warm_up = 4;
        warm.warm_up_from = 0.2;
        if (warm.length > 0) warm.length += 4;
        BOOST_TEST(warm.problem() == "");
        for (Index u = 0; u < 40; ++u) BOOST_TEST(warm.at(4 + u, lowered) == plain.at(u, lowered));
        for (Index u = 0; u < 4; ++u)
            BOOST_TEST(near(warm.at(u, lowered), plain.at(0, lowered) * (0.2 + 0.2 * static_cast<double>(u))));
        BOOST_TEST((warm.momentum_at(4 + 7) == plain.momentum_at(7)));
        BOOST_TEST((warm.momentum_at(2) == plain.momentum_at(0)));
    }
}

BOOST_AUTO_TEST_CASE(a_plateau_lowers_the_rate) {
    const RateSpec rate{.law = Law::plateau,
                        .peak = 0.8,
                        .floor = 0.15,
                        .factor = 0.5,
                        .plateau = {.threshold = 0.1, .patience = 1, .cooldown = 2}};
    BOOST_TEST(rate.problem() == "");
    const std::vector<double> metrics{10.0, 8.9, 8.1, 8.0, 8.5, 8.2, 8.4, 8.4, 8.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0};
    // Metric 3 (8.1 > 8.9 - 0.89 = 8.01) is no better, 4 (8.0 < 8.01) is; 5 and 6 are no better: lowered; 7 and 8 are
    // forgiven; 9 and 10: lowered to 0.2; 11 and 12 forgiven; 13 and 14: lowered to the floor; 15 and 16 forgiven.
    Plateau state;
    std::vector<double> got;
    for (const double m : metrics) {
        state = rate.after(m, state);
        got.push_back(rate.at(7, state));
    }
    const std::vector<double> wanted{0.8, 0.8, 0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2, 0.15, 0.15, 0.15};
    BOOST_TEST(got == wanted, boost::test_tools::per_element());
    BOOST_TEST((state == Plateau{.seen = 16, .best = 8.0, .bad = 0, .cooldown = 0, .factor = 0.125}));
    BOOST_TEST(state.problem() == "");
    for (int k = 0; k < 30; ++k) state = rate.after(9.0, state);  // at the floor it stays
    BOOST_TEST(rate.at(7, state) == 0.15);
    BOOST_TEST(state.factor == 0.125);

    // Going on from the state in the middle is going on.
    for (std::size_t cut = 0; cut <= metrics.size(); ++cut) {
        Plateau first;
        for (std::size_t k = 0; k < cut; ++k) first = rate.after(metrics[k], first);
        Plateau second = first;
        for (std::size_t k = cut; k < metrics.size(); ++k) {
            second = rate.after(metrics[k], second);
            BOOST_TEST(rate.at(7, second) == wanted[k]);
        }
    }
}

BOOST_AUTO_TEST_CASE(what_counts_as_better) {
    const auto better = [](const PlateauSpec& how, double best, double metric) {
        const RateSpec rate{.law = Law::plateau, .factor = 0.5, .plateau = how};
        const Plateau state = rate.after(metric, rate.after(best, {}));
        BOOST_TEST(*state.best == (state.bad == 0 ? metric : best));
        return state.bad == 0;
    };
    BOOST_TEST(better({.threshold = 0.1}, 10.0, 8.99));
    BOOST_TEST(!better({.threshold = 0.1}, 10.0, 9.01));
    BOOST_TEST(better({.rising = true, .threshold = 0.1}, 10.0, 11.01));
    BOOST_TEST(!better({.rising = true, .threshold = 0.1}, 10.0, 10.99));
    BOOST_TEST(better({.threshold = 0.1, .absolute = true}, 10.0, 9.89));
    BOOST_TEST(!better({.threshold = 0.1, .absolute = true}, 10.0, 9.91));
    BOOST_TEST(better({.rising = true, .threshold = 0.1, .absolute = true}, 10.0, 10.11));
    BOOST_TEST(!better({.rising = true, .threshold = 0.1, .absolute = true}, 10.0, 10.09));
    // Of a negative best, too, a margin is a margin: -10 is better than itself by nothing.
    BOOST_TEST(!better({.threshold = 0.1}, -10.0, -10.0));
    BOOST_TEST(!better({.threshold = 0.1}, -10.0, -10.9));
    BOOST_TEST(better({.threshold = 0.1}, -10.0, -11.1));
    BOOST_TEST(!better({.threshold = 0.0}, 3.0, 3.0));

    const RateSpec rate{.law = Law::plateau, .factor = 0.5};
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
        BOOST_CHECK_EXCEPTION(rate.after(bad, {.seen = 4}), NumericError, [](const NumericError& e) {
            return std::string(e.what()).find("must be finite, but number 5 is") != std::string::npos;
        });
    BOOST_CHECK_EXCEPTION(RateSpec{}.after(1.0, {}), InvalidArgument, [](const InvalidArgument& e) {
        return std::string(e.what()).find("its law is not plateau") != std::string::npos;
    });
    // A rate too low to fall by more than 1e-8 stays.
    const RateSpec low{.law = Law::plateau, .peak = 1.5e-8, .factor = 0.5, .plateau = {.patience = 0}};
    BOOST_TEST(low.after(1.0, low.after(1.0, {})).factor == 1.0);
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
    refused({.length = 10}, "a length has an effect under the law cosine, annealing or one_cycle only");
    refused({.floor = 1e-4}, "a floor has an effect under the law cosine, annealing or plateau only");
    refused({.law = Law::cosine, .length = 10, .factor = 0.5}, "a factor has an effect under");
    refused({.law = Law::exponential, .factor = 0.5, .period = 2}, "a period has an effect under the law step only");
    refused({.one_cycle = {.rise = 0.2}}, "a setting of one_cycle");
    refused({.plateau = {.patience = 1}}, "a setting of plateau");
    refused({.law = Law::cosine, .floor = 0.1, .length = 10}, "floor must lie between");
    refused({.law = Law::cosine, .floor = nan, .length = 10}, "floor must lie between");
    refused({.law = Law::cosine, .length = 5, .warm_up = 5}, "must exceed the warm_up of 5");
    refused({.law = Law::annealing}, "must exceed the warm_up of 0, but is 0");
    refused({.law = Law::one_cycle}, "must exceed the warm_up of 0, but is 0");
    refused({.law = Law::step, .factor = 0.5}, "period, the updates between two steps, must be at least 1, not 0");
    refused({.law = Law::step, .period = 5}, "factor must be positive and finite and not 1");
    refused({.law = Law::exponential, .factor = nan}, "but is nan");
    refused({.law = Law::plateau, .factor = -0.5}, "but is -0.5");
    refused({.law = Law::plateau, .factor = 2.0}, "its factor must be below 1, not 2");
    refused({.law = Law::plateau, .floor = 1.0, .factor = 0.5}, "floor must lie between");
    refused({.law = Law::plateau, .factor = 0.5, .plateau = {.threshold = nan}}, "threshold must be >= 0, not nan");
    refused({.law = Law::plateau, .factor = 0.5, .plateau = {.patience = -1}}, "not -1 and 0");
    refused({.law = Law::plateau, .factor = 0.5, .plateau = {.cooldown = -3}}, "not 10 and -3");
    const auto cycle = [](const OneCycleSpec& c, Index length = 20) {
        return RateSpec{.law = Law::one_cycle, .length = length, .one_cycle = c};
    };
    refused(cycle({}, 3), "rise = 0.3 of 3 updates does not");
    refused(cycle({.rise = 1.0}), "rise = 1 of 20 updates");
    refused(cycle({.rise = nan}), "rise = nan");
    refused(cycle({.rise = 0.53, .three_phase = true}), "in three phases");
    refused(cycle({.start_divisor = 0.5}), "start_divisor must be >= 1, not 0.5");
    refused(cycle({.end_divisor = nan}), "end_divisor must be >= 1, not nan");
    refused(cycle({.momentum_high = 1.0}), "lie in [0, 1), not at 0.85 and 1");
    refused(cycle({.momentum_low = 0.96}), "in order");
    refused(cycle({.cycle_momentum = false, .momentum_low = 0.5}), "no effect without cycle_momentum");
    BOOST_TEST(RateSpec{}.problem() == "");
    BOOST_TEST(Plateau{}.problem() == "");
    BOOST_TEST((Plateau{.bad = -1}.problem().find("bad = -1") != std::string::npos));
    BOOST_TEST((Plateau{.factor = 0.0}.problem().find("factor = 0") != std::string::npos));
}
