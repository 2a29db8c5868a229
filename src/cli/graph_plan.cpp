// SPDX-License-Identifier: MIT
#include "cli/graph_plan.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/graph/plan_graph.hpp"
#include "backsweep/plan/plan.hpp"
#include "cli/config.hpp"
#include "cli/report.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>

namespace backsweep::cli {

int plan_graph_file(const std::filesystem::path& path, const ChainArguments& arguments, bool json) {
    ChainArguments others = arguments;
    others.memory.clear();
    others.actions = false;
    if (others != ChainArguments{})
        throw InvalidArgument(
            "a graph says all about its nodes: of the options beside it only --memory, --actions and --json have an "
            "effect; leave the others out");
    const std::int64_t budget = bytes_from(arguments.memory);
    if (budget < 1)
        throw InvalidArgument(
            fmt::format("--graph wants --memory, a size such as 4096 or \"2 GiB\", got '{}'", arguments.memory));
    if (std::filesystem::is_directory(path))
        throw InvalidArgument(fmt::format("cannot read the graph '{}': it is a folder", path.string()));
    std::ifstream file(path, std::ios::binary);
    if (!file) throw InvalidArgument(fmt::format("cannot read the graph '{}'", path.string()));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Graph graph = graph_from_json(text);
    PlanGraphOptions options;
    options.budget = budget;
    const GraphPlan plan = plan_graph(graph, options);
    if (arguments.actions) {
        for (const GraphStep& step : plan.steps)
            fmt::print("{}\n", json ? as_json(graph, step) : in_words(graph, step));
        return 0;
    }
    fmt::print("{}", json ? as_json(graph, plan, budget) : as_text(graph, plan, budget));
    return 0;
}

}  // namespace backsweep::cli
