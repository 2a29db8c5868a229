// Losses by plain loops.  x: the last layer's output at one position, kept as the tape.
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"

#include <cmath>
#include <vector>

namespace backsweep::reference {
namespace {

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
        for (Index k = 0; k < at.steps * at.batch * features_; ++k) call.tape[k] = call.x[k];
        double sum = 0.0;
        for (Index p = 0; p < at.steps * at.batch; ++p) {
            const bool silent = p / at.batch < at.loss_from;
            const Real loss = silent ? Real{0} : value(at, p, call.x + p * features_);
            const Real weight = at.weights ? at.weights[p] : Real{1};
            if (!silent) sum += static_cast<double>(weight) * static_cast<double>(loss);
            if (at.losses) at.losses[p] = loss;
        }
        if (at.loss) *at.loss = sum;
    }

    void reverse(const Backward<Real>& call) const final {
        const Segment<Real>& at = call.at;
        if (!call.dx) return;
        for (Index p = 0; p < at.steps * at.batch; ++p) {
            const bool silent = p / at.batch < at.loss_from;
            const Real weight = at.weights ? at.weights[p] : Real{1};
            const Real factor = static_cast<Real>(at.scale * static_cast<double>(weight));
            const std::vector<Real> d = silent ? std::vector<Real>(static_cast<std::size_t>(features_))
                                               : derivative(at, p, call.tape + p * features_);
            for (Index k = 0; k < features_; ++k)
                call.dx[p * features_ + k] = silent ? Real{0} : factor * d[static_cast<std::size_t>(k)];
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
                total * std::exp(lp[static_cast<std::size_t>(k)]) - coefficient(k, target(at, p));
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
        for (Index c = 1; c < features_; ++c) max = std::fmax(max, x[c]);
        Real sum = 0;
        for (Index c = 0; c < features_; ++c) sum += std::exp(x[c] - max);
        std::vector<Real> lp;
        for (Index c = 0; c < features_; ++c) lp.push_back(x[c] - max - std::log(sum));
        return lp;
    }
};

// loss = sum_k (x_k - target_k)^2
template <class Real>
class SquaredError final : public Loss<Real> {
    using Loss<Real>::Loss;
    using Loss<Real>::features_;

    Real value(const Segment<Real>& at, Index p, const Real* x) const override {
        require_array(at.values, this->name(), "values");
        Real sum = 0;
        for (Index k = 0; k < features_; ++k)
            sum += (x[k] - at.values[p * features_ + k]) * (x[k] - at.values[p * features_ + k]);
        return sum;
    }

    std::vector<Real> derivative(const Segment<Real>& at, Index p, const Real* x) const override {
        std::vector<Real> d;
        for (Index k = 0; k < features_; ++k) d.push_back(2 * (x[k] - at.values[p * features_ + k]));
        return d;
    }
};

// loss = sum_k values_k x_k
template <class Real>
class InnerProduct final : public Loss<Real> {
    using Loss<Real>::Loss;
    using Loss<Real>::features_;

    Real value(const Segment<Real>& at, Index p, const Real* x) const override {
        require_array(at.values, this->name(), "values");
        Real sum = 0;
        for (Index k = 0; k < features_; ++k) sum += at.values[p * features_ + k] * x[k];
        return sum;
    }

    std::vector<Real> derivative(const Segment<Real>& at, Index p, const Real*) const override {
        return {at.values + p * features_, at.values + (p + 1) * features_};
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

}  // namespace backsweep::reference
