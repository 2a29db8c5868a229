// Field cases of single layers and of the data that they are given.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE regression.layers
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/arma.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "nn/cases.hpp"
#include "nn/swept_window.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// A forward and a reverse sweep by revolve with three slots; returns the loss.
template <class Real>
double sweep_of(const Network<Real>& network, const std::vector<Real>& parameters, const Window<Real>& window,
                Index batch, std::vector<Real>& gradients) {
    gradients.assign(parameters.size(), Real{0});
    TimeChain<Real> chain(network, batch, 2);
    chain.show(window);
    chain.use(parameters.data());
    chain.add_to(gradients.data());
    ScheduleOptions revolve;
    revolve.family = "revolve";
    revolve.steps = *chain.length();
    revolve.slots = 3;
    Execution run(chain, make_schedule(revolve));
    run.forward();
    run.backward();
    return chain.loss();
}

}  // namespace

// G03: no gradient in evaluation mode. An LSTM with dropout 0.5, T = 20, float: in evaluation the gradient with respect
// to the input is there, has the same bits twice, and is the one of the same model without dropout.
BOOST_AUTO_TEST_SUITE(G03)

BOOST_AUTO_TEST_CASE(evaluation_has_a_gradient_and_no_dropout) {
    constexpr Index steps = 20, batch = 3;
    const auto model = [](double rate, double weight_drop) {
        ModelSpec m{
            {RecurrentSpec{
                .name = "rnn", .inputs = 4, .hidden = 9, .layers = 2, .dropout = rate, .weight_drop = weight_drop}},
            {}};
        if (rate > 0.0) m.layers.push_back(DropoutSpec{"dropout", 9, rate});
        m.layers.push_back(DenseSpec{"head", 9, 2});
        m.loss.kind = LossSpec::Kind::mean_squared_error;
        return m;
    };
    const auto x = random_values<float>(steps * batch * 4, 60), targets = random_values<float>(steps * batch * 2, 61);
    for (const Driver driver : drivers)
        for (const double weight_drop : {0.0, 0.5})
            BOOST_TEST_CONTEXT(to_string(driver) << ", weight drop " << weight_drop) {
                const auto network = build<float>(driver, model(0.5, weight_drop)),
                           plain = build<float>(driver, model(0.0, 0.0));
                const auto parameters = parameters_for(network);
                struct Gradients {
                    std::vector<float> parameters, input;
                    double loss = 0.0;
                };
                const auto gradients = [&](const Network<float>& n, bool training, std::uint64_t seed) {
                    Gradients g;
                    g.input.resize(x.size());
                    Window<float> window;
                    window.steps = steps;
                    window.inputs = x.data();
                    window.values = targets.data();
                    window.training = training;
                    window.seed = seed;
                    window.input_gradient = g.input.data();
                    g.loss = sweep_of(n, parameters, window, batch, g.parameters);
                    return g;
                };
                const Gradients once = gradients(network, false, 1), twice = gradients(network, false, 2);
                BOOST_TEST(same_bits(twice.input, once.input));
                BOOST_TEST(same_bits(twice.parameters, once.parameters));
                BOOST_TEST(twice.loss == once.loss);
                for (Index t = 0; t < steps; ++t) {
                    const float largest =
                        *std::max_element(once.input.begin() + t * batch * 4, once.input.begin() + (t + 1) * batch * 4,
                                          [](float a, float b) { return std::abs(a) < std::abs(b); });
                    BOOST_TEST(std::abs(largest) > 1e-3F, "step " << t);
                }
                const Gradients without = gradients(plain, true, 1);
                BOOST_TEST(same_bits(once.input, without.input));
                BOOST_TEST(same_bits(once.parameters, without.parameters));
                BOOST_TEST(once.loss == without.loss);
                BOOST_TEST(!same_bits(gradients(network, true, 1).input, once.input).passed);
            }
}

BOOST_AUTO_TEST_SUITE_END()

// G13: one query without a visible key turned all gradients into NaN. Two sequences of four steps, causal window of two, the
// second of length two: gradients are finite and those of a run where its last two rows are cut out before attention. A
// query that sees no key is in the loss too: it gives the bias, and no gradient but the bias's.
BOOST_AUTO_TEST_SUITE(G13)

