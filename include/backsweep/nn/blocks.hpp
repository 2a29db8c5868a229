// Blocks of layers that are often wanted, as specifications.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/spec.hpp"

#include <string>
#include <vector>

namespace backsweep {

/// The feed-forward half of a Transformer's layer [Vaswani17, section 3.3], with dropout behind the activation and
/// behind linear2 where there is any:
///   pre:   x + linear2(act(linear1(norm(x))))        post:  norm(x + linear2(act(linear1(x))))
struct FeedForward {
    enum class Norm { pre, post };

    Index features = 0;  ///< in and out
    Index hidden = 0;    ///< between linear1 and linear2
    ActivationSpec::Kind activation = ActivationSpec::Kind::gelu;
    Norm norm = Norm::pre;
    NormSpec::Kind kind = NormSpec::Kind::layer;
    double epsilon = 1e-5;  ///< of the norm
    double dropout = 0.0;
    std::string prefix{};  ///< of the names norm, linear1, linear2, residual, ...: "block0." makes "block0.linear1"
};

/// The block's layers, to be appended to a model's; ModelSpec::problem() judges them there.
std::vector<LayerSpec> feed_forward(const FeedForward& block);

}  // namespace backsweep
