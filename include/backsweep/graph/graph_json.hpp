// Graphs of values as JSON text.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/graph.hpp"

#include <string>
#include <string_view>

namespace backsweep {

/// Reads {"nodes": [{"name": "relu_1", "time": 0.5, "bytes": 4096}, ...], "edges": [["conv_1", "relu_1"], ...]}: an
/// edge goes from a value to a node that needs it; nodes keep their order. Strict: throws InvalidArgument, naming the
/// place, for text that is no JSON, a key that is missing or unknown, a wrong type, a name given to two nodes, an edge
/// between unknown nodes or given twice, and a graph with a problem().
BACKSWEEP_API Graph graph_from_json(std::string_view text);

/// What graph_from_json reads back as the same graph, preds in another order perhaps. Throws InvalidArgument with
/// graph.problem(), and for a node without a name or with that of another.
BACKSWEEP_API std::string to_json(const Graph& graph);

}  // namespace backsweep
