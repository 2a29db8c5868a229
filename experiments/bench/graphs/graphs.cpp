// What plans for a network's own graph gain over plans along the chain of its layers, executed and checked.
// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "backsweep/nn/network_plan.hpp"
#include "backsweep/schedule/optimal_graph.hpp"
#include "support/graph_sweeps.hpp"
#ifdef BACKSWEEP_BENCH_CBC
#include "backsweep/graph/staged_milp.hpp"
#endif

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

using namespace backsweep;
using namespace backsweep::test;

namespace {

template <class F>
std::optional<GraphPlan> unless_none(const F& plan) {
    try {
        return plan();
    } catch (const NoPlan&) {
        return std::nullopt;
    }
}

/// Of the graph as a whole: the search's plan, CBC's where seconds are given and the search proved nothing.
std::optional<GraphPlan> whole(const Graph& graph, std::int64_t budget, Index states, [[maybe_unused]] double seconds) {
    GraphOptions options;
    options.graph = graph;
    options.budget = budget;
    options.states = states;
    std::optional<GraphPlan> best = unless_none([&] { return optimal_graph(options); });
#ifdef BACKSWEEP_BENCH_CBC
    if (seconds > 0.0 && !(best && best->proven)) {
        const std::optional<GraphPlan> staged = unless_none([&] { return staged_milp(graph, budget, seconds); });
        if (staged && (!best || staged->cost < best->cost)) {
            const double bound = best ? best->lower_bound : 0.0;
            best = staged;
            best->lower_bound = bound;  // of all orders
            best->proven = false;
        }
    }
#endif
    return best;
}

std::string extra(const std::optional<GraphPlan>& plan, double once) {
    if (!plan) return "does not fit";
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", 100.0 * (plan->cost / once - 1.0));
    return text;
}

}  // namespace

int main(int count, char** words) {
    const Index states = count > 1 ? std::atol(words[1]) : 1000000;
    const double seconds = count > 2 ? std::atof(words[2]) : 0.0;
    constexpr Index steps = 32, batch = 4, scale = 16;
    std::printf("| graph | nodes | budget | KiB | whole graph | bound | layers, optimum | layers, equal | peak = ledger | bits |\n");
    std::printf("|---|---|---|---|---|---|---|---|---|---|\n");
    for (const GraphModel& model : graph_models(scale)) {
        const Network<float> network = build<float>(model.spec);
        const GraphCase<float> of(network, steps, batch);
        const GraphSweep<float> wanted = store_all_sweep(of);
        const NetworkGraph<float> graph = network_graph(network, steps, batch, network.inputs() > 0);
        const GraphPlay once = referee(graph.graph, once_in_order(graph.graph));
        const std::int64_t floor = largest_node_bytes(graph.graph);
        for (const int percent : {100, 75, 50, 25, 10}) {
            // 0 % is what one node and its preds take, 100 % what keeping all does.
            const std::int64_t budget = floor + (once.peak_bytes - floor) * percent / 100;
            const auto layers = unless_none([&] { return plan_layers(graph.graph, graph.nodes, budget); });
            const auto equal = unless_none([&] { return plan_layers(graph.graph, graph.nodes, budget, true); });
            auto best = whole(graph.graph, budget, states, seconds);
            const double bound = best ? best->lower_bound : 0.0;
            const bool from_layers = layers && (!best || layers->cost < best->cost);
            if (from_layers) best = layers;
            bool bits = false, peak = false;
            if (best) {
                Ledger ledger;
                bits = same_bits(graph_sweep(of, graph, best->steps, ledger), wanted);
                peak = ledger.peak()[Kind::tape] == best->peak_bytes && best->peak_bytes <= budget;
            }
            char proof[40] = "";
            if (best && (best->proven || best->cost <= bound)) std::snprintf(proof, sizeof proof, "proven");
            else if (best && bound > 0.0) std::snprintf(proof, sizeof proof, ">= %.1f %%", 100.0 * (bound / once.cost - 1.0));
            std::printf("| %s | %zu | %d %% | %.0f | %s%s | %s | %s | %s | %s | %s |\n", model.name.c_str(), graph.nodes.size(),
                        percent, static_cast<double>(budget) / 1024.0, extra(best, once.cost).c_str(),
                        from_layers && !best->proven ? " (of layers)" : "", proof, extra(layers, once.cost).c_str(),
                        extra(equal, once.cost).c_str(), best ? (peak ? "yes" : "NO") : "", best ? (bits ? "same" : "DIFFER") : "");
            std::fflush(stdout);
        }
    }
}
