// Models as plain data. A builder (`build`, by device name) turns a specification into a Network.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace backsweep {

/// tokens [step][batch] -> [step][batch][features]. Parameter `<name>.weight` (vocabulary, features), N(0, 1).
/// The padding row is looked up as it is; the lookup gives it no gradient (a head that is tied to the table does).
struct EmbeddingSpec {
    std::string name = "embedding";
    Index vocabulary = 0;
    Index features = 0;
    std::optional<Index> padding;
};

/// Stacked recurrent layers: [step][batch][inputs] -> [step][batch][outputs()]. Parameters as PyTorch's:
/// `<name>.weight_ih_l0` (gates x hidden, inputs), `weight_hh_l0` (gates x hidden, state / heads), `bias_ih_l0`,
/// `bias_hh_l0`, with projection `weight_hr_l0` (projection, hidden); of the backward direction with suffix `_reverse`.
/// They start U(+-hidden^-1/2) unless said otherwise.
///   lstm [HS97], gate blocks i f g o:  c' = s(f) c + s(i) tanh(g),  h' = s(o) tanh(c')
///        with projection [Sak14]:      h' = W_hr (s(o) tanh(c'))
///   gru [Cho14], gate blocks r z n:    n = tanh(W_in x + b_in + s(r) (W_hn h + b_hn)),  h' = (1 - s(z)) n + s(z) h
///   rnn_tanh, rnn_relu:                h' = act(W_ih x + b_ih + W_hh h + b_hh)
struct RecurrentSpec {
    enum class Cell { lstm, gru, rnn_tanh, rnn_relu };
    enum class Start {
        uniform,
        orthogonal,  ///< every square block of weight_hh is orthogonal [SMG14]
        identity     ///< every square block of weight_hh is the identity: with rnn_relu IRNN [LJH15]
    };

    std::string name = "rnn";
    Index inputs = 0;
    Index hidden = 0;
    Index layers = 1;
    bool bias = true;
    Cell cell = Cell::lstm;
    Index projection = 0;  ///< lstm: features of h; 0: none
    Index heads = 1;       ///< h in so many parts of equal size, weight_hh block-diagonal over them; divides hidden
    /// lstm, gru: layer normalisation of both products and of c [Ba16, eqs. (20) to (22) and (27) to (29), reset after
    /// the recurrent product]; parameters `norm_ih_l0.weight`, `.bias`, `norm_hh_l0`, of the lstm `norm_c_l0`.
    bool layer_norm = false;
    bool bidirectional = false;  ///< outputs [forward, backward]; such a model is not cut in time
    bool learned_state = false;  ///< sequences start from parameters `h0_l0`, of the lstm also `c0_l0`; 0 at first
    Start start = Start::uniform;
    std::optional<double> forget_bias{};  ///< lstm: b_ih of the forget gate starts at this, its b_hh at 0
    double dropout = 0.0;      ///< of the outputs of every layer but the last, in [0, 1)
    bool locked = false;       ///< `dropout` takes one mask for all steps of a window [GG16]
    double weight_drop = 0.0;  ///< of the elements of weight_hh, one mask for a window [MKS18], in [0, 1)
    /// lstm, gru: what the tape keeps besides input, output and c, by name: gates. Empty: reverse makes the gates of a
    /// segment again, of all steps by one product with the inputs and one with the states, without recurrence. Gradients
    /// then have other bits, since products of another shape round otherwise.
    std::vector<std::string> save{"gates"};

    /// Features of the output of one direction: projection if there is one, else hidden.
    Index state() const noexcept { return projection > 0 ? projection : hidden; }
    Index outputs() const noexcept { return bidirectional ? 2 * state() : state(); }
    /// lstm, gru.
    bool gated() const noexcept { return cell == Cell::lstm || cell == Cell::gru; }
    /// Whether the tape keeps what has this name.
    bool saves(std::string_view what) const;
};

/// y = W x + b at every step. Parameters `<name>.weight` (outputs, inputs), `<name>.bias`; U(+-inputs^-1/2).
struct DenseSpec {
    std::string name = "head";
    Index inputs = 0;
    Index outputs = 0;
    bool bias = true;
    std::string tied{};  ///< an embedding's name: its table is W [PW17], so that outputs is its vocabulary
};

/// Normalisation of the features of every position; parameters `<name>.weight`, `<name>.bias` (features).
///   layer [Ba16]:  y = (x - mean) / sqrt(variance + epsilon) w + b, the variance biased
///   rms [ZS19]:    y = x / sqrt(mean of x^2 + epsilon) w
struct NormSpec {
    enum class Kind { layer, rms };
    std::string name = "norm";
    Index features = 0;
    Kind kind = Kind::layer;
    double epsilon = 1e-5;
    bool affine = true;  ///< false: no parameters
};

/// A function of every feature, or of the features of a position (softmax, log_softmax).
struct ActivationSpec {
    enum class Kind {
        relu,  ///< derivative 0 at 0
        silu,
        gelu,       ///< with erf
        gelu_tanh,  ///< x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
        tanh,
        sigmoid,
        softplus,  ///< x itself above 20
        softmax,
        log_softmax
    };
    std::string name = "activation";
    Index features = 0;
    Kind kind = Kind::relu;
};

