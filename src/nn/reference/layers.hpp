// Makers of the plain-loop layers.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/dual.hpp"
#include "nn/catalogue.hpp"

namespace backsweep::reference {

template <class Real>
LayerPointer<Real> embedding(const EmbeddingSpec& spec);
template <class Real>
LayerPointer<Real> lstm(const RecurrentPart& part);
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
LayerPointer<Real> attention(const AttentionSpec& spec, std::uint32_t stream);
template <class Real>
LayerPointer<Real> loss(const LossSpec& spec, Index features);
template <class Real>
LayerPointer<Real> head(const DenseSpec& dense, const LossSpec& loss);

}  // namespace backsweep::reference
