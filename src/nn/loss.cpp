// Divisors of means, and targets of last steps.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/loss.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <string>

namespace backsweep {

template <class Real>
double loss_divisor(const LossSpec& loss, Index outputs, const Segment<Real>& window) {
    if (loss.reduction != LossSpec::Reduction::mean) return 1.0;
    const bool classes = loss.kind == LossSpec::Kind::cross_entropy;
    const auto share = [&](Index p) {
        if (!classes) return 1.0;
        if (!window.classes) throw InvalidArgument("the mean of cross_entropy counts class targets, but there are none");
        const std::int32_t c = window.classes[p];
        if (loss.ignore_index && c == *loss.ignore_index) return 0.0;
        if (c < 0 || c >= outputs)
            throw InvalidArgument("class " + std::to_string(c) + " is not in [0, " + std::to_string(outputs) +
                                  ") and is not the ignored one; correct the data or the model's sizes");
        return loss.class_weights.empty() ? 1.0 : loss.class_weights[static_cast<std::size_t>(c)];
    };
    double sum = 0.0;
    for (Index t = 0; t < window.steps; ++t)
        for (Index b = 0; b < window.batch; ++b) {
            if (!has_loss(loss, window, t, b)) continue;
            const Index p = t * window.batch + b;
            sum += window.weights ? static_cast<double>(window.weights[p]) * share(p) : share(p);
        }
    return classes ? sum : sum * static_cast<double>(loss.targets(outputs));
}

template <class T>
std::vector<T> at_last_steps(std::span<const T> answers, Index features, const Mark* marks, Index steps, Index batch) {
    if (static_cast<Index>(answers.size()) != batch * features)
        throw InvalidArgument("answers, one per sequence, must have shape [batch][feature] = [" + std::to_string(batch) + "][" +
                              std::to_string(features) + "], but there are " + std::to_string(answers.size()) + " numbers");
    Segment<double> window;
    window.steps = steps;
    window.batch = batch;
    window.marks = marks;
    std::vector<T> targets(static_cast<std::size_t>(steps * batch * features));
    for (Index b = 0; b < batch; ++b) {
        Index found = 0;
        for (Index t = 0; t < steps; ++t) {
            if (!window.last(t, b)) continue;
            if (++found > 1)
                throw InvalidArgument("one answer per sequence was given, but row " + std::to_string(b) +
                                      " of the batch holds several sequences; give targets for every step");
            std::copy_n(answers.begin() + b * features, features, targets.begin() + (t * batch + b) * features);
        }
    }
    return targets;
}

template double loss_divisor(const LossSpec&, Index, const Segment<float>&);
template double loss_divisor(const LossSpec&, Index, const Segment<double>&);
template std::vector<float> at_last_steps(std::span<const float>, Index, const Mark*, Index, Index);
template std::vector<double> at_last_steps(std::span<const double>, Index, const Mark*, Index, Index);
template std::vector<std::int32_t> at_last_steps(std::span<const std::int32_t>, Index, const Mark*, Index, Index);

}  // namespace backsweep
