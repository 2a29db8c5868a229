// What turns a sum of losses into the loss that a user reads.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/spec.hpp"

#include <cstdint>
#include <span>

namespace backsweep {

/// By what the sum of losses is divided under `mean`: cross_entropy: the sum of the class weights of the kept targets
/// (without weights their number); otherwise the number of positions times `outputs`. 1 under `sum` and `none`.
/// Divide once, by the total over all chunks, shards and micro-batches that form one loss. `classes` and `positions`
/// are those that have a loss (cross_entropy reads `classes` only). 0 if all targets are ignored: there is no mean
/// then. Throws InvalidArgument for a class that is neither ignored nor in [0, outputs).
double loss_divisor(const LossSpec& loss, Index outputs, std::span<const std::int32_t> classes, Index positions);

}  // namespace backsweep
