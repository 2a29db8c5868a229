// Windows of random length: their law, resuming, and ARTBP's unbiased gradient where fixed truncation is biased.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE windows
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/train/windows.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

WindowSpec spec_of(WindowSpec::Law law) {
    WindowSpec spec;
    spec.law = law;
    return spec;
}

/// Windows of one stream until its end.
std::vector<WindowCut> cuts(const WindowSpec& spec, Index mean, Index chunk, Index steps, std::uint64_t seed) {
    std::vector<WindowCut> all;
    for (Index left = steps; left > 0; left -= all.back().steps)
        all.push_back(cut_window(spec, mean, chunk, left, seed, static_cast<Index>(all.size())));
    return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(fixed_windows_are_the_sources) {
    const auto all = cuts(spec_of(WindowSpec::Law::fixed), 7, 3, 23, 1);
    BOOST_TEST_REQUIRE(all.size() == 4u);
    for (std::size_t k = 0; k < 4; ++k) {
        BOOST_TEST(all[k].steps == (k < 3 ? 7 : 2));
        BOOST_TEST(all[k].factors.empty());
    }
}

BOOST_AUTO_TEST_CASE(normal_windows_have_the_mean_and_deviation_of_their_law) {
    WindowSpec spec = spec_of(WindowSpec::Law::normal);
    const Index mean = 70, draws = 100000;
    double sum = 0.0, squares = 0.0;
    Index short_ones = 0;
    for (Index u = 0; u < draws; ++u) {
        const WindowCut cut = cut_window(spec, mean, 1, 1000000, 4, u);
        BOOST_TEST_REQUIRE(cut.steps >= spec.shortest);
        BOOST_TEST_REQUIRE(cut.steps <= spec.most(mean));
        BOOST_TEST_REQUIRE(cut.factors.empty());
        if (cut.steps < 53) ++short_ones;
        sum += static_cast<double>(cut.steps);
        squares += static_cast<double>(cut.steps) * static_cast<double>(cut.steps);
    }
    const double n = static_cast<double>(draws), m = sum / n, variance = squares / n - m * m;
    // 0.95 N(70, 5) + 0.05 N(35, 5): mean 68.25, variance 25 + 0.95 * 0.05 * 35^2, and 1/12 for the rounding.
    const double expected = 25.0 + 0.0475 * 1225.0 + 1.0 / 12.0;
    BOOST_TEST(std::abs(m - 68.25) < 4.0 * std::sqrt(expected / n));
    BOOST_TEST(std::abs(variance - expected) < 2.0);
    BOOST_TEST(std::abs(static_cast<double>(short_ones) - 0.05 * n) < 4.0 * std::sqrt(0.0475 * n) + 80.0);

    spec.half = 1.0;
    spec.deviation = 0.0;
    BOOST_TEST(cut_window(spec, 70, 1, 1000, 4, 0).steps == 35);
    BOOST_TEST(cut_window(spec, 70, 1, 20, 4, 0).steps == 20);
    spec.half = 0.0;
    spec.deviation = 1e6;
    spec.longest = 71;
    for (Index u = 0; u < 100; ++u)
        BOOST_TEST((cut_window(spec, 70, 1, 1000, 4, u).steps == 71 || cut_window(spec, 70, 1, 1000, 4, u).steps == 5));
}

/// The chance that a window lives past its k-th link is the product of the chances 1 - c; the factors are their
/// inverses.
BOOST_AUTO_TEST_CASE(artbp_cuts_with_the_chance_that_its_factors_make_good) {
    for (const double tail : {0.0, 4.0, 6.0})
        for (const Index chunk : {1, 3}) {
            WindowSpec spec = spec_of(WindowSpec::Law::artbp);
            spec.tail = tail;
            const Index mean = 10, draws = 40000;
            std::vector<double> lives(8, 0.0), survival(8, 1.0);
            double steps = 0.0;
            for (Index u = 0; u < draws; ++u) {
                const WindowCut cut = cut_window(spec, mean, chunk, 1000000, 17, u);
                BOOST_TEST_REQUIRE((cut.steps % chunk == 0 || cut.steps == spec.most(mean)));
                BOOST_TEST_REQUIRE(static_cast<Index>(cut.factors.size()) == (cut.steps - 1) / chunk);
                for (std::size_t k = 0; k < std::min<std::size_t>(8, cut.factors.size()); ++k) {
                    lives[k] += 1.0;
                    survival[k] = (k > 0 ? survival[k - 1] : 1.0) / cut.factors[k];
                }
                steps += static_cast<double>(cut.steps);
            }
            const double n = static_cast<double>(draws);
            for (std::size_t k = 0; k < 8; ++k) {
                BOOST_TEST_CONTEXT("tail " << tail << ", chunk " << chunk << ", link " << k)
                BOOST_TEST(std::abs(lives[k] / n - survival[k]) <
                           4.0 * std::sqrt(survival[k] * (1.0 - survival[k]) / n));
            }
            // c_t of [TO17] for single steps: (alpha - 1) / ((alpha - 2) 10 + t), whose mean is 10.
            if (chunk == 1) {
                const double first = tail == 0.0 ? 0.1 : (tail - 1.0) / ((tail - 2.0) * 10.0 + 1.0);
                BOOST_TEST(std::abs(survival[0] - (1.0 - first)) < 1e-15);
                BOOST_TEST(std::abs(steps / n - 10.0) < 0.2);
            }
        }
}

BOOST_AUTO_TEST_CASE(a_window_is_a_function_of_seed_and_update) {
    const WindowSpec spec = spec_of(WindowSpec::Law::artbp);
    const auto a = cuts(spec, 6, 1, 500, 3), b = cuts(spec, 6, 1, 500, 3), c = cuts(spec, 6, 1, 500, 4);
    BOOST_TEST_REQUIRE(a.size() == b.size());
    bool differs = a.size() != c.size();
    Index sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) {
        BOOST_TEST(a[k].steps == b[k].steps);
        if (k < c.size() && a[k].steps != c[k].steps) differs = true;
        sum += a[k].steps;
    }
    BOOST_TEST(sum == 500);
    BOOST_TEST(differs);
}

