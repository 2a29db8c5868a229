// What a valid model is, in words.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/spec.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

namespace backsweep {
namespace {

const std::string& name(const LayerSpec& layer) {
    return std::visit([](const auto& s) -> const std::string& { return s.name; }, layer);
}

Index inputs_of(const LayerSpec& layer);
Index outputs_of(const LayerSpec& layer);

Index inputs(const EmbeddingSpec&) {
    return 0;
}
Index inputs(const RecurrentSpec& s) {
    return s.inputs;
}
Index inputs(const DenseSpec& s) {
    return s.inputs;
}
Index inputs(const NormSpec& s) {
    return s.features;
}
Index inputs(const ActivationSpec& s) {
    return s.features;
}
Index inputs(const DropoutSpec& s) {
    return s.features;
}
Index inputs(const FoldSpec& s) {
    return s.inputs;
}
Index inputs(const AttentionSpec& s) {
    return s.features;
}
Index inputs(const ResidualSpec& s) {
    return s.layers.empty() ? 0 : inputs_of(s.layers.front());
}
Index inputs(const CheckpointSpec& s) {
    return s.layers.empty() ? 0 : inputs_of(s.layers.front());
}
Index inputs(const ConcatenateSpec& s) {
    return s.layers.empty() ? 0 : inputs_of(s.layers.front());
}
Index outputs(const EmbeddingSpec& s) {
    return s.features;
}
Index outputs(const RecurrentSpec& s) {
    return s.outputs();
}
Index outputs(const DenseSpec& s) {
    return s.outputs;
}
Index outputs(const NormSpec& s) {
    return s.features;
}
Index outputs(const ActivationSpec& s) {
    return s.features;
}
Index outputs(const DropoutSpec& s) {
    return s.features;
}
Index outputs(const FoldSpec& s) {
    return s.outputs;
}
Index outputs(const AttentionSpec& s) {
    return s.features;
}
Index outputs(const ResidualSpec& s) {
    return inputs(s);
}
Index outputs(const CheckpointSpec& s) {
    return s.layers.empty() ? 0 : outputs_of(s.layers.back());
}
Index outputs(const ConcatenateSpec& s) {
    return s.layers.empty() ? 0 : inputs(s) + outputs_of(s.layers.back());
}

Index inputs_of(const LayerSpec& layer) {
    return std::visit([](const auto& s) { return inputs(s); }, layer);
}
Index outputs_of(const LayerSpec& layer) {
    return std::visit([](const auto& s) { return outputs(s); }, layer);
}

/// Whether f holds for a layer, those within others included.
template <class F>
bool any_layer(const std::vector<LayerSpec>& layers, const F& f) {
    return std::any_of(layers.begin(), layers.end(), [&](const LayerSpec& layer) {
        const auto* inner = within(layer);
        return inner ? any_layer(*inner, f) : f(layer);
    });
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

/// Empty, or "<what> must be in [0, 1), but is 1.5".
std::string fraction(const char* what, double value) {
    return value >= 0.0 && value < 1.0 ? "" : std::string(what) + " must be in [0, 1), but is " + std::to_string(value);
}

/// Of the names of what a tape keeps.
std::string problem_of_save(const std::vector<std::string>& save, const std::vector<std::string>& known) {
    std::set<std::string> seen;
    for (const std::string& what : save) {
        if (std::find(known.begin(), known.end(), what) == known.end()) {
            std::string names;
            for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
            return "save names what the tape keeps: " + names + ", but one name is '" + what + "'";
        }
        if (!seen.insert(what).second) return "save has the name '" + what + "' twice; leave one out";
    }
    return {};
}

std::string problem_of(const RecurrentSpec& s) {
    using Cell = RecurrentSpec::Cell;
    const std::string sizes = first_of({positive("inputs", s.inputs), positive("hidden", s.hidden),
                                        positive("layers", s.layers), positive("heads", s.heads),
                                        fraction("dropout", s.dropout), fraction("weight_drop", s.weight_drop)});
    if (!sizes.empty()) return sizes;
    if (s.projection < 0) return "projection must be 0 (none) or more, but is " + std::to_string(s.projection);
    if (s.projection > 0 && s.cell != Cell::lstm) return "projection belongs to the lstm; leave it 0";
    if (s.projection > 0 && s.projection >= s.hidden)
        return "projection must be less than hidden = " + std::to_string(s.hidden) + ", but is " +
               std::to_string(s.projection);
    if (s.heads > 1 && s.projection > 0) return "heads > 1 and projection exclude each other; leave one out";
    if (s.hidden % s.heads != 0)
        return "heads must divide hidden = " + std::to_string(s.hidden) + ", but is " + std::to_string(s.heads);
    if (s.layer_norm && !s.gated())
        return "layer_norm belongs to the lstm and the gru; leave it out";
    if (s.layer_norm && (s.projection > 0 || s.heads > 1))
        return "layer_norm stands with neither projection nor heads > 1; leave one out";
    if (s.start == RecurrentSpec::Start::identity && s.projection > 0)
        return "start identity wants square blocks of weight_hh, which a projection has not; leave one out";
    if (s.forget_bias && s.cell != Cell::lstm) return "forget_bias belongs to the lstm; leave it out";
    if (s.forget_bias && !s.bias) return "forget_bias wants bias; leave one out";
    if (s.forget_bias && !std::isfinite(*s.forget_bias))
        return "forget_bias must be finite, but is " + std::to_string(*s.forget_bias);
    if (s.dropout > 0.0 && s.layers == 1)
        return "dropout acts between layers, and there is only one; put a dropout layer behind it";
    if (s.locked && s.dropout == 0.0) return "locked has no effect without dropout; leave it out";
    if (!s.gated() && s.save != RecurrentSpec{}.save)
        return "save belongs to the lstm and the gru: the tape of a plain cell has no gates; leave it out";
    return problem_of_save(s.save, {"gates"});
}

std::string problem_of(const DenseSpec& s) {
    return first_of({positive("inputs", s.inputs), positive("outputs", s.outputs)});
}

std::string problem_of(const NormSpec& s) {
    if (const std::string size = positive("features", s.features); !size.empty()) return size;
    if (!(s.epsilon > 0.0) || !std::isfinite(s.epsilon))
        return "epsilon must be above 0, but is " + std::to_string(s.epsilon);
    return {};
}

std::string problem_of(const ActivationSpec& s) {
    return positive("features", s.features);
}

std::string problem_of(const DropoutSpec& s) {
    return first_of({positive("features", s.features), fraction("rate", s.rate)});
}

std::string problem_of(const FoldSpec& s) {
    if (const std::string sizes = first_of({positive("inputs", s.inputs), positive("outputs", s.outputs)}); !sizes.empty())
        return sizes;
    if (s.inputs % s.outputs != 0)
        return "outputs must divide inputs = " + std::to_string(s.inputs) + ", but is " + std::to_string(s.outputs);
    return {};
}

/// Empty, or which of the options that attention of this kind does not read was given all the same.
std::string idle_option(const AttentionSpec& s) {
    using Mask = AttentionSpec::Mask;
    using Position = AttentionSpec::Position;
    const AttentionSpec d;
    const bool gated = s.projection == AttentionSpec::Projection::gated, relative = s.position == Position::relative;
    const bool rotary = s.position == Position::rotary;
    struct Option {
        bool given, read;
        const char* name;
        const char* wants;
    };
    for (const Option& o : {Option{s.key_features != 0, s.across, "key_features", "attention across"},
                            Option{s.value_features != 0, s.across, "value_features", "attention across"},
                            Option{s.memory != 0, s.mask == Mask::causal && !s.across, "memory", "causal attention of its own sequence"},
                            Option{s.window != 0, s.mask == Mask::causal && !s.across, "window", "causal attention of its own sequence"},
                            Option{s.detached, s.memory != 0, "detached", "a memory"},
                            Option{s.rotary_base != d.rotary_base, rotary, "rotary_base", "rotary positions"},
                            Option{s.rotary_features != 0, rotary, "rotary_features", "rotary positions"},
                            Option{s.interleaved, rotary, "interleaved", "rotary positions"},
                            Option{s.head_features != 0, !gated, "head_features", "linear projections"},
                            Option{s.across, s.mask == Mask::full, "across", "the full mask"},
                            Option{s.across, s.position == Position::none, "across", "no positions"},
                            Option{s.across, !gated, "across", "linear projections"},
                            Option{relative, s.mask == Mask::causal, "relative positions", "the causal mask"},
                            Option{relative, !gated, "relative positions", "linear projections"}})
        if (o.given && !o.read) return std::string(o.name) + " can stand only with " + o.wants + "; leave it out, or change that";
    return {};
}

std::string problem_of(const AttentionSpec& s) {
    const std::string sizes =
        first_of({positive("features", s.features), positive("heads", s.heads), fraction("dropout", s.dropout), idle_option(s)});
    if (!sizes.empty()) return sizes;
    for (const auto& [what, value] : {std::pair{"head_features", s.head_features}, std::pair{"key_features", s.key_features},
                                      std::pair{"value_features", s.value_features}, std::pair{"memory", s.memory},
                                      std::pair{"window", s.window}, std::pair{"rotary_features", s.rotary_features}})
        if (value < 0) return std::string(what) + " must be 0 or more, but is " + std::to_string(value);
    if (s.head_features == 0 && s.features % s.heads != 0)
        return "heads must divide features = " + std::to_string(s.features) + ", but is " + std::to_string(s.heads) +
               "; change that, or give head_features";
    if (s.window > 0 && s.memory >= s.window)
        return "a window of " + std::to_string(s.window) + " steps sees at most " + std::to_string(s.window - 1) +
               " of a memory, but memory is " + std::to_string(s.memory) + "; give no more than that";
    if (s.position == AttentionSpec::Position::rotary) {
        if (!(s.rotary_base > 0.0) || !std::isfinite(s.rotary_base))
            return "rotary_base must be finite and above 0, but is " + std::to_string(s.rotary_base);
        const Index turned = s.rotary_features > 0 ? s.rotary_features : s.head();
        if (turned % 2 != 0 || turned > s.head())
            return "rotary positions turn pairs of the " + std::to_string(s.head()) +
                   " features of a head, an even number of them, but rotary_features is " + std::to_string(turned);
    }
    if (s.position == AttentionSpec::Position::relative && s.features % 2 != 0)
        return "relative positions are sines and cosines of as many features, so that features must be even, but is " +
               std::to_string(s.features);
    if (s.scale && !std::isfinite(*s.scale)) return "scale must be finite, but is " + std::to_string(*s.scale);
    return problem_of_save(s.save, {"query", "key", "value", "output"});
}

/// A block's own layers are judged where all layers are.
std::string problem_of(const ResidualSpec& s) {
    return s.layers.empty() ? "a residual block needs at least one layer" : "";
}
std::string problem_of(const CheckpointSpec& s) {
    return s.layers.empty() ? "a checkpointed block needs at least one layer" : "";
}
std::string problem_of(const ConcatenateSpec& s) {
    return s.layers.empty() ? "a concatenation needs at least one layer" : "";
}

/// Empty, or which of the options that a loss of this kind does not read was given all the same.
std::string idle_option(const LossSpec& s) {
    using Kind = LossSpec::Kind;
    struct Option {
        const char* name;
        bool given;
        Kind kind;
        const char* owner;
        const char* leave;
    };
    const LossSpec d;
    for (const Option& o :
         {Option{"class_weights", !s.class_weights.empty(), Kind::cross_entropy, "cross_entropy", "them empty"},
          Option{"label_smoothing", s.label_smoothing != d.label_smoothing, Kind::cross_entropy, "cross_entropy",
                 "it 0"},
          Option{"ignore_index", s.ignore_index.has_value(), Kind::cross_entropy, "cross_entropy", "it out"},
          Option{"delta", s.delta != d.delta, Kind::huber, "huber", "it out"},
          Option{"beta", s.beta != d.beta, Kind::smooth_l1, "smooth_l1", "it out"},
          Option{"pos_weight", !s.pos_weight.empty(), Kind::binary_cross_entropy, "binary_cross_entropy", "it empty"},
          Option{"epsilon", s.epsilon != d.epsilon, Kind::gaussian_nll, "gaussian_nll", "it out"},
          Option{"full", s.full, Kind::gaussian_nll, "gaussian_nll", "it false"},
          Option{"shared_variance", s.shared_variance, Kind::gaussian_nll, "gaussian_nll", "it false"},
          Option{"save", s.save != d.save, Kind::cross_entropy, "cross_entropy", "it out"}})
        if (o.given && s.kind != o.kind) {
            const std::string name = o.name;
            return name + (name.ends_with("weights") ? " belong to " : " belongs to ") + o.owner + "; leave " + o.leave;
        }
    return {};
}

/// Empty, or what is wrong with a list of `count` weights.
std::string weights_problem(const char* name, const std::vector<double>& weights, Index count, const char* of_what) {
    if (!weights.empty() && static_cast<Index>(weights.size()) != count)
        return std::string(name) + " must have one entry for each of the " + std::to_string(count) + " " + of_what +
               ", but has " + std::to_string(weights.size());
    for (const double w : weights)
        if (!(w >= 0.0) || !std::isfinite(w))
            return std::string(name) + " must be finite and >= 0, but one is " + std::to_string(w);
    return {};
}

std::string problem_of(const LossSpec& s, Index outputs) {
    const auto out_of = [](const char* name, const char* range, double value) {
        return std::string(name) + " must be " + range + ", but is " + std::to_string(value);
    };
    const std::string lists = first_of(
        {idle_option(s), weights_problem("class_weights", s.class_weights, outputs, "classes"),
         weights_problem("pos_weight", s.pos_weight, outputs, "features"), problem_of_save(s.save, {"logits"})});
    if (!lists.empty()) return lists;
    if (!(s.label_smoothing >= 0.0 && s.label_smoothing < 1.0))
        return out_of("label_smoothing", "in [0, 1)", s.label_smoothing);
    if (!(s.delta > 0.0) || !std::isfinite(s.delta)) return out_of("delta", "finite and > 0", s.delta);
    if (!(s.beta >= 0.0) || !std::isfinite(s.beta)) return out_of("beta", "finite and >= 0", s.beta);
    if (!(s.epsilon > 0.0) || !std::isfinite(s.epsilon)) return out_of("epsilon", "finite and > 0", s.epsilon);
    if (s.kind != LossSpec::Kind::gaussian_nll) return {};
    if (s.shared_variance && outputs < 2)
        return "gaussian_nll with shared_variance reads the means and one variance, at least 2 outputs, but the last "
               "layer has " +
               std::to_string(outputs);
    if (!s.shared_variance && outputs % 2 != 0)
        return "gaussian_nll reads as many means as variances, an even number of outputs, but the last layer has " +
               std::to_string(outputs) + "; change that, or set shared_variance";
    return {};
}

}  // namespace

Index ModelSpec::outputs() const {
    if (layers.empty()) throw InvalidArgument("a model without layers has no outputs; give it at least one layer");
    return outputs_of(layers.back());
}

Index LossSpec::targets(Index outputs) const noexcept {
    if (kind == Kind::cross_entropy) return 0;
    if (kind != Kind::gaussian_nll) return outputs;
    return shared_variance ? outputs - 1 : outputs / 2;
}

Index ModelSpec::targets() const {
    return loss.targets(outputs());
}

Index ModelSpec::inputs() const {
    if (layers.empty()) throw InvalidArgument("a model without layers has no inputs; give it at least one layer");
    return inputs_of(layers.front());
}

const EmbeddingSpec* ModelSpec::table() const noexcept {
    const std::vector<LayerSpec>* list = &layers;
    while (!list->empty() && std::holds_alternative<CheckpointSpec>(list->front())) list = within(list->front());
    return list->empty() ? nullptr : std::get_if<EmbeddingSpec>(&list->front());
}

bool ModelSpec::segmentable() const {
    return !any_layer(layers, [](const LayerSpec& layer) {
        const auto* recurrent = std::get_if<RecurrentSpec>(&layer);
        const auto* attention = std::get_if<AttentionSpec>(&layer);
        return (recurrent && recurrent->bidirectional) ||
               (attention && attention->mask == AttentionSpec::Mask::full && !attention->across);
    });
}

std::optional<std::pair<Index, Index>> ModelSpec::context() const {
    std::optional<std::pair<Index, Index>> widths;
    any_layer(layers, [&](const LayerSpec& layer) {
        const auto* attention = std::get_if<AttentionSpec>(&layer);
        if (attention && attention->across) widths = {attention->keys(), attention->values()};
        return widths.has_value();
    });
    return widths;
}

bool RecurrentSpec::saves(std::string_view what) const {
    return std::find(save.begin(), save.end(), what) != save.end();
}

bool AttentionSpec::saves(std::string_view what) const {
    return std::find(save.begin(), save.end(), what) != save.end();
}

bool LossSpec::saves(std::string_view what) const {
    return std::find(save.begin(), save.end(), what) != save.end();
}

bool ModelSpec::learned_state() const {
    return any_layer(layers, [](const LayerSpec& layer) {
        const auto* recurrent = std::get_if<RecurrentSpec>(&layer);
        return recurrent && recurrent->learned_state;
    });
}

bool ModelSpec::random() const {
    return any_layer(layers, [](const LayerSpec& layer) {
        const auto* recurrent = std::get_if<RecurrentSpec>(&layer);
        const auto* dropout = std::get_if<DropoutSpec>(&layer);
        const auto* attention = std::get_if<AttentionSpec>(&layer);
        return (recurrent && (recurrent->dropout > 0.0 || recurrent->weight_drop > 0.0)) || (dropout && dropout->rate > 0.0) ||
               (attention && attention->dropout > 0.0);
    });
}

namespace {

/// The layers of a model (`depth` 0) or of a block, one behind the other; `starts`: the model starts with the first of them.
/// `names` are all so far.
std::string problem_of(const std::vector<LayerSpec>& layers, const ModelSpec& model,
                       std::set<std::string>& names, int depth, bool starts) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
        const LayerSpec& layer = layers[l];
        const std::string here = "layer '" + name(layer) + "': ";
        const std::string own = std::visit([](const auto& s) { return problem_of(s); }, layer);
        if (!own.empty()) return here + own;
        if (name(layer).empty()) return "layer " + std::to_string(l) + " has no name; its parameters need one";
        if (!names.insert(name(layer)).second) return here + "another layer has this name; give them different ones";
        if (std::holds_alternative<EmbeddingSpec>(layer) && (l > 0 || !starts))
            return here + "an embedding reads tokens and can only stand first";
        if (const auto* dense = std::get_if<DenseSpec>(&layer); dense && !dense->tied.empty()) {
            const EmbeddingSpec* const table = model.table();
            if (!table || table->name != dense->tied)
                return here + "tied = '" + dense->tied + "' names no embedding of this model; name the first layer's";
            if (table->vocabulary != dense->outputs || table->features != dense->inputs)
                return here + "tied to a table of " + std::to_string(table->vocabulary) + " x " +
                       std::to_string(table->features) + ", it must read as many features and give as many outputs, but has " +
                       std::to_string(dense->inputs) + " and " + std::to_string(dense->outputs);
            if (depth > 0) return here + "a tied layer cannot stand within a block; put it behind the block";
        }
        if (const auto* inner = within(layer)) {
            const bool first = starts && l == 0 && std::holds_alternative<CheckpointSpec>(layer);
            const std::string found = problem_of(*inner, model, names, depth + 1, first);
            if (!found.empty()) return here + found;
        }
        if (const auto* residual = std::get_if<ResidualSpec>(&layer)) {
            if (inputs_of(residual->layers.front()) != outputs_of(residual->layers.back()))
                return here + "it adds what it reads, " + std::to_string(inputs_of(residual->layers.front())) +
                       " features, to what its layers give, " + std::to_string(outputs_of(residual->layers.back())) +
                       "; make them equal";
        }
        if (l == 0) continue;
        const LayerSpec& below = layers[l - 1];
        if (inputs_of(layer) != outputs_of(below))
            return here + "it reads " + std::to_string(inputs_of(layer)) + " features, but '" + name(below) +
                   "' below it gives " + std::to_string(outputs_of(below)) + "; make them equal";
    }
    return {};
}

}  // namespace

