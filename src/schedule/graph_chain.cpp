// SPDX-License-Identifier: MIT
#include "backsweep/schedule/graph_chain.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/optimal_chain.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace backsweep {
namespace {

struct Shape {
    std::vector<Index> forward;   ///< v_0 ... v_{n-1}
    std::vector<Index> backward;  ///< w_0 ... w_{n-1}; none in a plain chain
};

std::optional<Shape> shape_of(const Graph& graph) {
    const std::vector<Index> order = topological_order(graph);
    const auto needs = [&](Index node, std::vector<Index> wanted) {
        std::vector<Index> preds = graph.nodes[node].preds;
        std::sort(preds.begin(), preds.end());
        std::sort(wanted.begin(), wanted.end());
        return preds == wanted;
    };
    const std::size_t count = order.size();
    std::size_t forward = 1;
    while (forward < count && needs(order[forward], {order[forward - 1]})) ++forward;
    if (forward == count) return Shape{order, {}};
    if (count != 2 * forward) return std::nullopt;

    Shape shape{{order.begin(), order.begin() + static_cast<std::ptrdiff_t>(forward)}, {order.rbegin(), order.rend()}};
    shape.backward.resize(forward);
    for (std::size_t i = 0; i < forward; ++i) {
        std::vector<Index> wanted{shape.forward[i]};
        if (i > 0) wanted.push_back(shape.forward[i - 1]);
        if (i + 1 < forward) wanted.push_back(shape.backward[i + 1]);
        const Index node = shape.backward[i];
        if (!needs(node, wanted)) return std::nullopt;
        if (i > 0 && graph.nodes[node].bytes != graph.nodes[shape.forward[i - 1]].bytes) return std::nullopt;
    }
    return shape;
}

/// Link i computes x_{i+1} = v_i, and its tape is v_i again; x_0 is nothing. Nothing reads x_n, only the last tape; the
/// adjoint of x_i is w_i, which for w_0 is counted as an overhead of its link.
ChainCosts costs_of(const Graph& graph, const Shape& shape) {
    ChainCosts costs;
    costs.state_bytes.push_back(0);
    for (std::size_t i = 0; i < shape.forward.size(); ++i) {
        const GraphNode& forward = graph.nodes[shape.forward[i]];
        const GraphNode& backward = graph.nodes[shape.backward[i]];
        costs.forward_time.push_back(forward.time);
        costs.backward_time.push_back(backward.time);
        costs.state_bytes.push_back(i + 1 < shape.forward.size() ? forward.bytes : 0);
        costs.tape_bytes.push_back(forward.bytes);
        costs.backward_overhead.push_back(i == 0 ? backward.bytes : 0);
    }
    return costs;
}

/// Turns the actions on a chain into steps on its graph. A value is resident while anything holds it: the working
/// state, the working tape, a slot, the working adjoint. One that is still resident is not computed again.
class Translation {
public:
    Translation(const Graph& graph, const Shape& shape) : shape_(shape), holders_(graph.nodes.size()) {}

    std::vector<GraphStep> operator()(const std::vector<Action>& actions) {
        for (const Action& action : actions) play(action);
        return std::move(steps_);
    }

private:
    static constexpr Index nothing = -1;

    Index state(Index step) const { return step == 0 ? nothing : shape_.forward[step - 1]; }

    void hold(Index& holder, Index node) {
        if (node != nothing && holders_[node]++ == 0) steps_.push_back({GraphStep::Verb::compute, node});
        release(holder);
        holder = node;
    }
    void release(Index& holder) {
        if (holder != nothing && --holders_[holder] == 0) steps_.push_back({GraphStep::Verb::drop, holder});
        holder = nothing;
    }
    Index& slot(Slot slot) { return slots_.try_emplace(slot.index, nothing).first->second; }

    void play(const Action& action) {
        const Index first = action.steps.first;
        switch (action.verb) {
            case Verb::advance:
                for (Index link = first; link < action.steps.last; ++link) hold(state_, state(link + 1));
                break;
            case Verb::record:
                hold(tape_, state(first + 1));
                hold(state_, state(first + 1));
                break;
            case Verb::tape:
                hold(tape_, state(first + 1));
                break;
            case Verb::reverse:
                hold(adjoint_, shape_.backward[first]);
                release(tape_);
                release(state_);
                break;
            case Verb::save:
                hold(slot(action.to), state_);
                break;
            case Verb::load:
            case Verb::restart:
                hold(state_, slot(action.from));
                break;
            case Verb::take:
                hold(state_, slot(action.from));
                release(slot(action.from));
                break;
            case Verb::stow:
                hold(slot(action.to), tape_);
                release(tape_);
                break;
            case Verb::fetch:
                hold(tape_, slot(action.from));
                release(slot(action.from));
                break;
            case Verb::drop:
                release(action.from.index < 0 ? tape_ : slot(action.from));
                break;
            case Verb::move:
                throw ScheduleError("a chain in one memory moves nothing, came " + to_string(action));
            case Verb::turn:
            case Verb::done:
                break;
        }
    }

    const Shape& shape_;
    std::vector<Index> holders_;
    std::vector<GraphStep> steps_;
    std::map<std::int32_t, Index> slots_;
    Index state_ = nothing;
    Index tape_ = nothing;
    Index adjoint_ = nothing;
};

}  // namespace

bool is_chain(const Graph& graph) {
    return shape_of(graph).has_value();
}

GraphPlan plan_graph_chain(const Graph& graph, std::int64_t budget) {
    const std::optional<Shape> shape = shape_of(graph);
    if (!shape)
        throw InvalidArgument("plan_graph_chain: the graph is no chain; ask is_chain(), or use optimal_graph()");
    GraphPlan plan;
    plan.method = "chain";
    for (const GraphNode& node : graph.nodes) plan.lower_bound += node.time;
    if (shape->backward.empty()) {
        if (const std::int64_t least = largest_node_bytes(graph); budget < least) {
            throw NoPlan("plan_graph_chain: the chain needs " + std::to_string(least) + " bytes, offered " +
                         std::to_string(budget));
        }
        plan.steps = once_in_order(graph);
    } else {
        const ChainCosts costs = costs_of(graph, *shape);
        if (const std::int64_t least = least_chain_budget(costs); budget < least) {
            throw NoPlan("plan_graph_chain: the chain needs " + std::to_string(least) + " bytes, offered " +
                         std::to_string(budget));
        }
        const ChainPlan chain = plan_optimal_chain({.chain = costs, .budget = budget}).value();
        plan.table_bytes = static_cast<std::int64_t>(chain.table_bytes);
        plan.steps = Translation(graph, *shape)(chain.actions);
    }
    const GraphPlay play = referee(graph, plan.steps, budget);
    plan.cost = play.cost;
    plan.peak_bytes = play.peak_bytes;
    plan.proven = play.recomputed == 0;
    if (plan.proven) plan.lower_bound = plan.cost;
    return plan;
}

}  // namespace backsweep