/// In training y = x / (1 - rate) where a random number, a function of (seed, layer, step, sequence, feature), spares
/// the element, else 0 [Sri14]; x itself in evaluation.
struct DropoutSpec {
    std::string name = "dropout";
    Index features = 0;
    double rate = 0.5;    ///< in [0, 1)
    bool locked = false;  ///< one mask for all steps of a window [GG16]
};

/// The sum of the `inputs / outputs` blocks of features: what a boom layer [Merity19] ends with in the place of a product.
struct FoldSpec {
    std::string name = "fold";
    Index inputs = 0;  ///< a multiple of outputs
    Index outputs = 0;
};

/// Multi-head attention [Vaswani17, section 3.2]: every step mixes the values of the keys that it sees, by the softmax of
/// scale * q.k. Head h has the h-th part of the features of q, k and v. A step that sees no key gets 0 (behind the output
/// product its bias) and gives no gradient; fillers give 0. A step sees keys of its own sequence only, none that is a
/// filler or hidden by Segment::key_padding; distances count all steps of the batch, these included. Parameters:
///   linear    PyTorch's: `<name>.in_proj_weight` (3 heads x head features, features), `in_proj_bias`, `out_proj.weight`,
///             `out_proj.bias`; across, where the context has other widths, `q_proj_weight`, `k_proj_weight`,
///             `v_proj_weight` in the place of the first
///   relative  Transformer-XL's [Dai19, section 3.3]: `<name>.qkv_net.weight`, `r_net.weight`, `r_w_bias`, `r_r_bias`
///             (heads, head features), `o_net.weight`, with bias `qkv_net.bias` and `o_net.bias`
///   gated     of SHA-RNN's single head [Merity19]: q = s(qs) LN(W x + b), k = s(ks) x, v = s(vs) x, no output product;
///             `<name>.q.weight`, `q.bias`, `qln.weight`, `qln.bias`, `qs`, `ks`, `vs` (features)
struct AttentionSpec {
    enum class Mask {
        causal,  ///< a step sees itself and those before it
        full     ///< all steps of its sequence; such a model is not cut in time
    };
    enum class Projection { linear, gated };
    enum class Position {
        none,
        alibi,    ///< logit - slope * distance, slopes as in [Press22]
        rotary,   ///< q and k turned by the angle position * base^(-2 pair / rotary_features) [Su21]
        relative  ///< Transformer-XL's, over distances >= 0
    };

    std::string name = "attention";
    Index features = 0;  ///< in and out
    Index heads = 1;
    Index head_features = 0;  ///< 0: features / heads
    Mask mask = Mask::causal;
    Projection projection = Projection::linear;
    Position position = Position::none;
    /// Keys and values are of Segment::context: every step sees all of it but what its marks hide.
    bool across = false;
    Index key_features = 0;    ///< across: of the context's keys; 0: features
    Index value_features = 0;  ///< across: of the context's values; 0: key_features
    /// causal: earlier steps that a segment sees besides its own; their inputs are carried from segment to segment and
    /// projected anew by each [Dai19, section 3.2]. What a step sees then depends on where segments (chunks) are cut, but
    /// for window = memory + 1.
    Index memory = 0;
    /// The memory gets no gradient: it is cut where segments (chunks) are cut; false: only where the window of
    /// back-propagation is.
    bool detached = false;
    Index window = 0;  ///< causal: a step sees so many, itself included; 0: no limit
    double rotary_base = 1e4;
    Index rotary_features = 0;  ///< of every head, from its first on; even; 0: all
    bool interleaved = false;   ///< rotary: pairs (0, 1), (2, 3), ...; false: (0, n / 2), (1, n / 2 + 1), ...
    std::optional<double> scale{};  ///< of the logits; none: head features^-1/2
    bool bias = true;
    double dropout = 0.0;  ///< of the mixing weights, in [0, 1)
    /// What the tape keeps besides the input, by name: query, key, value, output (of the heads). The rest is made again in
    /// reverse. Empty is allowed.
    std::vector<std::string> save{"query", "key", "value", "output"};

    Index head() const noexcept { return head_features > 0 ? head_features : heads > 0 ? features / heads : 0; }
    Index keys() const noexcept { return key_features > 0 ? key_features : features; }
    Index values() const noexcept { return value_features > 0 ? value_features : keys(); }
    /// Whether the tape keeps what has this name.
    bool saves(std::string_view what) const;
};

struct ResidualSpec;
struct ConcatenateSpec;
struct CheckpointSpec;
using LayerSpec = std::variant<EmbeddingSpec, RecurrentSpec, DenseSpec, NormSpec, ActivationSpec, DropoutSpec, FoldSpec,
                               AttentionSpec, ResidualSpec, CheckpointSpec, ConcatenateSpec>;

