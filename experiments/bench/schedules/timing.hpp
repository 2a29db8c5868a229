// Process time, so that a busy neighbour disturbs less, and the median of some runs.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <ctime>

inline double seconds() {
    std::timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <int runs, class Measure>
double median_of(const Measure& measure) {
    std::array<double, runs> results{};
    for (double& result : results) result = measure();
    std::nth_element(results.begin(), results.begin() + runs / 2, results.end());
    return results[runs / 2];
}
