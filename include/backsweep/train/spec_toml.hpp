// Models as TOML, the form that people write: what a configuration of the program has as [[model.layers]], for users of
// the library.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/models.hpp"
#include "backsweep/nn/spec.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace backsweep {

/// A text with a table [[layers]] for every layer, from the input to the head, and [loss]. A layer's `type` is embedding,
/// lstm, gru, rnn_tanh, rnn_relu, dense, norm, activation, dropout, fold, attention or residual; its other keys are the
/// members of the specification (backsweep/nn/spec.hpp) with their defaults. A residual block has its own `layers`. Names
/// that are left out are the specification's, from the second use on with a number: norm, norm2. Widths that are left out
/// are filled in by with_widths.
/// Throws InvalidArgument, naming `source` and line: no TOML, an unknown type or key (with the nearest one), a wrong type
/// or value; and for a model with a problem().
ModelSpec model_from_toml(std::string_view text, const Widths& widths = {}, const std::string& source = "model");
/// The same of a file; throws InvalidArgument too if it cannot be read.
ModelSpec read_model(const std::filesystem::path& path, const Widths& widths = {});

/// A text that model_from_toml reads back: names, and all members that are not at their defaults.
std::string to_toml(const ModelSpec& model);
/// The list of layers alone, as the value of a key.
std::string to_toml(const std::vector<LayerSpec>& layers);

}  // namespace backsweep
