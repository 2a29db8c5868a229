// The members of a model's specifications, each listed once: Io reads or writes JSON or TOML. It has
//   member(key, value)                    a number, flag, text, optional or list of such, or a list of specifications
//   choice(key, enumerator, names)        names in the order of the enumeration
//   alternative(key, variant, names)      names in the order of the variant
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/spec.hpp"

namespace backsweep {

template <class Io>
void members(Io& io, EmbeddingSpec& spec) {
    io.member("name", spec.name);
    io.member("vocabulary", spec.vocabulary);
    io.member("features", spec.features);
    io.member("padding", spec.padding);
}

template <class Io>
void members(Io& io, RecurrentSpec& spec) {
    io.member("name", spec.name);
    io.choice("cell", spec.cell, {"lstm", "gru", "rnn_tanh", "rnn_relu"});
    io.member("inputs", spec.inputs);
    io.member("hidden", spec.hidden);
    io.member("layers", spec.layers);
    io.member("bias", spec.bias);
    io.member("projection", spec.projection);
    io.member("heads", spec.heads);
    io.member("layer_norm", spec.layer_norm);
    io.member("bidirectional", spec.bidirectional);
    io.member("learned_state", spec.learned_state);
    io.choice("start", spec.start, {"uniform", "orthogonal", "identity"});
    io.member("forget_bias", spec.forget_bias);
    io.member("dropout", spec.dropout);
    io.member("locked", spec.locked);
    io.member("weight_drop", spec.weight_drop);
    io.member("save", spec.save);
}

template <class Io>
void members(Io& io, DenseSpec& spec) {
    io.member("name", spec.name);
    io.member("inputs", spec.inputs);
    io.member("outputs", spec.outputs);
    io.member("bias", spec.bias);
    io.member("tied", spec.tied);
}

template <class Io>
void members(Io& io, NormSpec& spec) {
    io.member("name", spec.name);
    io.member("features", spec.features);
    io.choice("kind", spec.kind, {"layer", "rms"});
    io.member("epsilon", spec.epsilon);
    io.member("affine", spec.affine);
}

template <class Io>
void members(Io& io, ActivationSpec& spec) {
    io.member("name", spec.name);
    io.member("features", spec.features);
    io.choice("kind", spec.kind,
              {"relu", "silu", "gelu", "gelu_tanh", "tanh", "sigmoid", "softplus", "softmax", "log_softmax"});
}

template <class Io>
void members(Io& io, DropoutSpec& spec) {
    io.member("name", spec.name);
    io.member("features", spec.features);
    io.member("rate", spec.rate);
    io.member("locked", spec.locked);
}

template <class Io>
void members(Io& io, FoldSpec& spec) {
    io.member("name", spec.name);
    io.member("inputs", spec.inputs);
    io.member("outputs", spec.outputs);
}

template <class Io>
void members(Io& io, AttentionSpec& spec) {
    io.member("name", spec.name);
    io.member("features", spec.features);
    io.member("heads", spec.heads);
    io.member("head_features", spec.head_features);
    io.choice("mask", spec.mask, {"causal", "full"});
    io.choice("projection", spec.projection, {"linear", "gated"});
    io.choice("position", spec.position, {"none", "alibi", "rotary", "relative"});
    io.member("across", spec.across);
    io.member("key_features", spec.key_features);
    io.member("value_features", spec.value_features);
    io.member("memory", spec.memory);
    io.member("detached", spec.detached);
    io.member("window", spec.window);
    io.member("rotary_base", spec.rotary_base);
    io.member("rotary_features", spec.rotary_features);
    io.member("interleaved", spec.interleaved);
    io.member("scale", spec.scale);
    io.member("bias", spec.bias);
    io.member("dropout", spec.dropout);
    io.member("save", spec.save);
}

template <class Io>
void members(Io& io, ResidualSpec& spec) {
    io.member("name", spec.name);
    io.member("layers", spec.layers);
}

template <class Io>
void members(Io& io, CheckpointSpec& spec) {
    io.member("name", spec.name);
    io.member("layers", spec.layers);
}

template <class Io>
void members(Io& io, ConcatenateSpec& spec) {
    io.member("name", spec.name);
    io.member("layers", spec.layers);
}

template <class Io>
void members(Io& io, LayerSpec& spec) {
    io.alternative("layer", spec, {"embedding", "recurrent", "dense", "norm", "activation", "dropout", "fold",
                               "attention", "residual", "checkpoint", "concatenate"});
}

template <class Io>
void members(Io& io, LossSpec& spec) {
    io.choice("kind", spec.kind,
              {"cross_entropy", "mean_squared_error", "inner_product", "l1", "huber", "smooth_l1", "binary_cross_entropy",
               "gaussian_nll"});
    io.choice("reduction", spec.reduction, {"mean", "sum", "none"});
    io.member("class_weights", spec.class_weights);
    io.member("label_smoothing", spec.label_smoothing);
    io.member("ignore_index", spec.ignore_index);
    io.member("delta", spec.delta);
    io.member("beta", spec.beta);
    io.member("pos_weight", spec.pos_weight);
    io.member("epsilon", spec.epsilon);
    io.member("full", spec.full);
    io.member("shared_variance", spec.shared_variance);
    io.choice("at", spec.at, {"every", "last"});
    io.member("save", spec.save);
}

template <class Io>
void members(Io& io, ModelSpec& spec) {
    io.member("layers", spec.layers);
    io.member("loss", spec.loss);
}

}  // namespace backsweep
