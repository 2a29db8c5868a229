// What the links of a chain cost, each for itself: time and bytes.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/base/range.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace backsweep {

/// Times (any unit) and sizes (bytes) of a chain of n links. The adjoint of x_i is as large as x_i. The reverse of
/// link i reads the tape of link i and x_i; x_i may be taken out of the tape of link i - 1 (Verb::restart).
struct BACKSWEEP_API ChainCosts {
    std::vector<double> forward_time{};              ///< [n]; recording a link takes as long as advancing it
    std::vector<double> backward_time{};             ///< [n]
    std::vector<std::int64_t> state_bytes{};         ///< [n + 1]: x_0 to x_n
    std::vector<std::int64_t> tape_bytes{};          ///< [n], x_{i+1} included
    std::vector<std::int64_t> forward_overhead{};    ///< [n] bytes while link i runs forward; empty: none
    std::vector<std::int64_t> backward_overhead{};   ///< [n] bytes while link i is reversed; empty: none

    /// n, from forward_time.
    Index links() const noexcept { return static_cast<Index>(forward_time.size()); }
    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

}  // namespace backsweep
