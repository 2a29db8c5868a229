// A place for many states: how many, and at what price.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/action.hpp"

namespace backsweep {

/// A store of states. Prices are in the unit of MultistageOptions::advance.
struct Level {
    Tier tier = Tier::ram;
    Index slots = 0;     ///< states it holds at once; -1: any number (last level only)
    double write = 0.0;  ///< of a save
    double read = 0.0;   ///< of a load or take

    friend bool operator==(const Level&, const Level&) = default;
};

}  // namespace backsweep
