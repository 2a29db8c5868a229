// Field cases of the numeric room.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE regression.nn
#include "support/unit_test.hpp"

#include "nn/cases.hpp"
#include "nn/reference_cases.hpp"
#include "nn/swept_window.hpp"

#include <cmath>
#include <limits>

using namespace backsweep;
using namespace backsweep::test;

// G34: gradients of recurrent layers that are wrong for short or odd lengths. T = 1..6, 1 to 3 layers of LSTM, loss on
// all steps and on the last only; gradients of weights, inputs and initial state against central differences (h = 1e-5,
// relative 1e-6).
BOOST_AUTO_TEST_SUITE(G34)

BOOST_AUTO_TEST_CASE(lstm_gradients_agree_with_central_differences_at_every_length) {
    LossSpec squares;
    squares.kind = LossSpec::Kind::mean_squared_error;
    int compared = 0;
    for (const Driver driver : drivers)
        for (Index layers = 1; layers <= 3; ++layers)
            for (Index steps = 1; steps <= 6; ++steps)
                for (const bool last_only : {false, true}) {
                    const ModelSpec spec{{RecurrentSpec{"rnn", 2, 3, layers, true}, DenseSpec{"head", 3, 2, true}}, squares};
                    const auto network = build<double>(driver, spec);
                    auto parameters = parameters_for(network, static_cast<std::uint64_t>(layers));
                    auto problem = data_for(spec, network.carry(), steps, 2, static_cast<std::uint32_t>(40 * steps));
                    problem.weights.clear();
                    problem.dcarry.clear();
                    problem.loss_from = last_only ? steps - 1 : 0;
                    const auto value = [&] {
                        return problem.scale * sweep(network, parameters, problem, steps, 0, Checks::none).loss;
                    };
                    BOOST_TEST_CONTEXT(to_string(driver)
                                       << ", " << layers << " layers, " << steps << " steps, last only: " << last_only)
                    for (const Index chunk : {Index{1}, Index{4}, steps}) {
                        const auto got = sweep(network, parameters, problem, chunk);
                        const Tolerance tolerance{1e-6, 0.0};
                        BOOST_TEST(compare(got.gradients, central_differences(parameters, value), tolerance));
                        BOOST_TEST(compare(got.dx, central_differences(problem.x, value), tolerance));
                        BOOST_TEST(compare(got.dcarry, central_differences(problem.carry, value), tolerance));
                        ++compared;
                        if (driver == Driver::reference) break;  // splitting changes no bit of it (nn.layers)
                    }
                }
    BOOST_TEST(compared == 3 * 6 * 2 * 4);
}

// The same for attention with a memory that has a gradient: that of the rows before the window too. It is as long as what
// can be seen, so that segments change nothing.
BOOST_AUTO_TEST_CASE(attention_gradients_agree_with_central_differences_at_every_length) {
    using Position = AttentionSpec::Position;
    const AttentionSpec plain{.name = "attention", .features = 4, .heads = 2, .memory = 9};
    std::vector<AttentionSpec> kinds(4, plain);
    kinds[0].position = Position::alibi;
    kinds[1].position = Position::rotary;
    kinds[1].save = {};
    kinds[2].position = Position::relative;
    kinds[2].window = 4;
    kinds[2].memory = 3;
    kinds[3].projection = AttentionSpec::Projection::gated;
    kinds[3].save = {"query", "value"};
    int compared = 0;
    for (Index layers = 1; layers <= 3; ++layers)
        for (Index steps = 1; steps <= 6; ++steps)
            for (const bool last_only : {false, true}) {
                const std::size_t kind = static_cast<std::size_t>(layers + steps) % kinds.size();
                ModelSpec spec;
                for (Index l = 0; l < layers; ++l) {
                    AttentionSpec attention = kinds[kind];
                    attention.name += std::to_string(l);
                    spec.layers.push_back(attention);
                }
                spec.layers.push_back(DenseSpec{"head", 4, 2});
                spec.loss.kind = LossSpec::Kind::mean_squared_error;
                const auto stream = static_cast<std::uint32_t>(40 * steps);
                auto start = remembering(cpu::build<double>(spec), 2, 3, stream);
                auto problem = data_for(spec, 0, steps, 2, stream);
                problem.weights.clear();
                problem.loss_from = last_only ? steps - 1 : 0;
                auto parameters = parameters_for(cpu::build<double>(spec), static_cast<std::uint64_t>(layers));
                const std::vector<double> noise = random_values(static_cast<Index>(parameters.size()), 7, 0.3);
                for (std::size_t k = 0; k < parameters.size(); ++k) parameters[k] += noise[k];
                BOOST_TEST_CONTEXT("kind " << kind << ", " << layers << " layers, " << steps
                                           << " steps, last only: " << last_only) {
                    const auto network = cpu::build<double>(spec);
                    const auto value = [&] { return swept(network, parameters, problem, start, steps).objective; };
                    const Tolerance tolerance{1e-6, 0.0};
                    const auto dw = central_differences(parameters, value), dx = central_differences(problem.x, value);
                    std::vector<double> rows(start.begin(), start.begin() + network.adjoint() * 2);
                    const auto drows = central_differences(rows, [&] {
                        std::copy(rows.begin(), rows.end(), start.begin());
                        return value();
                    });
                    std::copy(rows.begin(), rows.end(), start.begin());
                    for (const Driver driver : drivers)
                        for (const Index chunk : {Index{1}, Index{4}, steps}) {
                            const auto got = swept(build<double>(driver, spec), parameters, problem, start, chunk);
                            BOOST_TEST(compare(got.gradients, dw, tolerance));
                            BOOST_TEST(compare(got.dx, dx, tolerance));
                            BOOST_TEST(compare(got.dstart, drows, tolerance));
                            ++compared;
                        }
                }
            }
    BOOST_TEST(compared == 3 * 6 * 2 * 6);
}

