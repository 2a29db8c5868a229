// Planning graphs: the search over sets of resident values, and the dynamic program, on training chains.
// SPDX-License-Identifier: MIT
#include "backsweep/schedule/graph_chain.hpp"
#include "backsweep/schedule/optimal_graph.hpp"
#include "rows.hpp"
#include "timing.hpp"

#include <algorithm>
#include <cstdio>

using namespace backsweep;

namespace {

/// n forward and n backward nodes of one unit of time and one byte each.
Graph training_chain(Index n) {
    Graph graph;
    graph.nodes.assign(2 * static_cast<std::size_t>(n), {1.0, 1, {}, {}});
    for (Index i = 0; i < n; ++i) {
        std::vector<Index>& backward = graph.nodes[static_cast<std::size_t>(2 * n - 1 - i)].preds;
        backward.push_back(i);
        if (i + 1 < n) backward.push_back(2 * n - 2 - i);
        if (i == 0) continue;
        backward.push_back(i - 1);
        graph.nodes[static_cast<std::size_t>(i)].preds.push_back(i - 1);
    }
    return graph;
}

/// The longest of all budgets from the least to that of no recomputation.
void search(Index n, const char* floor) {
    double longest = 0.0;
    double memory = 0.0;
    std::int64_t at = 0;
    Index expanded = 0;
    for (std::int64_t budget = 4; budget <= n + 2; ++budget) {
        const double begin = seconds();
        const GraphPlan plan = optimal_graph({training_chain(n), budget});
        const double time = seconds() - begin;
        memory = std::max(memory, static_cast<double>(plan.table_bytes));
        if (time <= longest) continue;
        longest = time;
        at = budget;
        expanded = plan.expanded;
    }
    std::printf("optimal_graph, %lld nodes    %9.2f ms at budget %lld, %lld sets, at most %.1f MB    %s\n",
                static_cast<long long>(2 * n), 1e3 * longest, static_cast<long long>(at),
                static_cast<long long>(expanded), 1e-6 * memory, floor);
}

void chain(Index n, std::int64_t budget) {
    const double begin = seconds();
    const GraphPlan plan = plan_graph_chain(training_chain(n), budget);
    std::printf("plan_graph_chain, %lld nodes, budget %lld    %9.2f ms, cost %g\n", static_cast<long long>(2 * n),
                static_cast<long long>(budget), 1e3 * (seconds() - begin), plan.cost);
}

}  // namespace

void bench_graph() {
    std::puts("Graphs: training chains");
    search(12, "floor 50 ms");
    search(16, "");
    search(20, "floor 2000 ms");
    chain(20, 8);
    chain(100, 10);
    chain(300, 16);
}
