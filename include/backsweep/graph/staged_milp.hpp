// Checkmate's mixed integer linear programme [Jain20], solved by COIN-OR CBC: for graphs too large for a search.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/graph.hpp"

namespace backsweep {

/// The plan of least cost among the staged ones: stage t computes node t of the topological order for the first time,
/// after any earlier nodes that it needs again, each at most once and in order. Other plans can be cheaper, and exist
/// where no staged one does. `seconds` of wall time, in which the programme is solved as far as that goes: the plan has
/// the bound that was proven by then (orders = staged), so gap() says what may be left. If the solver finds none, the
/// linear relaxation is rounded (method "rounding"). Two runs that hit the limit may differ.
/// Throws InvalidArgument with graph.problem(), or for budget < 0, seconds not above 0, more than 2^31 - 1 variables;
/// NoPlan if no staged plan fits, or none was found in time; BackendError if CBC gives up.
BACKSWEEP_API GraphPlan staged_milp(const Graph& graph, std::int64_t budget, double seconds = 60.0);

}  // namespace backsweep