/// y = f(x), f being `layers` one after the other, kept as x alone: reverse runs them again, up to the last number that it
/// needs [Chen16]. Bits are those of the layers without it. Blocks may lie within blocks.
struct CheckpointSpec {
    std::string name = "checkpoint";
    std::vector<LayerSpec> layers;  // no {}: it would want ResidualSpec, which is not there yet
};

/// y = [x, f(x)], f being `layers` one after the other: the features of x, then those of f(x). In a row such blocks are a
/// stack in which every layer reads what all before it gave [Huang17]; one within another, they are skips from early to
/// late layers [RFB15].
struct ConcatenateSpec {
    std::string name = "concatenate";
    std::vector<LayerSpec> layers;  // as above
};

/// y = x + f(x), f being `layers` one after the other; widths in and out are the same. Their names stand by themselves.
struct ResidualSpec {
    std::string name = "residual";
    std::vector<LayerSpec> layers{};
};

/// checkpoint(DenseSpec{...}, ActivationSpec{...}, ...): its layers in one block.
template <class... Layers>
CheckpointSpec checkpoint(Layers&&... layers) {
    return {.layers = {LayerSpec(std::forward<Layers>(layers))...}};
}
inline CheckpointSpec checkpoint(std::vector<LayerSpec> layers) {
    return {.layers = std::move(layers)};
}

/// The layers of which a layer is made; null: it is made of none.
const std::vector<LayerSpec>* within(const LayerSpec& layer) noexcept;
std::vector<LayerSpec>* within(LayerSpec& layer) noexcept;

/// A loss over the last layer's outputs x, per step: of a position the sum over its features, of which d = x - target.
struct LossSpec {
    enum class Kind {
        cross_entropy,       ///< softmax cross-entropy; class targets [step][batch]
        mean_squared_error,  ///< d^2; value targets [step][batch][feature], as those that follow
        inner_product,       ///< target * x: the targets are the caller's own output adjoint
        l1,                  ///< |d|; its derivative at 0 is 0
        huber,      ///< d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2) [Huber64]
        smooth_l1,  ///< d^2 / (2 beta) where |d| < beta, else |d| - beta / 2
        /// x are logits, targets t in [0, 1]: pos_weight t softplus(-x) + (1 - t) softplus(x).
        binary_cross_entropy,
        /// x are the means of all features, then their variances, twice the features of a target [NW94]:
        /// (log v + d^2 / v) / 2, with `full` plus log(2 pi) / 2, v = max(variance, epsilon). The derivative to the
        /// variance is taken at v and passes through the maximum as if it were not there.
        gaussian_nll
    };
    enum class Reduction { mean, sum, none };  ///< none: values kept per position, weighted by the caller
    enum class At {
        every,  ///< every step has a loss
        last    ///< many to one: only the last step of each sequence has; windows hold whole sequences
    };

    Kind kind = Kind::cross_entropy;
    Reduction reduction = Reduction::mean;
    std::vector<double> class_weights{};  ///< cross_entropy: one per class, or empty
    double label_smoothing = 0.0;         ///< cross_entropy: in [0, 1) [Szegedy16, section 7]
    std::optional<Index> ignore_index{};  ///< cross_entropy: targets that give no loss and no gradient
    double delta = 1.0;                   ///< huber: > 0
    double beta = 1.0;                    ///< smooth_l1: >= 0; 0 is l1
    std::vector<double> pos_weight{};     ///< binary_cross_entropy: one per feature, or empty: all 1
    double epsilon = 1e-6;                ///< gaussian_nll: least variance, > 0
    bool full = false;                    ///< gaussian_nll: with its constant
    bool shared_variance = false;         ///< gaussian_nll: one variance behind the means, for all features
    At at = At::every;
    /// cross_entropy: what is kept of the model's outputs, by name: logits, [step][batch][class] as their derivative.
    /// Without them the dense layer that the model then ends with and the loss run as one, in blocks, and of a position
    /// maximum and sum of its softmax are kept; reverse makes the logits again. Bits are the same.
    std::vector<std::string> save{"logits"};

    /// Whether what has this name is kept.
    bool saves(std::string_view what) const;
    /// Features of a value target where the last layer has `outputs` features; 0: targets are classes.
    Index targets(Index outputs) const noexcept;
};

/// Layers from the input to the head, then the loss.
struct ModelSpec {
    std::vector<LayerSpec> layers;
    LossSpec loss;

    /// Features of the last layer's output.
    Index outputs() const;
    /// Features of a value target, 0 if targets are classes.
    Index targets() const;
    /// Real inputs per step, 0 if the model starts with an embedding.
    Index inputs() const;
    /// The embedding that the model starts with, be it within checkpoint blocks; null: it starts with real inputs.
    const EmbeddingSpec* table() const noexcept;
    /// Whether the model can be cut in time; false where a layer is bidirectional or its attention full.
    bool segmentable() const;
    /// Widths of the context that layers attend to: {keys, values}; none: no layer attends across.
    std::optional<std::pair<Index, Index>> context() const;
    /// Whether a layer starts its sequences from parameters.
    bool learned_state() const;
    /// Whether a layer draws random numbers in training.
    bool random() const;
    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

}  // namespace backsweep
