// A picture of plans: bytes against time, as SVG.
// SPDX-License-Identifier: MIT
#pragma once

#include "cli/report.hpp"

#include <functional>
#include <string>
#include <vector>

namespace backsweep::cli {

/// Plans as points, those that no other beats joined by a line, the chosen one marked, the limit upright;
/// `envelope`: slowdown that no plan of so many bytes falls below.
std::string plot_front(const std::vector<Candidate>& candidates, const Budget& budget,
                       const std::function<double(std::int64_t bytes)>& envelope, const std::string& title);

}  // namespace backsweep::cli
