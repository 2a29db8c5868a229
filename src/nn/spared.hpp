// Which elements a random mask spares, and by what they grow so that the mean stays [Sri14].
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>

namespace backsweep {

/// A mask that drops a `rate` of the elements, to 2^-32; rate in [0, 1).
class Spared {
public:
    explicit Spared(double rate) : rate_(rate), least_(static_cast<std::uint64_t>(std::ceil(rate * 0x1.0p32))) {}

    /// Whether the element with these 32 random bits stays: word / 2^32 >= rate.
    bool operator()(std::uint32_t word) const noexcept { return word >= least_; }
    /// What an element that stays is multiplied by.
    template <class Real>
    Real factor() const noexcept {
        return static_cast<Real>(1.0 / (1.0 - rate_));
    }
    /// Whether nothing is dropped.
    bool all() const noexcept { return rate_ == 0.0; }

private:
    double rate_;
    std::uint64_t least_;
};

}  // namespace backsweep
