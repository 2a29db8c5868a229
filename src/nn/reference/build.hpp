// The slow version is the specification: layers as plain loops over their formulas, by which the fast ones are judged.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/network.hpp"

namespace backsweep::reference {

/// Builds a specification out of the plain-loop layers. Throws InvalidArgument: spec.problem().
/// Splitting a segment in time changes no bits, neither of values nor of gradients.
template <class Real>
Network<Real> build(const ModelSpec& spec);

}  // namespace backsweep::reference