namespace {

constexpr Index features = 4;

ModelSpec windowed() {
    ModelSpec m{{AttentionSpec{.name = "attention", .features = features, .heads = 2, .memory = 1, .window = 2}}, {}};
    m.loss.kind = LossSpec::Kind::inner_product;
    return m;
}

/// The steps of one of the two sequences.
Problem<double> alone(const Problem<double>& both, Index sequence, Index steps) {
    Problem<double> one;
    one.steps = steps;
    for (Index t = 0; t < steps; ++t)
        for (Index k = 0; k < features; ++k) {
            const auto from = static_cast<std::size_t>((t * 2 + sequence) * features + k);
            one.x.push_back(both.x[from]);
            one.values.push_back(both.values[from]);
        }
    return one;
}

template <class Real>
bool finite(const std::vector<Real>& values) {
    return std::all_of(values.begin(), values.end(), [](Real v) { return std::isfinite(v); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(rows_without_keys_leave_all_gradients_finite) {
    auto both = data_for(windowed(), 0, 4, 2);
    both.scale = 1.0;
    const std::vector<std::uint8_t> padding{0, 0, 0, 0, 0, 1, 0, 1};
    for (const Driver driver : drivers)
        for (const bool marks : {false, true})
            for (const Index chunk : {1, 2, 3, 4})
                BOOST_TEST_CONTEXT(to_string(driver) << ", " << (marks ? "marks" : "key padding") << ", chunk " << chunk) {
                    const auto network = build<double>(driver, windowed());
                    const auto parameters = parameters_for(network);
                    both.weights = {1, 1, 1, 1, 1, 0, 1, 0};
                    both.marks.clear();
                    for (const std::uint8_t hidden : padding)
                        if (marks) both.marks.push_back(hidden ? Mark::filler : Mark::step);
                    const auto* const keys = marks ? nullptr : padding.data();
                    const auto got = swept(network, parameters, both, {}, chunk, keys);
                    const auto first = swept(network, parameters, alone(both, 0, 4), {}, chunk);
                    const auto second = swept(network, parameters, alone(both, 1, 2), {}, chunk);
                    std::vector<double> sum = first.gradients;
                    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += second.gradients[k];
                    BOOST_TEST(compare(got.gradients, sum, {0.0, 1e-13}));
                    std::vector<double> dx(got.dx.size());
                    for (std::size_t k = 0; k < dx.size(); ++k) {
                        const std::size_t t = k / 8, b = k / features % 2, f = k % features;
                        dx[k] = b == 0 ? first.dx[t * features + f] : t < 2 ? second.dx[t * features + f] : 0.0;
                    }
                    BOOST_TEST(compare(got.dx, dx, {0.0, 1e-13}));
                    BOOST_TEST(compare(std::vector{got.objective}, std::vector{first.objective + second.objective}, {0.0, 1e-13}));
                    const auto single = swept(build<float>(driver, windowed()), cast<float>(parameters), cast<float>(both), {}, chunk, keys);
                    BOOST_TEST(finite(single.gradients));
                    BOOST_TEST(finite(single.dx));
                    if (marks) continue;
                    // The last step of the second sequence sees nothing at all.
                    both.weights.back() = 1.0;
                    const auto seen = swept(network, parameters, both, {}, chunk, keys);
                    const Index bias = network.parameters().find("attention.out_proj.bias").offset;
                    sum = got.gradients;
                    for (Index k = 0; k < features; ++k) sum[static_cast<std::size_t>(bias + k)] += both.values[static_cast<std::size_t>(28 + k)];
                    BOOST_TEST(compare(seen.gradients, sum, {0.0, 1e-13}));
                    BOOST_TEST(compare(seen.dx, got.dx, {0.0, 1e-13}));
                }
}

BOOST_AUTO_TEST_SUITE_END()

// G38: strided or transposed input. Parts of matrices, transposed expressions and cube slices, handed over the one way
// there is, give the bits of a contiguous copy made by hand; a shape that does not fit is said in words.
BOOST_AUTO_TEST_SUITE(G38)

namespace {

constexpr Index steps = 7, batch = 3, features = 4;

/// What a sweep over inputs [step][batch][feature] gives.
struct Result {
    std::vector<double> gradients, input_gradient;
    double loss = 0.0;
};

class Swept {
public:
    Swept()
        : network_(cpu::build<double>(spec())),
          parameters_(parameters_for(network_)),
          targets_(random_values(steps * batch * 2, 70)) {}

    Result operator()(const double* x) const {
        Result r;
        r.input_gradient.resize(static_cast<std::size_t>(steps * batch * features));
        Window<double> window;
        window.steps = steps;
        window.inputs = x;
        window.values = targets_.data();
        window.input_gradient = r.input_gradient.data();
        r.loss = sweep_of(network_, parameters_, window, batch, r.gradients);
        return r;
    }

private:
    static ModelSpec spec() {
        ModelSpec m{{RecurrentSpec{.name = "rnn", .inputs = features, .hidden = 5}, DenseSpec{"head", 5, 2}}, {}};
        m.loss.kind = LossSpec::Kind::mean_squared_error;
        return m;
    }

    Network<double> network_;
    std::vector<double> parameters_, targets_;
};

/// Random matrices and cubes that do not depend on Armadillo's generator.
arma::mat matrix(Index rows, Index columns, std::uint32_t stream) {
    const std::vector<double> values = random_values(rows * columns, stream);
    return arma::mat(values.data(), static_cast<arma::uword>(rows), static_cast<arma::uword>(columns));
}

/// Element by element, [step][batch][feature], out of element(feature, column), column = step x batch + sequence.
template <class Element>
std::vector<double> by_hand(Element element) {
    std::vector<double> x;
    for (arma::uword column = 0; column < steps * batch; ++column)
        for (arma::uword k = 0; k < features; ++k) x.push_back(element(k, column));
    return x;
}

void check(const Swept& swept, const double* handed_over, const std::vector<double>& copy) {
    const Result got = swept(handed_over), wanted = swept(copy.data());
    BOOST_TEST(same_bits(got.gradients, wanted.gradients));
    BOOST_TEST(same_bits(got.input_gradient, wanted.input_gradient));
    BOOST_TEST(got.loss == wanted.loss);
}

}  // namespace

BOOST_AUTO_TEST_CASE(parts_transposes_and_slices_give_the_bits_of_a_copy) {
    const Swept swept;
    const arma::mat wide = matrix(9, 40, 71), tall = matrix(steps * batch, features, 72);

    const arma::mat part = wide.submat(2, 5, 2 + features - 1, 5 + steps * batch - 1);
    check(swept, array_view(part, steps, batch, features), by_hand([&](auto k, auto c) { return wide(2 + k, 5 + c); }));

    const arma::mat turned = tall.t();
    check(swept, array_view(turned, steps, batch, features), by_hand([&](auto k, auto c) { return tall(c, k); }));

    const arma::mat expression = 2.0 * tall.t() - wide.submat(0, 0, features - 1, steps * batch - 1);
    check(swept, array_view(expression, steps, batch, features),
          by_hand([&](auto k, auto c) { return 2.0 * tall(c, k) - wide(k, c); }));

    arma::uvec falling(steps * batch);
    for (arma::uword c = 0; c < steps * batch; ++c) falling[c] = 39 - c;
    const arma::mat picked = wide(arma::uvec{7, 0, 3, 5}, falling);
    const arma::uword rows[] = {7, 0, 3, 5};
    check(swept, array_view(picked, steps, batch, features),
          by_hand([&](auto k, auto c) { return wide(rows[k], 39 - c); }));

    // Cubes are (features, batch, steps); a slice of one lies in one piece and needs no copy.
    arma::cube cube(8, 5, 12), slices(features, steps * batch, 3);
    for (arma::uword e = 0; e < cube.n_elem; ++e) cube[e] = std::sin(static_cast<double>(3 * e));
    for (arma::uword e = 0; e < slices.n_elem; ++e) slices[e] = std::cos(static_cast<double>(5 * e));
    const arma::cube inner = cube.subcube(3, 1, 4, 3 + features - 1, 1 + batch - 1, 4 + steps - 1);
    check(swept, array_view(inner, steps, batch, features),
          by_hand([&](auto k, auto c) { return cube(3 + k, 1 + c % batch, 4 + c / batch); }));
    check(swept, array_view(slices.slice(1), steps, batch, features),
          by_hand([&](auto k, auto c) { return slices(k, c, 1); }));
    const arma::mat behind = slices.slice(2) + slices.slice(0);
    check(swept, array_view(behind, steps, batch, features),
          by_hand([&](auto k, auto c) { return slices(k, c, 2) + slices(k, c, 0); }));
}

BOOST_AUTO_TEST_CASE(nothing_is_copied_and_results_come_back_in_place) {
    const arma::mat x = matrix(features, steps * batch, 73);
    BOOST_TEST(array_view(x, steps, batch, features) == x.memptr());
    arma::cube gradient(features, batch, steps);
    double* const assigned = array_view(gradient, steps, batch, features);
    BOOST_TEST(assigned == gradient.memptr());
    assigned[(2 * batch + 1) * features + 3] = 5.0;
    BOOST_TEST(gradient(3, 1, 2) == 5.0);
    const arma::Row<std::int32_t> tokens{4, 0, 2};
    BOOST_TEST(array_view(tokens, 3, 1, 1)[2] == 2);
    // What the library gives, seen as a matrix, may be cut and turned at will.
    const std::vector<double> y = random_values(features * steps * batch, 74);
    const auto seen = matrix_view(y.data(), features, steps * batch);
    const arma::mat transposed = seen.cols(2, 6).t();
    BOOST_TEST(transposed(4, 1) == y[6 * features + 1]);
}

BOOST_AUTO_TEST_CASE(a_shape_that_does_not_fit_is_said_in_words) {
    const auto says = [](const std::string& came) {
        return [came](const InvalidArgument& e) {
            BOOST_TEST_MESSAGE(e.what());
            return std::string(e.what()) ==
                   "an array of 7 steps, 3 sequences and 4 features is a matrix of 4 x 21 or a cube of 4 x 3 x 7, but "
                   "this one is " +
                       came + "; copy it into that shape first, for instance const arma::mat copy = X.t();";
        };
    };
    const arma::mat turned(21, 4), short_one(4, 20);
    const arma::cube steps_first(7, 3, 4);
    const arma::vec flat(84);
    BOOST_CHECK_EXCEPTION(array_view(turned, steps, batch, features), InvalidArgument, says("21 x 4"));
    BOOST_CHECK_EXCEPTION(array_view(short_one, steps, batch, features), InvalidArgument, says("4 x 20"));
    BOOST_CHECK_EXCEPTION(array_view(steps_first, steps, batch, features), InvalidArgument, says("7 x 3 x 4"));
    BOOST_CHECK_EXCEPTION(array_view(flat, steps, batch, features), InvalidArgument, says("84 x 1"));
}

BOOST_AUTO_TEST_SUITE_END()
