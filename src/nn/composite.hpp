// Layers made of layers, of whatever device keeps its arrays in plain memory.
// SPDX-License-Identifier: MIT
#pragma once

#include "nn/catalogue.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace backsweep {

/// y = x + f(x), f being `layers` one after the other.
template <class Real>
LayerPointer<Real> residual(std::string name, std::vector<LayerPointer<Real>> layers);

/// y = [x, f(x)], f being `layers` one after the other.
template <class Real>
LayerPointer<Real> concatenate(std::string name, std::vector<LayerPointer<Real>> layers);

/// y = f(x), f being `layers` one after the other, of which the tape keeps nothing: reverse runs them again.
template <class Real>
LayerPointer<Real> checkpointed(std::string name, std::vector<LayerPointer<Real>> layers);

/// [forward, backward]: `backward` reads the steps in falling order, of every sequence from its own last step. A
/// sequence whose first step is not marked meets the carry at its last step, as PyTorch's h_0.
template <class Real>
LayerPointer<Real> bidirectional(LayerPointer<Real> forward, LayerPointer<Real> backward);

/// `layer` with elements of one of its parameters dropped in training: w / (1 - rate) or 0, one mask for a window
/// [MKS18].
template <class Real>
LayerPointer<Real> weight_drop(LayerPointer<Real> layer, const std::string& parameter, double rate,
                               std::uint32_t stream);

}  // namespace backsweep
