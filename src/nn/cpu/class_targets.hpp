// What cross-entropy makes of class targets, whether logits are kept or made in blocks: the bits are the same.
// SPDX-License-Identifier: MIT
#pragma once

#include "nn/cpu/kernels.hpp"
#include "nn/described_layer.hpp"

#include <vector>

namespace backsweep::cpu {

// With target t, class weights w, smoothing e, C classes, q_c = (1 - e) w_t [c = t] + (e / C) w_c and Q the sum of q_c:
//   loss = - sum_c q_c log softmax(x)_c,   d loss / d x_c = Q softmax(x)_c - q_c.
template <class Real>
class ClassTargets {
public:
    ClassTargets(const LossSpec& spec, Index classes)
        : name_(name_of(spec)),
          ignored_(spec.ignore_index),
          target_(static_cast<std::size_t>(classes), 1.0 - spec.label_smoothing),
          smooth_(static_cast<std::size_t>(classes), spec.label_smoothing / static_cast<double>(classes)),
          plain_(spec.label_smoothing == 0.0 && spec.class_weights.empty()) {
        for (std::size_t c = 0; c < spec.class_weights.size(); ++c) {
            target_[c] *= spec.class_weights[c];
            smooth_[c] *= spec.class_weights[c];
        }
        for (const double s : smooth_) smooth_sum_ += s;
    }

    /// Whether the target of a position says that it has no loss.
    bool ignored(const Segment<Real>& at, Index p) const {
        require_array(at.classes, name_, "classes");
        return ignored_ && at.classes[p] == *ignored_;
    }

    /// Of position p, which is not ignored. Throws InvalidArgument for a class that is none.
    Index of(const Segment<Real>& at, Index p) const {
        const std::int32_t t = at.classes[p];
        const auto classes = static_cast<Index>(target_.size());
        if (t < 0 || t >= classes) out_of_range(name_, "class", t, classes, at.first + p / at.batch, p % at.batch);
        return t;
    }

    /// Of logits x.
    double loss(Index t, const Real* x, const Softmax<Real>& of) const {
        double loss = -target_[static_cast<std::size_t>(t)] * static_cast<double>((x[t] - of.max) - of.log_sum);
        if (smooth_sum_ > 0.0)
            for (std::size_t c = 0; c < smooth_.size(); ++c)
                loss -= smooth_[c] * static_cast<double>((x[c] - of.max) - of.log_sum);
        return loss;
    }

    /// d: in: softmax(x), out: d loss / d x, of these classes.
    void derivative(Index t, Range classes, Real* d) const {
        const auto c_t = static_cast<std::size_t>(t);
        const Real total = static_cast<Real>(target_[c_t] + smooth_sum_);
        Real* const d_t = t >= classes.first && t < classes.last ? d + (t - classes.first) : nullptr;
        const Real own = d_t ? total * *d_t - static_cast<Real>(target_[c_t] + smooth_[c_t]) : Real{0};
        if (!plain_)
            for (Index c = classes.first; c < classes.last; ++c, ++d)
                *d = total * *d - static_cast<Real>(smooth_[static_cast<std::size_t>(c)]);
        if (d_t) *d_t = own;
    }

private:
    std::string name_;
    std::optional<Index> ignored_;
    std::vector<double> target_;  ///< (1 - e) w
    std::vector<double> smooth_;  ///< (e / C) w
    double smooth_sum_ = 0.0;
    bool plain_;  ///< Q = 1 and nothing is smoothed
};

}  // namespace backsweep::cpu
