// Names and parameters of layers, as PyTorch has them, and the errors of bad input.
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"

#include "backsweep/base/error.hpp"

#include <cmath>

namespace backsweep {
namespace {

Start uniform(Index fan) {
    return {Start::Law::uniform, 1.0 / std::sqrt(static_cast<double>(fan)), -1};
}

}  // namespace

std::vector<ParameterShape> parameters_of(const EmbeddingSpec& spec) {
    return {
        {spec.name + ".weight", spec.vocabulary, spec.features, {Start::Law::normal, 1.0, spec.padding.value_or(-1)}}};
}

std::string RecurrentPart::suffix() const {
    return "_l" + std::to_string(layer) + (backward ? "_reverse" : "");
}

std::string RecurrentPart::name() const {
    return spec.name + (spec.layers > 1 ? ", layer " + std::to_string(layer) : "") + (backward ? ", backward" : "");
}

Index RecurrentPart::gates() const noexcept {
    using Cell = RecurrentSpec::Cell;
    return (spec.cell == Cell::lstm ? 4 : spec.cell == Cell::gru ? 3 : 1) * spec.hidden;
}

Work work_of(const RecurrentPart& part) {
    const RecurrentSpec& spec = part.spec;
    const auto size = [](Index n) { return static_cast<double>(n); };
    const double sums = 2.0 * size(part.gates() * (part.inputs() + spec.state() / spec.heads));
    const double cell = 2.0 * size(spec.projection * spec.hidden) +
                        size(part.inputs() + part.gates() + 2 * spec.hidden + spec.state());
    const bool twice = spec.gated() && !spec.saves("gates");
    return {sums + cell, 2.0 * (sums + cell) + (twice ? sums : 0.0)};
}

std::vector<ParameterShape> parameters_of(const RecurrentPart& part) {
    using Cell = RecurrentSpec::Cell;
    const RecurrentSpec& spec = part.spec;
    const std::string name = spec.name + '.', suffix = part.suffix();
    const Index gates = part.gates();
    const Start start = uniform(spec.hidden);
    Start recurrent = start, forget_ih = start, forget_hh = start;
    if (spec.start == RecurrentSpec::Start::orthogonal) recurrent = {Start::Law::orthogonal, 1.0};
    if (spec.start == RecurrentSpec::Start::identity) recurrent = {Start::Law::identity, 1.0};
    recurrent.block = spec.hidden / spec.heads;
    if (spec.forget_bias) {
        const Range forget{spec.hidden, 2 * spec.hidden};
        forget_ih.fixed = {forget, *spec.forget_bias};
        forget_hh.fixed = {forget, 0.0};
    }
    std::vector<ParameterShape> shapes{
        {name + "weight_ih" + suffix, gates, part.inputs(), start},
        {name + "weight_hh" + suffix, gates, spec.state() / spec.heads, recurrent}};
    if (spec.bias) {
        shapes.push_back({name + "bias_ih" + suffix, gates, 0, forget_ih});
        shapes.push_back({name + "bias_hh" + suffix, gates, 0, forget_hh});
    }
    if (spec.projection > 0) shapes.push_back({name + "weight_hr" + suffix, spec.projection, spec.hidden, start});
    const auto norm = [&](const char* which, Index size) {
        shapes.push_back({name + which + suffix + ".weight", size, 0, {Start::Law::constant, 1.0}});
        shapes.push_back({name + which + suffix + ".bias", size, 0, {}});
    };
    if (spec.layer_norm) {
        norm("norm_ih", gates);
        norm("norm_hh", gates);
        if (spec.cell == Cell::lstm) norm("norm_c", spec.hidden);
    }
    if (spec.learned_state) {
        shapes.push_back({name + "h0" + suffix, spec.state(), 0, {}});
        if (spec.cell == Cell::lstm) shapes.push_back({name + "c0" + suffix, spec.hidden, 0, {}});
    }
    return shapes;
}

std::vector<ParameterShape> parameters_of(const DenseSpec& spec) {
    const Start start = uniform(spec.inputs);
    std::vector<ParameterShape> shapes;
    if (spec.tied.empty()) shapes.push_back({spec.name + ".weight", spec.outputs, spec.inputs, start});
    if (spec.bias) shapes.push_back({spec.name + ".bias", spec.outputs, 0, start});
    return shapes;
}

std::string tied_to(const DenseSpec& spec) {
    return spec.tied.empty() ? "" : spec.tied + ".weight";
}

std::vector<ParameterShape> parameters_of(const NormSpec& spec) {
    if (!spec.affine) return {};
    std::vector<ParameterShape> shapes{{spec.name + ".weight", spec.features, 0, {Start::Law::constant, 1.0}}};
    if (spec.kind == NormSpec::Kind::layer) shapes.push_back({spec.name + ".bias", spec.features, 0, {}});
    return shapes;
}

std::vector<ParameterShape> parameters_of(const AttentionSpec& spec) {
    const std::string name = spec.name + '.';
    const Index E = spec.features, H = spec.heads * spec.head();
    const Start one{Start::Law::constant, 1.0};
    if (spec.projection == AttentionSpec::Projection::gated) {
        std::vector<ParameterShape> shapes{{name + "q.weight", E, E, uniform(E)}};
        if (spec.bias) shapes.push_back({name + "q.bias", E, 0, uniform(E)});
        shapes.push_back({name + "qln.weight", E, 0, one});
        for (const char* zero : {"qln.bias", "qs", "ks", "vs"}) shapes.push_back({name + zero, E, 0, {}});
        return shapes;
    }
    if (spec.position == AttentionSpec::Position::relative) {
        const Start normal{Start::Law::normal, 0.02};  // as Transformer-XL's published code
        std::vector<ParameterShape> shapes{{name + "qkv_net.weight", 3 * H, E, normal}};
        if (spec.bias) shapes.push_back({name + "qkv_net.bias", 3 * H, 0, {}});
        shapes.push_back({name + "r_net.weight", H, E, normal});
        shapes.push_back({name + "r_w_bias", spec.heads, spec.head(), normal});
        shapes.push_back({name + "r_r_bias", spec.heads, spec.head(), normal});
        shapes.push_back({name + "o_net.weight", E, H, normal});
        if (spec.bias) shapes.push_back({name + "o_net.bias", E, 0, {}});
        return shapes;
    }
    const auto xavier = [](Index rows, Index cols) {
        return Start{Start::Law::uniform, std::sqrt(6.0 / static_cast<double>(rows + cols))};
    };
    std::vector<ParameterShape> shapes;
    if (spec.keys() == E && spec.values() == E) {
        shapes.push_back({name + "in_proj_weight", 3 * H, E, xavier(3 * H, E)});
    } else {
        shapes.push_back({name + "q_proj_weight", H, E, xavier(H, E)});
        shapes.push_back({name + "k_proj_weight", H, spec.keys(), xavier(H, spec.keys())});
        shapes.push_back({name + "v_proj_weight", H, spec.values(), xavier(H, spec.values())});
    }
    if (spec.bias) shapes.push_back({name + "in_proj_bias", 3 * H, 0, {}});
    shapes.push_back({name + "out_proj.weight", E, H, uniform(H)});
    if (spec.bias) shapes.push_back({name + "out_proj.bias", E, 0, {}});
    return shapes;
}

std::string name_of(const LossSpec& spec) {
    switch (spec.kind) {
        case LossSpec::Kind::cross_entropy:
            return "cross_entropy";
        case LossSpec::Kind::mean_squared_error:
            return "mean_squared_error";
        case LossSpec::Kind::l1:
            return "l1";
        case LossSpec::Kind::huber:
            return "huber";
        case LossSpec::Kind::smooth_l1:
            return "smooth_l1";
        case LossSpec::Kind::binary_cross_entropy:
            return "binary_cross_entropy";
        case LossSpec::Kind::gaussian_nll:
            return "gaussian_nll";
        case LossSpec::Kind::inner_product:
            break;
    }
    return "inner_product";
}

void require_array(const void* array, const std::string& layer, const char* array_name) {
    if (!array)
        throw InvalidArgument("layer '" + layer + "' reads Segment::" + array_name + ", but the segment has none");
}

void out_of_range(const std::string& layer, const char* what, std::int32_t value, Index count, Index step,
                  Index sequence) {
    throw InvalidArgument("layer '" + layer + "': " + what + " " + std::to_string(value) + " at step " +
                          std::to_string(step) + " of sequence " + std::to_string(sequence) + " is not in [0, " +
                          std::to_string(count) + "); correct the data or the model's sizes");
}

}  // namespace backsweep
