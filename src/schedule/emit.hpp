// One short function per action, so that a schedule reads like its stream.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/action.hpp"

namespace backsweep::emit {

inline Action advance(Index first, Index last) {
    return {Verb::advance, {}, {}, 0, {first, last}};
}
inline Action record(Index link) {
    return {Verb::record, {}, {}, 0, {link, link + 1}};
}
inline Action tape(Index link) {
    return {Verb::tape, {}, {}, 0, {link, link + 1}};
}
inline Action reverse(Index link) {
    return {Verb::reverse, {}, {}, 0, {link, link + 1}};
}
inline Action save(Index step, Slot to) {
    return {Verb::save, {}, to, 0, {step, step}};
}
inline Action load(Index step, Slot from) {
    return {Verb::load, from, {}, 0, {step, step}};
}
inline Action take(Index step, Slot from) {
    return {Verb::take, from, {}, 0, {step, step}};
}
inline Action restart(Index step, Slot from) {
    return {Verb::restart, from, {}, 0, {step, step}};
}
inline Action stow(Index link, Slot to) {
    return {Verb::stow, {}, to, 0, {link, link + 1}};
}
inline Action fetch(Index link, Slot from) {
    return {Verb::fetch, from, {}, 0, {link, link + 1}};
}
inline Action drop_state(Index step, Slot from) {
    return {Verb::drop, from, {}, 0, {step, step}};
}
inline Action drop_working_tape(Index link) {
    return {Verb::drop, {}, {}, 0, {link, link + 1}};
}
inline Action turn(Index steps) {
    return {Verb::turn, {}, {}, 0, {steps, steps}};
}
inline Action done() {
    return {};
}

}  // namespace backsweep::emit
