// Losses by plain loops.  x: the last layer's output at one position, kept as the tape where there is a loss.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/loss.hpp"
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"

#include <cmath>
#include <numbers>
#include <vector>

namespace backsweep::reference {
namespace {

using std::abs, std::exp, std::fmax, std::log, std::log1p;  // Dual has its own

template <class Real>
class Loss : public DescribedLayer<Real> {
public:
    Loss(const LossSpec& spec, Index features)
        : DescribedLayer<Real>(name_of(spec), {}),
          spec_(spec),
          features_(features) {}

    Footprint footprint(Index steps, Index batch) const final {
        return {features_, 0, 0, steps * batch * features_, 0};
    }

    void advance(const Forward<Real>&) const final {}

    void record(const Forward<Real>& call) const final {
        const Segment<Real>& at = call.at;
        double sum = 0.0;
        for (Index p = 0; p < at.steps * at.batch; ++p) {
            const bool here = has_loss(spec_, at, p / at.batch, p % at.batch);
            for (Index k = 0; k < features_; ++k)
                call.tape[p * features_ + k] = here ? call.x[p * features_ + k] : Real{0};
            const Real loss = here ? value(at, p, call.x + p * features_) : Real{0};
            const Real weight = here && at.weights ? at.weights[p] : Real{1};
            sum += static_cast<double>(weight) * static_cast<double>(loss);
            if (at.losses) at.losses[p] = loss;
        }
        if (at.loss) *at.loss = sum;
    }

    void reverse(const Backward<Real>& call) const final {
        const Segment<Real>& at = call.at;
        if (!call.dx) return;
        for (Index p = 0; p < at.steps * at.batch; ++p) {
            std::vector<Real> d(static_cast<std::size_t>(features_));
            Real factor = 0;
            if (has_loss(spec_, at, p / at.batch, p % at.batch)) {
                d = derivative(at, p, call.tape + p * features_);
                factor = static_cast<Real>(at.scale * static_cast<double>(at.weights ? at.weights[p] : Real{1}));
            }
            for (Index k = 0; k < features_; ++k)
                call.dx[p * features_ + k] = factor * d[static_cast<std::size_t>(k)];
        }
    }

protected:
    virtual Real value(const Segment<Real>& at, Index p, const Real* x) const = 0;
    virtual std::vector<Real> derivative(const Segment<Real>& at, Index p, const Real* x) const = 0;

    LossSpec spec_;
    Index features_;
};

// lp = log softmax(x), t the target, w the class weights, e the smoothing, C classes:
//   loss = (1 - e) (-w_t lp_t) + e / C sum_c (-w_c lp_c);   d lp_c / d x_k = [c = k] - softmax(x)_k
template <class Real>
class CrossEntropy final : public Loss<Real> {
    using Loss<Real>::Loss;
    using Loss<Real>::spec_;
    using Loss<Real>::features_;

    Real value(const Segment<Real>& at, Index p, const Real* x) const override {
        if (ignored(at, p)) return 0;
        const std::vector<Real> lp = log_softmax(x);
        Real sum = 0;
        for (Index c = 0; c < features_; ++c) sum -= coefficient(c, target(at, p)) * lp[static_cast<std::size_t>(c)];
        return sum;
    }

    std::vector<Real> derivative(const Segment<Real>& at, Index p, const Real* x) const override {
        std::vector<Real> d(static_cast<std::size_t>(features_));
        if (ignored(at, p)) return d;
        const std::vector<Real> lp = log_softmax(x);
        Real total = 0;
        for (Index c = 0; c < features_; ++c) total += coefficient(c, target(at, p));
        for (Index k = 0; k < features_; ++k)
            d[static_cast<std::size_t>(k)] =
                total * exp(lp[static_cast<std::size_t>(k)]) - coefficient(k, target(at, p));
        return d;
    }

    /// What -lp_c is multiplied by.
    Real coefficient(Index c, Index t) const {
        const double w = spec_.class_weights.empty() ? 1.0 : spec_.class_weights[static_cast<std::size_t>(c)];
        const double e = spec_.label_smoothing;
        return static_cast<Real>(w * ((c == t ? 1.0 - e : 0.0) + e / static_cast<double>(features_)));
    }

