// What marks of a segment mean for a state [batch][width] that a layer carries from step to step: every cell's
// recurrence, forward and in reverse, passes through these. `width` numbers of one sequence are a column.
// Forward at step t: start_states, the cell but at fillers, update_states; in reverse: the cell's reverse but at
// fillers, update_states, start_states_reverse.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/layer.hpp"

#include <algorithm>

namespace backsweep {

/// Whether a step of the segment can be anything but a plain step.
template <class Real>
bool marked(const Segment<Real>& at) noexcept {
    return at.marks || at.begins;
}

/// `state` is the one before step t: columns of sequences that start there := fresh (null: 0).
template <class Real>
void start_states(const Segment<Real>& at, Index t, Index width, const Real* fresh, Real* state) {
    for (Index b = 0; b < at.batch; ++b) {
        if (!at.starts(t, b)) continue;
        if (fresh)
            std::copy_n(fresh, width, state + b * width);
        else
            std::fill_n(state + b * width, width, Real{0});
    }
}

/// `dstate` is the adjoint of the state before step t: columns of sequences that start there are added to dfresh (null:
/// dropped) and become 0.
template <class Real>
void start_states_reverse(const Segment<Real>& at, Index t, Index width, Real* dfresh, Real* dstate) {
    for (Index b = 0; b < at.batch; ++b) {
        if (!at.starts(t, b)) continue;
        Real* const column = dstate + b * width;
        for (Index k = 0; dfresh && k < width; ++k) dfresh[k] += column[k];
        std::fill_n(column, width, Real{0});
    }
}

/// `state` is passed on over step t: columns := those of `next`, but of fillers, which are held in bits.
template <class Real>
void update_states(const Segment<Real>& at, Index t, Index width, const Real* next, Real* state) {
    for (Index b = 0; b < at.batch; ++b)
        if (!at.filler(t, b)) std::copy_n(next + b * width, width, state + b * width);
}

/// Where every step has a place of its own: columns of the fillers at step t, `after` := `before`, in bits.
template <class Real>
void hold_states(const Segment<Real>& at, Index t, Index width, const Real* before, Real* after) {
    for (Index b = 0; at.marks && b < at.batch; ++b)
        if (at.filler(t, b)) std::copy_n(before + b * width, width, after + b * width);
}

/// The states [step][batch][width] that a cell saw at some steps. Its output y, the state behind every step but 0 at
/// fillers, and the state carry_in before the segment say them all; `fresh` as in start_states. They stand in y, or are
/// put together in `room`.
template <class Real>
const Real* states_before(const Segment<Real>& at, Range steps, Index width, const Real* carry_in, const Real* fresh,
                          const Real* y, Real* room) {
    const Index state = at.batch * width;
    if (steps.first > 0 && !at.marks) return y + (steps.first - 1) * state;
    Real* before = room;
    std::copy_n(steps.first > 0 ? y + (steps.first - 1) * state : carry_in, state, before);
    // A filler before them holds what was before it: the last step that was none, the carry, or a fresh state.
    for (Index b = 0; steps.first > 0 && at.marks && b < at.batch; ++b) {
        Index t = steps.first - 1;
        while (t >= 0 && at.filler(t, b)) --t;
        if (t < steps.first - 1) std::copy_n((t < 0 ? carry_in : y + t * state) + b * width, width, before + b * width);
    }
    std::copy_n(y + steps.first * state, (steps.size() - 1) * state, before + state);
    for (Index t = steps.first; t < steps.last; ++t, before += state) {
        start_states(at, t, width, fresh, before);
        if (t + 1 < steps.last) hold_states(at, t, width, before, before + state);
    }
    return room;
}

/// Columns of the fillers at step t := 0. `columns` [batch][width] is that step's part of an array, `apart` elements
/// apart.
template <class Real>
void clear_fillers(const Segment<Real>& at, Index t, Index width, Real* columns, Index apart) {
    for (Index b = 0; at.marks && b < at.batch; ++b)
        if (at.filler(t, b)) std::fill_n(columns + b * apart, width, Real{0});
}
template <class Real>
void clear_fillers(const Segment<Real>& at, Index t, Index width, Real* columns) {
    clear_fillers(at, t, width, columns, width);
}

/// The same for all steps of an array [step][batch][width].
template <class Real>
void clear_fillers(const Segment<Real>& at, Index width, Real* array) {
    for (Index t = 0; t < at.steps; ++t) clear_fillers(at, t, width, array + t * at.batch * width);
}

}  // namespace backsweep
