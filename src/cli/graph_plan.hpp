// The cheapest way to compute a graph of values within a limit.
// SPDX-License-Identifier: MIT
#pragma once

#include "cli/commands.hpp"

namespace backsweep::cli {

/// Prints the graph that --graph asks for, a file of JSON or that of a configuration's model, or with --memory the best
/// plan that is found for it; throws InvalidArgument or NoPlan.
int plan_graph(const PlanArguments& arguments);

}  // namespace backsweep::cli
