// Small models for tests of layers, with data that are in no way tame: odd sizes, biases, weights, ignored targets,
// carried state.
// SPDX-License-Identifier: MIT
#pragma once

#include "nn/sweep.hpp"

#include <string>
#include <vector>

namespace backsweep::test {

struct Model {
    std::string name;
    ModelSpec spec;
};

inline LossSpec cross_entropy(Index classes, bool weights, double smoothing, std::optional<Index> ignore) {
    LossSpec loss;
    loss.label_smoothing = smoothing;
    loss.ignore_index = ignore;
    if (weights)
        for (Index c = 0; c < classes; ++c) loss.class_weights.push_back(0.25 + 0.5 * static_cast<double>((3 * c) % 5));
    return loss;
}

inline std::vector<Model> models() {
    LossSpec squares, product;
    squares.kind = LossSpec::Kind::mean_squared_error;
    product.kind = LossSpec::Kind::inner_product;
    std::vector<Model> all;
    all.push_back({"embedding", {{EmbeddingSpec{"embedding", 7, 3, 2}}, product}});
    all.push_back({"dense", {{DenseSpec{"head", 5, 3, true}}, product}});
    all.push_back({"dense without bias", {{DenseSpec{"head", 3, 9, false}}, squares}});
    all.push_back({"narrow dense", {{DenseSpec{"head", 1, 1, true}}, squares}});
    all.push_back({"lstm", {{RecurrentSpec{"rnn", 3, 5, 1, true}}, product}});
    all.push_back({"lstm without bias", {{RecurrentSpec{"rnn", 2, 7, 2, false}}, squares}});
    all.push_back({"narrow lstm", {{RecurrentSpec{"rnn", 1, 1, 3, true}}, product}});
    all.push_back({"lstm 33", {{RecurrentSpec{"rnn", 4, 33, 1, true}, DenseSpec{"head", 33, 2, true}}, squares}});
    all.push_back({"language model",
                   {{EmbeddingSpec{"embedding", 11, 3, std::nullopt}, RecurrentSpec{"rnn", 3, 5, 2, true},
                     DenseSpec{"head", 5, 11, true}},
                    cross_entropy(11, true, 0.1, 4)}});
    return all;
}

/// Data for a model, in double; another `stream` gives other numbers.
inline Problem<double> data_for(const ModelSpec& spec, Index carry, Index steps, Index batch,
                                std::uint32_t stream = 100) {
    Problem<double> p;
    const Index positions = steps * batch;
    p.steps = steps;
    p.batch = batch;
    p.carry = random_values(carry * batch, stream, 0.8);
    p.dcarry = random_values(carry * batch, stream + 1);
    if (spec.inputs() == 0)
        p.tokens = random_tokens(positions, spec.table()->vocabulary, stream + 2);
    else
        p.x = random_values(positions * spec.inputs(), stream + 3, 1.5);
    if (spec.loss.kind == LossSpec::Kind::cross_entropy)
        p.classes = random_tokens(positions, spec.outputs(), stream + 4);
    else
        p.values = random_values(positions * spec.targets(), stream + 5);
    p.weights = random_values(positions, stream + 6);
    p.scale = 0.7;
    return p;
}

/// Starting values, but three times as large, so that gates leave the middle of their range.
template <class Real>
std::vector<Real> parameters_for(const Network<Real>& network, std::uint64_t seed = 11) {
    std::vector<Real> parameters(static_cast<std::size_t>(network.parameters().size()));
    network.start(seed, parameters);
    for (Real& p : parameters) p *= Real{3};
    return parameters;
}

}  // namespace backsweep::test
