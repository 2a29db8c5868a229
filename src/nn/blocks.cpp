// SPDX-License-Identifier: MIT
#include "backsweep/nn/blocks.hpp"

namespace backsweep {

std::vector<LayerSpec> feed_forward(const FeedForward& block) {
    const auto named = [&](const char* name) { return block.prefix + name; };
    const NormSpec norm{named("norm"), block.features, block.kind, block.epsilon};
    const bool pre = block.norm == FeedForward::Norm::pre;
    ResidualSpec residual{named("residual")};
    const auto append = [&](LayerSpec layer) { residual.layers.push_back(std::move(layer)); };
    if (pre) append(norm);
    append(DenseSpec{named("linear1"), block.features, block.hidden});
    append(ActivationSpec{named("activation"), block.hidden, block.activation});
    if (block.dropout != 0.0) append(DropoutSpec{named("dropout1"), block.hidden, block.dropout});
    append(DenseSpec{named("linear2"), block.hidden, block.features});
    if (block.dropout != 0.0) append(DropoutSpec{named("dropout2"), block.features, block.dropout});
    std::vector<LayerSpec> layers{std::move(residual)};
    if (!pre) layers.emplace_back(norm);
    return layers;
}

}  // namespace backsweep
