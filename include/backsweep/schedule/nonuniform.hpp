// Links of unequal, known cost: the least cost of advances for a given memory, by dynamic programming over intervals.
// Walther 1999 [Walther99], Griewank and Walther 2008 [GW08, ch. 12]; search bounds after Knuth 1971 [Knuth71].
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

#include <vector>

namespace backsweep {

struct BACKSWEEP_API NonuniformOptions {
    std::vector<double> costs{};                     ///< [links] of advancing each link, finite and >= 0, any unit
    Index slots = 0;                                 ///< memory for states, x_0 included: a state takes 1, or its size
    std::vector<Index> sizes{};                      ///< [links] of x_0 ... x_{n-1}, >= 1; empty: 1 each
    bool needs_state = false;                        ///< the chain's reverse reads the state before its link
    std::size_t table_limit = std::size_t{1} << 30;  ///< bytes that planning may take

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// The cost of all advances of the schedule; links recorded or taped are not charged. With equal sizes no exhaustive
/// search has found less; with unequal ones it is the least of all schedules that save x_0 first and keep a state until
/// the links behind it are reversed (others gain a little in rare cases). Throws InvalidArgument with
/// options.problem(), or if a sum of costs is not finite.
BACKSWEEP_API double nonuniform_cost(const NonuniformOptions& options);

/// Bytes of the tables while the schedule is planned: for every pair of links two bytes a unit of memory below the top
/// one, and 8 bytes for each of the last max(sizes) + 1 units; the schedule itself keeps 16 bytes a link. Planning
/// takes O(n^2 slots) time for equal sizes and O(n^3 slots) for others. Saturates.
BACKSWEEP_API std::size_t nonuniform_table_bytes(const NonuniformOptions& options);

/// The schedule; the k-th of the states kept at once lies in RAM slot k, and is taken at its last read. The last link
/// of the first sweep is recorded as it is run (with needs_state its tape waits until x_{n-1} is at work again), every
/// other one taped just before its reverse.
/// Throws as nonuniform_cost does.
BACKSWEEP_API std::unique_ptr<Schedule> nonuniform(const NonuniformOptions& options);

}  // namespace backsweep
