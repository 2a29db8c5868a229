// A plan as JSON text and back: what configurations and snapshots pin.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/plan/plan.hpp"

#include <string>
#include <string_view>

namespace backsweep {

/// One line, all members; equal plans give equal text.
std::string to_json(const Plan& plan);
/// Strict: throws InvalidArgument, naming the key, for text that is no such plan.
Plan plan_from_json(std::string_view text);

}  // namespace backsweep
