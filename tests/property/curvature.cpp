// Products with the Hessian and the Gauss-Newton matrix: the derivative of the gradient, symmetric, the same bits under
// all schedules along time and depth; J' H_L J with J formed column by column.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE curvature
#include "support/unit_test.hpp"

#include "backsweep/base/random.hpp"
#include "backsweep/nn/curvature.hpp"
#include "backsweep/nn/dual.hpp"
#include "backsweep/store/ram_store.hpp"
#include "property/five_models.hpp"
#include "support/compare.hpp"
#include "support/every_family.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

using D = Dual<double>;
using Matrix = CurvatureOptions::Matrix;
using Vector = std::vector<double>;

Vector random_vector(Index count, std::uint32_t stream, double size = 1.0) {
    const Random random(20240607, stream);
    Vector v;
    for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(count); ++k)
        v.push_back(size * (2.0 * random.uniform(0, k) - 1.0));
    return v;
}

double dot(const Vector& a, const Vector& b) {
    double sum = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
    return sum;
}
double norm(const Vector& a) {
    return std::sqrt(dot(a, a));
}

bool same(const Vector& a, const Vector& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// A model with data and a point; nothing is tame.
class Case {
public:
    Case(ModelSpec spec, Index steps, Index batch, bool marked = false)
        : network(cpu::build<double>(spec)),
          spec_(std::move(spec)),
          steps_(steps),
          batch_(batch) {
        parameters.resize(static_cast<std::size_t>(network.parameters().size()));
        network.start(7, parameters);
        const Vector noise = random_vector(network.parameters().size(), 1, 0.3);
        for (std::size_t k = 0; k < parameters.size(); ++k) parameters[k] += noise[k];
        const Random random(11, 3);
        const Index positions = steps * batch;
        for (Index p = 0; p < positions; ++p) {
            const auto at = static_cast<std::uint64_t>(p);
            tokens_.push_back(static_cast<std::int32_t>(random.below(9, 1, at)));
            classes_.push_back(
                static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(spec_.outputs()), 2, at)));
            const Index place = p / batch + 2 * (p % batch);
            if (marked) marks_.push_back(place % 5 == 4 ? Mark::filler : place % 5 == 2 ? Mark::first : Mark::step);
        }
        inputs_ = random_vector(positions * spec_.inputs(), 4, 1.5);
        values_ = random_vector(positions * spec_.targets(), 5);
        weights_ = random_vector(positions, 6, 0.5);
        for (double& w : weights_) w += 0.6;  // > 0: a sum of convex losses
        state_ = random_vector(network.state() * batch, 7, 0.8);
        std::fill(state_.end() - network.remembered() * batch, state_.end(), 1.0);
    }

    Index size() const { return static_cast<Index>(parameters.size()); }

    Window<double> window() const {
        Window<double> w;
        w.first = 1000;
        w.steps = steps_;
        w.tokens = spec_.inputs() > 0 ? nullptr : tokens_.data();
        w.inputs = spec_.inputs() > 0 ? inputs_.data() : nullptr;
        w.classes = classes_.data();
        w.values = values_.empty() ? nullptr : values_.data();
        w.weights = weights_.data();
        w.marks = marks_.empty() ? nullptr : marks_.data();
        w.seed = 5;
        w.loss_from = 1;
        w.scale = 1.0 / static_cast<double>(steps_ * batch_);
        return w;
    }
    CurvaturePoint point() const { return {window(), parameters, state_}; }

    Vector product(Matrix matrix, const Vector& direction, Index chunk = 3) const {
        return product({.matrix = matrix, .chunk = chunk}, direction);
    }
    Vector product(CurvatureOptions options, const Vector& direction, Vector* gradient = nullptr,
                   double* loss = nullptr) const {
        Curvature curvature(spec_, batch_, std::move(options));
        RamStore slots, activations;
        curvature.use(slots, activations);
        Vector result(parameters.size());
        if (gradient) gradient->assign(parameters.size(), std::numeric_limits<double>::quiet_NaN());
        const double sum = curvature.multiply(point(), direction, result,
                                              gradient ? std::span<double>(*gradient) : std::span<double>{});
        if (loss) *loss = sum;
        return result;
    }

    /// Of plain numbers, at parameters moved by h along a direction.
    Vector gradient(Index chunk, const Vector& direction, double h, double* loss = nullptr) const {
        Vector at = parameters, g(parameters.size());
        for (std::size_t k = 0; k < at.size(); ++k) at[k] += h * direction[k];
        TimeChain<double> chain(network, batch_, chunk);
        auto start = chain.zero();
        std::copy(state_.begin(), state_.end(), start.carry.begin());
        chain.start_from(start);
        chain.show(window());
        chain.use(at.data());
        chain.add_to(g.data());
        ScheduleOptions all;
        all.family = "store_all";
        all.steps = *chain.length();
        Execution<TimeChain<double>> run(chain, make_schedule(all));
        run.forward();
        run.backward();
        if (loss) *loss = chain.loss();
        return g;
    }

    Vector central_difference(Index chunk, const Vector& direction) const {
        constexpr double h = 1e-5;
        const Vector above = gradient(chunk, direction, h), below = gradient(chunk, direction, -h),
                     far_above = gradient(chunk, direction, 2 * h), far_below = gradient(chunk, direction, -2 * h);
        Vector d;
        for (std::size_t k = 0; k < above.size(); ++k)
            d.push_back((8.0 * (above[k] - below[k]) - (far_above[k] - far_below[k])) / (12.0 * h));
        return d;
    }

    Network<double> network;
    Vector parameters;

