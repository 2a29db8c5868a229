// SPDX-License-Identifier: MIT
#include "backsweep/train/rate.hpp"

#include "backsweep/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace backsweep {

namespace {

using Law = RateSpec::Law;

double real(Index x) {
    return static_cast<double>(x);
}

/// From a to b as `part` goes from 0 to 1, on half a cosine. [LH17, eq. (5)]
double half_cosine(double a, double b, double part) {
    return b + (a - b) * 0.5 * (1.0 + std::cos(std::numbers::pi * part));
}

/// The value at update u of one that is `start` at update 0, `top` when the rate peaks and `end` at the last of n.
double cycled(const OneCycleSpec& c, Index n, Index u, double start, double top, double end) {
    const double now = std::min(real(u), real(n - 1)), peak = c.rise * real(n) - 1.0, back = 2.0 * peak;
    const auto between = [&](double a, double b, double from, double to) {
        const double part = (now - from) / (to - from);
        return c.linear ? a + (b - a) * part : half_cosine(a, b, part);
    };
    if (now <= peak) return between(start, top, 0.0, peak);
    if (!c.three_phase) return between(top, end, peak, real(n - 1));
    if (now <= back) return between(top, start, peak, back);
    return between(start, end, back, real(n - 1));
}

/// Whether a member has an effect under a law.
bool has_floor(Law law) {
    return law == Law::cosine || law == Law::annealing || law == Law::plateau;
}
bool has_length(Law law) {
    return law == Law::cosine || law == Law::annealing || law == Law::one_cycle;
}
bool has_factor(Law law) {
    return law == Law::step || law == Law::exponential || law == Law::plateau;
}

/// The rate u updates after the warm-up.
double law_at(const RateSpec& r, Index u, const Plateau& state) {
    const Index n = r.length - r.warm_up;
    const double start = r.peak / r.one_cycle.start_divisor;
    switch (r.law) {
        case Law::constant:
            break;
        case Law::cosine:
            return u >= n ? r.floor : half_cosine(r.peak, r.floor, real(u) / real(n));
        case Law::annealing:
            return half_cosine(r.peak, r.floor, real(u) / real(n));
        case Law::step:
            return r.peak * std::pow(r.factor, real(u / r.period));
        case Law::exponential:
            return r.peak * std::pow(r.factor, real(u));
        case Law::one_cycle:
            return cycled(r.one_cycle, n, u, start, r.peak, start / r.one_cycle.end_divisor);
        case Law::plateau:
            return std::max(r.floor, r.peak * state.factor);
    }
    return r.peak;
}

std::string problem_of(const OneCycleSpec& c, Index n) {
    for (const auto& [name, value] :
         {std::pair{"start_divisor", c.start_divisor}, std::pair{"end_divisor", c.end_divisor}})
        if (!(std::isfinite(value) && value >= 1.0)) return fmt::format("{} must be >= 1, not {}", name, value);
    const double peak = c.rise * real(n) - 1.0, rest = real(n - 1) - (c.three_phase ? 2.0 : 1.0) * peak;
    if (!(peak > 0.0 && rest > 0.0))
        return fmt::format(
            "the rate must rise over more than one update and leave some to fall in, but rise = {} of {} "
            "updates{} does not; take a rise such as 0.3 or a longer cycle",
            c.rise, n, c.three_phase ? " in three phases" : "");
    if (!c.cycle_momentum &&
        (c.momentum_low != OneCycleSpec{}.momentum_low || c.momentum_high != OneCycleSpec{}.momentum_high))
        return "momentum_low and momentum_high have no effect without cycle_momentum; leave them out";
    if (!(c.momentum_low >= 0.0 && c.momentum_low <= c.momentum_high && c.momentum_high < 1.0))
        return fmt::format("momentum_low and momentum_high must be in order and lie in [0, 1), not at {} and {}",
                           c.momentum_low, c.momentum_high);
    return {};
}

std::string problem_of(const PlateauSpec& p) {
    if (!(std::isfinite(p.threshold) && p.threshold >= 0.0))
        return fmt::format("threshold must be >= 0, not {}", p.threshold);
    if (p.patience < 0 || p.cooldown < 0)
        return fmt::format("patience and cooldown must be >= 0, not {} and {}", p.patience, p.cooldown);
    return {};
}

}  // namespace