    bool ignored(const Segment<Real>& at, Index p) const {
        require_array(at.classes, this->name(), "classes");
        return spec_.ignore_index && at.classes[p] == *spec_.ignore_index;
    }

    Index target(const Segment<Real>& at, Index p) const {
        const std::int32_t t = at.classes[p];
        if (t < 0 || t >= features_)
            out_of_range(this->name(), "class", t, features_, at.first + p / at.batch, p % at.batch);
        return t;
    }

    std::vector<Real> log_softmax(const Real* x) const {
        Real max = x[0];
        for (Index c = 1; c < features_; ++c) max = fmax(max, x[c]);
        Real sum = 0;
        for (Index c = 0; c < features_; ++c) sum += exp(x[c] - max);
        std::vector<Real> lp;
        for (Index c = 0; c < features_; ++c) lp.push_back(x[c] - max - log(sum));
        return lp;
    }
};

// loss = sum_k of one feature's loss, a function of x_k and target_k
template <class Real>
class Featurewise : public Loss<Real> {
    using Loss<Real>::Loss;
    using Loss<Real>::features_;

    virtual Real loss_of(Index k, Real x, Real t) const = 0;
    virtual Real slope_of(Index k, Real x, Real t) const = 0;

    Real value(const Segment<Real>& at, Index p, const Real* x) const override {
        require_array(at.values, this->name(), "values");
        Real sum = 0;
        for (Index k = 0; k < features_; ++k) sum += loss_of(k, x[k], at.values[p * features_ + k]);
        return sum;
    }

    std::vector<Real> derivative(const Segment<Real>& at, Index p, const Real* x) const override {
        std::vector<Real> d;
        for (Index k = 0; k < features_; ++k) d.push_back(slope_of(k, x[k], at.values[p * features_ + k]));
        return d;
    }
};

// (x - t)^2
template <class Real>
class SquaredError final : public Featurewise<Real> {
    using Featurewise<Real>::Featurewise;
    Real loss_of(Index, Real x, Real t) const override { return (x - t) * (x - t); }
    Real slope_of(Index, Real x, Real t) const override { return 2 * (x - t); }
};

// x t
template <class Real>
class InnerProduct final : public Featurewise<Real> {
    using Featurewise<Real>::Featurewise;
    Real loss_of(Index, Real x, Real t) const override { return x * t; }
    Real slope_of(Index, Real, Real t) const override { return t; }
};

// |x - t|
template <class Real>
class AbsoluteError final : public Featurewise<Real> {
    using Featurewise<Real>::Featurewise;
    Real loss_of(Index, Real x, Real t) const override { return abs(x - t); }
    Real slope_of(Index, Real x, Real t) const override { return x > t ? Real{1} : x < t ? Real{-1} : Real{0}; }
};

// (x - t)^2 / 2 if |x - t| <= delta, else delta (|x - t| - delta / 2)
template <class Real>
class Huber final : public Featurewise<Real> {
    using Featurewise<Real>::Featurewise;
    Real loss_of(Index, Real x, Real t) const override {
        const Real delta = static_cast<Real>(this->spec_.delta);
        return abs(x - t) <= delta ? (x - t) * (x - t) / 2 : delta * (abs(x - t) - delta / 2);
    }
    Real slope_of(Index, Real x, Real t) const override {
        const Real delta = static_cast<Real>(this->spec_.delta);
        return abs(x - t) <= delta ? x - t : x > t ? delta : -delta;
    }
};

// (x - t)^2 / (2 beta) if |x - t| < beta, else |x - t| - beta / 2
template <class Real>
class SmoothL1 final : public Featurewise<Real> {
    using Featurewise<Real>::Featurewise;
    Real loss_of(Index, Real x, Real t) const override {
        const Real beta = static_cast<Real>(this->spec_.beta);
        return abs(x - t) < beta ? (x - t) * (x - t) / (2 * beta) : abs(x - t) - beta / 2;
    }
    Real slope_of(Index, Real x, Real t) const override {
        const Real beta = static_cast<Real>(this->spec_.beta);
        if (abs(x - t) < beta) return (x - t) / beta;
        return x > t ? Real{1} : x < t ? Real{-1} : Real{0};
    }
};

// w t softplus(-x) + (1 - t) softplus(x);   d softplus(x) / d x = sigmoid(x)
template <class Real>
class BinaryCrossEntropy final : public Featurewise<Real> {
    using Featurewise<Real>::Featurewise;
    Real loss_of(Index k, Real x, Real t) const override {
        return weight(k) * t * softplus(-x) + (1 - t) * softplus(x);
    }
    Real slope_of(Index k, Real x, Real t) const override { return (1 - t) * sigmoid(x) - weight(k) * t * sigmoid(-x); }

