// SPDX-License-Identifier: MIT
#include "backsweep/train/optimizer.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

namespace backsweep {

namespace {

bool is_factor(double x) {
    return std::isfinite(x) && x >= 0.0;
}

std::string problem_of(const SgdSpec& rule) {
    if (!is_factor(rule.momentum)) return fmt::format("momentum must be >= 0, not {}", rule.momentum);
    if (!std::isfinite(rule.dampening)) return fmt::format("dampening must be finite, not {}", rule.dampening);
    if (rule.momentum == 0.0 && rule.dampening != 0.0)
        return fmt::format("dampening {} acts on the momentum, which is 0; give a momentum or leave it out",
                           rule.dampening);
    if (rule.nesterov && (rule.momentum == 0.0 || rule.dampening != 0.0))
        return fmt::format("nesterov needs a momentum and no dampening, but they are {} and {}", rule.momentum,
                           rule.dampening);
    return {};
}

std::string problem_of(const RmspropSpec& rule) {
    if (!(rule.alpha >= 0.0 && rule.alpha < 1.0)) return fmt::format("alpha must lie in [0, 1), not at {}", rule.alpha);
    if (!is_factor(rule.epsilon)) return fmt::format("epsilon must be >= 0, not {}", rule.epsilon);
    if (!is_factor(rule.momentum)) return fmt::format("momentum must be >= 0, not {}", rule.momentum);
    return {};
}

std::string problem_of(const AdagradSpec& rule) {
    if (!is_factor(rule.rate_decay)) return fmt::format("rate_decay must be >= 0, not {}", rule.rate_decay);
    if (!is_factor(rule.initial_accumulator))
        return fmt::format("initial_accumulator must be >= 0, not {}", rule.initial_accumulator);
    if (!is_factor(rule.epsilon)) return fmt::format("epsilon must be >= 0, not {}", rule.epsilon);
    return {};
}

template <class Adam>
std::string problem_of(const Adam& rule) {
    if (!(rule.beta1 >= 0.0 && rule.beta1 < 1.0)) return fmt::format("beta1 must lie in [0, 1), not at {}", rule.beta1);
    if (!(rule.beta2 >= 0.0 && rule.beta2 < 1.0)) return fmt::format("beta2 must lie in [0, 1), not at {}", rule.beta2);
    if (!is_factor(rule.epsilon)) return fmt::format("epsilon must be >= 0, not {}", rule.epsilon);
    return {};
}

/// PyTorch's names of the moments that a rule keeps.
std::vector<std::string> moment_names(const SgdSpec& rule) {
    if (rule.momentum == 0.0) return {};
    return {"momentum_buffer"};
}

std::vector<std::string> moment_names(const RmspropSpec& rule) {
    std::vector<std::string> names{"square_avg"};
    if (rule.centered) names.push_back("grad_avg");
    if (rule.momentum != 0.0) names.push_back("momentum_buffer");
    return names;
}

std::vector<std::string> moment_names(const AdagradSpec&) {
    return {"sum"};
}

std::vector<std::string> moment_names(const LambSpec&) {
    return {"exp_avg", "exp_avg_sq"};
}

template <class Adam>
std::vector<std::string> moment_names(const Adam& rule) {
    std::vector<std::string> names{"exp_avg", "exp_avg_sq"};
    if (rule.amsgrad) names.push_back("max_exp_avg_sq");
    return names;
}

std::vector<std::string> moment_names(const OptimizerSpec& spec) {
    return std::visit([](const auto& rule) { return moment_names(rule); }, spec.rule);
}

/// What every moment begins with.
double start_of(const OptimizerSpec& spec) {
    const auto* adagrad = std::get_if<AdagradSpec>(&spec.rule);
    return adagrad ? adagrad->initial_accumulator : 0.0;
}

/// Where a rule keeps its momentum; null if it has none.
double* momentum_of(SgdSpec& rule) {
    return rule.momentum != 0.0 ? &rule.momentum : nullptr;
}
double* momentum_of(RmspropSpec& rule) {
    return rule.momentum != 0.0 ? &rule.momentum : nullptr;
}
double* momentum_of(AdagradSpec&) {
    return nullptr;
}
template <class Adam>
double* momentum_of(Adam& rule) {
    return &rule.beta1;
}

template <class Named, class Buffers>
std::vector<Named> named(const OptimizerSpec& spec, Buffers& moments) {
    const std::vector<std::string> names = moment_names(spec);
    std::vector<Named> all;
    for (std::size_t m = 0; m < names.size(); ++m) all.push_back({names[m], moments[m].span()});
    return all;
}

}  // namespace

const char* OptimizerSpec::name() const noexcept {
    constexpr std::array names{"sgd", "adam", "adamw", "rmsprop", "adagrad", "lamb"};
    static_assert(names.size() == std::variant_size_v<decltype(rule)>);
    return names[rule.index()];
}

double OptimizerSpec::weight_decay() const noexcept {
    return std::visit([](const auto& r) { return r.weight_decay; }, rule);
}

bool OptimizerSpec::has_momentum() const noexcept {
    return std::visit([](auto r) { return momentum_of(r) != nullptr; }, rule);
}

Index OptimizerSpec::moments() const {
    return static_cast<Index>(moment_names(*this).size());
}

std::string OptimizerSpec::problem() const {
    if (std::string wrong = std::visit([](const auto& r) { return problem_of(r); }, rule); !wrong.empty())
        return fmt::format("{}: {}", name(), wrong);
    if (!is_factor(weight_decay())) return fmt::format("{}: weight_decay must be >= 0, not {}", name(), weight_decay());
    for (const ParameterGroup& group : groups) {
        if (group.patterns.empty()) return "a parameter group needs a pattern, such as \"*bias*\"";
        const std::string& first = group.patterns.front();
        if (group.weight_decay && !is_factor(*group.weight_decay))
            return fmt::format("parameter group \"{}\": weight_decay must be >= 0, not {}", first, *group.weight_decay);
        if (!is_factor(group.rate_factor))
            return fmt::format("parameter group \"{}\": rate_factor must be >= 0, not {}", first, group.rate_factor);
    }
    return {};
}

template <class Real>
Optimizer<Real>::Optimizer(OptimizerSpec spec, const ParameterLayout& layout, Ledger& ledger)
    : spec_(std::move(spec)),
      size_(layout.size()) {
    if (const std::string problem = spec_.problem(); !problem.empty()) throw InvalidArgument(problem);

    for (const ParameterView& view : layout.views())
        parts_.push_back({view.offset, view.size(), spec_.weight_decay(), 1.0});
    std::vector<const std::string*> chosen_by(parts_.size());
    for (const ParameterGroup& group : spec_.groups) {
        for (const std::string& pattern : group.patterns) {
            bool matched = false;
            for (std::size_t k = 0; k < parts_.size(); ++k) {
                const std::string& name = layout.views()[k].name;
                if (fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
                if (chosen_by[k])
                    throw InvalidArgument(
                        fmt::format("parameter '{}' may be chosen once, but \"{}\" and \"{}\" both match it", name,
                                    *chosen_by[k], pattern));
                chosen_by[k] = &pattern;
                parts_[k].weight_decay = group.weight_decay.value_or(spec_.weight_decay());
                parts_[k].rate_factor = group.rate_factor;
                matched = true;
            }
            if (!matched) {
                std::string names;
                for (const ParameterView& view : layout.views()) names += (names.empty() ? "" : ", ") + view.name;
                throw InvalidArgument(
                    fmt::format("no parameter matches the pattern \"{}\"; there are: {}", pattern, names));
            }
        }
    }
    const auto moments = moment_names(spec_).size();
    moments_.reserve(moments);
    while (moments_.size() < moments) moments_.emplace_back(size_, Kind::moments, ledger);
    reset();
}

template <class Real>
void Optimizer<Real>::step(std::span<Real> parameters, std::span<const Real> gradients, double rate,
                           std::optional<double> momentum) {
    if (static_cast<Index>(parameters.size()) != size_ || static_cast<Index>(gradients.size()) != size_)
        throw InvalidArgument(
            fmt::format("the optimizer was made for {} elements, but {} parameters and {} gradients came", size_,
                        parameters.size(), gradients.size()));
    if (!is_factor(rate))
        throw InvalidArgument(fmt::format("the rate of update {} must be >= 0, not {}", updates_, rate));
    if (momentum && !(*momentum >= 0.0 && *momentum < 1.0))
        throw InvalidArgument(
            fmt::format("the momentum of update {} must lie in [0, 1), not at {}", updates_, *momentum));
    if (momentum && !spec_.has_momentum())
        throw InvalidArgument(
            fmt::format("update {} was given the momentum {}, but {} has none; give it one, or none here", updates_,
                        *momentum, spec_.name()));
    ++updates_;
    std::visit(
        [&](auto rule) {
            if (momentum) *momentum_of(rule) = *momentum;
            for (const Part& part : parts_)
                update(rule, part, rate * part.rate_factor, parameters.data() + part.offset,
                       gradients.data() + part.offset);
        },
        spec_.rule);
}

template <class Real>
void Optimizer<Real>::update(const SgdSpec& rule, const Part& part, double rate, Real* p, const Real* gradients) {
    const Real eta = static_cast<Real>(rate), lambda = static_cast<Real>(part.weight_decay);
    const Real mu = static_cast<Real>(rule.momentum);
    const bool first = updates_ == 1;
    const Real fresh = first ? Real{1} : static_cast<Real>(1.0 - rule.dampening);
    const Real kept = first ? Real{0} : mu;
    Real* m = moments_.empty() ? nullptr : moment(0, part);
    for (Index i = 0; i < part.size; ++i) {
        const Real g = gradients[i] + lambda * p[i];
        Real d = g;
        if (m) {
            m[i] = kept * m[i] + fresh * g;
            d = rule.nesterov ? g + mu * m[i] : m[i];
        }
        p[i] -= eta * d;
    }
}

template <class Real>
void Optimizer<Real>::update(const RmspropSpec& rule, const Part& part, double rate, Real* p, const Real* gradients) {
    const Real eta = static_cast<Real>(rate), lambda = static_cast<Real>(part.weight_decay);
    const Real alpha = static_cast<Real>(rule.alpha), fresh = static_cast<Real>(1.0 - rule.alpha);
    const Real epsilon = static_cast<Real>(rule.epsilon), mu = static_cast<Real>(rule.momentum);
    Real* v = moment(0, part);
    Real* a = rule.centered ? moment(1, part) : nullptr;
    const std::size_t last = rule.centered ? 2 : 1;
    Real* m = moments_.size() > last ? moment(last, part) : nullptr;
    for (Index i = 0; i < part.size; ++i) {
        const Real g = gradients[i] + lambda * p[i];
        v[i] = alpha * v[i] + fresh * g * g;
        Real spread = v[i];
        if (a) {
            a[i] = alpha * a[i] + fresh * g;
            spread = std::max(Real{0}, v[i] - a[i] * a[i]);
        }
        Real d = g / (std::sqrt(spread) + epsilon);
        if (m) d = m[i] = mu * m[i] + d;
        p[i] -= eta * d;
    }
}

template <class Real>
void Optimizer<Real>::update(const AdagradSpec& rule, const Part& part, double rate, Real* p, const Real* gradients) {
    const Real eta = static_cast<Real>(rate / (1.0 + static_cast<double>(updates_ - 1) * rule.rate_decay));
    const Real lambda = static_cast<Real>(part.weight_decay), epsilon = static_cast<Real>(rule.epsilon);
    Real* sum = moment(0, part);
    for (Index i = 0; i < part.size; ++i) {
        const Real g = gradients[i] + lambda * p[i];
        sum[i] += g * g;
        p[i] -= eta * (g / (std::sqrt(sum[i]) + epsilon));
    }
}

template <class Real>
void Optimizer<Real>::update(const LambSpec& rule, const Part& part, double rate, Real* p, const Real* gradients) {
    const double t = static_cast<double>(updates_);
    const Real unbias = static_cast<Real>(1.0 / (1.0 - std::pow(rule.beta1, t)));
    const Real root = static_cast<Real>(std::sqrt(1.0 - std::pow(rule.beta2, t)));
    const Real beta1 = static_cast<Real>(rule.beta1), beta2 = static_cast<Real>(rule.beta2);
    const Real fresh1 = static_cast<Real>(1.0 - rule.beta1), fresh2 = static_cast<Real>(1.0 - rule.beta2);
    const Real epsilon = static_cast<Real>(rule.epsilon), lambda = static_cast<Real>(part.weight_decay);
    Real* m = moment(0, part);
    Real* v = moment(1, part);
    const auto u = [&](Index i) { return unbias * m[i] / (std::sqrt(v[i]) / root + epsilon) + lambda * p[i]; };
    double of_p = 0.0, of_u = 0.0;  // squares of the norms
    for (Index i = 0; i < part.size; ++i) {
        const Real g = gradients[i];
        m[i] = beta1 * m[i] + fresh1 * g;
        v[i] = beta2 * v[i] + fresh2 * g * g;
        const double x = static_cast<double>(p[i]), y = static_cast<double>(u(i));
        of_p += x * x;
        of_u += y * y;
    }
    const double ratio = of_p > 0.0 && of_u > 0.0 ? std::sqrt(of_p) / std::sqrt(of_u) : 1.0;
    const Real eta = static_cast<Real>(rate * ratio);
    for (Index i = 0; i < part.size; ++i) p[i] -= eta * u(i);
}

template <class Real>
template <class Adam>
void Optimizer<Real>::update(const Adam& rule, const Part& part, double rate, Real* p, const Real* gradients) {
    constexpr bool decoupled = std::is_same_v<Adam, AdamWSpec>;
    const double t = static_cast<double>(updates_);
    const Real eta = static_cast<Real>(rate / (1.0 - std::pow(rule.beta1, t)));
    const Real root = static_cast<Real>(std::sqrt(1.0 - std::pow(rule.beta2, t)));
    const Real beta1 = static_cast<Real>(rule.beta1), beta2 = static_cast<Real>(rule.beta2);
    const Real fresh1 = static_cast<Real>(1.0 - rule.beta1), fresh2 = static_cast<Real>(1.0 - rule.beta2);
    const Real epsilon = static_cast<Real>(rule.epsilon);
    const Real lambda = decoupled ? Real{0} : static_cast<Real>(part.weight_decay);
    const Real shrink = decoupled ? static_cast<Real>(1.0 - rate * part.weight_decay) : Real{1};
    Real* m = moment(0, part);
    Real* v = moment(1, part);
    Real* most = rule.amsgrad ? moment(2, part) : nullptr;
    for (Index i = 0; i < part.size; ++i) {
        const Real g = gradients[i] + lambda * p[i];
        m[i] = beta1 * m[i] + fresh1 * g;
        v[i] = beta2 * v[i] + fresh2 * g * g;
        if (most) most[i] = std::max(most[i], v[i]);
        p[i] = shrink * p[i] - eta * m[i] / (std::sqrt(most ? most[i] : v[i]) / root + epsilon);
    }
}

template <class Real>
std::vector<Moment<Real>> Optimizer<Real>::moments() {
    return named<Moment<Real>>(spec_, moments_);
}

template <class Real>
std::vector<Moment<const Real>> Optimizer<Real>::moments() const {
    return named<Moment<const Real>>(spec_, moments_);
}

template <class Real>
void Optimizer<Real>::reset() noexcept {
    for (Buffer<Real>& m : moments_) m.fill(static_cast<Real>(start_of(spec_)));
    updates_ = 0;
}

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace backsweep
