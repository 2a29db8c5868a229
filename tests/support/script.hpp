// A schedule that is written down action by action.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/schedule.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace backsweep::test {

class Script : public Schedule {
public:
    explicit Script(std::vector<Action> actions) : actions_(std::move(actions)) {}

    Action next() override { return at_ < actions_.size() ? actions_[at_++] : Action{}; }
    void rewind() override { at_ = 0; }

private:
    std::vector<Action> actions_;
    std::size_t at_ = 0;
};

}  // namespace backsweep::test
