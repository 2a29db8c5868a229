// The divisor of a mean loss.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/loss.hpp"

#include "backsweep/base/error.hpp"

namespace backsweep {

double loss_divisor(const LossSpec& loss, Index outputs, std::span<const std::int32_t> classes, Index positions) {
    if (loss.reduction != LossSpec::Reduction::mean) return 1.0;
    if (loss.kind != LossSpec::Kind::cross_entropy)
        return static_cast<double>(positions) * static_cast<double>(outputs);
    double sum = 0.0;
    for (const std::int32_t c : classes) {
        if (loss.ignore_index && c == *loss.ignore_index) continue;
        if (c < 0 || c >= outputs)
            throw InvalidArgument("class " + std::to_string(c) + " is not in [0, " + std::to_string(outputs) +
                                  ") and is not the ignored one; correct the data or the model's sizes");
        sum += loss.class_weights.empty() ? 1.0 : loss.class_weights[static_cast<std::size_t>(c)];
    }
    return sum;
}

}  // namespace backsweep
