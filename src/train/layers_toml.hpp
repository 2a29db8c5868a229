// Reads a list of layers that stands in a TOML document; see backsweep/train/spec_toml.hpp.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/spec.hpp"

#include <toml++/toml.h>

#include <functional>
#include <string>
#include <vector>

namespace backsweep {

/// "config.toml:12", for messages.
using PlaceOf = std::function<std::string(const toml::node&)>;

/// All layers have names; widths that were left out are 0. Throws InvalidArgument.
std::vector<LayerSpec> layers_from(const toml::array& layers, const PlaceOf& place_of);

}  // namespace backsweep
