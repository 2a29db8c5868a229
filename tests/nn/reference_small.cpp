// Runners of reference files for layers without state: embedding, linear, activation, layer norm, feed-forward block.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/blocks.hpp"
#include "nn/reference_drivers.hpp"

#include <map>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// The data of a file whose input is an array of positions of so many features.
Problem<double> positions(const ReferenceCase& c, Index features) {
    Problem<double> problem;
    problem.x = c.values_of<double>("input");
    const auto count = static_cast<Index>(problem.x.size()) / features;
    problem.steps = std::min(count, c.file.at("input").shape.front());
    problem.batch = count / problem.steps;
    return problem;
}

ActivationSpec::Kind activation_named(const std::string& name) {
    using Kind = ActivationSpec::Kind;
    const std::map<std::string, Kind> kinds{
        {"relu", Kind::relu},           {"silu", Kind::silu},       {"gelu", Kind::gelu},
        {"gelu_tanh", Kind::gelu_tanh}, {"tanh", Kind::tanh},       {"sigmoid", Kind::sigmoid},
        {"softplus", Kind::softplus},   {"softmax", Kind::softmax}, {"log_softmax", Kind::log_softmax}};
    return kinds.at(name);
}

void run_embedding(const ReferenceCase& c) {
    EmbeddingSpec spec{"embedding", c.options.at("num_embeddings"), c.options.at("embedding_dim"), std::nullopt};
    if (!c.options.at("padding_idx").is_null()) spec.padding = c.options.at("padding_idx").get<Index>();
    Problem<double> problem;
    problem.tokens = c.integers_of("input");
    problem.steps = c.file.at("input").shape.front();
    problem.batch = static_cast<Index>(problem.tokens.size()) / problem.steps;
    run_stateless(c, {{spec}, inner_product()}, "embedding.", problem);
    if (spec.padding) {  // 0 by definition, hence exactly
        const auto wanted = c.values_of<double>("grad.weight");
        for (Index k = 0; k < spec.features; ++k)
            BOOST_TEST(wanted[static_cast<std::size_t>(*spec.padding * spec.features + k)] == 0.0);
        for_each_driver({{spec}, inner_product()}, [&]<class Real>(const Network<Real>& network) {
            problem.values = c.values_of<double>("loss_weight.output");
            const auto out =
                sweep(network, parameters_of(c, network, "embedding."), cast<Real>(problem), problem.steps);
            for (Index k = 0; k < spec.features; ++k)
                BOOST_TEST(out.gradients[static_cast<std::size_t>(*spec.padding * spec.features + k)] == Real{0});
        });
    }
}

void run_linear(const ReferenceCase& c) {
    const DenseSpec spec{"head", c.file.at("input").shape.back(), c.options.at("out_features"), c.options.at("bias")};
    run_stateless(c, {{spec}, inner_product()}, "head.", positions(c, spec.inputs));
}

void run_activation(const ReferenceCase& c) {
    const Index features = c.file.at("input").shape.back();
    run_stateless(c,
                  {{ActivationSpec{"activation", features, activation_named(c.options.at("name"))}}, inner_product()},
                  "", positions(c, features));
}

/// Over several axes: over their product.
void run_layer_norm(const ReferenceCase& c) {
    Index features = 1;
    for (const Index extent : c.options.at("normalized_shape")) features *= extent;
    const NormSpec spec{"norm", features, NormSpec::Kind::layer, c.options.at("eps"), c.options.at("affine")};
    run_stateless(c, {{spec}, inner_product()}, "norm.", positions(c, features));
}

void run_residual_block(const ReferenceCase& c) {
    const std::string norm = c.options.at("norm");
    BOOST_TEST_REQUIRE((norm == "pre" || norm == "post"));
    const FeedForward block{.features = c.options.at("features"),
                            .hidden = c.options.at("inner"),
                            .activation = activation_named(c.options.at("activation")),
                            .norm = norm == "pre" ? FeedForward::Norm::pre : FeedForward::Norm::post,
                            .epsilon = c.options.at("eps")};
    run_stateless(c, {feed_forward(block), inner_product()}, "", positions(c, block.features));
}

const Registration embedding{"embedding", run_embedding};
const Registration linear{"linear", run_linear};
const Registration activation{"activation", run_activation};
const Registration layer_norm{"layer_norm", run_layer_norm};
const Registration residual_block{"residual_block", run_residual_block};

}  // namespace
