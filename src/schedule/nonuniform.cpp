// SPDX-License-Identifier: MIT
#include "backsweep/schedule/nonuniform.hpp"

#include "backsweep/base/error.hpp"
#include "schedule/split_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace backsweep {
namespace {

constexpr Index longest_chain = std::numeric_limits<std::uint16_t>::max();  // splits are stored in 16 bits

std::size_t index(Index i) {
    return static_cast<std::size_t>(i);
}

/// The options in the units of the tables. Segments end at `links` at most; x_links and beyond are never kept.
struct Problem {
    explicit Problem(const NonuniformOptions& options)
        : links(static_cast<Index>(options.costs.size()) + (options.needs_state ? 1 : 0)),
          position(index(links), 0.0) {
        for (std::size_t i = 1; i < position.size(); ++i) position[i] = position[i - 1] + options.costs[i - 1];
        sizes = options.sizes;
        sizes.resize(index(links), 1);  // that of the state before `turn` plays no part
        Index unit = 0;
        for (std::size_t i = 0; i < options.costs.size() && !options.sizes.empty(); ++i)
            unit = std::gcd(unit, sizes[i]);
        unit = std::max<Index>(unit, 1);
        for (Index& size : sizes) size = std::max<Index>(size / unit, 1);
        free = options.slots / unit - (links > 0 ? sizes[0] : 0);
        for (Index i = 1; i + 1 < links; ++i) {
            smallest = std::min(smallest, sizes[index(i)]);
            largest = std::max(largest, sizes[index(i)]);
            if (__builtin_add_overflow(all, sizes[index(i)], &all)) all = std::numeric_limits<Index>::max();
        }
        // A state larger than everything free is never kept.
        largest = std::min(largest, free);
    }

    bool keeps_all() const { return free >= all; }
    bool keeps_none() const { return free < smallest; }

    Index links;
    std::vector<double> position;                        // [links] cost from x_0 to x_i
    std::vector<Index> sizes;                            // [links]
    Index free;                                          // beside x_0
    Index smallest = std::numeric_limits<Index>::max();  // of the states that may be kept beside x_0
    Index largest = 0;
    Index all = 0;
};

/// Least cost C(i, j, m) of the advances that reverse links [i, j) while x_i is kept and m units are free:
///   C(i, j, m) = min_{i < k < j} W(i, k) + C(k, j, m - z_k) + C(i, k, m), where x_k must fit unless k = j - 1,
/// with W(i, k) the cost from x_i to x_k and z_k the size of x_k. Layer by layer in m; only the last largest + 1 layers
/// of values are held, and of every layer the least k of each (i, j). x_0 is the start of segments with all units
/// free, and of no others: that layer is one row.
/// For equal sizes k is looked for between those of (i, j - 1) and (i + 1, j), as in [Knuth71]: found, not proven.
class Layers {
public:
    explicit Layers(const Problem& problem)
        : p_(problem),
          n_(problem.links),
          top_(problem.free - problem.smallest),
          window_(std::min(problem.largest, top_) + 1),
          equal_(problem.smallest == *std::max_element(problem.sizes.begin() + 1, problem.sizes.end() - 1)),
          values_(index(window_ * pairs(n_))),
          choices_(index(top_ * pairs(n_))),
          top_values_(index(n_) + 1),
          top_choices_(index(n_) + 1) {
        for (Index m = 0; m <= top_; ++m) {
            for (Index i = n_ - 1; i >= 1; --i) {
                double* const values = row(m, i);
                values[1] = 0.0;
                std::uint16_t* const choices = m > 0 ? choice_row(m, i) : nullptr;
                for (Index j = i + 2; j <= n_; ++j) {
                    if (m == 0) {
                        values[j - i] = cost(i, j - 1) + values[j - 1 - i];
                        continue;
                    }
                    const bool bounded = equal_ && j - i > 2;
                    const Index least = bounded ? choices[j - 1 - i] : 1;
                    const Index greatest = bounded ? choice_row(m, i + 1)[j - i - 1] + 1 : j - 1 - i;
                    const auto [value, k] = best(i, j, m, values, least, greatest);
                    values[j - i] = value;
                    choices[j - i] = static_cast<std::uint16_t>(k);
                }
            }
        }
        for (Index j = 2; j <= n_; ++j) {
            const Index least = equal_ && j > 2 ? top_choices_[index(j - 1)] : 1;
            const auto [value, k] = best(0, j, p_.free, top_values_.data(), least, j - 1);
            top_values_[index(j)] = value;
            top_choices_[index(j)] = k;
        }
    }

