// The graphs of the reference file dag_small.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/graph.hpp"

#include <nlohmann/json.hpp>

namespace backsweep::test {

inline Graph dag_small_graph(const nlohmann::json& test) {
    Graph graph;
    for (std::size_t node = 0; node < test.at("nodes").get<std::size_t>(); ++node) {
        graph.nodes.push_back({test.at("cost").at(node).get<double>(), test.at("size").at(node).get<std::int64_t>(),
                               test.at("preds").at(node).get<std::vector<Index>>()});
    }
    return graph;
}

}  // namespace backsweep::test
