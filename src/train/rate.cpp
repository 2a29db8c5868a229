// SPDX-License-Identifier: MIT
#include "backsweep/train/rate.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace backsweep {

double RateSpec::at(Index update) const noexcept {
    if (update < warm_up)
        return peak *
               (warm_up_from + (1.0 - warm_up_from) * static_cast<double>(update) / static_cast<double>(warm_up));
    if (law == Law::constant) return peak;
    if (law == Law::cosine && update >= length) return floor;
    const double part = static_cast<double>(update - warm_up) / static_cast<double>(length - warm_up);
    return floor + (peak - floor) * 0.5 * (1.0 + std::cos(std::numbers::pi * part));  // [LH17, eq. (5)]
}

std::string RateSpec::problem() const {
    if (!(std::isfinite(peak) && peak > 0.0))
        return fmt::format("the peak rate must be positive and finite, not {}", peak);
    if (warm_up < 0) return fmt::format("the updates of warm_up must be >= 0, not {}", warm_up);
    if (!(warm_up_from >= 0.0 && warm_up_from <= 1.0))
        return fmt::format("warm_up_from is a fraction of the peak, from 0 to 1, not {}", warm_up_from);
    if (law == Law::constant) {
        if (length != 0 || floor != 0.0)
            return fmt::format(
                "a constant rate has no length and no floor, but {} and {} were given; take a cosine or leave them out",
                length, floor);
        return {};
    }
    if (!(floor >= 0.0 && floor <= peak))
        return fmt::format("the floor must lie between 0 and the peak {}, not at {}", peak, floor);
    if (length <= warm_up)
        return fmt::format("length counts all updates until the floor and must exceed the warm_up of {}, but is {}",
                           warm_up, length);
    return {};
}

}  // namespace backsweep
