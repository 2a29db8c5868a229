// Slots of RAM numbered anew, so that none ever holds a state and a tape: memory that stays with a slot then has one
// size.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace backsweep {

/// The stream of another schedule. States have even slots, tapes odd ones, the number that was freed last first: as
/// many of either as are kept at once. Other tiers keep their numbers.
class BACKSWEEP_API Apart final : public Schedule {
public:
    /// Throws InvalidArgument without a schedule.
    explicit Apart(std::unique_ptr<Schedule> schedule);

    Action next() override;
    void rewind() override;
    void finish(Index steps) override { schedule_->finish(steps); }
    bool open() const noexcept override { return schedule_->open(); }

private:
    struct Numbers {
        std::int32_t next;
        std::vector<std::int32_t> free{};
    };
    void fill_slot(Slot& slot, Numbers& numbers);
    void empty_slot(Slot& slot);

    std::unique_ptr<Schedule> schedule_;
    std::vector<std::int32_t> now_;  // by the other schedule's number; -1: the slot is empty
    Numbers states_{0}, tapes_{1};
};

}  // namespace backsweep
