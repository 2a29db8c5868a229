// The interface of every schedule, and the options from which one is made by name.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/action.hpp"
#include "backsweep/schedule/chain_costs.hpp"
#include "backsweep/schedule/level.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace backsweep {

/// A generator of actions. After `done` it answers `done` for ever; `rewind` starts the same stream again.
/// Not thread-safe; distinct objects are independent.
class BACKSWEEP_API Schedule {
public:
    virtual ~Schedule() = default;

    /// The next action.
    virtual Action next() = 0;

    /// Writes up to out.size() actions and returns how many (at least one if out is not empty). Stops early where the
    /// next action depends on finish(), and after the first `done`.
    virtual std::size_t fill(std::span<Action> out);

    /// The same stream from its beginning, without allocating.
    virtual void rewind() = 0;

    /// Open-ended schedules: the chain ends after `steps` links; one link ahead if the caller knows, else it revokes
    /// the advance just issued. Closed schedules throw ScheduleError.
    virtual void finish(Index steps);

    /// Whether finish() is awaited.
    virtual bool open() const noexcept { return false; }
};

/// What a schedule is made from, whatever its family; the typed functions beside each family take the same options and
/// say what they mean in full. An option that the family does not use must keep its default.
struct BACKSWEEP_API ScheduleOptions {
    std::string family = "revolve";  ///< one of schedule_families()
    Index steps = 0;                 ///< links of the chain, >= 0; open-ended families take none
    Index slots =
        0;  ///< revolve, nonuniform, online: states that may be kept; mixed: units; two_level: RAM slots beside
    Index period =
        0;  ///< periodic, periodic_disk (0: the best), two_level: links between kept states; segments: length
    std::string rule{};        ///< which of several ways of the family; empty: the first one that its header names
    bool loss = true;          ///< forward_only: record and drop every link (loss wanted) or only advance
    bool needs_state = false;  ///< the chain's reverse reads the state before the link (Chain::needs_state)

    std::string first{};          ///< revolve: where x_0 lies (in_slot, external, live)
    Index align = 0;              ///< revolve, rule aligned: kept states lie on multiples of this where an optimum does
    Index ram_slots = -1;         ///< revolve, rule fewest_disk: kept states that lie in RAM, the others on disk
    Index segments = 0;           ///< segments: how many
    Index depth = 0;              ///< segments: how often segments are cut again; 0 stands for 1
    Index tape_units = 0;         ///< mixed: what a tape takes where a state takes 1; 0 stands for 1
    bool restart = false;         ///< mixed: the chain gives the state behind a link out of its tape
    std::vector<Level> levels{};  ///< multistage, tiered_revolve, periodic_disk: where states may lie, fastest first
    double advance_cost =
        1.0;  ///< multistage, periodic_disk: price of advancing a link, in the unit of the levels' prices
    double reverse_cost = 1.0;    ///< the same of recording and reversing one
    std::vector<double> costs{};  ///< nonuniform: of advancing each link
    std::vector<Index> sizes{};   ///< nonuniform: of x_0 to x_{n-1}; empty: 1 each
    ChainCosts chain{};           ///< optimal_chain: times and bytes
    std::int64_t budget = 0;      ///< optimal_chain: bytes

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// The families that make_schedule knows, in the order in which the manual explains them.
BACKSWEEP_API std::vector<std::string> schedule_families();

/// Whether the length of this family's chains becomes known by finish(); false for unknown names.
BACKSWEEP_API bool is_open_ended(std::string_view family) noexcept;

/// Makes a schedule by name; throws InvalidArgument with options.problem().
BACKSWEEP_API std::unique_ptr<Schedule> make_schedule(const ScheduleOptions& options);

}  // namespace backsweep