private:
    ModelSpec spec_;
    Index steps_, batch_;
    std::vector<std::int32_t> tokens_, classes_;
    std::vector<Mark> marks_;
    Vector inputs_, values_, weights_, state_;
};

/// f(name, case) of the five models.
template <class F>
void for_each_model(F f) {
    for (const NamedModel& model : five_models())
        BOOST_TEST_CONTEXT(model.name) f(model.name, Case(model.spec, 13, 3, model.marked));
}

/// A small model with real inputs and a loss of values.
ModelSpec small_model(LossSpec::Kind loss, Index outputs) {
    ModelSpec m;
    m.layers = {RecurrentSpec{.name = "rnn", .inputs = 2, .hidden = 4, .cell = RecurrentSpec::Cell::gru},
                DenseSpec{.name = "head", .inputs = 4, .outputs = outputs}};
    m.loss.kind = loss;
    return m;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_hessian_is_the_derivative_of_the_gradient) {
    double worst = 0.0;
    for_each_model([&](const std::string&, const Case& one) {
        const Vector v = random_vector(one.size(), 20);
        for (const Index chunk : {1, 3, 32}) BOOST_TEST_CONTEXT("chunk " << chunk) {
                Vector gradient;
                double loss = 0.0, plain_loss = 0.0;
                const Vector product = one.product({.chunk = chunk}, v, &gradient, &loss);
                const Comparison difference = compare(product, one.central_difference(chunk, v), {1e-6});
                BOOST_TEST(difference);
                worst = std::fmax(worst, difference.worst / difference.limit * 1e-6);
                BOOST_TEST(compare(gradient, one.gradient(chunk, v, 0.0, &plain_loss), {1e-12}));
                BOOST_TEST(std::abs(loss - plain_loss) <= 1e-12 * std::abs(plain_loss));
            }
    });
    BOOST_TEST_MESSAGE("largest difference from central differences: " << worst << " of the largest element");
}

BOOST_AUTO_TEST_CASE(both_matrices_are_symmetric) {
    double worst = 0.0;
    for_each_model([&](const std::string&, const Case& one) {
        const Vector u = random_vector(one.size(), 21), v = random_vector(one.size(), 22);
        for (const Matrix matrix : {Matrix::hessian, Matrix::gauss_newton}) {
            const Vector of_u = one.product(matrix, u), of_v = one.product(matrix, v);
            const double left = dot(u, of_v), right = dot(v, of_u), scale = norm(u) * norm(of_v);
            BOOST_TEST(std::abs(left - right) <= 1e-12 * std::abs(left), left << " is not " << right);
            BOOST_TEST(scale > 1e-3);
            worst = std::fmax(worst, std::abs(left - right) / std::abs(left));
        }
    });
    BOOST_TEST_MESSAGE("largest asymmetry: " << worst);
}

