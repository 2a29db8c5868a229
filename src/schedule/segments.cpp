// SPDX-License-Identifier: MIT
#include "backsweep/schedule/segments.hpp"

#include "backsweep/base/error.hpp"
#include "schedule/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace backsweep {
namespace {

constexpr Index most_levels = 64;

[[noreturn]] void refuse(const std::string& text) {
    throw InvalidArgument("segments: " + text);
}

Index sum(Index a, Index b) {
    Index result = 0;
    if (__builtin_add_overflow(a, b, &result)) refuse("a sum passes 2^63 - 1; give sizes in a larger unit");
    return result;
}
Index product(Index a, Index b) {
    Index result = 0;
    if (__builtin_mul_overflow(a, b, &result)) refuse("a product passes 2^63 - 1; give sizes in a larger unit");
    return result;
}

void check_sizes(Index state, Index tape) {
    if (state >= 0 && tape >= 0) return;
    refuse("sizes must be 0 or more, came " + std::to_string(state) + " for a state and " + std::to_string(tape) +
           " for a tape; give them in any one unit");
}

void check(const SegmentsOptions& options) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
}

Cut outermost(const SegmentsOptions& options) {
    return options.length > 0 ? Cut::every(options.length, options.steps) : Cut::into(options.segments, options.steps);
}

/// The cut of a range of `links` in a level.
Cut cut_of(const SegmentsOptions& options, std::size_t level, Index links) {
    return level == 0 ? outermost(options) : Cut::into(options.segments, links);
}

std::vector<std::map<Index, Index>> levels_of(const SegmentsOptions& options) {
    return ranges_by_length(options.steps, outermost(options), options.levels - 1, options.segments);
}

BlockSlots slots_of(const SegmentsOptions& options) {
    return Blocks::slots(options.steps, outermost(options), options.levels - 1, options.segments, options.needs_state);
}

/// (k - 1) states and the tapes of the last of k segments.
Index peak_of(Index steps, Index k, Index state, Index tape) {
    return sum(product(k - 1, state), product(steps - (k - 1) * (steps / k), tape));
}

void check_chain(std::span<const Index> states, std::span<const Index> tapes) {
    if (states.size() != tapes.size()) {
        refuse("came sizes of " + std::to_string(states.size()) + " states and " + std::to_string(tapes.size()) +
               " tapes; give one of each for every link");
    }
    Index total = 0;
    for (std::size_t i = 0; i < states.size(); ++i) {
        check_sizes(states[i], tapes[i]);
        total = sum(total, sum(states[i], tapes[i]));
    }
}

}  // namespace

std::string SegmentsOptions::problem() const {
    if (steps < 0) {
        return "segments: steps must be 0 or more, came " + std::to_string(steps) +
               "; give the number of links of the chain";
    }
    if ((segments > 0) == (length > 0) || segments < 0 || length < 0) {
        return "segments: exactly one of segments and length must be 1 or more, came " + std::to_string(segments) +
               " and " + std::to_string(length) + "; give the number of segments, or the links in each";
    }
    if (levels < 1 || levels > most_levels) {
        return "segments: levels must lie in 1 ... " + std::to_string(most_levels) + ", came " +
               std::to_string(levels) + "; 1 is one level of segments";
    }
    if (length > 0 && levels > 1) {
        return "segments: levels = " + std::to_string(levels) +
               " wants the number of segments that every segment is cut into; give segments instead of length";
    }
    if (!slots_of(*this).have_numbers()) {
        return "segments: " + std::to_string(steps) + " steps cut like this want more than the 2147483647 slots that " +
               "have numbers; take revolve, more levels, or segments near the square root of the steps";
    }
    return {};
}

Index segments_advances(const SegmentsOptions& options) {
    check(options);
    const auto levels = levels_of(options);
    Index total = 0;
    for (std::size_t level = 0; level + 1 < levels.size(); ++level) {
        for (const auto& [links, times] : levels[level]) {
            const Cut cut = cut_of(options, level, links);
            if (cut.count > 1) total = sum(total, product(times * (cut.count - 1), cut.length));
        }
    }
    return total;
}

Index segments_peak(const SegmentsOptions& options, Index state, Index tape) {
    check(options);
    check_sizes(state, tape);
    if (options.steps == 0) return 0;
    const auto levels = levels_of(options);
    std::map<Index, Index> peaks;  // in a range by its length, its start not kept before
    for (const auto& [links, times] : levels.back()) {
        // The last state of an innermost block is in the working state only.
        peaks[links] = sum(product(links, tape), options.needs_state ? product(links - 1, state) : 0);
    }
    Index at_turn = options.needs_state ? state : 0;  // but that one at the end of the first sweep
    Index last = options.steps;
    for (std::size_t level = levels.size() - 1; level-- > 0;) {
        std::map<Index, Index> above;
        for (const auto& [links, times] : levels[level]) {
            const Cut cut = cut_of(options, level, links);
            Index& peak = above[links];
            peak = sum(product(cut.count - 1, state), peaks[cut.last(links)]);
            if (cut.count > 1) peak = std::max(peak, sum(product(cut.count - 2, state), peaks[cut.length]));
        }
        peaks = std::move(above);
    }
    for (std::size_t level = 0; level + 1 < levels.size(); ++level) {
        const Cut cut = cut_of(options, level, last);
        at_turn = sum(at_turn, product(cut.count - 1, state));
        last = cut.last(last);
    }
    at_turn = sum(at_turn, sum(product(last, tape), options.needs_state ? product(last - 1, state) : 0));
    return std::max(at_turn, peaks[options.steps]);
}

