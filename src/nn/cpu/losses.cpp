// Losses per position, in one pass: `record` finds a position's loss and leaves its derivative on the tape. A position
// is computed alike in every call; the sum over positions is taken in double, in rising order.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/loss.hpp"
#include "nn/cpu/class_targets.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/described_layer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace backsweep::cpu {
namespace {

using std::exp, std::fabs, std::log, std::log1p;  // Dual has its own

/// What the losses share: positions without a loss, weights, the sum. `Self` supplies
///   double value(at, p, x, d): the loss of position p, and d loss / d x in d, `taped` numbers;
/// and may hide ignored() and derivative().
template <class Real, class Self>
class Loss : public DescribedLayer<Real> {
public:
    Loss(const LossSpec& spec, Index features, Index taped)
        : DescribedLayer<Real>(name_of(spec), {}),
          spec_(spec),
          features_(features),
          taped_(taped) {}

    Footprint footprint(Index steps, Index batch) const final { return {features_, 0, 0, steps * batch * taped_, 0}; }

    void advance(const Forward<Real>&) const final {}

    void record(const Forward<Real>& call) const final {
        const Segment<Real>& at = call.at;
        double sum = 0.0;
        for (Index t = 0, p = 0; t < at.steps; ++t)
            for (Index b = 0; b < at.batch; ++b, ++p) {
                Real* const d = call.tape + p * taped_;
                double loss = 0.0;
                if (silent(at, t, b))
                    std::fill_n(d, taped_, Real{0});
                else {
                    loss = self().value(at, p, call.x + p * features_, d);
                    sum += at.weights ? static_cast<double>(at.weights[p]) * loss : loss;
                }
                if (at.losses) at.losses[p] = static_cast<Real>(loss);
            }
        if (at.loss) *at.loss = sum;
    }

    void reverse(const Backward<Real>& call) const final {
        const Segment<Real>& at = call.at;
        if (!call.dx) return;
        for (Index t = 0, p = 0; t < at.steps; ++t)
            for (Index b = 0; b < at.batch; ++b, ++p) {
                Real* const dx = call.dx + p * features_;
                if (silent(at, t, b)) {
                    std::fill_n(dx, features_, Real{0});
                    continue;
                }
                const Real* const d = self().derivative(at, p, call.tape + p * taped_);
                const Real factor =
                    static_cast<Real>(at.weights ? at.scale * static_cast<double>(at.weights[p]) : at.scale);
                for (Index k = 0; k < features_; ++k) dx[k] = factor * d[k];
            }
    }

protected:
    const LossSpec& spec() const noexcept { return spec_; }
    Index features() const noexcept { return features_; }

    /// Whether the target of a position says that it has no loss.
    bool ignored(const Segment<Real>&, Index) const { return false; }
    /// Where d loss / d x of a position stands.
    const Real* derivative(const Segment<Real>&, Index, const Real* tape) const { return tape; }

private:
    const Self& self() const noexcept { return static_cast<const Self&>(*this); }
    bool silent(const Segment<Real>& at, Index t, Index b) const {
        return !has_loss(spec_, at, t, b) || self().ignored(at, t * at.batch + b);
    }

    LossSpec spec_;
    Index features_, taped_;
};

template <class Real>
class CrossEntropy final : public Loss<Real, CrossEntropy<Real>> {
public:
    CrossEntropy(const LossSpec& spec, Index classes)
        : Loss<Real, CrossEntropy>(spec, classes, classes),
          targets_(spec, classes) {}

    bool ignored(const Segment<Real>& at, Index p) const { return targets_.ignored(at, p); }

    double value(const Segment<Real>& at, Index p, const Real* x, Real* d) const {
        const Index t = targets_.of(at, p);
        const double loss = targets_.loss(t, x, softmax(this->features(), x, d));
        targets_.derivative(t, {0, this->features()}, d);
        return loss;
    }

private:
    ClassTargets<Real> targets_;
};

/// Of one feature.
template <class Real>
struct Term {
    Real loss;
    Real derivative;
};

template <class Real>
Real sign(Real d) noexcept {
    return static_cast<Real>((d > Real{0}) - (d < Real{0}));
}

/// Losses that are a sum over features of Rule{spec}(k, x_k, target_k).
template <class Real, class Rule>
class Featurewise final : public Loss<Real, Featurewise<Real, Rule>> {
public:
    Featurewise(const LossSpec& spec, Index features)
        : Loss<Real, Featurewise>(spec, features, features),
          rule_(spec) {}

