// Models as plain data. A builder (`build`, by device name) turns a specification into a Network.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace backsweep {

/// tokens [step][batch] -> [step][batch][features]. Parameter `<name>.weight` (vocabulary, features), N(0, 1).
/// The padding row is looked up as it is; its gradient is zero.
struct EmbeddingSpec {
    std::string name = "embedding";
    Index vocabulary = 0;
    Index features = 0;
    std::optional<Index> padding;
};

/// Stacked LSTM [HS97]: [step][batch][inputs] -> [step][batch][hidden]. Parameters as PyTorch's: `<name>.weight_ih_l0`
/// (4 hidden, inputs), `weight_hh_l0` (4 hidden, hidden), `bias_ih_l0`, `bias_hh_l0`, gate blocks i f g o;
/// U(+-hidden^-1/2).
struct LstmSpec {
    std::string name = "rnn";
    Index inputs = 0;
    Index hidden = 0;
    Index layers = 1;
    bool bias = true;
};

/// y = W x + b at every step. Parameters `<name>.weight` (outputs, inputs), `<name>.bias`; U(+-inputs^-1/2).
struct DenseSpec {
    std::string name = "head";
    Index inputs = 0;
    Index outputs = 0;
    bool bias = true;
};

using LayerSpec = std::variant<EmbeddingSpec, LstmSpec, DenseSpec>;

/// A loss over the last layer's outputs, per step.
struct LossSpec {
    enum class Kind {
        cross_entropy,       ///< softmax cross-entropy; class targets [step][batch]
        mean_squared_error,  ///< value targets [step][batch][feature]
        inner_product  ///< sum of weight * output, weights [step][batch][feature]: the caller's own output adjoint
    };
    enum class Reduction { mean, sum, none };  ///< none: values kept per position, weighted by the caller

    Kind kind = Kind::cross_entropy;
    Reduction reduction = Reduction::mean;
    std::vector<double> class_weights;  ///< cross_entropy: one per class, or empty
    double label_smoothing = 0.0;       ///< cross_entropy: in [0, 1) [Szegedy16, section 7]
    std::optional<Index> ignore_index;  ///< cross_entropy: targets that give no loss and no gradient
};

/// Layers from the input to the head, then the loss.
struct ModelSpec {
    std::vector<LayerSpec> layers;
    LossSpec loss;

    /// Features of the last layer's output.
    Index outputs() const;
    /// Real inputs per step, 0 if the model starts with an embedding.
    Index inputs() const;
    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

}  // namespace backsweep
