// A limit on what stores move in a second, for disks that others use too.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"

#include <chrono>
#include <cstdint>
#include <mutex>

namespace backsweep {

/// One line of so many bytes a second, which all stores that share it use in turn: transfers follow each other, and
/// each ends when its bytes have had their time. Thread-safe.
class BACKSWEEP_API Throttle {
public:
    using Clock = std::chrono::steady_clock;

    /// Throws InvalidArgument unless the rate is above 0.
    explicit Throttle(double bytes_per_second);

    /// Waits until the line has had time for bytes whose transfer began at `begin`.
    void pass(std::int64_t bytes, Clock::time_point begin);
    double bytes_per_second() const noexcept { return rate_; }

private:
    double rate_;
    std::mutex mutex_;
    Clock::time_point free_ = Clock::time_point::min();
};

}  // namespace backsweep
