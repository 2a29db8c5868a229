// Makers of the CPU layers: products by BLAS through Armadillo's views, pointwise loops by kernels.hpp.
// SPDX-License-Identifier: MIT
#pragma once

#include "nn/catalogue.hpp"

namespace backsweep::cpu {

template <class Real>
LayerPointer<Real> embedding(const EmbeddingSpec& spec);
template <class Real>
LayerPointer<Real> lstm(const LstmSpec& spec, Index layer);
template <class Real>
LayerPointer<Real> dense(const DenseSpec& spec);
template <class Real>
LayerPointer<Real> loss(const LossSpec& spec, Index features);

}  // namespace backsweep::cpu
