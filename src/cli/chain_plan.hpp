// Every schedule that a chain could have within its limits, without a model: a table, one stream of actions, a picture.
// SPDX-License-Identifier: MIT
#pragma once

#include "cli/commands.hpp"

namespace backsweep::cli {

/// Prints what `arguments` ask for; throws InvalidArgument, or NoPlan if no schedule fits.
int plan_chain(const ChainArguments& arguments, bool json);

}  // namespace backsweep::cli
