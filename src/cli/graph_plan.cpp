// SPDX-License-Identifier: MIT
#include "cli/graph_plan.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/graph/plan_graph.hpp"
#include "backsweep/nn/network_plan.hpp"
#include "cli/config.hpp"
#include "cli/planning.hpp"
#include "cli/report.hpp"
#include "cli/task.hpp"
#include "cli/toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace backsweep::cli {

namespace {

constexpr std::size_t solvable_nodes = 150;  // of a network's graph by CBC in its time

Graph graph_of_file(const PlanArguments& arguments) {
    if (arguments.measure != 0 || !arguments.settings.empty())
        throw InvalidArgument("--measure and --set have no effect beside a graph; leave them out");
    const std::string path = arguments.file.string();
    if (std::filesystem::is_directory(arguments.file))
        throw InvalidArgument(fmt::format("cannot read the graph '{}': it is a folder", path));
    std::ifstream file(arguments.file, std::ios::binary);
    if (!file) throw InvalidArgument(fmt::format("cannot read the graph '{}'", path));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return graph_from_json(text);
}

/// Of a link of the best plan without a limit, for the largest shard.
std::pair<Graph, std::vector<NetworkNode>> graph_of_model(const PlanArguments& arguments) {
    if (arguments.measure != 0)
        throw InvalidArgument("--measure has no effect beside --graph; leave one of them out");
    Config config = configure_with(read_toml(arguments.file), arguments.settings).config;
    const Data data = open_data(config.data);
    return with_precision(config.train.precision, [&](auto real) {
        using Real = decltype(real);
        const auto source = make_source<Real>(config.data, data, "train");
        const Planning<Real> planning(config, data, *source);
        const TrainOptions& options = planning.options();
        const Plan plan = config.pinned() ? planning.plan(config) : planning.planner().best(Budget{});
        const auto shards = shard_sizes(source->batch() / options.micro_batches, options.shards);
        NetworkGraph<Real> graph = network_graph(planning.network(plan), std::min(plan.chunk, source->window()),
                                                 *std::max_element(shards.begin(), shards.end()));
        return std::pair{std::move(graph.graph), std::move(graph.nodes)};
    });
}

/// For the graph as a whole, or layer by layer where that is cheaper, or all that there is.
GraphPlan plan_model(const Graph& graph, const std::vector<NetworkNode>& nodes, const PlanGraphOptions& options) {
    std::optional<GraphPlan> best;
    std::string why;
    const auto offer = [&](const auto& make) {
        try {
            const GraphPlan plan = make();
            const double bound = std::max(plan.lower_bound, best ? best->lower_bound : 0.0);
            if (!best || plan.cost < best->cost) best = plan;
            if (!best->proven) best->lower_bound = std::min(bound, best->cost);
        } catch (const BudgetTooSmall&) {
            throw;
        } catch (const NoPlan& none) {
            why += (why.empty() ? "" : "; ") + std::string(none.what());
        }
    };
    if (nodes.size() <= solvable_nodes) offer([&] { return backsweep::plan_graph(graph, options); });
    if (!best || !best->proven) offer([&] { return plan_layers(graph, nodes, options.budget); });
    if (!best) throw NoPlan(why);
    return *best;
}

}  // namespace

int plan_graph(const PlanArguments& arguments) {
    ChainArguments others = arguments.chain;
    others.memory.clear();
    others.actions = false;
    if (others != ChainArguments{})
        throw InvalidArgument(
            "a graph says all about its nodes: of the options beside --graph only --memory, --actions, --json and, of a "
            "configuration, --set have an effect; leave the others out");
    const bool is_file = arguments.file.extension() == ".json" || std::filesystem::is_directory(arguments.file);
    if (arguments.file.empty())
        throw InvalidArgument("--graph wants a configuration, for the graph of its model, or a graph in a file .json");
    PlanGraphOptions options;
    options.budget = arguments.chain.memory.empty() ? 0 : bytes_from(arguments.chain.memory);
    if (!arguments.chain.memory.empty() && options.budget < 1)
        throw InvalidArgument(
            fmt::format("--memory wants a size such as 4096 or \"2 GiB\", got '{}'", arguments.chain.memory));
    if (arguments.chain.actions && options.budget == 0)
        throw InvalidArgument("--actions are those of a plan for a graph, which wants --memory; give that too");

    Graph graph;
    std::vector<NetworkNode> nodes;
    if (is_file)
        graph = graph_of_file(arguments);
    else
        std::tie(graph, nodes) = graph_of_model(arguments);
    if (options.budget == 0) {
        fmt::print("{}", arguments.json ? to_json(graph) : as_text(graph));
        return 0;
    }
    const GraphPlan plan = is_file ? backsweep::plan_graph(graph, options) : plan_model(graph, nodes, options);
    if (arguments.chain.actions) {
        for (const GraphStep& step : plan.steps)
            fmt::print("{}\n", arguments.json ? as_json(graph, step) : in_words(graph, step));
        return 0;
    }
    fmt::print("{}", arguments.json ? as_json(graph, plan, options.budget) : as_text(graph, plan, options.budget));
    return 0;
}

}  // namespace backsweep::cli
