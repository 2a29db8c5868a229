// One self-contained HTML page about a run: no script, nothing from elsewhere, well-formed as XML.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/plan/plan.hpp"
#include "cli/history.hpp"

#include <string>

namespace backsweep::cli {

struct Page {
    std::string name;  ///< of the run
    History history;
    Plan plan;
    Budget limits;
    Index threads = 1;    ///< that train at the same time
    std::string config;   ///< resolved, as TOML
    std::string picture;  ///< of the schedule: SVG; empty: `no_picture` says why
    std::string no_picture;
};

/// Charts of more than `most_points` updates draw, of each of equally many, the least and the greatest, and say so.
inline constexpr std::size_t most_points = 4000;

std::string report_page(const Page& page);

}  // namespace backsweep::cli