BOOST_AUTO_TEST_CASE(impossible_windows_are_refused_in_words) {
    const auto problem = [](WindowSpec::Law law, auto&& change, Index mean = 20, Index chunk = 1) {
        WindowSpec spec = spec_of(law);
        change(spec);
        return spec.problem(mean, chunk);
    };
    const auto has = [](const std::string& text, const char* word) { return text.find(word) != std::string::npos; };
    using Law = WindowSpec::Law;
    BOOST_TEST(problem(Law::artbp, [](WindowSpec&) {}).empty());
    BOOST_TEST(problem(Law::normal, [](WindowSpec&) {}).empty());
    BOOST_TEST(has(problem(Law::artbp, [](WindowSpec& s) { s.tail = 2.5; }), "tail"));
    BOOST_TEST(has(problem(Law::artbp, [](WindowSpec& s) { s.tail = std::nan(""); }), "tail"));
    BOOST_TEST(has(problem(
                       Law::artbp, [](WindowSpec&) {}, 20, 20),
                   "chunk"));
    BOOST_TEST(has(problem(
                       Law::artbp, [](WindowSpec&) {}, 1, 1),
                   "chunk"));
    BOOST_TEST(has(problem(Law::fixed, [](WindowSpec& s) { s.longest = -1; }), "longest"));
    BOOST_TEST(has(problem(Law::artbp, [](WindowSpec& s) { s.longest = 19; }), "longest"));
    BOOST_TEST(has(problem(Law::artbp, [](WindowSpec& s) { s.longest = Index{1} << 40; }), "links"));
    BOOST_TEST(has(problem(Law::normal, [](WindowSpec& s) { s.half = 1.5; }), "half"));
    BOOST_TEST(has(problem(Law::normal, [](WindowSpec& s) { s.deviation = -1.0; }), "deviation"));
    BOOST_TEST(has(problem(Law::normal, [](WindowSpec& s) { s.shortest = 21; }), "shortest"));
}
