// Small graphs for tests, and an exhaustive solver that shares nothing with the ones it judges.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/graph.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <queue>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

namespace backsweep::test {

/// n forward nodes v_0 ... v_{n-1}, then w_{n-1} ... w_0: w_i needs v_i, v_{i-1} and w_{i+1}.
inline Graph training_chain(Index n, double time = 1.0, std::int64_t bytes = 1) {
    Graph graph;
    for (Index i = 0; i < n; ++i)
        graph.nodes.push_back({time, bytes, i > 0 ? std::vector<Index>{i - 1} : std::vector<Index>{}});
    for (Index i = n - 1; i >= 0; --i) {
        std::vector<Index> preds{i};
        if (i > 0) preds.push_back(i - 1);
        if (i < n - 1) preds.push_back(2 * n - 2 - i);
        graph.nodes.push_back({time, bytes, preds});
    }
    return graph;
}

/// The same graph, node i renamed to place[i]: its topological order is no longer the order of its numbers.
inline Graph renumbered(const Graph& graph, const std::vector<Index>& place) {
    Graph other;
    other.nodes.resize(graph.nodes.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        GraphNode node = graph.nodes[i];
        for (Index& pred : node.preds) pred = place[pred];
        other.nodes[place[i]] = node;
    }
    return other;
}

/// A random graph with one goal; some values take no bytes, some no time; numbered at random.
inline Graph random_graph(std::mt19937& random, Index count, bool training) {
    const auto below = [&](unsigned limit) { return random() % limit; };
    Graph graph;
    std::vector<bool> needed(count);
    for (Index i = 0; i < count; ++i) {
        GraphNode node{0.25 * static_cast<double>(below(24)), static_cast<std::int64_t>(below(6)), {}};
        for (Index pred = 0; pred < i; ++pred) {
            const bool near = pred == i - 1 && below(4) > 0;
            const bool mirror = training && i >= count / 2 && pred == count - 1 - i;
            if (near || mirror || below(5) == 0 || (i == count - 1 && !needed[pred])) {
                node.preds.push_back(pred);
                needed[pred] = true;
            }
        }
        graph.nodes.push_back(node);
    }
    std::vector<Index> place(count);
    std::iota(place.begin(), place.end(), Index{0});
    std::shuffle(place.begin(), place.end(), random);
    return renumbered(graph, place);
}

/// Least cost by Dijkstra's algorithm over all sets of resident values, every move allowed at any time; infinity if the
/// goal, the node that nothing needs, is out of reach. Up to 64 nodes, in practice as many as there are few sets.
inline double exhaustive_cost(const Graph& graph, std::int64_t budget) {
    using Set = std::uint64_t;
    const auto count = graph.nodes.size();
    std::vector<Set> preds(count);
    Set goals = count == 64 ? ~Set{0} : (Set{1} << count) - 1;
    for (std::size_t i = 0; i < count; ++i) {
        for (const Index pred : graph.nodes[i].preds) preds[i] |= Set{1} << pred;
        goals &= ~preds[i];
    }
    std::unordered_map<Set, double> best{{0, 0.0}};
    using Entry = std::pair<double, Set>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    open.push({0.0, 0});
    while (!open.empty()) {
        const auto [cost, set] = open.top();
        open.pop();
        if (cost > best[set]) continue;
        if (set & goals) return cost;
        std::int64_t bytes = 0;
        for (std::size_t i = 0; i < count; ++i) bytes += (set >> i & 1) ? graph.nodes[i].bytes : 0;
        for (std::size_t i = 0; i < count; ++i) {
            const Set bit = Set{1} << i;
            double next = cost;
            if (!(set & bit)) {
                if ((preds[i] & set) != preds[i] || bytes + graph.nodes[i].bytes > budget) continue;
                next += graph.nodes[i].time;
            }
            const auto known = best.try_emplace(set ^ bit, std::numeric_limits<double>::infinity()).first;
            if (next < known->second) {
                known->second = next;
                open.push({next, set ^ bit});
            }
        }
    }
    return std::numeric_limits<double>::infinity();
}

inline std::int64_t all_bytes(const Graph& graph) {
    std::int64_t sum = 0;
    for (const GraphNode& node : graph.nodes) sum += node.bytes;
    return sum;
}

}  // namespace backsweep::test
