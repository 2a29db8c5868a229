// Makers of the CPU layers: products by multiply.hpp, pointwise loops by kernels.hpp.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/dual.hpp"
#include "nn/catalogue.hpp"

namespace backsweep::cpu {

template <class Real>
LayerPointer<Real> embedding(const EmbeddingSpec& spec);
template <class Real>
LayerPointer<Real> lstm(const RecurrentPart& part);
/// The lstm with layer_norm.
template <class Real>
LayerPointer<Real> normed_lstm(const RecurrentPart& part);
template <class Real>
LayerPointer<Real> gru(const RecurrentPart& part);
template <class Real>
LayerPointer<Real> rnn(const RecurrentPart& part);
template <class Real>
LayerPointer<Real> dense(const DenseSpec& spec);
template <class Real>
LayerPointer<Real> norm(const NormSpec& spec);
template <class Real>
LayerPointer<Real> activation(const ActivationSpec& spec);
template <class Real>
LayerPointer<Real> dropout(const DropoutSpec& spec, std::uint32_t stream);
template <class Real>
LayerPointer<Real> fold(const FoldSpec& spec);
template <class Real>
LayerPointer<Real> attention(const AttentionSpec& spec, std::uint32_t stream);
template <class Real>
LayerPointer<Real> loss(const LossSpec& spec, Index features);
template <class Real>
LayerPointer<Real> head(const DenseSpec& dense, const LossSpec& loss);

/// All of them.
template <class Real>
Catalogue<Real> catalogue();

}  // namespace backsweep::cpu