    /// k - i for the segment [i, j) with m units free.
    Index choice(Index i, Index j, Index m) const {
        if (i == 0) return top_choices_[index(j)];
        return m > 0 && j - i > 2 ? choice_row(m, i)[j - i] : j - 1 - i;
    }

    static std::size_t bytes(const Problem& p) {
        const auto top = static_cast<std::size_t>(p.free - p.smallest);
        const auto window = std::min(static_cast<std::size_t>(p.largest), top) + 1;
        const auto cells = static_cast<std::size_t>(pairs(p.links));
        std::size_t values = 0;
        std::size_t choices = 0;
        if (__builtin_mul_overflow(window, cells * sizeof(double), &values) ||
            __builtin_mul_overflow(top, cells * sizeof(std::uint16_t), &choices) ||
            __builtin_add_overflow(values, choices, &values)) {
            return std::numeric_limits<std::size_t>::max();
        }
        return values;
    }

private:
    struct Best {
        double value;
        Index k;
    };

    static Index pairs(Index n) { return (n - 1) * n / 2; }
    double cost(Index i, Index k) const { return p_.position[index(k)] - p_.position[index(i)]; }

    /// Rows i = 1 ... n - 1 of lengths n - 1 ... 1; entry j - i.
    Index start(Index i) const { return (i - 1) * n_ - (i - 1) * i / 2 - 1; }
    double* row(Index m, Index i) { return values_.data() + (m % window_) * pairs(n_) + start(i); }
    const double* row(Index m, Index i) const { return values_.data() + (m % window_) * pairs(n_) + start(i); }
    std::uint16_t* choice_row(Index m, Index i) { return choices_.data() + (m - 1) * pairs(n_) + start(i); }
    const std::uint16_t* choice_row(Index m, Index i) const { return choices_.data() + (m - 1) * pairs(n_) + start(i); }

    Best best(Index i, Index j, Index m, const double* lower, Index least, Index greatest) const {
        Best best{std::numeric_limits<double>::infinity(), j - 1 - i};
        for (Index k = least; k <= greatest; ++k) {
            const Index size = p_.sizes[index(i + k)];
            double upper = 0.0;
            if (i + k + 1 < j) {
                if (size > m) continue;
                upper = row(m - size, i + k)[j - i - k];
            }
            const double value = cost(i, i + k) + upper + lower[k];
            if (value < best.value) best = {value, k};
        }
        return best;
    }

