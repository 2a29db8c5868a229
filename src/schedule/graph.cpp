// SPDX-License-Identifier: MIT
#include "backsweep/schedule/graph.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

namespace backsweep {
namespace {

/// Kahn's order; shorter than the graph if there is a cycle.
std::vector<Index> kahn(const Graph& graph) {
    const std::size_t count = graph.nodes.size();
    std::vector<std::vector<Index>> users(count);
    std::vector<std::size_t> missing(count);
    std::priority_queue<Index, std::vector<Index>, std::greater<>> ready;
    for (std::size_t node = 0; node < count; ++node) {
        missing[node] = graph.nodes[node].preds.size();
        if (missing[node] == 0) ready.push(static_cast<Index>(node));
        for (const Index pred : graph.nodes[node].preds) users[pred].push_back(static_cast<Index>(node));
    }
    std::vector<Index> order;
    order.reserve(count);
    while (!ready.empty()) {
        order.push_back(ready.top());
        ready.pop();
        for (const Index user : users[order.back()]) {
            if (--missing[user] == 0) ready.push(user);
        }
    }
    return order;
}

std::string node_problem(const Graph& graph, Index node) {
    const GraphNode& it = graph.nodes[node];
    const std::string name = name_of(graph, node);
    if (!(it.time >= 0.0) || !std::isfinite(it.time)) {
        return name + ": time must be finite and 0 or more, came " + std::to_string(it.time);
    }
    if (it.bytes < 0) return name + ": bytes must be 0 or more, came " + std::to_string(it.bytes);
    std::vector<Index> preds = it.preds;
    std::sort(preds.begin(), preds.end());
    for (std::size_t i = 0; i < preds.size(); ++i) {
        if (preds[i] < 0 || preds[i] >= static_cast<Index>(graph.nodes.size())) {
            return name + ": its pred " + std::to_string(preds[i]) + " is not among the nodes 0 ... " +
                   std::to_string(graph.nodes.size() - 1);
        }
        if (i > 0 && preds[i] == preds[i - 1]) {
            return name + ": its pred " + name_of(graph, preds[i]) + " is named twice; name it once";
        }
    }
    return {};
}

}  // namespace

std::string name_of(const Graph& graph, Index node) {
    const std::string number = "node " + std::to_string(node);
    if (node < 0 || node >= static_cast<Index>(graph.nodes.size()) || graph.nodes[node].name.empty()) return number;
    return number + " (" + graph.nodes[node].name + ")";
}

std::string Graph::problem() const {
    const auto count = static_cast<Index>(nodes.size());
    if (count == 0) return "a graph needs at least one node; the last is its goal";
    double time = 0.0;
    std::int64_t bytes = 0;
    std::vector<bool> needed(nodes.size());
    for (Index node = 0; node < count; ++node) {
        if (std::string wrong = node_problem(*this, node); !wrong.empty()) return wrong;
        time += nodes[node].time;
        if (__builtin_add_overflow(bytes, nodes[node].bytes, &bytes)) {
            return "all values together take more than 2^63 - 1 bytes; count in larger units";
        }
        for (const Index pred : nodes[node].preds) needed[pred] = true;
    }
    if (!std::isfinite(time)) return "the times add up to infinity; count in larger units";
    const std::vector<Index> order = kahn(*this);
    if (static_cast<Index>(order.size()) < count) {
        std::vector<bool> placed(nodes.size());
        for (const Index node : order) placed[node] = true;
        // From a node of a cycle, or behind one, every path back along unplaced preds ends in a cycle.
        Index node = std::find(placed.begin(), placed.end(), false) - placed.begin();
        std::vector<bool> seen(nodes.size());
        while (!seen[node]) {
            seen[node] = true;
            node =
                *std::find_if(nodes[node].preds.begin(), nodes[node].preds.end(), [&](Index p) { return !placed[p]; });
        }
        return name_of(*this, node) + " needs itself through a cycle; a graph of values has none";
    }
    Index goal = -1;
    for (Index node = 0; node < count; ++node) {
        if (needed[node]) continue;
        if (goal >= 0) {
            return name_of(*this, goal) + " and " + name_of(*this, node) +
                   " are both needed by no other; add one node that needs them (time 0, bytes 0)";
        }
        goal = node;
    }
    return {};
}

std::vector<Index> topological_order(const Graph& graph) {
    if (const std::string wrong = graph.problem(); !wrong.empty()) throw InvalidArgument("graph: " + wrong);
    return kahn(graph);
}

std::int64_t largest_node_bytes(const Graph& graph) {
    if (const std::string wrong = graph.problem(); !wrong.empty()) throw InvalidArgument("graph: " + wrong);
    std::int64_t largest = 0;
    for (const GraphNode& node : graph.nodes) {
        std::int64_t bytes = node.bytes;
        for (const Index pred : node.preds) bytes += graph.nodes[pred].bytes;
        largest = std::max(largest, bytes);
    }
    return largest;
}

std::vector<GraphStep> once_in_order(const Graph& graph) {
    const std::vector<Index> order = topological_order(graph);
    std::vector<Index> last_user(graph.nodes.size());
    for (const Index node : order) {
        for (const Index pred : graph.nodes[node].preds) last_user[pred] = node;
    }
    std::vector<GraphStep> steps;
    for (const Index node : order) {
        steps.push_back({GraphStep::Verb::compute, node});
        for (const Index pred : graph.nodes[node].preds) {
            if (last_user[pred] == node) steps.push_back({GraphStep::Verb::drop, pred});
        }
    }
    return steps;
}

GraphPlay referee(const Graph& graph, std::span<const GraphStep> steps, std::int64_t budget) {
    const Index goal = topological_order(graph).back();
    const auto count = static_cast<Index>(graph.nodes.size());
    std::vector<bool> resident(graph.nodes.size());
    std::vector<bool> before(graph.nodes.size());
    std::int64_t bytes = 0;
    GraphPlay play;
    for (std::size_t number = 0; number < steps.size(); ++number) {
        const auto [verb, node] = steps[number];
        const auto refuse = [&, node = node, verb = verb](const std::string& rule) {
            throw ScheduleError("step " + std::to_string(number) + ", " +
                                (verb == GraphStep::Verb::compute ? "compute " : "drop ") + name_of(graph, node) +
                                ": " + rule);
        };
        if (node < 0 || node >= count) refuse("there are only the nodes 0 ... " + std::to_string(count - 1));
        const GraphNode& it = graph.nodes[node];
        if (verb == GraphStep::Verb::drop) {
            if (!resident[node]) refuse("it is not resident");
            resident[node] = false;
            bytes -= it.bytes;
            ++play.dropped;
            continue;
        }
        if (verb != GraphStep::Verb::compute) refuse("the verb is neither compute nor drop");
        if (resident[node]) refuse("it is resident already");
        for (const Index pred : it.preds) {
            if (!resident[pred]) refuse("it needs " + name_of(graph, pred) + ", which is not resident");
        }
        if (it.bytes > budget - bytes) {
            refuse(std::to_string(bytes) + " bytes are resident and it takes " + std::to_string(it.bytes) +
                   "; the budget is " + std::to_string(budget));
        }
        resident[node] = true;
        bytes += it.bytes;
        play.peak_bytes = std::max(play.peak_bytes, bytes);
        play.cost += it.time;
        ++play.computed;
        play.recomputed += before[node] ? 1 : 0;
        before[node] = true;
    }
    if (!resident[goal]) throw ScheduleError("the plan ends without its goal, " + name_of(graph, goal));
    for (Index node = 0; node < count; ++node) {
        if (resident[node] && node != goal) {
            throw ScheduleError("the plan ends and " + name_of(graph, node) + " is still resident; drop it");
        }
    }
    return play;
}

}  // namespace backsweep
