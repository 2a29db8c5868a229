// The cheapest way to compute a graph of values within a limit.
// SPDX-License-Identifier: MIT
#pragma once

#include "cli/commands.hpp"

namespace backsweep::cli {

/// Prints the plan of `graph`, a JSON file, with --memory as its budget; throws InvalidArgument or NoPlan.
int plan_graph_file(const std::filesystem::path& graph, const ChainArguments& arguments, bool json);

}  // namespace backsweep::cli