    const Problem& p_;
    Index n_;
    Index top_;  // the most units that are free above a kept state beside x_0
    Index window_;
    bool equal_;
    std::vector<double> values_;          // [units modulo window][segment]
    std::vector<std::uint16_t> choices_;  // [units - 1][segment]
    std::vector<double> top_values_;      // [end]
    std::vector<Index> top_choices_;
};

std::vector<Split> splits_of(const Problem& p) {
    std::vector<Split> splits;
    if (p.links < 2) return splits;
    splits.reserve(index(p.links - 1));
    if (p.keeps_all()) return {index(p.links - 1), Split{1, false}};
    if (p.keeps_none()) {
        for (Index k = p.links - 1; k >= 1; --k) splits.push_back({k, false});
        return splits;
    }
    const Layers layers(p);
    struct Segment {
        Index first;
        Index last;
        Index free;
    };
    std::vector<Segment> below;
    Segment now{0, p.links, p.free};
    for (;;) {
        if (now.last - now.first >= 2) {
            const Index links = layers.choice(now.first, now.last, now.free);
            const Index kept = now.first + links;
            splits.push_back({links, false});
            below.push_back({now.first, kept, now.free});
            now = {kept, now.last, now.free - p.sizes[index(kept)]};
        } else if (below.empty()) {
            return splits;
        } else {
            now = below.back();
            below.pop_back();
        }
    }
}

std::vector<Split> plan(const NonuniformOptions& options, double& cost) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
    const Problem p(options);
    std::vector<Split> splits = splits_of(p);
    // Summed along a walk: the starts of the segments below are where it returns to.
    cost = 0.0;
    std::vector<Range> below;
    Range now{0, p.links};
    for (const Split& split : splits) {
        while (now.size() < 2) {
            now = below.back();
            below.pop_back();
        }
        const Index kept = now.first + split.links;
        // With needs_state the first sweep comes to x_n, and records the last link.
        const Index advanced = std::min(kept, static_cast<Index>(options.costs.size()) - 1);
        cost += p.position[index(advanced)] - p.position[index(now.first)];
        below.push_back({now.first, kept});
        now.first = kept;
    }
    if (!std::isfinite(cost)) {
        throw InvalidArgument("nonuniform: the costs add up beyond the range of double; give them in a larger unit");
    }
    return splits;
}

}  // namespace

std::string NonuniformOptions::problem() const {
    const auto links = static_cast<Index>(costs.size());
    if (links >= longest_chain) {
        return "nonuniform: at most " + std::to_string(longest_chain - 1) + " links, came " + std::to_string(links) +
               "; join neighbouring links, or take revolve";
    }
    for (Index i = 0; i < links; ++i) {
        if (std::isfinite(costs[index(i)]) && costs[index(i)] >= 0.0) continue;
        return "nonuniform: the cost of link " + std::to_string(i) + " must be finite and 0 or more, came " +
               std::to_string(costs[index(i)]) + "; measure it again";
    }
    if (!sizes.empty() && sizes.size() != costs.size()) {
        return "nonuniform: sizes has " + std::to_string(sizes.size()) + " entries for " + std::to_string(links) +
               " links; give the size of the state before every link, or none";
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] >= 1) continue;
        return "nonuniform: the size of x_" + std::to_string(i) + " must be 1 or more, came " +
               std::to_string(sizes[i]) + "; give it in units of `slots`";
    }
    const Index first = sizes.empty() ? 1 : sizes.front();
    if (slots < 1 || (links >= (needs_state ? 1 : 2) && slots < first)) {
        return "nonuniform: slots must be " + std::to_string(first) + " or more (x_0 takes that), came " +
               std::to_string(slots) + "; give the memory for states";
    }
    if (const std::size_t bytes = nonuniform_table_bytes(*this); bytes > table_limit) {
        return "nonuniform: the tables of " + std::to_string(links) + " links and " + std::to_string(slots) +
               " slots take " + std::to_string(bytes) + " bytes, table_limit allows " + std::to_string(table_limit) +
               "; allow more, give sizes in coarser units, join neighbouring links, or take revolve";
    }
    return {};
}

std::size_t nonuniform_table_bytes(const NonuniformOptions& options) {
    const Problem p(options);
    return p.links < 2 || p.keeps_all() || p.keeps_none() ? 0 : Layers::bytes(p);
}

double nonuniform_cost(const NonuniformOptions& options) {
    double cost = 0.0;
    plan(options, cost);
    return cost;
}

std::unique_ptr<Schedule> nonuniform(const NonuniformOptions& options) {
    double cost = 0.0;
    std::vector<Split> splits = plan(options, cost);
    return std::make_unique<SplitSweep>(static_cast<Index>(options.costs.size()), std::move(splits), false,
                                        options.needs_state, std::numeric_limits<Index>::max());
}

}  // namespace backsweep
