// A network's own graph: what one segment's forward and reverse run compute, layer by layer, blocks opened, so that
// skips and joins are edges. Planners for graphs (schedule/optimal_graph.hpp, graph/plan_graph.hpp) read it, and a
// GraphExecution plays their plans.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/network.hpp"
#include "backsweep/schedule/graph.hpp"

#include <cstdint>
#include <vector>

namespace backsweep {

/// How a node's value is computed. A value is rows of `features` numbers, one a position, behind `before` others.
struct NetworkNode {
    enum class What : std::uint8_t {
        input,        ///< the segment's real inputs
        record,       ///< a layer's forward run on x: its tape, then its output; a loss has none
        output,       ///< the output taken out of `tape`
        sum,          ///< y with `added` to it
        concatenate,  ///< [x, y]
        split,        ///< the last features of dy
        reverse       ///< a layer's reverse run: the adjoint of its input. Of a first layer no value, unless it is wanted
    };

    What what = What::record;
    Index link = 0;                               ///< the network's layer that it belongs to
    Index layer = -1;                             ///< record, reverse: of the opened network
    Index x = -1, y = -1, tape = -1, dy = -1;     ///< nodes that are read; -1: none
    /// Nodes of which the first features of every row are added to what was computed, one after the other: the inputs of
    /// residual blocks that end here, the adjoints of the outputs of blocks that begin here, inner ones first.
    std::vector<Index> added{};
    Index features = 0;  ///< of a row
    Index before = 0;    ///< elements before the rows: a tape, rounded up to 64 bytes
    Index size = 0;      ///< elements

    bool forward() const noexcept { return what <= What::concatenate; }
};

/// The graph of a segment of `steps` steps and `batch` sequences. Times are counted operations, of copies the numbers
/// copied. Nodes stand in an order in which the network runs; names are those of layers, of a block's join the block's.
///
/// A tape larger than the layer's output is a node with that output behind it, and the output by itself another one: so
/// plans may keep either. Smaller ones stay with the output. A block's last sum is made in place, by the node whose rows
/// it is added to, unless a reverse run reads these; so are sums of adjoints. Each reverse run is needed by the next one
/// below, which is why parameters that layers share are added to in falling order under any plan.
template <class Real>
struct NetworkGraph {
    Graph graph;
    std::vector<NetworkNode> nodes;
    Network<Real> layers;  ///< opened
    Index steps = 0, batch = 0;
    bool input_gradient = false;  ///< the goal is the adjoint of the inputs
};

/// Throws InvalidArgument for a network without a loss, steps or batch below 1, or the gradient of inputs that are tokens.
template <class Real>
NetworkGraph<Real> network_graph(const Network<Real>& network, Index steps, Index batch, bool input_gradient = false);

}  // namespace backsweep
