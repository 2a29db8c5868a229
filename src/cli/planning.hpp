// The forms that a configured model can have, and the planner that chooses among them.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/train/planner.hpp"
#include "cli/task.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace backsweep::cli {

template <class Real>
class Planning {
public:
    /// `source` is the caller's and outlives this. Throws InvalidArgument, as Planner does.
    Planning(Config& config, const Data& data, const Source<Real>& source);

    const Planner<Real>& planner() const { return *planner_; }
    const TrainOptions& options() const noexcept { return options_; }
    /// The network of a plan.
    const Network<Real>& network(const Plan& plan) const { return *networks_.at(plan.save); }
    /// The pinned plan, if there is one, else the best: measured where the configuration says so.
    Plan plan(const Config& config) const;

private:
    std::map<std::string, std::unique_ptr<Network<Real>>> networks_;  // by what they keep inside
    TrainOptions options_;
    std::unique_ptr<Planner<Real>> planner_;
};

}  // namespace backsweep::cli
