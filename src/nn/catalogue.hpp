// A device's layers: one row for each kind of specification. A new layer adds a row here and its makers.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/dual.hpp"
#include "backsweep/nn/network.hpp"
#include "nn/described_layer.hpp"

#include <cstdint>
#include <memory>

namespace backsweep {

template <class Real>
using LayerPointer = std::unique_ptr<const Layer<Real>>;

/// Makers of the layers of one device. The specifications they are given are valid.
template <class Real>
struct Catalogue {
    LayerPointer<Real> (*embedding)(const EmbeddingSpec&);
    LayerPointer<Real> (*lstm)(const RecurrentPart&);
    LayerPointer<Real> (*gru)(const RecurrentPart&);
    LayerPointer<Real> (*rnn)(const RecurrentPart&);  ///< rnn_tanh, rnn_relu
    LayerPointer<Real> (*dense)(const DenseSpec&);
    LayerPointer<Real> (*norm)(const NormSpec&);
    LayerPointer<Real> (*activation)(const ActivationSpec&);
    LayerPointer<Real> (*dropout)(const DropoutSpec&, std::uint32_t stream);  ///< stream: of its random numbers
    LayerPointer<Real> (*fold)(const FoldSpec&);
    LayerPointer<Real> (*attention)(const AttentionSpec&, std::uint32_t stream);
    LayerPointer<Real> (*loss)(const LossSpec&, Index features);    ///< features: of the last layer's output
    LayerPointer<Real> (*head)(const DenseSpec&, const LossSpec&);  ///< both as one: a loss that saves no logits
};

/// Builds a network out of a catalogue. Throws InvalidArgument: spec.problem().
template <class Real>
Network<Real> assemble(const ModelSpec& spec, const Catalogue<Real>& catalogue);

extern template Network<float> assemble(const ModelSpec&, const Catalogue<float>&);
extern template Network<double> assemble(const ModelSpec&, const Catalogue<double>&);
extern template Network<Dual<double>> assemble(const ModelSpec&, const Catalogue<Dual<double>>&);

}  // namespace backsweep
