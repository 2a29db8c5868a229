// Specifications as JSON text and back: what snapshots and resolved configurations keep.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/spec.hpp"
#include "backsweep/train/clip.hpp"
#include "backsweep/train/optimizer.hpp"
#include "backsweep/train/rate.hpp"
#include "backsweep/train/windows.hpp"

#include <string>
#include <string_view>

namespace backsweep {

/// All members, also those at their defaults; equal specifications give equal text.
std::string to_json(const ModelSpec& spec);
std::string to_json(const OptimizerSpec& spec);
std::string to_json(const RateSpec& spec);
std::string to_json(const Plateau& state);
std::string to_json(const ClipSpec& spec);
std::string to_json(const WindowSpec& spec);

/// Strict: throw InvalidArgument, naming the key, for text that is no JSON, an unknown key or value, a wrong type, or a
/// specification with a problem(). A key that is left out has its default.
ModelSpec model_from_json(std::string_view text);
OptimizerSpec optimizer_from_json(std::string_view text);
RateSpec rate_from_json(std::string_view text);
Plateau plateau_from_json(std::string_view text);
ClipSpec clip_from_json(std::string_view text);
WindowSpec windows_from_json(std::string_view text);

/// One line for messages: "embedding 65 -> 32, lstm 32 -> 128, dense 128 -> 65, cross_entropy".
std::string describe(const ModelSpec& spec);

}  // namespace backsweep
