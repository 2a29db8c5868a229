// Losses per position. A position's loss is computed alike in every call; the sum is taken in double, in rising order.
// SPDX-License-Identifier: MIT
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/described_layer.hpp"

#include <algorithm>

namespace backsweep::cpu {
namespace {

/// What the losses share: positions without a loss, weights, the sum. `Self` supplies
///   check(at): throws if the segment lacks an array;
///   double value(at, p, x, tape): the loss of position p, and its part of the tape, `taped_` numbers;
///   void adjoint(at, p, factor, tape, dx): assigns factor * d loss / d x.
template <class Real, class Self>
class Loss : public DescribedLayer<Real> {
public:
    Loss(const LossSpec& spec, Index features, Index taped)
        : DescribedLayer<Real>(name_of(spec), {}),
          features_(features),
          taped_(taped) {}

    Footprint footprint(Index steps, Index batch) const final { return {features_, 0, 0, steps * batch * taped_, 0}; }

    void advance(const Forward<Real>&) const final {}

    void record(const Forward<Real>& call) const final {
        const Segment<Real>& at = call.at;
        self().check(at);
        const Index silent = without_loss(at);
        std::fill_n(call.tape, silent * taped_, Real{0});
        if (at.losses) std::fill_n(at.losses, silent, Real{0});
        double sum = 0.0;
        for (Index p = silent; p < at.steps * at.batch; ++p) {
            const double loss = self().value(at, p, call.x + p * features_, call.tape + p * taped_);
            if (at.losses) at.losses[p] = static_cast<Real>(loss);
            sum += at.weights ? static_cast<double>(at.weights[p]) * loss : loss;
        }
        if (at.loss) *at.loss = sum;
    }

    void reverse(const Backward<Real>& call) const final {
        const Segment<Real>& at = call.at;
        if (!call.dx) return;
        const Index silent = without_loss(at);
        std::fill_n(call.dx, silent * features_, Real{0});
        for (Index p = silent; p < at.steps * at.batch; ++p) {
            const double factor = at.weights ? at.scale * static_cast<double>(at.weights[p]) : at.scale;
            self().adjoint(at, p, static_cast<Real>(factor), call.tape + p * taped_, call.dx + p * features_);
        }
    }

protected:
    Index features() const noexcept { return features_; }

private:
    const Self& self() const noexcept { return static_cast<const Self&>(*this); }

    /// Positions at the beginning of the segment that have no loss.
    static Index without_loss(const Segment<Real>& at) {
        return std::clamp<Index>(at.loss_from, 0, at.steps) * at.batch;
    }

    Index features_, taped_;
};

// With target t, class weights w, smoothing e, C classes, q_c = (1 - e) w_t [c = t] + (e / C) w_c and Q the sum of q_c:
//   loss = - sum_c q_c log softmax(x)_c,   d loss / d x_c = Q softmax(x)_c - q_c.   Tape: softmax(x).
template <class Real>
class CrossEntropy final : public Loss<Real, CrossEntropy<Real>> {
public:
    CrossEntropy(const LossSpec& spec, Index classes)
        : Loss<Real, CrossEntropy>(spec, classes, classes),
          ignore_(spec.ignore_index),
          target_(static_cast<std::size_t>(classes), 1.0 - spec.label_smoothing),
          smooth_(static_cast<std::size_t>(classes), spec.label_smoothing / static_cast<double>(classes)),
          smoothed_(spec.label_smoothing > 0.0) {
        for (std::size_t c = 0; c < spec.class_weights.size(); ++c) {
            target_[c] *= spec.class_weights[c];
            smooth_[c] *= spec.class_weights[c];
        }
        for (const double s : smooth_) smooth_sum_ += s;
    }

    void check(const Segment<Real>& at) const { require_array(at.classes, this->name(), "classes"); }

