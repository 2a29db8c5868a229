// Runs independent parts on threads; what they compute does not depend on how many there are.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

namespace backsweep {

/// f(0), ..., f(parts - 1), part p on thread p mod threads. Rethrows the exception of the lowest part that threw, after
/// all have ended.
template <class F>
void in_parallel(Index parts, Index threads, const F& f) {
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(parts));
    const auto work = [&](Index thread, Index stride) {
        for (Index p = thread; p < parts; p += stride) {
            try {
                f(p);
            } catch (...) {
                failures[static_cast<std::size_t>(p)] = std::current_exception();
            }
        }
    };
    const Index used = std::min(threads, parts);
    {
        std::vector<std::jthread> others;
        for (Index t = 1; t < used; ++t) others.emplace_back(work, t, used);
        work(0, std::max<Index>(used, 1));
    }
    for (const std::exception_ptr& failure : failures)
        if (failure) std::rethrow_exception(failure);
}

}  // namespace backsweep
