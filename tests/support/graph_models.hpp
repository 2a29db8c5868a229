// Models of which the graphs are no chains, and a window that shows them nothing tame.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/random.hpp"
#include "backsweep/nn/models.hpp"
#include "backsweep/nn/time_chain.hpp"

#include <string>
#include <utility>
#include <vector>

namespace backsweep::test {

struct GraphModel {
    std::string name;
    ModelSpec spec;
};

/// Skips from early to late layers: each level makes narrower, goes down, and makes wider what came back and what it
/// read. The lowest attends.
inline std::vector<LayerSpec> u_net(Index features, Index levels, const std::string& name = "u") {
    using Kind = ActivationSpec::Kind;
    AttentionSpec attention;
    attention.name = name + ".attention";
    attention.features = features;
    attention.heads = features % 2 == 0 ? 2 : 1;
    if (levels == 0) return {attention};
    const Index half = features / 2;
    std::vector<LayerSpec> down{DenseSpec{name + ".down", features, half}, ActivationSpec{name + ".relu", half, Kind::relu}};
    for (LayerSpec& layer : u_net(half, levels - 1, name + "u")) down.push_back(std::move(layer));
    return {ConcatenateSpec{name + ".skip", std::move(down)}, DenseSpec{name + ".up", features + half, features},
            ActivationSpec{name + ".tanh", features, Kind::tanh}};
}

/// Every block reads what all before it gave; every other one attends.
inline std::vector<LayerSpec> dense_net(Index features, Index growth, Index blocks) {
    std::vector<LayerSpec> layers;
    for (Index k = 0; k < blocks; ++k, features += growth) {
        const std::string name = "block" + std::to_string(k);
        std::vector<LayerSpec> f{NormSpec{name + ".norm", features}, DenseSpec{name + ".dense", features, growth}};
        AttentionSpec attention;
        attention.name = name + ".attention";
        attention.features = growth;
        if (k % 2 == 1) f.emplace_back(attention);
        f.emplace_back(ActivationSpec{name + ".gelu", growth, ActivationSpec::Kind::gelu});
        layers.emplace_back(ConcatenateSpec{name, std::move(f)});
    }
    return layers;
}

inline std::vector<LayerSpec> residual_net(Index features, Index inner, Index blocks) {
    std::vector<LayerSpec> layers;
    for (Index k = 0; k < blocks; ++k) {
        const std::string name = "block" + std::to_string(k);
        layers.emplace_back(ResidualSpec{name,
                                         {NormSpec{name + ".norm", features}, DenseSpec{name + ".wide", features, inner},
                                          ActivationSpec{name + ".gelu", inner, ActivationSpec::Kind::gelu},
                                          DenseSpec{name + ".back", inner, features}}});
    }
    return layers;
}

/// Real inputs, a product to `features`, the body, a product to the outputs.
inline ModelSpec between_products(Index inputs, Index features, std::vector<LayerSpec> body, Index outputs) {
    ModelSpec model;
    model.layers.emplace_back(DenseSpec{"below", inputs, features});
    for (LayerSpec& layer : body) model.layers.push_back(std::move(layer));
    const Index last = model.outputs();
    model.layers.emplace_back(DenseSpec{"head", last, outputs});
    model.loss.kind = LossSpec::Kind::mean_squared_error;
    return model;
}

/// An LSTM stack, a residual stack, a SHA-RNN, a Transformer-XL, a U-net and a DenseNet of dense and attention
/// layers; small, or with `scale` times as many features.
inline std::vector<GraphModel> graph_models(Index scale = 1) {
    const Index s = scale;
    ModelEnds ends;
    ends.vocabulary = 9;
    ends.outputs = 11 * s;
    RecurrentModel lstm;
    lstm.ends = ends;
    lstm.embedding = 5 * s;
    lstm.rnn.hidden = 7 * s;
    lstm.rnn.layers = 3;
    lstm.rnn.dropout = 0.3;
    ShaRnn sha;
    sha.ends = ends;
    sha.features = 6 * s;
    sha.layers = 2;
    sha.memory = 5;
    sha.dropout = 0.1;
    sha.attention_dropout = 0.2;
    TransformerXl xl;
    xl.ends = ends;
    xl.features = 6 * s;
    xl.layers = 2;
    xl.heads = 2;
    xl.memory = 4;
    return {{"lstm", recurrent_model(lstm)},
            {"residual", between_products(3 * s, 5 * s, residual_net(5 * s, 11 * s, 3), 2 * s)},
            {"sha_rnn", sha_rnn(sha)},
            {"transformer_xl", transformer_xl(xl)},
            {"u_net", between_products(5 * s, 12 * s, u_net(12 * s, 2), 3 * s)},
            {"dense_net", between_products(4 * s, 5 * s, dense_net(5 * s, 3 * s, 4), 3 * s)}};
}

/// Parameters, data and the states at both ends.
template <class Real>
struct GraphCase {
    GraphCase(const Network<Real>& network, Index steps, Index batch) : network(network), steps(steps), batch(batch) {
        const Random random(11, 3);
        const auto normal = [&](Index count, std::uint64_t stream, double scale) {
            std::vector<Real> all;
            for (Index k = 0; k < count; ++k)
                all.push_back(static_cast<Real>(scale * random.normal(stream, static_cast<std::uint64_t>(k))));
            return all;
        };
        parameters.resize(static_cast<std::size_t>(network.parameters().size()));
        network.start(7, parameters);
        const std::vector<Real> moved = normal(network.parameters().size(), 0, 0.1);
        for (std::size_t k = 0; k < moved.size(); ++k) parameters[k] += moved[k];
        const Index positions = steps * batch, outputs = network.spec().outputs();
        for (Index p = 0; p < positions; ++p) {
            const auto place = static_cast<std::uint64_t>(p);
            tokens.push_back(static_cast<std::int32_t>(random.below(9, 1, place)));
            classes.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(outputs), 2, place)));
            const Index mixed = p / batch + 2 * (p % batch);
            marks.push_back(mixed % 5 == 4 ? Mark::filler : mixed % 5 == 2 ? Mark::first : Mark::step);
        }
        inputs = normal(positions * network.inputs(), 3, 1.0);
        values = normal(positions * outputs, 4, 1.0);
        start = normal(network.state() * batch, 5, 0.5);
        for (Index k = (network.state() - network.remembered()) * batch; k < network.state() * batch; ++k)
            start[static_cast<std::size_t>(k)] = Real(k % 3 != 0);
        end = normal(network.adjoint() * batch, 6, 0.5);
    }

    /// What is assigned goes to the arguments.
    Window<Real> window(std::vector<Real>& losses, std::vector<Real>& input_gradient) const {
        Window<Real> w;
        w.first = 40;
        w.steps = steps;
        w.seed = 5;
        w.tokens = network.inputs() > 0 ? nullptr : tokens.data();
        w.inputs = network.inputs() > 0 ? inputs.data() : nullptr;
        w.classes = classes.data();
        w.values = values.data();
        w.marks = marks.data();
        w.scale = 1.0 / static_cast<double>(steps * batch);
        losses.assign(static_cast<std::size_t>(steps * batch), Real{-1});
        w.losses = losses.data();
        input_gradient.assign(inputs.size(), Real{-1});
        if (network.inputs() > 0) w.input_gradient = input_gradient.data();
        return w;
    }

    const Network<Real>& network;
    Index steps, batch;
    std::vector<Real> parameters, inputs, values, start, end;
    std::vector<std::int32_t> tokens, classes;
    std::vector<Mark> marks;
};

}  // namespace backsweep::test
