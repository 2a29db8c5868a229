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

std::vector<ParameterShape> parameters_of(const LstmSpec& spec, Index layer) {
    const std::string suffix = "_l" + std::to_string(layer);
    const Index gates = 4 * spec.hidden;
    const Start start = uniform(spec.hidden);
    std::vector<ParameterShape> shapes{
        {spec.name + ".weight_ih" + suffix, gates, layer == 0 ? spec.inputs : spec.hidden, start},
        {spec.name + ".weight_hh" + suffix, gates, spec.hidden, start}};
    if (spec.bias) {
        shapes.push_back({spec.name + ".bias_ih" + suffix, gates, 0, start});
        shapes.push_back({spec.name + ".bias_hh" + suffix, gates, 0, start});
    }
    return shapes;
}

std::vector<ParameterShape> parameters_of(const DenseSpec& spec) {
    const Start start = uniform(spec.inputs);
    std::vector<ParameterShape> shapes{{spec.name + ".weight", spec.outputs, spec.inputs, start}};
    if (spec.bias) shapes.push_back({spec.name + ".bias", spec.outputs, 0, start});
    return shapes;
}

std::string name_of(const LstmSpec& spec, Index layer) {
    return spec.layers > 1 ? spec.name + ", layer " + std::to_string(layer) : spec.name;
}

std::string name_of(const LossSpec& spec) {
    switch (spec.kind) {
        case LossSpec::Kind::cross_entropy:
            return "cross_entropy";
        case LossSpec::Kind::mean_squared_error:
            return "mean_squared_error";
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