std::unique_ptr<Schedule> segments(const SegmentsOptions& options) {
    check(options);
    return std::make_unique<Blocks>(options.steps, outermost(options), options.levels - 1, options.segments,
                                    options.needs_state);
}

Index best_segments(Index steps, Index state, Index tape) {
    if (steps < 0) refuse("steps must be 0 or more, came " + std::to_string(steps) + "; give the number of links");
    check_sizes(state, tape);
    // While floor(steps / k) stays the same the peak is linear in k: an end of that stretch is best.
    Index best = 1;
    Index least = std::numeric_limits<Index>::max();
    for (Index k = 1; k <= steps;) {
        const Index end = steps / (steps / k);
        for (const Index candidate : {k, end}) {
            const Index peak = peak_of(steps, candidate, state, tape);
            if (peak < least) {
                least = peak;
                best = candidate;
            }
        }
        k = end + 1;
    }
    return best;
}

SegmentStarts budget_segments(std::span<const Index> states, std::span<const Index> tapes, Index budget) {
    check_chain(states, tapes);
    if (budget < 0) refuse("the budget must be 0 or more, came " + std::to_string(budget) + "; give room for tapes");
    SegmentStarts plan{{0}, 0};
    Index kept = 0;     // states of the starts below
    Index segment = 0;  // tapes
    for (std::size_t i = 0; i < tapes.size(); ++i) {
        if (segment > 0 && segment + tapes[i] > budget) {
            kept += states[static_cast<std::size_t>(plan.starts.back())];
            plan.starts.push_back(static_cast<Index>(i));
            segment = 0;
        }
        segment += tapes[i];
        plan.peak = std::max(plan.peak, kept + segment);
    }
    return plan;
}

SegmentStarts search_segments(std::span<const Index> states, std::span<const Index> tapes) {
    check_chain(states, tapes);
    const Index all = std::accumulate(tapes.begin(), tapes.end(), Index{0});
    const double links = std::max(1.0, static_cast<double>(tapes.size()));
    SegmentStarts best =
        budget_segments(states, tapes, static_cast<Index>(static_cast<double>(all) / std::sqrt(links)));
    double kept = 0.0;
    Index largest = 0;
    for (std::size_t s = 0; s < best.starts.size() && !states.empty(); ++s) {
        const auto first = static_cast<std::size_t>(best.starts[s]);
        const std::size_t end =
            s + 1 < best.starts.size() ? static_cast<std::size_t>(best.starts[s + 1]) : tapes.size();
        kept += static_cast<double>(states[first]);
        largest = std::max(largest, std::accumulate(tapes.begin() + static_cast<std::ptrdiff_t>(first),
                                                    tapes.begin() + static_cast<std::ptrdiff_t>(end), Index{0}));
    }
    constexpr int tries = 64;
    const double middle = std::sqrt(kept * static_cast<double>(largest));
    for (int t = 0; t <= tries; ++t) {
        const double budget = middle * std::exp2(static_cast<double>(t) / tries - 0.5);
        SegmentStarts plan = budget_segments(states, tapes, static_cast<Index>(budget));
        if (plan.peak < best.peak) best = std::move(plan);
    }
    return best;
}

std::unique_ptr<Schedule> segments_at(Index steps, std::vector<Index> starts, bool needs_state) {
    if (steps < 0) refuse("steps must be 0 or more, came " + std::to_string(steps) + "; give the number of links");
    if (starts.empty() || starts.front() != 0) refuse("the first segment must begin at link 0; begin `starts` with 0");
    for (std::size_t i = 1; i < starts.size(); ++i) {
        if (starts[i] > starts[i - 1] && starts[i] < steps) continue;
        refuse("starts must rise below " + std::to_string(steps) + ", came " + std::to_string(starts[i]) + " after " +
               std::to_string(starts[i - 1]) + "; give the first link of every segment");
    }
    Cut cut{static_cast<Index>(starts.size()), 0, std::move(starts)};
    if (!Blocks::slots(steps, cut, 0, 1, needs_state).have_numbers()) {
        refuse(std::to_string(steps) + " steps cut like this want more than the 2147483647 slots that have numbers; " +
               "give more segments of equal length");
    }
    return std::make_unique<Blocks>(steps, std::move(cut), 0, 1, needs_state);
}

}  // namespace backsweep
