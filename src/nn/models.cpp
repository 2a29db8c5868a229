// SPDX-License-Identifier: MIT
#include "backsweep/nn/models.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/blocks.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

namespace backsweep {

namespace {

/// The body between its ends; it reads `inputs` features and gives `outputs`.
ModelSpec between(const ModelEnds& ends, Index inputs, std::vector<LayerSpec> body, Index outputs) {
    ModelSpec model;
    std::vector<LayerSpec>& layers = model.layers;
    if (ends.vocabulary > 0) layers.push_back(EmbeddingSpec{"embedding", ends.vocabulary, inputs, {}});
    if (ends.input_dropout != 0.0)
        layers.push_back(
            DropoutSpec{"input_dropout", ends.vocabulary > 0 ? inputs : ends.inputs, ends.input_dropout, ends.locked});
    std::move(body.begin(), body.end(), std::back_inserter(layers));
    if (ends.output_dropout != 0.0)
        layers.push_back(DropoutSpec{"output_dropout", outputs, ends.output_dropout, ends.locked});
    layers.push_back(DenseSpec{"head", outputs, ends.outputs, ends.bias, ends.tied ? "embedding" : ""});
    model.loss = ends.loss;
    return model;
}

/// Blocks of one width; `block` gives the layers of number k.
template <class Options, class Block>
ModelSpec stack(const Options& options, const Block& block) {
    std::vector<LayerSpec> body;
    if (options.ends.vocabulary == 0) body.push_back(DenseSpec{"input", options.ends.inputs, options.features});
    for (Index k = 0; k < options.layers; ++k)
        for (LayerSpec& layer : block(k)) body.push_back(std::move(layer));
    return between(options.ends, options.features, std::move(body), options.features);
}

void fill(Index& width, Index with) {
    if (width == 0) width = with;
}

/// Whether the layer gives as many features as it reads, whatever they are.
bool keeps_width(const LayerSpec& layer) {
    return std::holds_alternative<NormSpec>(layer) || std::holds_alternative<ActivationSpec>(layer) ||
           std::holds_alternative<DropoutSpec>(layer) || std::holds_alternative<AttentionSpec>(layer) ||
           std::holds_alternative<ResidualSpec>(layer);
}

/// Reads `below` features, or tokens; the last layer gives `last`.
void fill_widths(std::vector<LayerSpec>& layers, Index vocabulary, Index below, Index last) {
    const auto decides = std::find_if_not(layers.rbegin(), layers.rend(), keeps_width);
    for (LayerSpec& layer : layers) {
        const Index outputs = decides != layers.rend() && &layer == &*decides ? last : 0;
        std::visit(
            [&](auto& s) {
                using Spec = std::decay_t<decltype(s)>;
                if constexpr (std::is_same_v<Spec, EmbeddingSpec>) {
                    fill(s.vocabulary, vocabulary);
                    fill(s.features, outputs);
                } else if constexpr (std::is_same_v<Spec, RecurrentSpec>) {
                    fill(s.inputs, below);
                    if (s.projection == 0) fill(s.hidden, s.bidirectional ? outputs / 2 : outputs);
                } else if constexpr (std::is_same_v<Spec, DenseSpec> || std::is_same_v<Spec, FoldSpec>) {
                    fill(s.inputs, below);
                    fill(s.outputs, outputs);
                } else if constexpr (std::is_same_v<Spec, ResidualSpec>) {
                    fill_widths(s.layers, 0, below, below);
                } else if constexpr (std::is_same_v<Spec, ConcatenateSpec>) {
                    fill_widths(s.layers, 0, below, outputs > below ? outputs - below : 0);
                } else if constexpr (std::is_same_v<Spec, CheckpointSpec>) {
                    fill_widths(s.layers, vocabulary, below, outputs);
                } else {
                    fill(s.features, below);
                }
            },
            layer);
        below = ModelSpec{{layer}, {}}.outputs();
    }
}

}  // namespace

ModelSpec recurrent_model(RecurrentModel options) {
    RecurrentSpec& rnn = options.rnn;
    rnn.inputs = options.ends.vocabulary > 0 ? options.embedding : options.ends.inputs;
    return between(options.ends, rnn.inputs, {rnn}, rnn.outputs());
}

ModelSpec lstm_model(RecurrentModel options) {
    options.rnn.cell = RecurrentSpec::Cell::lstm;
    return recurrent_model(std::move(options));
}

ModelSpec gru_model(RecurrentModel options) {
    options.rnn.cell = RecurrentSpec::Cell::gru;
    return recurrent_model(std::move(options));
}

ModelSpec sha_rnn(const ShaRnn& o) {
    if (o.attends() < 0 || o.attends() > o.layers)
        throw InvalidArgument("attention_layer must be in [0, layers = " + std::to_string(o.layers) +
                              "], 0 for none, but is " + std::to_string(o.attends()));
    return stack(o, [&](Index k) {
        return sha_block({.features = o.features,
                          .inner = o.inner,
                          .attention = k + 1 == o.attends(),
                          .heads = o.heads,
                          .position = o.position,
                          .memory = o.memory,
                          .detached = o.detached,
                          .window = o.window,
                          .dropout = o.dropout,
                          .attention_dropout = o.attention_dropout,
                          .prefix = "blocks." + std::to_string(k) + "."});
    });
}

ModelSpec transformer_xl(const TransformerXl& o) {
    return stack(o, [&](Index k) {
        return transformer_xl_block({.features = o.features,
                                     .heads = o.heads,
                                     .head_features = o.head_features,
                                     .inner = o.inner,
                                     .position = o.position,
                                     .memory = o.memory,
                                     .detached = o.detached,
                                     .window = o.window,
                                     .dropout = o.dropout,
                                     .attention_dropout = o.attention_dropout,
                                     .prefix = "layers." + std::to_string(k) + "."});
    });
}

ModelSpec with_widths(ModelSpec model, const Widths& widths) {
    fill_widths(model.layers, widths.vocabulary, widths.inputs, widths.outputs);
    return model;
}

}  // namespace backsweep
