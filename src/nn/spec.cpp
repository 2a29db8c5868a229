// What a valid model is, in words.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/spec.hpp"

#include "backsweep/base/error.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

namespace backsweep {
namespace {

const std::string& name(const LayerSpec& layer) {
    return std::visit([](const auto& s) -> const std::string& { return s.name; }, layer);
}

Index inputs(const EmbeddingSpec&) {
    return 0;
}
Index inputs(const LstmSpec& s) {
    return s.inputs;
}
Index inputs(const DenseSpec& s) {
    return s.inputs;
}
Index outputs(const EmbeddingSpec& s) {
    return s.features;
}
Index outputs(const LstmSpec& s) {
    return s.hidden;
}
Index outputs(const DenseSpec& s) {
    return s.outputs;
}

Index inputs_of(const LayerSpec& layer) {
    return std::visit([](const auto& s) { return inputs(s); }, layer);
}
Index outputs_of(const LayerSpec& layer) {
    return std::visit([](const auto& s) { return outputs(s); }, layer);
}

/// Empty, or "<what> must be at least 1, but is 0".
std::string positive(const char* what, Index value) {
    return value >= 1 ? "" : std::string(what) + " must be at least 1, but is " + std::to_string(value);
}

std::string first_of(std::initializer_list<std::string> problems) {
    for (const std::string& p : problems)
        if (!p.empty()) return p;
    return {};
}

std::string problem_of(const EmbeddingSpec& s) {
    const std::string sizes = first_of({positive("vocabulary", s.vocabulary), positive("features", s.features)});
    if (!sizes.empty()) return sizes;
    if (s.vocabulary > Index{std::numeric_limits<std::int32_t>::max()} + 1)
        return "vocabulary must be at most 2^31, for tokens have 32 bits, but is " + std::to_string(s.vocabulary);
    if (s.padding && (*s.padding < 0 || *s.padding >= s.vocabulary))
        return "padding must be in [0, " + std::to_string(s.vocabulary) + "), but is " + std::to_string(*s.padding);
    return {};
}

std::string problem_of(const LstmSpec& s) {
    return first_of({positive("inputs", s.inputs), positive("hidden", s.hidden), positive("layers", s.layers)});
}

std::string problem_of(const DenseSpec& s) {
    return first_of({positive("inputs", s.inputs), positive("outputs", s.outputs)});
}

std::string problem_of(const LossSpec& s, Index outputs) {
    if (s.kind != LossSpec::Kind::cross_entropy) {
        if (!s.class_weights.empty()) return "class_weights belong to cross_entropy; leave them empty";
        if (s.label_smoothing != 0.0) return "label_smoothing belongs to cross_entropy; leave it 0";
        if (s.ignore_index) return "ignore_index belongs to cross_entropy; leave it out";
        return {};
    }
    if (!s.class_weights.empty() && static_cast<Index>(s.class_weights.size()) != outputs)
        return "class_weights must have one entry for each of the " + std::to_string(outputs) + " classes, but has " +
               std::to_string(s.class_weights.size());
    for (const double w : s.class_weights)
        if (!(w >= 0.0) || !std::isfinite(w))
            return "class_weights must be finite and >= 0, but one is " + std::to_string(w);
    if (!(s.label_smoothing >= 0.0 && s.label_smoothing < 1.0))
        return "label_smoothing must be in [0, 1), but is " + std::to_string(s.label_smoothing);
    return {};
}

}  // namespace

Index ModelSpec::outputs() const {
    if (layers.empty()) throw InvalidArgument("a model without layers has no outputs; give it at least one layer");
    return outputs_of(layers.back());
}

Index ModelSpec::inputs() const {
    if (layers.empty()) throw InvalidArgument("a model without layers has no inputs; give it at least one layer");
    return inputs_of(layers.front());
}

std::string ModelSpec::problem() const {
    if (layers.empty()) return "a model needs at least one layer";
    std::set<std::string> names;
    for (std::size_t l = 0; l < layers.size(); ++l) {
        const LayerSpec& layer = layers[l];
        const std::string here = "layer '" + name(layer) + "': ";
        const std::string own = std::visit([](const auto& s) { return problem_of(s); }, layer);
        if (!own.empty()) return here + own;
        if (name(layer).empty()) return "layer " + std::to_string(l) + " has no name; its parameters need one";
        if (!names.insert(name(layer)).second) return here + "another layer has this name; give them different ones";
        if (l == 0) continue;
        if (std::holds_alternative<EmbeddingSpec>(layer))
            return here + "an embedding reads tokens and can only stand first";
        const LayerSpec& below = layers[l - 1];
        if (inputs_of(layer) != outputs_of(below))
            return here + "it reads " + std::to_string(inputs_of(layer)) + " features, but '" + name(below) +
                   "' below it gives " + std::to_string(outputs_of(below)) + "; make them equal";
    }
    const std::string own = problem_of(loss, outputs());
    return own.empty() ? own : "loss: " + own;
}

}  // namespace backsweep