double RateSpec::at(Index update, const Plateau& state) const noexcept {
    if (update >= warm_up) return law_at(*this, update - warm_up, state);
    return law_at(*this, 0, state) * (warm_up_from + (1.0 - warm_up_from) * real(update) / real(warm_up));
}

std::optional<double> RateSpec::momentum_at(Index update) const noexcept {
    if (law != Law::one_cycle || !one_cycle.cycle_momentum) return {};
    const double high = one_cycle.momentum_high;
    return cycled(one_cycle, length - warm_up, std::max<Index>(0, update - warm_up), high, one_cycle.momentum_low,
                  high);
}

Plateau RateSpec::after(double metric, Plateau state) const {
    if (law != Law::plateau)
        throw InvalidArgument(
            "a metric has no effect on this rate: its law is not plateau; take that law, or feed none");
    if (!std::isfinite(metric))
        throw NumericError(
            fmt::format("the metric that the rate depends on must be finite, but number {} is {}; lower the rate",
                        state.seen + 1, metric));
    ++state.seen;
    const double margin = plateau.absolute ? plateau.threshold : plateau.threshold * std::abs(state.best.value_or(0.0));
    if (!state.best || (plateau.rising ? metric > *state.best + margin : metric < *state.best - margin)) {
        state.best = metric;
        state.bad = 0;
    } else {
        ++state.bad;
    }
    if (state.cooldown > 0) {
        --state.cooldown;
        state.bad = 0;
    }
    if (state.bad > plateau.patience) {
        constexpr double least_fall = 1e-8;
        const double before = law_at(*this, 0, state), lower = state.factor * factor;
        if (before - std::max(floor, peak * lower) > least_fall) state.factor = lower;
        state.cooldown = plateau.cooldown;
        state.bad = 0;
    }
    return state;
}

std::string Plateau::problem() const {
    if (seen < 0 || bad < 0 || cooldown < 0 || !(factor > 0.0 && factor <= 1.0) || (best && !std::isfinite(*best)))
        return fmt::format(
            "counts of a plateau must be >= 0, its best finite and its factor in (0, 1], not seen = {}, bad = {}, "
            "cooldown = {}, best = {}, factor = {}",
            seen, bad, cooldown, best.value_or(0.0), factor);
    return {};
}

std::string RateSpec::problem() const {
    if (!(std::isfinite(peak) && peak > 0.0))
        return fmt::format("the peak rate must be positive and finite, not {}", peak);
    if (warm_up < 0) return fmt::format("the updates of warm_up must be >= 0, not {}", warm_up);
    if (!(warm_up_from >= 0.0 && warm_up_from <= 1.0))
        return fmt::format("warm_up_from is a fraction of the peak, from 0 to 1, not {}", warm_up_from);
    const auto idle = [](const char* what, const char* laws) {
        return fmt::format("{} has an effect under the law {} only; take it or leave the value out", what, laws);
    };
    if (floor != 0.0 && !has_floor(law)) return idle("a floor", "cosine, annealing or plateau");
    if (length != 0 && !has_length(law)) return idle("a length", "cosine, annealing or one_cycle");
    if (factor != 1.0 && !has_factor(law)) return idle("a factor", "step, exponential or plateau");
    if (period != 0 && law != Law::step) return idle("a period", "step");
    if (one_cycle != OneCycleSpec{} && law != Law::one_cycle) return idle("a setting of one_cycle", "one_cycle");
    if (plateau != PlateauSpec{} && law != Law::plateau) return idle("a setting of plateau", "plateau");
    if (!(floor >= 0.0 && floor <= peak))
        return fmt::format("the floor must lie between 0 and the peak {}, not at {}", peak, floor);
    if (has_length(law) && length <= warm_up)
        return fmt::format("length counts all updates until the end and must exceed the warm_up of {}, but is {}",
                           warm_up, length);
    if (has_factor(law) && !(std::isfinite(factor) && factor > 0.0 && factor != 1.0))
        return fmt::format("factor must be positive and finite and not 1, which changes nothing, but is {}", factor);
    if (law == Law::step && period < 1)
        return fmt::format("period, the updates between two steps, must be at least 1, not {}", period);
    if (law == Law::one_cycle) return problem_of(one_cycle, length - warm_up);
    if (law == Law::plateau) {
        if (factor > 1.0) return fmt::format("a plateau lowers the rate: its factor must be below 1, not {}", factor);
        return problem_of(plateau);
    }
    return {};
}

}  // namespace backsweep
