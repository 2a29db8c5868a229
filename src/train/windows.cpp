// SPDX-License-Identifier: MIT
#include "backsweep/train/windows.hpp"

#include "backsweep/base/random.hpp"

#include <algorithm>
#include <cmath>

namespace backsweep {
namespace {

constexpr std::uint32_t stream = 0xfffffffe;  // parameters and layers count theirs from 0
constexpr int most_links = 24;                // as a power of two: the random numbers of an update lie side by side

/// Chance that a window that has `steps` steps, `chunk` of them in its last link, ends here:
/// 1 - product of (1 - c_t), c_t = (alpha - 1) / ((alpha - 2) mean + t) [TO17], behind its t-th step, t = 1, 2, ...
double chance(const WindowSpec& spec, Index mean, Index steps, Index chunk) {
    const auto m = static_cast<double>(mean);
    double goes_on = 1.0;
    for (Index t = steps - chunk + 1; t <= steps; ++t) {
        const double c =
            spec.tail == 0.0 ? 1.0 / m : (spec.tail - 1.0) / ((spec.tail - 2.0) * m + static_cast<double>(t));
        goes_on *= 1.0 - c;
    }
    return 1.0 - goes_on;
}

}  // namespace

Index WindowSpec::most(Index mean) const {
    switch (law) {
        case Law::fixed:
            return mean;
        case Law::normal:
            return longest > 0 ? longest : mean + static_cast<Index>(std::ceil(6.0 * deviation));
        case Law::artbp:
            break;
    }
    return longest > 0 ? longest : 64 * mean;
}

std::string WindowSpec::problem() const {
    if (longest < 0)
        return "windows: longest must be 0 steps (the law's own) or more, but is " + std::to_string(longest);
    if (!(deviation >= 0.0) || deviation > 1e9)
        return "windows: deviation must be 0 steps or more, but is " + std::to_string(deviation);
    if (!(half >= 0.0 && half <= 1.0))
        return "windows: half must be a chance in [0, 1], but is " + std::to_string(half);
    if (shortest < 1) return "windows: shortest must be 1 step or more, but is " + std::to_string(shortest);
    if (tail != 0.0 && !(tail > 3.0 && tail < 1e6))
        return "windows: tail must be above 3, or the variance of the gradient is infinite, or 0 for a constant "
               "chance; "
               "it is " +
               std::to_string(tail);
    return {};
}

std::string WindowSpec::problem(Index mean, Index chunk) const {
    if (std::string why = problem(); !why.empty() || law == Law::fixed) return why;
    if (longest > 0 && longest < mean)
        return "windows: longest must be at least the mean of " + std::to_string(mean) + " steps, but is " +
               std::to_string(longest);
    if (law == Law::normal) {
        if (shortest <= mean) return {};
        return "windows: shortest must be at most the mean of " + std::to_string(mean) + " steps, but is " +
               std::to_string(shortest);
    }
    if (chunk >= mean)
        return "windows: artbp cuts between links, so a link of chunk = " + std::to_string(chunk) +
               " steps must be shorter than the mean of " + std::to_string(mean) + "; take a smaller chunk";
    if (most(mean) / chunk >> most_links > 0)
        return "windows: artbp wants windows below 2^24 links, but longest is " + std::to_string(most(mean)) +
               " steps with chunk = " + std::to_string(chunk) + "; take larger chunks";
    return {};
}

WindowCut cut_window(const WindowSpec& spec, Index mean, Index chunk, Index left, std::uint64_t seed, Index update) {
    const Random random(seed, stream);
    const auto u = static_cast<std::uint64_t>(update);
    const Index most = std::min(left, spec.most(mean));
    WindowCut cut;
    switch (spec.law) {
        case WindowSpec::Law::fixed:
            cut.steps = most;
            return cut;
        case WindowSpec::Law::normal: {
            const double m = static_cast<double>(mean) * (random.uniform(0, 2 * u) < spec.half ? 0.5 : 1.0);
            const double drawn = std::round(m + spec.deviation * random.normal(1, u));
            const auto bound = static_cast<double>(spec.most(mean));
            cut.steps = std::min(left, std::max(spec.shortest, static_cast<Index>(std::min(drawn, bound))));
            return cut;
        }
        case WindowSpec::Law::artbp:
            break;
    }
    for (;;) {
        cut.steps += std::min(chunk, most - cut.steps);
        if (cut.steps == most) return cut;
        const double c = chance(spec, mean, cut.steps, chunk);
        if (random.uniform(2, u << most_links | (cut.factors.size() + 1)) < c) return cut;
        cut.factors.push_back(1.0 / (1.0 - c));
    }
}

}  // namespace backsweep
