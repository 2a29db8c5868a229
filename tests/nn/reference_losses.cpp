// Runners of reference files for losses in every reduction, cross-entropy also with time as the last axis.
// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "backsweep/nn/loss.hpp"
#include "nn/reference_cases.hpp"
#include "nn/sweep.hpp"

using namespace backsweep;
using namespace backsweep::test;

namespace {

LossSpec::Reduction reduction_of(const ReferenceCase& c) {
    const std::string name = c.options.at("reduction");
    if (name == "mean") return LossSpec::Reduction::mean;
    if (name == "sum") return LossSpec::Reduction::sum;
    if (name == "none") return LossSpec::Reduction::none;
    throw InvalidArgument("no reduction '" + name + "'");
}

/// Loss and gradient of the loss layer alone; `check_dx` checks the gradient, [step][batch][features].
template <class Check>
void run(const ReferenceCase& c, const LossSpec& loss, Index features, Problem<double> problem, Check check_dx) {
    Segment<double> all;
    all.steps = problem.steps;
    all.batch = problem.batch;
    all.classes = problem.classes.data();
    const double divisor = loss_divisor(loss, features, all);
    problem.scale = 1.0 / divisor;
    // A network needs a layer below its loss; only the loss is run.
    const ModelSpec spec{{DenseSpec{"head", features, features, true}}, loss};
    for (const Driver driver : drivers) BOOST_TEST_CONTEXT(to_string(driver)) {
            const auto one = [&]<class Real>(const Network<Real>& network) {
                const std::vector<Real> parameters(static_cast<std::size_t>(network.parameters().size()));
                for (const Index chunk : {problem.steps, Index{3}}) {
                    const auto out = sweep(network, parameters, cast<Real>(problem), chunk, network.depth() - 1);
                    const double scale = loss.reduction != LossSpec::Reduction::none
                                             ? -1.0
                                             : weighted_size(problem.weights, c.values_of<double>("output"));
                    c.check("loss", std::vector<Real>{static_cast<Real>(out.loss / divisor)}, c.values(), scale);
                    check_dx(out.dx);
                    if (loss.reduction == LossSpec::Reduction::none) c.check("output", out.losses, c.values());
                    for (std::size_t p = 0; p < problem.classes.size(); ++p) {
                        if (!loss.ignore_index || problem.classes[p] != *loss.ignore_index) continue;
                        for (std::size_t k = 0; k < static_cast<std::size_t>(features); ++k)
                            BOOST_TEST(out.dx[p * static_cast<std::size_t>(features) + k] == Real{0});
                    }
                }
            };
            one(build<float>(driver, spec));
            one(build<double>(driver, spec));
        }
}

auto input_gradient(const ReferenceCase& c) {
    return [&c](const auto& dx) { c.check("grad.input", dx, c.gradients()); };
}

void run_cross_entropy(const ReferenceCase& c) {
    LossSpec loss;
    loss.reduction = reduction_of(c);
    loss.label_smoothing = c.options.at("label_smoothing");
    loss.ignore_index = c.options.at("ignore_index").get<Index>();
    if (c.options.value("class_weight", false)) loss.class_weights = c.values_of<double>("class_weight");
    const std::vector<Index>& shape = c.file.at("input").shape;
    const Index classes = shape[1];
    Problem<double> problem;
    problem.x = c.values_of<double>("input");
    problem.classes = c.integers_of("target");
    if (loss.reduction == LossSpec::Reduction::none) problem.weights = c.values_of<double>("loss_weight.output");
    if (shape.size() == 2) {  // (N, C)
        problem.steps = shape[0];
        run(c, loss, classes, problem, input_gradient(c));
        return;
    }
    // (B, C, T), targets (B, T): to [T][B][C] and back.
    const Index batch = shape[0], steps = shape[2];
    problem.steps = steps;
    problem.batch = batch;
    problem.x = swap_axes(swap_last_axes(problem.x, classes, steps), batch, steps);
    problem.classes = swap_axes(problem.classes, batch, steps);
    run(c, loss, classes, problem, [&](const auto& dx) {
        c.check("grad.input", swap_last_axes(swap_axes(dx, steps, batch), steps, classes), c.gradients());
    });
}

/// Losses with value targets; the axes before the last are [step][batch].
void run_values(const ReferenceCase& c, LossSpec loss, Index features, std::vector<double> x) {
    loss.reduction = reduction_of(c);
    const Index steps = c.file.at("input").shape.front();
    Problem<double> problem;
    problem.x = std::move(x);
    problem.values = c.values_of<double>("target");
    problem.steps = steps;
    problem.batch = static_cast<Index>(problem.x.size()) / (steps * features);
    if (loss.kind != LossSpec::Kind::gaussian_nll) return run(c, loss, features, problem, input_gradient(c));
    run(c, loss, features, problem, [&]<class Real>(const std::vector<Real>& dx) {
        const Index means = loss.targets(features);
        std::vector<Real> parts[2];
        for (std::size_t k = 0; k < dx.size(); ++k) parts[static_cast<Index>(k) % features < means ? 0 : 1].push_back(dx[k]);
        c.check("grad.input", parts[0], c.gradients());
        c.check("grad.var", parts[1], c.gradients());
    });
}

/// [position][a + b] of [position][a] and [position][b].
std::vector<double> side_by_side(const std::vector<double>& left, Index a, const std::vector<double>& right, Index b) {
    std::vector<double> both;
    auto from = right.begin();
    for (auto at = left.begin(); at != left.end(); at += a, from += b) {
        both.insert(both.end(), at, at + a);
        both.insert(both.end(), from, from + b);
    }
    return both;
}

void run_loss(const ReferenceCase& c) {
    using Kind = LossSpec::Kind;
    const std::string name = c.options.at("name");
    if (name == "cross_entropy") return run_cross_entropy(c);
    const Index features = c.file.at("input").shape.back();
    LossSpec loss;
    if (name == "gaussian_nll") {
        loss.kind = Kind::gaussian_nll;
        loss.epsilon = c.options.at("eps");
        loss.full = c.options.at("full");
        const Index variances = c.file.at("var").shape.back();
        loss.shared_variance = variances != features;
        return run_values(c, loss, features + variances,
                          side_by_side(c.values_of<double>("input"), features, c.values_of<double>("var"), variances));
    }
    const std::map<std::string, Kind> kinds{{"mse", Kind::mean_squared_error},
                                            {"l1", Kind::l1},
                                            {"huber", Kind::huber},
                                            {"smooth_l1", Kind::smooth_l1},
                                            {"bce_with_logits", Kind::binary_cross_entropy}};
    const auto kind = kinds.find(name);
    if (kind == kinds.end()) throw InvalidArgument("nothing runs loss '" + name + "'");
    loss.kind = kind->second;
    if (loss.kind == Kind::huber) loss.delta = c.options.at("delta");
    if (loss.kind == Kind::smooth_l1) loss.beta = c.options.at("beta");
    if (c.options.value("pos_weight", false)) loss.pos_weight = c.values_of<double>("pos_weight");
    run_values(c, loss, features, c.values_of<double>("input"));
}

const Registration loss{"loss", run_loss};

}  // namespace
