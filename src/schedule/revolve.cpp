// SPDX-License-Identifier: MIT
#include "backsweep/schedule/revolve.hpp"

#include "backsweep/base/error.hpp"
#include "schedule/binomial_sweep.hpp"

namespace backsweep {

std::unique_ptr<Schedule> revolve(Index steps, Index slots, AdvanceRule rule, bool needs_state) {
    constexpr Index longest_chain = Index{1} << 62;
    if (steps < 0 || steps > longest_chain) {
        throw InvalidArgument("revolve: steps must lie in 0 ... 2^62, came " + std::to_string(steps) +
                              "; give the number of links of the chain");
    }
    if (slots < 1) {
        throw InvalidArgument("revolve: slots must be 1 or more (x_0 takes one), came " + std::to_string(slots) +
                              "; give the number of states that may be kept");
    }
    return std::make_unique<BinomialSweep>(steps, slots, rule, needs_state);
}

}  // namespace backsweep
