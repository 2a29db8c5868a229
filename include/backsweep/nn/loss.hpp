// Which positions have a loss, and what turns the sum of their losses into the loss that a user reads.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/layer.hpp"
#include "backsweep/nn/spec.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace backsweep {

/// Whether step t of sequence b has a loss: loss_from is reached, it is no filler, its weight is not 0 and, where that
/// is asked for, it is the last of its sequence. Where there is none, neither output nor target is read; loss and
/// gradient are 0.
template <class Real>
bool has_loss(const LossSpec& loss, const Segment<Real>& at, Index t, Index b) noexcept {
    return t >= at.loss_from && !(at.weights && at.weights[t * at.batch + b] == Real{0}) &&
           (loss.at == LossSpec::At::last ? at.last(t, b) : !at.filler(t, b));
}

/// By what the sum of losses is divided under `mean`: the sum over the positions that have a loss of their weight times
/// the class weight of their target (cross_entropy; 0 if it is ignored) or the features of their target (the others).
/// 1 under `sum` and `none`. Divide once, by the total over all windows, shards and micro-batches that form one loss.
/// 0 if nothing has a loss: there is no mean then. Throws InvalidArgument if cross_entropy lacks its classes, or for a
/// class that is neither ignored nor in [0, outputs).
template <class Real>
double loss_divisor(const LossSpec& loss, Index outputs, const Segment<Real>& window);

/// Many to one: targets [step][batch][feature] for LossSpec::At::last out of one answer per sequence,
/// [batch][feature], which stands at the sequence's last step; the other places are 0. Classes are one feature. Marks as
/// in Segment; the sequences end with the window. Throws InvalidArgument for answers of another shape, and where a row
/// of the batch holds several sequences.
template <class T>
std::vector<T> at_last_steps(std::span<const T> answers, Index features, const Mark* marks, Index steps, Index batch);

}  // namespace backsweep