    Real weight(Index k) const {
        return this->spec_.pos_weight.empty() ? Real{1}
                                              : static_cast<Real>(this->spec_.pos_weight[static_cast<std::size_t>(k)]);
    }
    static Real softplus(Real x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
    static Real sigmoid(Real x) { return x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }
};

// x = (m, variance), v = max(variance, epsilon):  sum_k (log v_k + (m_k - t_k)^2 / v_k) / 2 (+ log(2 pi) / 2)
//   d / d m_k = (m_k - t_k) / v_k;   d / d v_k = (1 - (m_k - t_k)^2 / v_k) / (2 v_k), summed where v is shared
template <class Real>
class GaussianNll final : public Loss<Real> {
    using Loss<Real>::Loss;
    using Loss<Real>::spec_;
    using Loss<Real>::features_;

    Index place(Index k) const { return spec_.targets(features_) + (spec_.shared_variance ? 0 : k); }
    Real variance(const Real* x, Index k) const {
        const Real v = x[place(k)];
        return v < static_cast<Real>(spec_.epsilon) ? static_cast<Real>(spec_.epsilon) : v;
    }

    Real value(const Segment<Real>& at, Index p, const Real* x) const override {
        require_array(at.values, this->name(), "values");
        const Index n = spec_.targets(features_);
        Real sum = 0;
        for (Index k = 0; k < n; ++k) {
            const Real d = x[k] - at.values[p * n + k], v = variance(x, k);
            sum += (log(v) + d * d / v) / 2;
            if (spec_.full) sum += static_cast<Real>(log(2 * std::numbers::pi) / 2);
        }
        return sum;
    }

    std::vector<Real> derivative(const Segment<Real>& at, Index p, const Real* x) const override {
        const Index n = spec_.targets(features_);
        std::vector<Real> derivatives(static_cast<std::size_t>(features_));
        for (Index k = 0; k < n; ++k) {
            const Real d = x[k] - at.values[p * n + k], v = variance(x, k);
            derivatives[static_cast<std::size_t>(k)] = d / v;
            derivatives[static_cast<std::size_t>(place(k))] += (1 - d * d / v) / (2 * v);
        }
        return derivatives;
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
        case LossSpec::Kind::l1:
            return std::make_unique<AbsoluteError<Real>>(spec, features);
        case LossSpec::Kind::huber:
            return std::make_unique<Huber<Real>>(spec, features);
        case LossSpec::Kind::smooth_l1:
            return std::make_unique<SmoothL1<Real>>(spec, features);
        case LossSpec::Kind::binary_cross_entropy:
            return std::make_unique<BinaryCrossEntropy<Real>>(spec, features);
        case LossSpec::Kind::gaussian_nll:
            return std::make_unique<GaussianNll<Real>>(spec, features);
        case LossSpec::Kind::inner_product:
            break;
    }
    return std::make_unique<InnerProduct<Real>>(spec, features);
}

template LayerPointer<float> loss(const LossSpec&, Index);
template LayerPointer<double> loss(const LossSpec&, Index);
template LayerPointer<Dual<double>> loss(const LossSpec&, Index);

}  // namespace backsweep::reference
