// The interface of every schedule, and the options from which one is made by name.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/action.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

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
};

/// What a schedule is made from. An option that the family does not use must keep its default.
struct BACKSWEEP_API ScheduleOptions {
    std::string family = "revolve";  ///< store_all, revolve, periodic, forward_only
    Index steps = 0;                 ///< links of the chain, >= 0
    Index slots = 0;                 ///< revolve: states that may be kept, the one of x_0 included
    Index period = 0;                ///< periodic: links between kept states
    std::string rule{};        ///< revolve: which optimal first advance is taken (fewest_writes, longest, shortest)
    bool loss = true;          ///< forward_only: record and drop every link (loss wanted) or only advance
    bool needs_state = false;  ///< any family: the chain's reverse reads the state before the link (Chain::needs_state)

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// Makes a schedule by name; throws InvalidArgument with options.problem().
BACKSWEEP_API std::unique_ptr<Schedule> make_schedule(const ScheduleOptions& options);

}  // namespace backsweep
