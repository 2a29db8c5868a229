// The learning rate as a function of the update: a linear warm-up, then constant or a cosine [LH17].
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <string>

namespace backsweep {

/// Plain data; at(update) needs nothing else, so a resumed run has the same rates.
struct RateSpec {
    enum class Law {
        constant,  ///< peak
        cosine,    ///< from peak to floor, reached at update `length`, then floor
        annealing  ///< the same, but rising again behind `length`, as PyTorch's CosineAnnealingLR
    };

    Law law = Law::constant;
    double peak = 1e-3;
    double floor = 0.0;         ///< cosine, annealing: the least rate
    Index length = 0;           ///< cosine, annealing: updates until the floor, warm-up included
    Index warm_up = 0;          ///< updates over which the rate rises to the peak, on a straight line
    double warm_up_from = 0.1;  ///< where it starts, a fraction of the peak

    /// The rate of update number `update`, counted from 0.
    double at(Index update) const noexcept;
    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

}  // namespace backsweep
