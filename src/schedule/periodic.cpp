// store_all is the case of one block.
// SPDX-License-Identifier: MIT
#include "backsweep/schedule/periodic.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "schedule/blocks.hpp"

#include <algorithm>
#include <utility>

namespace backsweep {
namespace {

std::unique_ptr<Schedule> make_blocks(const char* family, Index steps, Index period, bool needs_state) {
    if (steps < 0) {
        throw InvalidArgument(std::string(family) + ": steps must be 0 or more, came " + std::to_string(steps) +
                              "; give the number of links of the chain");
    }
    period = std::min(period, std::max<Index>(steps, 1));
    Cut cut = Cut::every(period, steps);
    if (!Blocks::slots(steps, cut, 0, 1, needs_state).have_numbers()) {
        throw InvalidArgument(std::string(family) + ": " + std::to_string(steps) + " steps with " +
                              std::to_string(period) +
                              " in a block want more than the 2147483647 slots that have "
                              "numbers; take revolve, or a period near the square root of the steps");
    }
    return std::make_unique<Blocks>(steps, std::move(cut), 0, 1, needs_state);
}

}  // namespace

std::unique_ptr<Schedule> periodic(Index steps, Index period, bool needs_state) {
    if (period < 1) {
        throw InvalidArgument("periodic: period must be 1 or more, came " + std::to_string(period) +
                              "; give the number of links between kept states");
    }
    return make_blocks("periodic", steps, period, needs_state);
}

std::unique_ptr<Schedule> store_all(Index steps, bool needs_state) {
    return make_blocks("store_all", steps, std::max<Index>(steps, 1), needs_state);
}

}  // namespace backsweep
