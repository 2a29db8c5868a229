// How the links of a sweep are run and reversed: the last one straight out of the first sweep, the others taped.
// SPDX-License-Identifier: MIT
#pragma once

#include "schedule/emit.hpp"

namespace backsweep {

/// With needs_state `turn` stands for a link of its own behind the last, so that x_{n-1} is found again like any other
/// state. The last link is recorded in the first sweep all the same, and its tape waits as the working tape.
struct WayBack {
    Index steps = 0;
    bool needs_state = false;
    bool turned = false;

    Index links() const noexcept { return steps + (needs_state ? 1 : 0); }

    /// Writes at most two actions. Nothing comes to x_n but the first sweep with needs_state, and that once.
    Action* advance(Action* to, Index first, Index last) const {
        if (last < steps) {
            *to++ = emit::advance(first, last);
            return to;
        }
        if (first < last - 1) *to++ = emit::advance(first, last - 1);
        *to++ = emit::record(last - 1);
        return to;
    }

    /// Writes at most three actions.
    Action* reverse(Action* to, Index link) {
        if (turned) {
            if (!needs_state || link + 1 < steps) *to++ = emit::tape(link);
            *to++ = emit::reverse(link);
            return to;
        }
        turned = true;
        if (!needs_state) *to++ = emit::record(link);
        *to++ = emit::turn(steps);
        if (!needs_state) *to++ = emit::reverse(link);
        return to;
    }
};

}  // namespace backsweep
