// Streams of actions for tests: a schedule from a list, a list from a schedule, and a question about a message.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/schedule.hpp"

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace backsweep::test {

/// Plays a given list, then `done` for ever; fill() and finish() are those of the base class.
class Script final : public Schedule {
public:
    explicit Script(std::vector<Action> actions) : actions_(std::move(actions)) {}
    Action next() override { return at_ < actions_.size() ? actions_[at_++] : Action{}; }
    void rewind() override { at_ = 0; }

private:
    std::vector<Action> actions_;
    std::size_t at_ = 0;
};

/// All actions up to the first `done`, which is the last element, pulled one by one.
inline std::vector<Action> by_next(Schedule& schedule) {
    std::vector<Action> actions;
    do {
        actions.push_back(schedule.next());
    } while (actions.back().verb != Verb::done);
    return actions;
}

/// The same, pulled in blocks.
inline std::vector<Action> by_fill(Schedule& schedule, std::size_t block) {
    std::vector<Action> actions;
    do {
        const std::size_t size = actions.size();
        actions.resize(size + block);
        actions.resize(size + schedule.fill(std::span(actions).subspan(size)));
        if (actions.size() == size) throw ScheduleError("fill wrote nothing");
    } while (actions.back().verb != Verb::done);
    return actions;
}

/// One action a line.
inline std::string text_of(const std::vector<Action>& actions) {
    std::string text;
    for (const Action& action : actions) text += to_string(action) + "\n";
    return text;
}

/// A predicate for BOOST_CHECK_EXCEPTION: the message holds these words.
struct Says {
    std::string words;
    bool operator()(const std::exception& error) const {
        return std::string(error.what()).find(words) != std::string::npos;
    }
};

inline Says says(std::string words) {
    return {std::move(words)};
}

}  // namespace backsweep::test
