// Optimizers over the flat parameter vector, as PyTorch computes them: SGD with momentum [Polyak64] or Nesterov's
// [Sutskever13], Adam [KB15], its variant AMSGrad [RKK18], AdamW [LH19], RMSprop [TH12], Adagrad [DHS11]; and LAMB
// [You20].
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "backsweep/nn/parameters.hpp"

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace backsweep {

/// g += weight_decay p;  m = momentum m + (1 - dampening) g, m = g in the first update;
/// p -= rate m, with nesterov p -= rate (g + momentum m), without momentum p -= rate g.
struct SgdSpec {
    double momentum = 0.0;
    double dampening = 0.0;
    bool nesterov = false;
    double weight_decay = 0.0;
};

/// g += weight_decay p;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
/// p -= rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon), t = 1, 2, ...; amsgrad: with the running
/// maximum of v in its place.
struct AdamSpec {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    bool amsgrad = false;
    double weight_decay = 0.0;
};

/// Adam, but the decay acts on the parameter alone: p *= 1 - rate weight_decay, then as above without decay.
struct AdamWSpec {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    bool amsgrad = false;
    double weight_decay = 0.01;
};

/// g += weight_decay p;  v = alpha v + (1 - alpha) g^2, centered: also a = alpha a + (1 - alpha) g;
/// d = g / (sqrt(v) + epsilon), centered: with v - a^2, at least 0, in v's place; with momentum m = momentum m + d,
/// p -= rate m, else p -= rate d.
struct RmspropSpec {
    double alpha = 0.99;
    double epsilon = 1e-8;
    bool centered = false;
    double momentum = 0.0;
    double weight_decay = 0.0;
};

/// g += weight_decay p;  s = s + g^2, from `initial_accumulator`;
/// p -= rate / (1 + (t - 1) rate_decay) g / (sqrt(s) + epsilon), t = 1, 2, ...
struct AdagradSpec {
    double rate_decay = 0.0;
    double initial_accumulator = 0.0;
    double epsilon = 1e-10;
    double weight_decay = 0.0;
};

/// m and v as Adam's;  u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay p;
/// p -= rate |p| / |u| u, the 2-norms over each named parameter. The variant: [You20, algorithm 2] with bias correction
/// and phi(x) = x, which clips nothing; where |p| or |u| is 0 the ratio is 1. Norms are summed in double, element by
/// element in rising order: a parameter's bits do not depend on what else there is.
struct LambSpec {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-6;
    double weight_decay = 0.0;
};

/// Parameters with rules of their own, chosen by shell patterns over their names ("*bias*": all biases).
struct ParameterGroup {
    std::vector<std::string> patterns{};
    std::optional<double> weight_decay{};  ///< instead of the rule's
    double rate_factor = 1.0;              ///< times the rate of the update
};

struct OptimizerSpec {
    std::variant<SgdSpec, AdamSpec, AdamWSpec, RmspropSpec, AdagradSpec, LambSpec> rule = AdamSpec{};
    std::vector<ParameterGroup> groups{};  ///< a parameter belongs to one at most

    /// "sgd", "adam", "adamw", "rmsprop", "adagrad" or "lamb".
    const char* name() const noexcept;
    /// The decay of parameters that no group says otherwise of.
    double weight_decay() const noexcept;
    /// Whether the rule has a momentum (or a beta1) that an update may be given another value of.
    bool has_momentum() const noexcept;
    /// Moments kept, each as large as the parameters.
    Index moments() const;
    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// A moment of all parameters, in the canonical layout, under PyTorch's name ("exp_avg").
template <class Real>
struct Moment {
    std::string name;
    std::span<Real> values;
};

/// Applies updates; owns the moments. Element by element (LAMB: parameter by parameter), so the bits do not depend on
/// anything but the arguments.
template <class Real>
class Optimizer {
public:
    /// Moments of a start (0; Adagrad: the initial accumulator), booked in `ledger` as Kind::moments. Throws
    /// InvalidArgument: spec.problem(), a pattern that no parameter matches, a parameter in two groups.
    Optimizer(OptimizerSpec spec, const ParameterLayout& layout, Ledger& ledger = Ledger::process());

    /// One update: `parameters` are changed, `gradients` only read; both have the layout's size and do not alias.
    /// `momentum`, in [0, 1), stands for the rule's momentum or beta1 in this update (the bias correction of Adam and
    /// LAMB then takes it to the power t, as PyTorch does). Throws InvalidArgument, before anything is changed, for
    /// sizes, a rate or a momentum that cannot be, and for a momentum where the rule has none.
    void step(std::span<Real> parameters, std::span<const Real> gradients, double rate,
              std::optional<double> momentum = {});

    /// Updates made.
    Index updates() const noexcept { return updates_; }
    /// All moments. With updates() they are the whole state: write both back and the next steps have the same bits.
    std::vector<Moment<Real>> moments();
    std::vector<Moment<const Real>> moments() const;
    void set_updates(Index updates) noexcept { updates_ = updates; }
    /// As if newly made.
    void reset() noexcept;

    const OptimizerSpec& spec() const noexcept { return spec_; }

private:
    /// A parameter's elements and what its group says of them.
    struct Part {
        Index offset, size;
        double weight_decay, rate_factor;
    };

    Real* moment(std::size_t m, const Part& part) { return moments_[m].data() + part.offset; }
    void update(const SgdSpec& rule, const Part& part, double rate, Real* p, const Real* g);
    void update(const RmspropSpec& rule, const Part& part, double rate, Real* p, const Real* g);
    void update(const AdagradSpec& rule, const Part& part, double rate, Real* p, const Real* g);
    void update(const LambSpec& rule, const Part& part, double rate, Real* p, const Real* g);
    template <class Adam>
    void update(const Adam& rule, const Part& part, double rate, Real* p, const Real* g);

    OptimizerSpec spec_;
    Index size_;
    std::vector<Part> parts_;
    std::vector<Buffer<Real>> moments_;
    Index updates_ = 0;
};

}  // namespace backsweep