const std::vector<LayerSpec>* within(const LayerSpec& layer) noexcept {
    if (const auto* residual = std::get_if<ResidualSpec>(&layer)) return &residual->layers;
    if (const auto* block = std::get_if<CheckpointSpec>(&layer)) return &block->layers;
    if (const auto* block = std::get_if<ConcatenateSpec>(&layer)) return &block->layers;
    return nullptr;
}
std::vector<LayerSpec>* within(LayerSpec& layer) noexcept {
    return const_cast<std::vector<LayerSpec>*>(within(std::as_const(layer)));
}

std::string ModelSpec::problem() const {
    if (layers.empty()) return "a model needs at least one layer";
    std::set<std::string> names;
    if (const std::string found = problem_of(layers, *this, names, 0, true); !found.empty()) return found;
    std::string odd;
    any_layer(layers, [&](const LayerSpec& layer) {
        const auto* attention = std::get_if<AttentionSpec>(&layer);
        const bool differs = attention && attention->across && std::pair{attention->keys(), attention->values()} != *context();
        if (differs)
            odd = "layer '" + attention->name + "': it reads a context of " + std::to_string(attention->keys()) + " and " +
                  std::to_string(attention->values()) + " features for keys and values, but the first that attends across of " +
                  std::to_string(context()->first) + " and " + std::to_string(context()->second) + "; make them equal";
        return differs;
    });
    if (!odd.empty()) return odd;
    const std::string own = problem_of(loss, outputs());
    if (!own.empty()) return "loss: " + own;
    if (!loss.saves("logits") && !std::holds_alternative<DenseSpec>(layers.back()))
        return "loss: save without logits wants a dense layer at the end, which makes them again, but the last is '" +
               name(layers.back()) + "'; leave it out, or end with a dense layer";
    return {};
}

}  // namespace backsweep
