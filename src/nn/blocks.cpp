// SPDX-License-Identifier: MIT
#include "backsweep/nn/blocks.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

namespace backsweep {

namespace {

using Layers = std::vector<LayerSpec>;

void append(Layers& to, Layers layers) {
    for (LayerSpec& layer : layers) to.push_back(std::move(layer));
}

void append_dropout(Layers& to, std::string name, Index features, double rate) {
    if (rate != 0.0) to.push_back(DropoutSpec{std::move(name), features, rate});
}

/// x + f(norm(x)) where the norm is in front, else norm(x + f(x)).
Layers half(std::string name, NormSpec norm, bool in_front, Layers f) {
    ResidualSpec residual{std::move(name)};
    if (in_front) residual.layers.push_back(norm);
    append(residual.layers, std::move(f));
    Layers layers{std::move(residual)};
    if (!in_front) layers.emplace_back(std::move(norm));
    return layers;
}

/// Attention and the dropout behind it.
Layers mixing(AttentionSpec attention, double dropout, std::string dropout_name) {
    const Index features = attention.features;
    if (attention.dropout == 0.0) attention.dropout = dropout;
    Layers layers{std::move(attention)};
    append_dropout(layers, std::move(dropout_name), features, dropout);
    return layers;
}

/// The feed-forward half of PyTorch's layers.
template <class Block>
Layers last_half(const Block& block, const char* norm) {
    return feed_forward({.features = block.attention.features,
                         .hidden = block.hidden,
                         .activation = block.activation,
                         .norm = block.norm_first ? FeedForward::Norm::pre : FeedForward::Norm::post,
                         .kind = block.kind,
                         .epsilon = block.epsilon,
                         .dropout = block.dropout,
                         .prefix = block.prefix,
                         .norm_name = norm});
}

/// The attention half of PyTorch's layers.
template <class Block>
Layers attention_half(const Block& block, AttentionSpec attention, const char* name, const char* norm) {
    attention.name = block.prefix + name;
    const NormSpec normed{block.prefix + norm, attention.features, block.kind, block.epsilon};
    return half(attention.name + "_residual", normed, block.norm_first,
                mixing(attention, block.dropout, attention.name + "_dropout"));
}

struct Policy {
    const char* name;
    std::vector<std::string> save;
};
const std::array<Policy, 3>& policies() {
    static const std::array<Policy, 3> all{
        {{"everything", {"query", "key", "value", "output", "gates"}}, {"selective", {"output", "gates"}}, {"nothing", {}}}};
    return all;
}

/// Every layer takes those of the names that it has. Whether there was a layer that has any.
bool set_save(Layers& layers, const std::vector<std::string>& save) {
    bool found = false;
    const auto take = [&](auto& spec) {
        found = true;
        spec.save = std::decay_t<decltype(spec)>{}.save;
        std::erase_if(spec.save, [&](const std::string& name) {
            return std::find(save.begin(), save.end(), name) == save.end();
        });
    };
    for (LayerSpec& layer : layers) {
        if (auto* attention = std::get_if<AttentionSpec>(&layer)) take(*attention);
        if (auto* cell = std::get_if<RecurrentSpec>(&layer); cell && cell->gated()) take(*cell);
        if (auto* inner = within(layer)) found = set_save(*inner, save) || found;
    }
    return found;
}

}  // namespace

std::vector<LayerSpec> feed_forward(const FeedForward& block) {
    const auto named = [&](const std::string& name) { return block.prefix + name; };
    Layers f{DenseSpec{named(block.linear1_name), block.features, block.hidden},
             ActivationSpec{named("activation"), block.hidden, block.activation}};
    append_dropout(f, named("dropout1"), block.hidden, block.dropout);
    f.push_back(DenseSpec{named(block.linear2_name), block.hidden, block.features});
    append_dropout(f, named("dropout2"), block.features, block.dropout);
    return half(named("residual"), {named(block.norm_name), block.features, block.kind, block.epsilon},
                block.norm == FeedForward::Norm::pre, std::move(f));
}

std::vector<LayerSpec> encoder_layer(const EncoderLayer& block) {
    Layers layers = attention_half(block, block.attention, "self_attn", "norm1");
    append(layers, last_half(block, "norm2"));
    return layers;
}

std::vector<LayerSpec> decoder_layer(const DecoderLayer& block) {
    AttentionSpec across;
    across.features = block.attention.features;
    across.heads = block.heads > 0 ? block.heads : block.attention.heads;
    across.mask = AttentionSpec::Mask::full;
    across.across = true;
    across.key_features = block.key_features;
    across.value_features = block.value_features;
    across.bias = block.attention.bias;
    Layers layers = attention_half(block, block.attention, "self_attn", "norm1");
    append(layers, attention_half(block, std::move(across), "multihead_attn", "norm2"));
    append(layers, last_half(block, "norm3"));
    return layers;
}

std::vector<LayerSpec> transformer_xl_block(const TransformerXlBlock& block) {
    AttentionSpec attention;
    attention.name = block.prefix + "dec_attn";
    attention.features = block.features;
    attention.heads = block.heads;
    attention.head_features = block.head_features;
    attention.position = block.position;
    attention.memory = block.memory;
    attention.detached = block.detached;
    attention.window = block.window;
    attention.bias = false;
    attention.dropout = block.attention_dropout;
    Layers f{attention};
    append_dropout(f, attention.name + ".drop", block.features, block.dropout);
    Layers layers = half(attention.name + ".residual", {attention.name + ".layer_norm", block.features}, false, std::move(f));
    append(layers, feed_forward({.features = block.features,
                                 .hidden = block.inner > 0 ? block.inner : 4 * block.features,
                                 .activation = ActivationSpec::Kind::relu,
                                 .norm = FeedForward::Norm::post,
                                 .dropout = block.dropout,
                                 .prefix = block.prefix + "pos_ff.",
                                 .norm_name = "layer_norm",
                                 .linear1_name = "CoreNet.0",
                                 .linear2_name = "CoreNet.3"}));
    return layers;
}

std::vector<LayerSpec> boom(const Boom& block) {
    const Index inner = block.inner > 0 ? block.inner : 4 * block.features;
    Layers layers{DenseSpec{block.prefix + "linear1", block.features, inner},
                  ActivationSpec{block.prefix + "act", inner, ActivationSpec::Kind::gelu}};
    append_dropout(layers, block.prefix + "dropout", inner, block.dropout);
    layers.push_back(FoldSpec{block.prefix + "fold", inner, block.features});
    return layers;
}

std::vector<LayerSpec> sha_block(const ShaBlock& block) {
    const auto named = [&](const char* name) { return block.prefix + name; };
    Layers layers;
    const auto part = [&](const char* norm, std::string name, Layers f) {
        layers.push_back(NormSpec{named(norm), block.features, NormSpec::Kind::layer, block.epsilon});
        append_dropout(f, name + "_drop", block.features, block.dropout);
        layers.push_back(ResidualSpec{name + "_residual", std::move(f)});
    };
    part("lnstart", named("rnn"),
         {RecurrentSpec{.name = named("rnn"), .inputs = block.features, .hidden = block.features}});
    if (block.attention) {
        AttentionSpec attention;
        attention.name = named("attn");
        attention.features = block.features;
        attention.heads = block.heads;
        attention.projection = AttentionSpec::Projection::gated;
        attention.position = block.position;
        attention.memory = block.memory;
        attention.detached = block.detached;
        attention.window = block.window;
        attention.dropout = block.attention_dropout;
        part("lnmid", named("attn"), {std::move(attention)});
    }
    part("lnff", named("ff"), boom({block.features, block.inner, block.dropout, named("ff.")}));
    return layers;
}

const std::vector<std::string>& save_policies() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const Policy& policy : policies()) all.emplace_back(policy.name);
        return all;
    }();
    return names;
}

ModelSpec save_policy(ModelSpec model, std::string_view policy) {
    const auto found = std::find_if(policies().begin(), policies().end(), [&](const Policy& p) { return p.name == policy; });
    if (found == policies().end()) {
        std::string known;
        for (const std::string& name : save_policies()) known += (known.empty() ? "" : ", ") + name;
        throw InvalidArgument("there is no save policy '" + std::string(policy) + "'; there are: " + known);
    }
    if (!set_save(model.layers, found->save))
        throw InvalidArgument("the save policy '" + std::string(policy) +
                              "' has no effect on a model without attention, LSTM and GRU; leave it out");
    return model;
}

}  // namespace backsweep
