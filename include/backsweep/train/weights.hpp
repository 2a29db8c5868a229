// A model's weights alone, in .safetensors files under PyTorch's names: the state_dict of a module whose attributes
// have the layers' names.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/network.hpp"

#include <filesystem>
#include <span>

namespace backsweep {

/// Writes `path`, whole or not at all. A tied parameter is written once, under the name of the layer that owns it.
/// Throws StoreError, and InvalidArgument if the number of parameters is not the network's.
template <class Real>
void save_weights(const std::filesystem::path& path, const Network<Real>& network, std::span<const Real> parameters);

/// Assigns all parameters, or none if it throws. Throws StoreError for a file that cannot be read, and InvalidArgument,
/// naming the tensor, for one that is missing, of another shape, of more digits than Real or of no use to the model.
/// What PyTorch stores twice of a tied layer ("head.weight") is accepted if it has the bits of the table.
template <class Real>
void load_weights(const std::filesystem::path& path, const Network<Real>& network, std::span<Real> parameters);

}  // namespace backsweep