// What lies within layers made of layers, and layers that no window is cut for.
BOOST_AUTO_TEST_CASE(composite_layers_have_them_too) {
    ModelSpec spec;
    spec.layers = {
        EmbeddingSpec{"embedding", 9, 5, std::nullopt},
        RecurrentSpec{
            .name = "both", .inputs = 5, .hidden = 3, .bidirectional = true, .learned_state = true, .weight_drop = 0.3},
        CheckpointSpec{
            "block",
            {NormSpec{.name = "rms", .features = 6, .kind = NormSpec::Kind::rms},
             RecurrentSpec{.name = "inner", .inputs = 6, .hidden = 7, .cell = RecurrentSpec::Cell::rnn_tanh}}},
        ResidualSpec{
            "residual",
            {ActivationSpec{"gelu", 7, ActivationSpec::Kind::gelu}, DenseSpec{"down", 7, 5}, DenseSpec{"up", 5, 7}}},
        DenseSpec{.name = "back", .inputs = 7, .outputs = 5},
        DenseSpec{.name = "head", .inputs = 5, .outputs = 9, .tied = "embedding"}};
    const Case one(spec, 11, 3, true);
    const Vector u = random_vector(one.size(), 24), v = random_vector(one.size(), 25);
    const Vector of_v = one.product(Matrix::hessian, v, 32);
    BOOST_TEST(compare(of_v, one.central_difference(32, v), {1e-6}));
    const double left = dot(u, of_v), right = dot(v, one.product(Matrix::hessian, u, 32));
    BOOST_TEST(std::abs(left - right) <= 1e-12 * std::abs(left), left << " is not " << right);
}

BOOST_AUTO_TEST_CASE(bits_are_equal_under_all_schedules) {
    using Family = DepthOptions::Family;
    for_each_model([&](const std::string&, const Case& one) {
        const Vector v = random_vector(one.size(), 23);
        for (const Matrix matrix : {Matrix::hessian, Matrix::gauss_newton})
            for (const Index chunk : {1, 3, 32})
                BOOST_TEST_CONTEXT("matrix " << static_cast<int>(matrix) << ", chunk " << chunk) {
                    const Index links = (13 + chunk - 1) / chunk;
                    std::vector<ScheduleOptions> along_time = every_family(links);
                    for (const Index slots : {Index{1}, Index{2}, Index{3}, links}) {
                        along_time.emplace_back().family = "revolve";
                        along_time.back().slots = slots;
                    }
                    along_time.emplace_back().family = "periodic";
                    along_time.back().period = 2;
                    const Vector all = one.product({.matrix = matrix, .chunk = chunk}, v);
                    for (const ScheduleOptions& schedule : along_time)
                        BOOST_TEST(same(one.product({.matrix = matrix, .chunk = chunk, .schedule = schedule}, v), all),
                                   schedule.family << " with " << schedule.slots << " slots differs");
                    for (const auto& [family, period] :
                         {std::pair{Family::sqrt, Index{0}}, std::pair{Family::sqrt, Index{2}},
                          std::pair{Family::slots, Index{0}}}) {
                        CurvatureOptions options{.matrix = matrix, .chunk = chunk, .schedule = along_time.back()};
                        options.depth.family = family;
                        options.depth.period = period;
                        BOOST_TEST(same(one.product(options, v), all),
                                   "depth family " << static_cast<int>(family) << " differs");
                        options.depth.place = [](const std::string&) { return Tier::disk; };
                        BOOST_TEST(same(one.product(options, v), all), "activations on disk differ");
                    }
                    auto beside = std::async(std::launch::async, [&] { return one.product(matrix, v, chunk); });
                    BOOST_TEST(same(one.product(matrix, v, chunk), all));
                    BOOST_TEST(same(beside.get(), all), "a second thread differs");
                }
    });
}

BOOST_AUTO_TEST_CASE(the_gauss_newton_matrix_is_positive_semi_definite) {
    for_each_model([&](const std::string&, const Case& one) {
        for (std::uint32_t stream = 30; stream < 36; ++stream) {
            const Vector v = random_vector(one.size(), stream);
            BOOST_TEST(dot(v, one.product(Matrix::gauss_newton, v)) > 0.0);
        }
    });
    using Kind = LossSpec::Kind;
    for (const Kind kind : {Kind::mean_squared_error, Kind::huber, Kind::binary_cross_entropy}) {
        const Case one(small_model(kind, 2), 5, 2);
        const Vector v = random_vector(one.size(), 40);
        BOOST_TEST(dot(v, one.product(Matrix::gauss_newton, v)) > 0.0);
    }
    const Case linear_loss(small_model(Kind::inner_product, 2), 5, 2);  // H_L = 0
    const Vector v = random_vector(linear_loss.size(), 41);
    BOOST_TEST(norm(linear_loss.product(Matrix::gauss_newton, v)) == 0.0);
    BOOST_TEST(norm(linear_loss.product(Matrix::hessian, v)) > 1e-3);
}

