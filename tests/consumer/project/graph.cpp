// Reads a small graph and plans it under a budget that makes it compute a value twice.
// SPDX-License-Identifier: MIT
#include "backsweep/graph/plan_graph.hpp"

#include <cstdio>

int main() {
    const backsweep::Graph graph = backsweep::graph_from_json(R"({
        "nodes": [{"name": "a", "time": 1, "bytes": 3}, {"name": "b", "time": 2, "bytes": 3},
                  {"name": "c", "time": 2, "bytes": 3}, {"name": "d", "time": 1, "bytes": 1},
                  {"name": "e", "time": 1, "bytes": 1}],
        "edges": [["a", "b"], ["b", "c"], ["c", "d"], ["a", "e"], ["d", "e"]]})");
    for (const char* method : {"auto", "milp"}) {
        backsweep::PlanGraphOptions options;
        options.budget = 6;
        options.method = method;
        const backsweep::GraphPlan plan = backsweep::plan_graph(graph, options);
        std::printf("%s: cost %g, peak %lld bytes\n", method, plan.cost, static_cast<long long>(plan.peak_bytes));
        if (plan.cost != 8.0 || !plan.proven || plan.peak_bytes > 6) return 1;
    }
    return 0;
}
