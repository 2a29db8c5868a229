// Graphs of values under a limit in bytes: what a plan for one is, and the judge of such plans.
// Jain et al. 2020 [Jain20] state the problem; here no order and no number of recomputations is prescribed.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/base/range.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace backsweep {

/// A value and the operation that computes it.
struct GraphNode {
    double time = 0.0;           ///< of computing it once, in any unit; finite, >= 0
    std::int64_t bytes = 0;      ///< while it is resident, >= 0
    std::vector<Index> preds{};  ///< the values that must be resident while it is computed, in any order
    std::string name{};          ///< for messages; may be empty
};

/// Computing a node needs its preds resident and room for its own bytes beside everything resident; nothing is computed
/// in place. Dropping a value is free, and any value may be computed again. The goal is the one node that no other
/// needs. A graph with several results has a last node that needs them all (time 0, bytes 0); a result that may be
/// given away as soon as it is there is needed through a node of 0 bytes of its own.
struct BACKSWEEP_API Graph {
    std::vector<GraphNode> nodes;

    /// Empty if valid, else what is wrong: no node, a negative or infinite number, an unknown pred or one named twice,
    /// a cycle, several goals, or sums beyond 64 bits.
    std::string problem() const;
};

struct GraphStep {
    enum class Verb : std::int32_t { compute, drop };
    Verb verb = Verb::compute;
    Index node = 0;

    friend constexpr bool operator==(const GraphStep&, const GraphStep&) = default;
};

/// "node 3 (relu_1)".
BACKSWEEP_API std::string name_of(const Graph& graph, Index node);

/// An order in which every node comes after its preds, the goal last; among nodes that are ready the lowest number
/// first. Throws InvalidArgument with graph.problem().
BACKSWEEP_API std::vector<Index> topological_order(const Graph& graph);

/// Every node once, in topological order, each value dropped after its last use: where its peak fits, nothing is
/// cheaper.
BACKSWEEP_API std::vector<GraphStep> once_in_order(const Graph& graph);

/// The most that one node and its preds take together: no smaller budget serves.
BACKSWEEP_API std::int64_t largest_node_bytes(const Graph& graph);

/// Which plans a lower bound speaks of.
enum class GraphOrders : std::int32_t {
    any,    ///< all of them
    staged  ///< those of Checkmate's stages: nodes first computed, and in a stage computed again, in topological order
};

struct GraphPlan {
    std::vector<GraphStep> steps;  ///< ends with the goal alone resident
    double cost = 0.0;             ///< time of all computations
    double lower_bound = 0.0;      ///< no plan of `orders` within the budget costs less
    bool proven = false;           ///< cost is the least of all plans of `orders`
    GraphOrders orders = GraphOrders::any;
    std::int64_t peak_bytes = 0;
    std::string method{};          ///< once, search, chain, milp, rounding
    Index expanded = 0;            ///< states or nodes of the search tree that were looked at
    std::int64_t table_bytes = 0;  ///< memory that the search took

    /// How far above the bound the cost may be: 0.02 is 2 %.
    double gap() const noexcept {
        if (proven || cost <= lower_bound) return 0.0;
        return lower_bound > 0.0 ? cost / lower_bound - 1.0 : std::numeric_limits<double>::infinity();
    }
};

/// What the steps of a plan did.
struct GraphPlay {
    double cost = 0.0;
    std::int64_t peak_bytes = 0;
    Index computed = 0;    ///< nodes computed, again or for the first time
    Index recomputed = 0;  ///< of these, again
    Index dropped = 0;
};

/// Plays the steps of a plan. Throws ScheduleError at the first illegal one, named by its number: an unknown node, a
/// node computed without a pred or while it is resident, a drop of what is not resident, more than `budget` resident;
/// and if the goal is missing at the end or anything else is left. Throws InvalidArgument with graph.problem().
BACKSWEEP_API GraphPlay referee(const Graph& graph, std::span<const GraphStep> steps,
                                std::int64_t budget = std::numeric_limits<std::int64_t>::max());

}  // namespace backsweep