// Of a model that is linear in its parameters, with squares as loss, the two are one: the residual has no second
// derivative.
BOOST_AUTO_TEST_CASE(of_a_linear_model_both_matrices_are_equal) {
    ModelSpec linear;
    linear.layers = {DenseSpec{.name = "head", .inputs = 3, .outputs = 4}};
    linear.loss.kind = LossSpec::Kind::mean_squared_error;
    const Case one(linear, 7, 3);
    const Vector v = random_vector(one.size(), 50);
    const Vector hessian = one.product(Matrix::hessian, v), gauss_newton = one.product(Matrix::gauss_newton, v);
    BOOST_TEST(norm(hessian) > 0.1);
    BOOST_TEST(hessian == gauss_newton);
    // Elsewhere they differ.
    const Case other(small_model(LossSpec::Kind::mean_squared_error, 2), 7, 3);
    const Vector w = random_vector(other.size(), 51);
    BOOST_TEST(!compare(other.product(Matrix::hessian, w), other.product(Matrix::gauss_newton, w), {1e-3}));
}

// J column by column, by a forward sweep along every axis; H_L = scale weight (diag p - p p') of every position.
BOOST_AUTO_TEST_CASE(the_gauss_newton_matrix_is_made_of_its_factors) {
    constexpr Index steps = 4, batch = 2, classes = 3;
    ModelSpec spec = small_model(LossSpec::Kind::cross_entropy, classes);
    const Case one(spec, steps, batch);
    const Network<D> whole = cpu::build<D>(spec), below = whole.part({0, whole.depth() - 1});
    const Window<double> given = one.window();
    std::vector<D> inputs(given.inputs, given.inputs + steps * batch * 2), outputs(steps * batch * classes),
        parameters(one.parameters.size());
    std::vector<Vector> J;
    for (std::size_t axis = 0; axis < parameters.size(); ++axis) {
        for (std::size_t k = 0; k < parameters.size(); ++k) parameters[k] = {one.parameters[k], k == axis ? 1.0 : 0.0};
        TimeChain<D> chain(below, batch, 3);
        auto start = chain.zero();
        const CurvaturePoint point = one.point();
        std::copy(point.state.begin(), point.state.end(), start.carry.begin());
        chain.start_from(start);
        Window<D> window;
        window.steps = steps;
        window.inputs = inputs.data();
        window.outputs = outputs.data();
        chain.show(window);
        chain.use(parameters.data());
        auto x = chain.initial();
        TimeChain<D>::Tape tape;
        for (Index link = 0; link < *chain.length(); ++link) chain.record({link, link + 1}, x, tape);
        Vector column;
        for (const D& y : outputs) column.push_back(y.tangent);
        J.push_back(column);
    }
    const Vector v = random_vector(one.size(), 60);
    Vector Jv(outputs.size()), HJv(outputs.size()), wanted(parameters.size());
    for (std::size_t axis = 0; axis < J.size(); ++axis)
        for (std::size_t k = 0; k < Jv.size(); ++k) Jv[k] += v[axis] * J[axis][k];
    for (Index p = batch; p < steps * batch; ++p) {  // the first step has no loss
        double sum = 0.0, mean = 0.0;
        for (Index c = 0; c < classes; ++c) {
            const auto at = static_cast<std::size_t>(p * classes + c);
            sum += std::exp(outputs[at].value);
            mean += std::exp(outputs[at].value) * Jv[at];
        }
        for (Index c = 0; c < classes; ++c) {
            const auto at = static_cast<std::size_t>(p * classes + c);
            HJv[at] = given.scale * given.weights[p] * std::exp(outputs[at].value) / sum * (Jv[at] - mean / sum);
        }
    }
    for (std::size_t axis = 0; axis < J.size(); ++axis) wanted[axis] = dot(J[axis], HJv);
    BOOST_TEST(compare(one.product(Matrix::gauss_newton, v), wanted, {1e-12}));
}

// A detached memory: the product is the derivative of the truncated gradient, which is no gradient, so that the matrix
// is not symmetric.
BOOST_AUTO_TEST_CASE(of_a_truncated_gradient_it_is_the_derivative) {
    TransformerXl xl;
    xl.ends.vocabulary = 9;
    xl.ends.outputs = 11;
    xl.features = 6;
    xl.layers = 2;
    xl.heads = 2;
    xl.memory = 4;
    xl.detached = true;
    const Case one(transformer_xl(xl), 13, 3);
    const Vector u = random_vector(one.size(), 70), v = random_vector(one.size(), 71);
    const Vector of_v = one.product(Matrix::hessian, v);
    BOOST_TEST(compare(of_v, one.central_difference(3, v), {1e-6}));
    const double left = dot(u, of_v), right = dot(v, one.product(Matrix::hessian, u));
    BOOST_TEST(std::abs(left - right) > 1e-6 * norm(u) * norm(of_v));
}

