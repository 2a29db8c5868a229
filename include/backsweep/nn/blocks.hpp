// Blocks of layers that are often wanted, as specifications: lists to be appended to a model's, which ModelSpec::problem()
// judges there. Names stand behind `prefix`: "block0." makes "block0.linear1".
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/spec.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace backsweep {

/// The feed-forward half of a Transformer's layer [Vaswani17, section 3.3], with dropout behind the activation and
/// behind linear2 where there is any:
///   pre:   x + linear2(act(linear1(norm(x))))        post:  norm(x + linear2(act(linear1(x))))
struct FeedForward {
    enum class Norm { pre, post };

    Index features = 0;  ///< in and out
    Index hidden = 0;    ///< between linear1 and linear2
    ActivationSpec::Kind activation = ActivationSpec::Kind::gelu;
    Norm norm = Norm::pre;
    NormSpec::Kind kind = NormSpec::Kind::layer;
    double epsilon = 1e-5;  ///< of the norm
    double dropout = 0.0;
    std::string prefix{};
    /// Of the layers that have parameters.
    std::string norm_name = "norm", linear1_name = "linear1", linear2_name = "linear2";
};
std::vector<LayerSpec> feed_forward(const FeedForward& block);

/// PyTorch's TransformerEncoderLayer [Vaswani17, section 3.1], names self_attn, norm1, linear1, linear2, norm2:
///   norm_first:  y = x + attn(norm1(x)),  y + linear2(act(linear1(norm2(y))))
///   else:        y = norm1(x + attn(x)),  norm2(y + linear2(act(linear1(y))))
/// Dropout behind attention, activation and linear2 and of the mixing weights.
struct EncoderLayer {
    AttentionSpec attention{};  ///< its features are the layer's; name, and dropout where it is 0, are set here
    Index hidden = 0;           ///< between linear1 and linear2
    ActivationSpec::Kind activation = ActivationSpec::Kind::relu;
    bool norm_first = false;
    NormSpec::Kind kind = NormSpec::Kind::layer;
    double epsilon = 1e-5;  ///< of the norms
    double dropout = 0.0;
    std::string prefix{};
};
std::vector<LayerSpec> encoder_layer(const EncoderLayer& block);

/// PyTorch's TransformerDecoderLayer: between the two halves of an encoder layer a third one, multihead_attn, which attends
/// to Segment::context; names self_attn, multihead_attn, norm1, norm2, norm3, linear1, linear2.
struct DecoderLayer {
    AttentionSpec attention{};  ///< self_attn, as in EncoderLayer
    Index heads = 0;            ///< of multihead_attn; 0: attention.heads
    Index key_features = 0;     ///< of the context's keys; 0: the layer's
    Index value_features = 0;   ///< of the context's values; 0: key_features
    Index hidden = 0;
    ActivationSpec::Kind activation = ActivationSpec::Kind::relu;
    bool norm_first = false;
    NormSpec::Kind kind = NormSpec::Kind::layer;
    double epsilon = 1e-5;
    double dropout = 0.0;
    std::string prefix{};
};
std::vector<LayerSpec> decoder_layer(const DecoderLayer& block);

/// A layer of Transformer-XL [Dai19, section 3.3], the norms behind as in the published code, whose names these are:
///   y = dec_attn.layer_norm(x + dec_attn(x)),
///   pos_ff.layer_norm(y + pos_ff.CoreNet.3(relu(pos_ff.CoreNet.0(y))))
/// with dropout behind attention, activation and the last product. Every layer has r_w_bias and r_r_bias of its own (there:
/// untie_r).
struct TransformerXlBlock {
    Index features = 0;
    Index heads = 1;
    Index head_features = 0;  ///< 0: features / heads
    Index inner = 0;          ///< between the two products; 0: 4 features
    AttentionSpec::Position position = AttentionSpec::Position::relative;
    Index memory = 0;  ///< this and the next two as in AttentionSpec
    bool detached = false;
    Index window = 0;
    double dropout = 0.0;
    double attention_dropout = 0.0;  ///< of the mixing weights
    std::string prefix{};
};
std::vector<LayerSpec> transformer_xl_block(const TransformerXlBlock& block);

/// A boom layer [Merity19, section 3.2]: linear1 to `inner` features, gelu, dropout, and the sum of the blocks of features
/// in the place of a second product.
struct Boom {
    Index features = 0;  ///< in and out
    Index inner = 0;     ///< a multiple of features; 0: 4 features
    double dropout = 0.0;
    std::string prefix{};
};
std::vector<LayerSpec> boom(const Boom& block);

/// A block of SHA-RNN [Merity19, section 3] under the published code's names:
///   x = lnstart(x),  x += rnn(x);   x = lnmid(x),  x += attn(x), with a memory;   x = lnff(x),  x += ff(x), a boom layer
/// with dropout behind each of the three. In front of attention the published code has two norms, of query and of memory,
/// and in front of the boom layer two, of it and of its bypass; here each pair is one norm (the affine part that differs
/// goes into the gates). Its gate of the values is a product of its own parameters with themselves; here it is one
/// sigmoid.
struct ShaBlock {
    Index features = 0;
    Index inner = 0;        ///< of the boom layer; 0: 4 features
    bool attention = true;  ///< false: without lnmid and attn; of the published model one layer alone has them
    Index heads = 1;
    AttentionSpec::Position position = AttentionSpec::Position::none;
    Index memory = 0;  ///< this and the next two as in AttentionSpec
    bool detached = false;
    Index window = 0;
    double dropout = 0.0;
    double attention_dropout = 0.0;  ///< of the mixing weights
    double epsilon = 1e-12;          ///< of the norms
    std::string prefix{};
};
std::vector<LayerSpec> sha_block(const ShaBlock& block);

/// Names of what the tapes of attention, LSTM and GRU keep (AttentionSpec::save, RecurrentSpec::save), from most bytes and
/// least work on:
///   everything  query, key, value, output; gates
///   selective   output; gates: what lies within attention is made again [Korthikanti22, section 5]
///   nothing     not even that
const std::vector<std::string>& save_policies();

/// The model with the `save` of all these layers as the policy says. Throws InvalidArgument for an unknown name, listing
/// those that there are, and for a model without such a layer, where a policy has no effect.
ModelSpec save_policy(ModelSpec model, std::string_view policy);

}  // namespace backsweep
