// Whole models that are often wanted, as specifications.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/spec.hpp"

#include <optional>
#include <string>
#include <vector>

namespace backsweep {

/// What a model stands between: what it reads, and the head and loss behind its last layer. Layers `embedding` (with
/// tokens), `input_dropout`, the model's own, `output_dropout`, `head`.
struct ModelEnds {
    Index vocabulary = 0;  ///< of the tokens; 0: the model reads `inputs` real numbers a step
    Index inputs = 0;
    Index outputs = 0;  ///< of the head
    bool bias = true;   ///< of the head
    bool tied = false;  ///< the head's weights are the embedding's [PW17]
    double input_dropout = 0.0;
    double output_dropout = 0.0;
    bool locked = false;  ///< one mask of these two for all steps of a window
    LossSpec loss{};
};

/// A stack of one kind of cell.
struct RecurrentModel {
    ModelEnds ends{};
    Index embedding = 0;  ///< features of a token, where there are tokens
    RecurrentSpec rnn{};  ///< its inputs are set here
};
ModelSpec recurrent_model(RecurrentModel options);
/// The same, whatever options.rnn.cell says.
ModelSpec lstm_model(RecurrentModel options);
ModelSpec gru_model(RecurrentModel options);

/// SHA-RNN [Merity19]: `layers` of blocks (sha_block, where its other options are explained), names "blocks.0." and so on.
/// Real inputs pass a dense layer `input`.
struct ShaRnn {
    ModelEnds ends{};
    Index features = 0;  ///< of a token and of every block
    Index layers = 4;
    /// The block that has the single head, from 1 on; 0: none has; not given: the last but one, of a single block it.
    std::optional<Index> attention_layer{};
    Index inner = 0;
    Index heads = 1;
    AttentionSpec::Position position = AttentionSpec::Position::none;
    Index memory = 0;
    bool detached = false;
    Index window = 0;
    double dropout = 0.0;
    double attention_dropout = 0.0;

    /// attention_layer, as it is or as it is by default.
    Index attends() const noexcept { return attention_layer ? *attention_layer : layers > 1 ? layers - 1 : 1; }
};
/// Throws InvalidArgument for an attention_layer that there is not.
ModelSpec sha_rnn(const ShaRnn& options);

/// Transformer-XL [Dai19]: `layers` of blocks (transformer_xl_block, where its other options are explained), names
/// "layers.0." and so on. Embeddings are not scaled: they start with variance 1. Real inputs pass a dense layer `input`.
struct TransformerXl {
    ModelEnds ends{};
    Index features = 0;  ///< of a token and of every block
    Index layers = 4;
    Index heads = 1;
    Index head_features = 0;
    Index inner = 0;
    AttentionSpec::Position position = AttentionSpec::Position::relative;
    Index memory = 0;
    bool detached = false;
    Index window = 0;
    double dropout = 0.0;
    double attention_dropout = 0.0;
};
ModelSpec transformer_xl(const TransformerXl& options);

/// The model with all widths that are 0 filled in: what a layer reads is what the one below gives (the first one: the
/// vocabulary or the inputs), a last layer that leaves its width out gives `outputs`, the last one of a residual block what
/// the block reads; layers that keep the width may stand behind it. What cannot be told stays 0, which
/// ModelSpec::problem() names.
struct Widths {
    Index vocabulary = 0, inputs = 0, outputs = 0;
};
ModelSpec with_widths(ModelSpec model, const Widths& widths = {});

}  // namespace backsweep
