// Runners of reference files for layers: lstm, embedding, linear; plain-loop and CPU layers, float and double, in one
// segment and in segments of three steps.
// SPDX-License-Identifier: MIT
#include "nn/reference_cases.hpp"
#include "nn/sweep.hpp"

using namespace backsweep;
using namespace backsweep::test;

namespace {

LossSpec inner_product() {
    LossSpec loss;
    loss.kind = LossSpec::Kind::inner_product;
    return loss;
}

/// Calls f(network, driver) for each driver in float and double.
template <class F>
void for_each_driver(const ModelSpec& spec, F f) {
    for (const Driver driver : drivers) BOOST_TEST_CONTEXT(to_string(driver)) {
            f(build<float>(driver, spec));
            f(build<double>(driver, spec));
        }
}

/// The flat vector out of a file whose names have no `prefix`.
template <class Real>
std::vector<Real> parameters_of(const ReferenceCase& c, const Network<Real>& network, const std::string& prefix) {
    std::vector<Real> parameters;
    for (const ParameterView& view : network.parameters().views()) {
        const std::vector<Real> values = c.values_of<Real>(view.name.substr(prefix.size()));
        BOOST_TEST_REQUIRE(static_cast<Index>(values.size()) == view.size());
        parameters.insert(parameters.end(), values.begin(), values.end());
    }
    return parameters;
}

template <class Real>
void check_gradients(const ReferenceCase& c, const Network<Real>& network, const std::string& prefix,
                     const std::vector<Real>& gradients) {
    for (const ParameterView& view : network.parameters().views())
        c.check("grad." + view.name.substr(prefix.size()),
                std::vector<Real>(gradients.begin() + view.offset, gradients.begin() + view.offset + view.size()),
                c.gradients());
}

/// What all layers without state have: output, loss, gradients; `problem` holds the data but for the loss's weights.
void run_stateless(const ReferenceCase& c, const ModelSpec& spec, const std::string& prefix, Problem<double> problem) {
    const auto weights = c.values_of<double>("loss_weight.output"), output = c.values_of<double>("output");
    problem.values = weights;
    for_each_driver(spec, [&]<class Real>(const Network<Real>& network) {
        const auto parameters = parameters_of(c, network, prefix);
        for (const Index chunk : {problem.steps, Index{3}}) {
            const auto out = sweep(network, parameters, cast<Real>(problem), chunk);
            c.check("output", out.y, c.values());
            c.check("loss", std::vector<Real>{static_cast<Real>(out.loss)}, c.values(), weighted_size(weights, output));
            check_gradients(c, network, prefix, out.gradients);
            if (!problem.x.empty()) c.check("grad.input", out.dx, c.gradients());
        }
    });
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
    const std::vector<Index>& shape = c.file.at("input").shape;
    const DenseSpec spec{"head", shape.back(), c.options.at("out_features"), c.options.at("bias")};
    Problem<double> problem;
    problem.x = c.values_of<double>("input");
    problem.steps = shape.front();
    problem.batch = static_cast<Index>(problem.x.size()) / (problem.steps * shape.back());
    run_stateless(c, {{spec}, inner_product()}, "head.", problem);
}

/// States of a file are h (layer, batch, hidden) and c apart; the network's block is h, c layer by layer.
std::vector<double> interleave(const std::vector<double>& h, const std::vector<double>& c, Index layers) {
    std::vector<double> block;
    const auto size = static_cast<std::ptrdiff_t>(h.size()) / layers;
    for (std::ptrdiff_t l = 0; l < layers; ++l) {
        block.insert(block.end(), h.begin() + l * size, h.begin() + (l + 1) * size);
        block.insert(block.end(), c.begin() + l * size, c.begin() + (l + 1) * size);
    }
    return block;
}

/// The inverse: `part` 0 is h, 1 is c.
template <class Real>
std::vector<Real> part_of(const std::vector<Real>& block, Index layers, Index part) {
    std::vector<Real> values;
    const auto size = static_cast<std::ptrdiff_t>(block.size()) / (2 * layers);
    for (std::ptrdiff_t l = 0; l < layers; ++l)
        values.insert(values.end(), block.begin() + (2 * l + part) * size, block.begin() + (2 * l + part + 1) * size);
    return values;
}

void run_lstm(const ReferenceCase& c) {
    const LstmSpec spec{"rnn", c.options.at("input_size"), c.options.at("hidden_size"), c.options.at("num_layers"),
                        c.options.at("bias")};
    const bool batch_first = c.options.at("batch_first");
    Problem<double> problem;
    problem.steps = c.options.at("T");
    problem.batch = c.options.at("B");
    const auto time_major = [&](const std::string& name) {
        const auto values = c.values_of<double>(name);
        return batch_first ? swap_axes(values, problem.batch, problem.steps) : values;
    };
    const Index state = spec.layers * problem.batch * spec.hidden;
    problem.x = time_major("input");
    problem.values = time_major("loss_weight.output");
    problem.carry = interleave(c.values_or_zeros("h0", state), c.values_or_zeros("c0", state), spec.layers);
    const auto weight_h = c.values_or_zeros("loss_weight.hn", state),
               weight_c = c.values_or_zeros("loss_weight.cn", state);
    problem.dcarry = interleave(weight_h, weight_c, spec.layers);
    const double loss_size = weighted_size(problem.values, time_major("output")) +
                             weighted_size(weight_h, c.values_of<double>("hn")) +
                             weighted_size(weight_c, c.values_of<double>("cn"));

    for_each_driver({{spec}, inner_product()}, [&]<class Real>(const Network<Real>& network) {
        const auto parameters = parameters_of(c, network, "rnn.");
        for (const Index chunk : {problem.steps, Index{3}}) {
            const auto out = sweep(network, parameters, cast<Real>(problem), chunk);
            double loss = out.loss;
            for (std::size_t k = 0; k < out.carry.size(); ++k)
                loss += problem.dcarry[k] * static_cast<double>(out.carry[k]);
            c.check("output", out.y, time_major("output"), c.values());
            c.check("hn", part_of(out.carry, spec.layers, 0), c.values());
            c.check("cn", part_of(out.carry, spec.layers, 1), c.values());
            c.check("loss", std::vector<Real>{static_cast<Real>(loss)}, c.values(), loss_size);
            check_gradients(c, network, "rnn.", out.gradients);
            c.check("grad.input", out.dx, time_major("grad.input"), c.gradients());
            if (c.file.find("grad.h0")) {
                c.check("grad.h0", part_of(out.dcarry, spec.layers, 0), c.gradients());
                c.check("grad.c0", part_of(out.dcarry, spec.layers, 1), c.gradients());
            }
        }
    });
}

const Registration embedding{"embedding", run_embedding};
const Registration linear{"linear", run_linear};
const Registration lstm{"lstm", run_lstm};

}  // namespace