BOOST_AUTO_TEST_CASE(one_object_serves_any_windows_and_gives_its_memory_back) {
    const NamedModel model = five_models()[4];
    const Case one(model.spec, 13, 3);
    const Vector v = random_vector(one.size(), 80);
    Ledger ledger;
    {
        CurvatureOptions options{.chunk = 3};
        options.schedule.family = "revolve";
        options.schedule.slots = 2;
        Curvature curvature(model.spec, 3, options, ledger);
        BOOST_TEST(curvature.size() == one.size());
        Vector first(v.size()), second(v.size()), third(v.size());
        CurvaturePoint point = one.point();
        curvature.multiply(point, v, first);
        BOOST_TEST(curvature.counts().reversed == 5);
        BOOST_TEST(curvature.counts().advances > 0);
        point.window.steps = 7;
        curvature.multiply(point, v, second);
        BOOST_TEST(curvature.counts().reversed == 3);
        point.window.steps = 13;
        curvature.multiply(point, v, third);
        BOOST_TEST(same(first, third));
        BOOST_TEST(!same(first, second));
        BOOST_TEST(ledger.live()[Kind::parameters] == 16 * one.size());
        BOOST_TEST(ledger.live()[Kind::gradients] == 16 * one.size());
        Curvature moved = std::move(curvature);
        moved.multiply(point, v, third);
        BOOST_TEST(same(first, third));
    }
    BOOST_TEST(ledger.live().total() == 0);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
    const Case one(small_model(LossSpec::Kind::mean_squared_error, 2), 5, 2);
    Vector v = random_vector(one.size(), 90), product(v.size()), gradient(v.size());
    const auto says = [](const char* part) {
        return [part](const Error& e) { return std::string(e.what()).find(part) != std::string::npos; };
    };
    Curvature hessian(small_model(LossSpec::Kind::mean_squared_error, 2), 2);
    const std::span<double> few(product.data(), product.size() - 1);
    BOOST_CHECK_EXCEPTION(hessian.multiply(one.point(), few, product), InvalidArgument, says("a direction of"));
    BOOST_CHECK_EXCEPTION(hessian.multiply(one.point(), v, few), InvalidArgument, says("room for a product of"));
    BOOST_CHECK_EXCEPTION(hessian.multiply(one.point(), v, product, few), InvalidArgument,
                          says("room for a gradient of"));
    CurvaturePoint point = one.point();
    point.parameters = few;
    BOOST_CHECK_EXCEPTION(hessian.multiply(point, v, product), InvalidArgument, says("a vector of parameters of"));
    point = one.point();
    point.state = few;
    BOOST_CHECK_EXCEPTION(hessian.multiply(point, v, product), InvalidArgument, says("a state between windows of"));
    point = one.point();
    point.window.losses = gradient.data();
    BOOST_CHECK_EXCEPTION(hessian.multiply(point, v, product), InvalidArgument, says("assigns the product alone"));
    point = one.point();
    point.window.values = nullptr;
    BOOST_CHECK_EXCEPTION(hessian.multiply(point, v, product), InvalidArgument, says("value targets"));
    Curvature gauss_newton(small_model(LossSpec::Kind::mean_squared_error, 2), 2, {.matrix = Matrix::gauss_newton});
    BOOST_CHECK_EXCEPTION(gauss_newton.multiply(one.point(), v, product, gradient), InvalidArgument,
                          says("has no gradient"));
    ScheduleOptions forward_only;
    forward_only.family = "forward_only";
    Curvature forward(small_model(LossSpec::Kind::mean_squared_error, 2), 2, {.schedule = forward_only});
    BOOST_CHECK_EXCEPTION(forward.multiply(one.point(), v, product), InvalidArgument, says("'forward_only' has none"));
    v[0] = std::numeric_limits<double>::infinity();
    BOOST_CHECK_EXCEPTION(hessian.multiply(one.point(), v, product), NumericError, says("not finite"));
    v[0] = 1.0;
    BOOST_TEST(hessian.multiply(one.point(), v, product, gradient) > 0.0);
}
