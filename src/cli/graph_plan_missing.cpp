// In place of graph_plan.cpp where the component graph was not built.
// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "cli/graph_plan.hpp"

namespace backsweep::cli {

int plan_graph(const PlanArguments&) {
    throw InvalidArgument(
        "--graph: this program was built without the component graph; install COIN-OR CBC (Debian: coinor-libcbc-dev) "
        "and build again");
}

}  // namespace backsweep::cli
