// An open-ended schedule on a chain whose length is known to the one who plays it: counts, prints, pictures.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/referee.hpp"

namespace backsweep {

/// The stream of `schedule` for a chain of `steps` links: finish() is called as `ending` says, and an advance beyond
/// the end is cut or left out. Closed schedules pass unchanged. The schedule stands at its beginning; given by
/// reference it is the caller's and outlives this.
class BACKSWEEP_API Ended final : public Schedule {
public:
    Ended(Schedule& schedule, Index steps, Ending ending);
    Ended(std::unique_ptr<Schedule> schedule, Index steps, Ending ending);

    Action next() override;
    void rewind() override;

private:
    void tell();

    std::unique_ptr<Schedule> owned_;
    Schedule* schedule_;
    Index steps_;
    Ending ending_;
    Index at_ = 0;
    bool open_;
};

}  // namespace backsweep