    double value(const Segment<Real>& at, Index p, const Real* x, Real* tape) const {
        const Index classes = this->features();
        if (ignored(at, p)) {
            std::fill_n(tape, classes, Real{0});
            return 0.0;
        }
        const std::int32_t t = at.classes[p];
        if (t < 0 || t >= classes)
            out_of_range(this->name(), "class", t, classes, at.first + p / at.batch, p % at.batch);
        const auto [max, log_sum] = softmax(classes, x, tape);
        double loss = -target_[static_cast<std::size_t>(t)] * static_cast<double>((x[t] - max) - log_sum);
        if (smoothed_)
            for (Index c = 0; c < classes; ++c)
                loss -= smooth_[static_cast<std::size_t>(c)] * static_cast<double>((x[c] - max) - log_sum);
        return loss;
    }

    void adjoint(const Segment<Real>& at, Index p, Real factor, const Real* tape, Real* dx) const {
        const Index classes = this->features();
        if (ignored(at, p)) {
            std::fill_n(dx, classes, Real{0});
            return;
        }
        const auto t = static_cast<std::size_t>(at.classes[p]);
        const Real total = static_cast<Real>(target_[t] + smooth_sum_);
        for (Index c = 0; c < classes; ++c)
            dx[c] = factor * (total * tape[c] - static_cast<Real>(smooth_[static_cast<std::size_t>(c)]));
        dx[t] = factor * (total * tape[t] - static_cast<Real>(target_[t] + smooth_[t]));
    }

private:
    bool ignored(const Segment<Real>& at, Index p) const { return ignore_ && at.classes[p] == *ignore_; }

    std::optional<Index> ignore_;
    std::vector<double> target_;  ///< (1 - e) w
    std::vector<double> smooth_;  ///< (e / C) w
    double smooth_sum_ = 0.0;
    bool smoothed_;
};

// loss = |x - target|^2. Tape: x.
template <class Real>
class SquaredError final : public Loss<Real, SquaredError<Real>> {
public:
    SquaredError(const LossSpec& spec, Index features) : Loss<Real, SquaredError>(spec, features, features) {}

    void check(const Segment<Real>& at) const { require_array(at.values, this->name(), "values"); }

    double value(const Segment<Real>& at, Index p, const Real* x, Real* tape) const {
        const Real* const target = at.values + p * this->features();
        double loss = 0.0;
        for (Index k = 0; k < this->features(); ++k) {
            const double difference = static_cast<double>(x[k] - target[k]);
            tape[k] = x[k];
            loss += difference * difference;
        }
        return loss;
    }

    void adjoint(const Segment<Real>& at, Index p, Real factor, const Real* tape, Real* dx) const {
        const Real* const target = at.values + p * this->features();
        for (Index k = 0; k < this->features(); ++k) dx[k] = factor * (Real{2} * (tape[k] - target[k]));
    }
};

// loss = values . x. No tape.
template <class Real>
class InnerProduct final : public Loss<Real, InnerProduct<Real>> {
public:
    InnerProduct(const LossSpec& spec, Index features) : Loss<Real, InnerProduct>(spec, features, 0) {}

    void check(const Segment<Real>& at) const { require_array(at.values, this->name(), "values"); }

    double value(const Segment<Real>& at, Index p, const Real* x, Real*) const {
        const Real* const values = at.values + p * this->features();
        double loss = 0.0;
        for (Index k = 0; k < this->features(); ++k) loss += static_cast<double>(values[k]) * static_cast<double>(x[k]);
        return loss;
    }

    void adjoint(const Segment<Real>& at, Index p, Real factor, const Real*, Real* dx) const {
        const Real* const values = at.values + p * this->features();
        for (Index k = 0; k < this->features(); ++k) dx[k] = factor * values[k];
    }
};

}  // namespace

template <class Real>
LayerPointer<Real> loss(const LossSpec& spec, Index features) {
    switch (spec.kind) {
        case LossSpec::Kind::cross_entropy:
            return std::make_unique<CrossEntropy<Real>>(spec, features);
        case LossSpec::Kind::mean_squared_error:
            return std::make_unique<SquaredError<Real>>(spec, features);
        case LossSpec::Kind::inner_product:
            break;
    }
    return std::make_unique<InnerProduct<Real>>(spec, features);
}

template LayerPointer<float> loss(const LossSpec&, Index);
template LayerPointer<double> loss(const LossSpec&, Index);

}  // namespace backsweep::cpu