    double value(const Segment<Real>& at, Index p, const Real* x, Real* d) const {
        require_array(at.values, this->name(), "values");
        const Real* const target = at.values + p * this->features();
        // In partial sums, for each waits for its last addition.
        constexpr Index parts = 8;
        double loss[parts] = {};
        const auto take = [&](Index k, Index part) {
            const Term<Real> term = rule_(k, x[k], target[k]);
            loss[part] += static_cast<double>(term.loss);
            d[k] = term.derivative;
        };
        Index k = 0;
        for (; k + parts <= this->features(); k += parts)
            for (Index part = 0; part < parts; ++part) take(k + part, part);
        for (; k < this->features(); ++k) take(k, 0);
        for (Index part = 1; part < parts; ++part) loss[0] += loss[part];
        return loss[0];
    }

private:
    Rule rule_;
};

template <class Real>
struct SquaredError {
    explicit SquaredError(const LossSpec&) {}
    Term<Real> operator()(Index, Real x, Real t) const noexcept {
        const Real d = x - t;
        return {d * d, Real{2} * d};
    }
};

template <class Real>
struct AbsoluteError {
    explicit AbsoluteError(const LossSpec&) {}
    Term<Real> operator()(Index, Real x, Real t) const noexcept {
        const Real d = x - t;
        return {fabs(d), sign(d)};
    }
};

template <class Real>
struct Huber {
    explicit Huber(const LossSpec& spec) : delta(static_cast<Real>(spec.delta)) {}
    Term<Real> operator()(Index, Real x, Real t) const noexcept {
        const Real d = x - t, size = fabs(d);
        if (size <= delta) return {d * d / Real{2}, d};
        return {delta * (size - delta / Real{2}), delta * sign(d)};
    }
    Real delta;
};

template <class Real>
struct SmoothL1 {
    explicit SmoothL1(const LossSpec& spec) : beta(static_cast<Real>(spec.beta)) {}
    Term<Real> operator()(Index, Real x, Real t) const noexcept {
        const Real d = x - t, size = fabs(d);
        if (size < beta) return {d * d / (Real{2} * beta), d / beta};
        return {size - beta / Real{2}, sign(d)};
    }
    Real beta;
};

// With e = exp(-|x|), s = sigmoid: softplus(x) = max(x, 0) + log(1 + e), and the derivative of the loss is
// (1 - t) s(x) - w t s(-x), where s(|x|) = 1 / (1 + e) and s(-|x|) = e / (1 + e).
template <class Real>
struct BinaryCrossEntropy {
    explicit BinaryCrossEntropy(const LossSpec& spec) : weight(spec.pos_weight.begin(), spec.pos_weight.end()) {}
    Term<Real> operator()(Index k, Real x, Real t) const noexcept {
        const Real e = exp(-fabs(x)), log1p_e = log1p(e), high = Real{1} / (Real{1} + e), low = e * high;
        const Real yes = weight.empty() ? t : weight[static_cast<std::size_t>(k)] * t, no = Real{1} - t;
        const bool below = x < Real{0};
        const Real softplus = (below ? Real{0} : x) + log1p_e, softplus_of_minus = (below ? -x : Real{0}) + log1p_e;
        return {yes * softplus_of_minus + no * softplus, no * (below ? low : high) - yes * (below ? high : low)};
    }
    std::vector<Real> weight;
};

// With v = max(variance, epsilon) and r = (m - t) / v: loss = (log v + (m - t) r) / 2 (+ log(2 pi) / 2),
// d loss / d m = r,  d loss / d v = (1 / v - r^2) / 2.
template <class Real>
class GaussianNll final : public Loss<Real, GaussianNll<Real>> {
public:
    GaussianNll(const LossSpec& spec, Index features)
        : Loss<Real, GaussianNll>(spec, features, features),
          targets_(spec.targets(features)),
          stride_(spec.shared_variance ? 0 : 1),
          epsilon_(static_cast<Real>(spec.epsilon)),
          constant_(spec.full ? log(2.0 * std::numbers::pi) / 2.0 : 0.0) {}

    double value(const Segment<Real>& at, Index p, const Real* x, Real* d) const {
        require_array(at.values, this->name(), "values");
        const Real* const target = at.values + p * targets_;
        const Real* const variance = x + targets_;
        Real* const dv = d + targets_;
        std::fill(dv, d + this->features(), Real{0});
        double loss = static_cast<double>(targets_) * constant_;
        for (Index k = 0; k < targets_; ++k) {
            const Real v = std::max(variance[k * stride_], epsilon_);  // NaN stays NaN: it stands first
            const Real difference = x[k] - target[k], r = difference / v;
            loss += static_cast<double>((log(v) + difference * r) / Real{2});
            d[k] = r;
            dv[k * stride_] += (Real{1} / v - r * r) / Real{2};
        }
        return loss;
    }

private:
    Index targets_, stride_;
    Real epsilon_;
    double constant_;
};

// loss = values . x, d loss / d x = values, which are not taped.
template <class Real>
class InnerProduct final : public Loss<Real, InnerProduct<Real>> {
public:
    InnerProduct(const LossSpec& spec, Index features) : Loss<Real, InnerProduct>(spec, features, 0) {}

    double value(const Segment<Real>& at, Index p, const Real* x, Real*) const {
        require_array(at.values, this->name(), "values");
        const Real* const values = derivative(at, p, nullptr);
        double loss = 0.0;
        for (Index k = 0; k < this->features(); ++k) loss += static_cast<double>(values[k]) * static_cast<double>(x[k]);
        return loss;
    }

    const Real* derivative(const Segment<Real>& at, Index p, const Real*) const {
        return at.values + p * this->features();
    }
};

}  // namespace

template <class Real>
LayerPointer<Real> loss(const LossSpec& spec, Index features) {
    switch (spec.kind) {
        case LossSpec::Kind::cross_entropy:
            return std::make_unique<CrossEntropy<Real>>(spec, features);
        case LossSpec::Kind::mean_squared_error:
            return std::make_unique<Featurewise<Real, SquaredError<Real>>>(spec, features);
        case LossSpec::Kind::l1:
            return std::make_unique<Featurewise<Real, AbsoluteError<Real>>>(spec, features);
        case LossSpec::Kind::huber:
            return std::make_unique<Featurewise<Real, Huber<Real>>>(spec, features);
        case LossSpec::Kind::smooth_l1:
            return std::make_unique<Featurewise<Real, SmoothL1<Real>>>(spec, features);
        case LossSpec::Kind::binary_cross_entropy:
            return std::make_unique<Featurewise<Real, BinaryCrossEntropy<Real>>>(spec, features);
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

}  // namespace backsweep::cpu
