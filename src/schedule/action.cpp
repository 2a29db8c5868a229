// Names of verbs and tiers, and an action in words.
// SPDX-License-Identifier: MIT
#include "backsweep/schedule/action.hpp"

namespace backsweep {

const char* to_string(Verb verb) noexcept {
    switch (verb) {
        case Verb::advance:
            return "advance";
        case Verb::record:
            return "record";
        case Verb::tape:
            return "tape";
        case Verb::reverse:
            return "reverse";
        case Verb::save:
            return "save";
        case Verb::load:
            return "load";
        case Verb::take:
            return "take";
        case Verb::restart:
            return "restart";
        case Verb::stow:
            return "stow";
        case Verb::fetch:
            return "fetch";
        case Verb::drop:
            return "drop";
        case Verb::move:
            return "move";
        case Verb::turn:
            return "turn";
        case Verb::done:
            return "done";
    }
    return "unknown verb";
}

const char* to_string(Tier tier) noexcept {
    switch (tier) {
        case Tier::device:
            return "device";
        case Tier::pinned:
            return "pinned";
        case Tier::ram:
            return "ram";
        case Tier::disk:
            return "disk";
    }
    return "unknown tier";
}

std::string to_string(Slot slot) {
    if (slot.index < 0) return "no slot";
    return std::string(to_string(slot.tier)) + " slot " + std::to_string(slot.index);
}

std::string to_string(const Action& action) {
    std::string text = to_string(action.verb);
    if (action.verb == Verb::done) return text;
    if (action.steps.empty()) {
        text += " x_" + std::to_string(action.steps.first);
    } else {
        text += " [" + std::to_string(action.steps.first) + ", " + std::to_string(action.steps.last) + ")";
    }
    if (action.from.index >= 0) text += " from " + to_string(action.from);
    if (action.to.index >= 0) text += " to " + to_string(action.to);
    return text;
}

}  // namespace backsweep
