// What a configuration describes: sources of data, the model, the options of its training.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/data/batches.hpp"
#include "backsweep/data/text.hpp"
#include "backsweep/nn/spec.hpp"
#include "backsweep/train/trainer.hpp"
#include "cli/config.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace backsweep::cli {

/// The data of a run, opened and checked.
struct Data {
    std::shared_ptr<const ByteText> text;  ///< null for made sequences
    Vocabulary vocabulary;
};

/// Opens what config.data names, and writes checksum and bytes of the vocabulary into it. Throws InvalidArgument.
Data open_data(Config::Data& data);

/// "0a20..." -> the vocabulary of these bytes; throws InvalidArgument.
Vocabulary vocabulary_from(std::string_view digits);

inline constexpr std::array<std::string_view, 3> part_names{"train", "valid", "test"};
/// Whether the part holds anything to predict.
bool has_part(const Config::Data& config, const Data& data, std::string_view part);

/// The sequences of a part of the data. Parts other than "train" have the batch and window of the training, or what
/// there is; of made sequences a tenth of the windows, from seeds of their own.
template <class Real>
std::unique_ptr<Source<Real>> make_source(const Config::Data& config, const Data& data, std::string_view part);

ModelSpec model_spec(const Config& config, const Data& data);

/// What a model keeps inside, as Plan::save names it: "nothing, no logits", "everything", "no logits", "".
struct Kept {
    std::string policy{};  ///< of save_policies(); empty: there is nothing to choose
    bool logits = true;

    static Kept from(const std::string& name);
    std::string name() const;
};

/// `windows` of an epoch tell a rate without a length how long the run is; `parameters` and `memories` are the model's.
/// Throws InvalidArgument.
TrainOptions train_options(Config& config, Index windows, const ParameterLayout& parameters, std::size_t memories);

/// Calls f(Real{}) with the precision of the configuration.
template <class F>
auto with_precision(const std::string& precision, const F& f) {
    return precision == "double" ? f(double{}) : f(float{});
}

/// Whether the loss is that of predicting bytes, so that it can be told in bits per character.
inline bool has_bits(const Config& config) {
    return config.data.kind == "text" && config.loss.reduction == "mean" && config.loss.class_weights.empty() &&
           config.loss.label_smoothing == 0.0 && config.loss.ignore_index < 0;
}

}  // namespace backsweep::cli
