// Runners of reference files for losses: cross_entropy and mse in every reduction, also with time as the last axis.
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

/// Loss and gradient of the loss layer alone; `dx` puts the gradient into the file's layout.
template <class Layout>
void run(const ReferenceCase& c, const LossSpec& loss, Index features, Problem<double> problem, Layout dx_layout) {
    const double divisor = loss_divisor(loss, features, problem.classes, problem.steps * problem.batch);
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
                    c.check("grad.input", dx_layout(out.dx), c.gradients());
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
        run(c, loss, classes, problem, [](const auto& dx) { return dx; });
        return;
    }
    // (B, C, T), targets (B, T): to [T][B][C] and back.
    const Index batch = shape[0], steps = shape[2];
    problem.steps = steps;
    problem.batch = batch;
    problem.x = swap_axes(swap_last_axes(problem.x, classes, steps), batch, steps);
    problem.classes = swap_axes(problem.classes, batch, steps);
    run(c, loss, classes, problem,
        [&](const auto& dx) { return swap_last_axes(swap_axes(dx, steps, batch), steps, classes); });
}

void run_squared_error(const ReferenceCase& c) {
    LossSpec loss;
    loss.kind = LossSpec::Kind::mean_squared_error;
    loss.reduction = reduction_of(c);
    const std::vector<Index>& shape = c.file.at("input").shape;
    Problem<double> problem;
    problem.x = c.values_of<double>("input");
    problem.values = c.values_of<double>("target");
    problem.steps = shape.front();
    problem.batch = static_cast<Index>(problem.x.size()) / (problem.steps * shape.back());
    run(c, loss, shape.back(), problem, [](const auto& dx) { return dx; });
}

void run_loss(const ReferenceCase& c) {
    const std::string name = c.options.at("name");
    if (name == "cross_entropy") return run_cross_entropy(c);
    if (name == "mse") return run_squared_error(c);
    throw InvalidArgument("nothing runs loss '" + name + "'");
}

const Registration loss{"loss", run_loss};

}  // namespace