BOOST_AUTO_TEST_SUITE_END()

// G43: test tolerances that do not test: percent taken for fraction, comparison with zero, NaN counted as equal. The
// one comparison of the tests must refuse a relative error of 1e-6 in one entry of a gradient, and NaN wherever it
// stands.
BOOST_AUTO_TEST_SUITE(G43)

namespace {

std::vector<double> a_gradient() {
    const Model model = models().back();
    const auto network = reference::build<double>(model.spec);
    return sweep(network, parameters_for(network), data_for(model.spec, network.carry(), 5, 2), 5).gradients;
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

BOOST_AUTO_TEST_CASE(a_relative_error_of_1e_6_in_one_entry_is_caught) {
    const std::vector<double> wanted = a_gradient();
    double largest = 0.0;
    for (const double v : wanted) largest = std::fmax(largest, std::abs(v));
    const Tolerance tolerance = test::tolerance<double>(Quantity::gradients);
    BOOST_TEST(compare(wanted, wanted, tolerance));
    int caught = 0;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
        if (std::abs(wanted[k]) < 1e-4 * largest) continue;
        std::vector<double> got = wanted;
        got[k] *= 1.0 + 1e-6;
        const Comparison c = compare(got, wanted, tolerance);
        BOOST_TEST(!c.passed, "entry " << k);
        BOOST_TEST(c.at == static_cast<Index>(k));
        ++caught;
    }
    BOOST_TEST(caught > 100);
}

BOOST_AUTO_TEST_CASE(nan_is_caught_wherever_it_stands) {
    const std::vector<double> gradient = a_gradient();
    const Tolerance generous{1.0, 1e300};
    for (std::size_t k = 0; k < gradient.size(); ++k) {
        std::vector<double> with_nan = gradient;
        with_nan[k] = not_a_number;
        BOOST_TEST(!compare(with_nan, gradient, generous).passed);
        BOOST_TEST(!compare(gradient, with_nan, generous).passed);
        BOOST_TEST(!compare(with_nan, with_nan, generous).passed);
    }
    BOOST_TEST(
        !compare(std::vector<double>{not_a_number}, std::vector<double>{not_a_number}, {infinity, infinity}).passed);
}

BOOST_AUTO_TEST_CASE(infinities_equal_only_themselves) {
    const std::vector<double> finite{1.0}, plus{infinity}, minus{-infinity};
    BOOST_TEST(compare(plus, plus, {}).passed);
    BOOST_TEST(!compare(plus, minus, {1.0, 1e300}).passed);
    BOOST_TEST(!compare(finite, plus, {1.0, 1e300}).passed);
    BOOST_TEST(!compare(plus, finite, {1.0, 1e300}).passed);
}

BOOST_AUTO_TEST_CASE(tolerances_are_fractions_and_zero_needs_the_absolute_part) {
    const std::vector<double> wanted{100.0, 0.0};
    BOOST_TEST(compare(std::vector<double>{100.9, 0.0}, wanted, {0.01, 0.0}).passed);
    BOOST_TEST(!compare(std::vector<double>{101.1, 0.0}, wanted, {0.01, 0.0}).passed);
    const std::vector<double> zero{0.0, 0.0};
    BOOST_TEST(compare(zero, zero, {0.1, 0.0}).passed);
    BOOST_TEST(!compare(std::vector<double>{0.0, 1e-300}, zero, {0.1, 0.0}).passed);
    BOOST_TEST(compare(std::vector<double>{0.0, 1e-14}, zero, {0.1, 1e-13}).passed);
    BOOST_TEST(compare(std::vector<double>{1.1, 0.0}, std::vector<double>{1.0, 0.0}, {0.01, 0.0}, 20.0).passed);
}

BOOST_AUTO_TEST_CASE(sizes_must_agree_and_nothing_is_not_a_pass) {
    BOOST_TEST(!compare(std::vector<double>{1.0}, std::vector<double>{1.0, 1.0}, {1.0, 1.0}).passed);
    BOOST_TEST(!compare(std::vector<double>{}, std::vector<double>{}, {1.0, 1.0}).passed);
}

BOOST_AUTO_TEST_CASE(bits_are_compared_as_bits) {
    BOOST_TEST(same_bits(std::vector<double>{not_a_number, 1.0}, std::vector<double>{not_a_number, 1.0}).passed);
    BOOST_TEST(!same_bits(std::vector<double>{0.0}, std::vector<double>{-0.0}).passed);
    BOOST_TEST(same_bits(std::vector<float>{1.0F, 1.0F}, std::vector<float>{1.0F, std::nextafter(1.0F, 2.0F)}).at == 1);
    BOOST_TEST(!same_bits(std::vector<float>{1.0F}, std::vector<float>{}).passed);
}

BOOST_AUTO_TEST_SUITE_END()
