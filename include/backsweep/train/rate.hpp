// The learning rate as a function of the update: a linear warm-up, then a law as PyTorch computes it: constant, a
// cosine [LH17], in steps, exponential, one cycle [ST17], or lowered on a plateau, which also depends on what was
// measured.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <optional>
#include <string>

namespace backsweep {

/// Law one_cycle: the rate rises from peak / start_divisor to the peak and falls to that start / end_divisor, while the
/// momentum falls from momentum_high to momentum_low and rises again [ST17, Smith18]. The variant: PyTorch's
/// OneCycleLR.
struct OneCycleSpec {
    double rise = 0.3;  ///< part of the updates in which the rate rises
    double start_divisor = 25.0;
    double end_divisor = 1e4;
    bool linear = false;       ///< straight lines, not half cosines
    bool three_phase = false;  ///< falls back to the start as fast as it rose, and to the end in the rest
    bool cycle_momentum = true;
    double momentum_high = 0.95;
    double momentum_low = 0.85;

    bool operator==(const OneCycleSpec&) const = default;
};

/// Law plateau: when more than `patience` metrics in a row were no better than the best one, the rate is multiplied by
/// the factor, and the next `cooldown` metrics count as no worse. Better is lower (or higher, if `rising`) than the
/// best by more than threshold |best|, or by more than the threshold if `absolute`.
struct PlateauSpec {
    bool rising = false;
    double threshold = 1e-4;
    bool absolute = false;
    Index patience = 10;
    Index cooldown = 0;

    bool operator==(const PlateauSpec&) const = default;
};

/// What law plateau depends on besides the update. Part of a run's state: written back, the rates go on as they were.
struct Plateau {
    Index seen = 0;                ///< metrics
    std::optional<double> best{};  ///< of them
    Index bad = 0;                 ///< in a row that were no better
    Index cooldown = 0;            ///< metrics still to be forgiven
    double factor = 1.0;           ///< the rate is so many times the peak

    bool operator==(const Plateau&) const = default;
    /// Empty if valid, else what is wrong.
    std::string problem() const;
};

/// Plain data; at(update) needs nothing else but, under law plateau, its state: so a resumed run has the same rates.
struct RateSpec {
    /// Below, u counts updates from the end of the warm-up, n = length - warm_up.
    enum class Law {
        constant,     ///< peak
        cosine,       ///< from peak to floor, reached at update `length`, then floor
        annealing,    ///< the same, but rising again behind `length`, as PyTorch's CosineAnnealingLR
        step,         ///< peak factor^(u div period)
        exponential,  ///< peak factor^u
        one_cycle,    ///< one_cycle over n updates, then its end
        plateau       ///< peak Plateau::factor, but not below floor
    };

    Law law = Law::constant;
    double peak = 1e-3;
    double floor = 0.0;         ///< cosine, annealing, plateau: the least rate
    Index length = 0;           ///< cosine, annealing, one_cycle: updates until the end, warm-up included
    Index warm_up = 0;          ///< updates over which the rate rises to the law's first one, on a straight line
    double warm_up_from = 0.1;  ///< where it starts, a fraction of that
    double factor = 1.0;        ///< step, exponential, plateau: what the rate is multiplied by
    Index period = 0;           ///< step: updates between multiplications
    OneCycleSpec one_cycle{};
    PlateauSpec plateau{};

    /// The rate of update number `update`, counted from 0. `state` counts under law plateau only.
    double at(Index update, const Plateau& state = {}) const noexcept;
    /// The momentum (of SGD and RMSprop; beta1 of Adam and LAMB) that one_cycle prescribes; empty: the optimizer's own.
    std::optional<double> momentum_at(Index update) const noexcept;
    /// Law plateau: what follows `state` when a metric comes. As in PyTorch, a rate that would fall by 1e-8 or less
    /// stays. Throws InvalidArgument under another law, NumericError for a metric that is not finite.
    Plateau after(double metric, Plateau state) const;
    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

}  // namespace backsweep
