// SPDX-License-Identifier: MIT
#include "backsweep/store/throttle.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>

namespace backsweep {

Throttle::Throttle(double bytes_per_second) : rate_(bytes_per_second) {
    if (!(rate_ > 0.0) || !std::isfinite(rate_))
        throw InvalidArgument("a throttle lets bytes a second pass, above 0, got " + std::to_string(rate_) +
                              "; leave it out for no limit");
}

void Throttle::pass(std::int64_t bytes, Clock::time_point begin) {
    const auto time =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(static_cast<double>(bytes) / rate_));
    Clock::time_point end;
    {
        const std::lock_guard lock(mutex_);
        end = free_ = std::max(free_, begin) + time;
    }
    std::this_thread::sleep_until(end);
}

}  // namespace backsweep
