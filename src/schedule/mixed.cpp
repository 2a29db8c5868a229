// SPDX-License-Identifier: MIT
#include "backsweep/schedule/mixed.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "schedule/clones.hpp"
#include "schedule/split_sweep.hpp"
#include "schedule/tapes_as_states.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace backsweep {
namespace {

// Vectors of the compiler's own kind, so that the loops are as fast under -O2 as under -O3; any address will do.
template <class Cost>
struct Lanes {
    typedef Cost Vector __attribute__((vector_size(32), aligned(sizeof(Cost)), may_alias));
};

/// out[k] = min(out[k], add + in[k]) for k in [0, n).
template <class Cost>
[[gnu::always_inline]] inline void lower_by(Cost* out, const Cost* in, Cost add, Index n) {
    using Vector = typename Lanes<Cost>::Vector;
    constexpr Index lanes = sizeof(Vector) / sizeof(Cost);
    Index k = 0;
    for (; k + lanes <= n; k += lanes) {
        const Vector sum = *reinterpret_cast<const Vector*>(in + k) + add;
        const Vector old = *reinterpret_cast<const Vector*>(out + k);
        *reinterpret_cast<Vector*>(out + k) = sum < old ? sum : old;
    }
    for (; k < n; ++k) out[k] = std::min<Cost>(out[k], in[k] + add);
}
BACKSWEEP_CLONES void lower(std::int32_t* out, const std::int32_t* in, std::int32_t add, Index n) {
    lower_by(out, in, add, n);
}
BACKSWEEP_CLONES void lower(std::int64_t* out, const std::int64_t* in, std::int64_t add, Index n) {
    lower_by(out, in, add, n);
}

constexpr Index longest_chain = Index{1} << 62;
constexpr Index most = std::numeric_limits<Index>::max();

/// Which of the ways to plan serves; they agree where two could.
enum class Way { every_tape, states_only, tapes_only, tables };

/// Units that are of use: no more than keep every tape. MixedRule::mixed keeps x_0 outside of them.
Index useful_units(const MixedOptions& options) {
    Index all = 0;
    if (__builtin_mul_overflow(std::max<Index>(options.steps - 1, 0), options.tape_units, &all)) all = most;
    return std::min(options.units - (options.rule == MixedRule::mixed ? 1 : 0), all);
}

Way way(const MixedOptions& options) {
    if (options.rule == MixedRule::hidden) return Way::states_only;
    if (options.rule == MixedRule::internal) return Way::tapes_only;
    if (options.steps <= 1) return Way::every_tape;
    if (options.rule == MixedRule::mixed) return Way::tables;
    const Index useful = useful_units(options);
    if (useful / options.tape_units == options.steps - 1) return Way::every_tape;
    if (options.tape_units > useful) return Way::states_only;
    return options.tape_units == 1 && options.restart ? Way::tapes_only : Way::tables;
}

/// Least forwards of a segment, by links n and free units f; a live working state is at its start.
///   live(n, f): the start lies nowhere else, so it takes a unit when it is needed again.
///   held(n, f): the start lies in a kept tape, which is there as long as the segment is.
///   live(n, f) = min(min_y y + live(n - y, f - 1) + live(y, f), 1 + behind(n - 1, f - a))
///   held(n, f) = min(min_y y + live(n - y, f) + held(y, f), 1 + behind(n - 1, f - a)), 1 <= y < n
/// with a units a tape, behind = held if tapes give restarts and live if not; 1 link takes 1, and live(n, 0) is out of
/// reach for n >= 2. Without restarts held is not needed.
/// For MixedRule::mixed there is one table, C(n, f + 1) of [Gruslys16]: the start is kept outside of f.
///   C(n, f) = min(min_{1 <= y < n} y + C(y, f) + C(n - y, f - 1), min_{1 <= y <= n} y + C(y - 1, f) + C(n - y, f - a))
/// where the last term is C(0, .) = 0 for y = n whatever f is.
template <class Cost>
class Tables {
public:
    explicit Tables(const MixedOptions& options)
        : n_(options.steps),
          a_(options.tape_units),
          restart_(options.restart),
          kept_starts_(options.rule == MixedRule::mixed),
          units_(useful_units(options)) {
        for (Index f = 0; f <= units_; ++f) {
            if (kept_starts_) {
                gruslys(live_.emplace_back(row()), f);
                continue;
            }
            std::vector<Cost>& live = live_.emplace_back(row());
            live[1] = 1;
            if (f >= a_) keep_tape(live, behind(f - a_));
            if (f >= 1) split(live, live_[index(f - 1)]);
            if (!restart_) continue;
            std::vector<Cost>& held = held_.emplace_back(row());
            held[1] = 1;
            if (f >= a_) keep_tape(held, behind(f - a_));
            split(held, live);
        }
    }

    Index forwards() const { return live_.back()[index(n_)]; }

    /// The splits in the order in which a walk meets them.
    std::vector<Split> splits() const {
        struct Segment {
            Index links;
            Index free;
            bool held;
        };
        std::vector<Split> found;
        std::vector<Segment> below;
        Segment now{n_, units_, false};
        for (;;) {
            if (now.links >= 2) {
                const Split split = kept_starts_ ? best(now.links, now.free) : best(now.links, now.free, now.held);
                found.push_back(split);
                const Index lower = split.links - (split.tape ? 1 : 0);
                if (lower > 0) below.push_back({lower, now.free, now.held});
                const Index taken = split.tape ? a_ : now.held && !kept_starts_ ? 0 : 1;
                now = {now.links - split.links, now.free - taken, split.tape && restart_};
            } else if (below.empty()) {
                return found;
            } else {
                now = below.back();
                below.pop_back();
            }
        }
    }

private:
    static constexpr Cost never = std::numeric_limits<Cost>::max() / 2;
    static std::size_t index(Index i) { return static_cast<std::size_t>(i); }

    std::vector<Cost> row() const {
        std::vector<Cost> row(index(n_) + 1, never);
        row[0] = 0;
        return row;
    }
    const std::vector<Cost>& behind(Index f) const { return (restart_ ? held_ : live_)[index(f)]; }

    /// row[k] = min(row[k], add + upper[k - first]) for k > first.
    static void offer(std::vector<Cost>& row, Index first, Cost add, const Cost* upper) {
        lower(row.data() + first + 1, upper + 1, add, static_cast<Index>(row.size()) - first - 1);
    }

    void keep_tape(std::vector<Cost>& row, const std::vector<Cost>& upper) const {
        for (Index k = 2; k <= n_; ++k)
            row[index(k)] = std::min(row[index(k)], static_cast<Cost>(1 + upper[index(k - 1)]));
    }
    /// Each entry is final when its turn comes: it is offered to the longer ones as their lower part.
    void split(std::vector<Cost>& row, const std::vector<Cost>& upper) const {
        for (Index y = 1; y < n_; ++y) {
            if (row[index(y)] < never) offer(row, y, static_cast<Cost>(y + row[index(y)]), upper.data());
        }
    }
    void gruslys(std::vector<Cost>& row, Index f) const {
        for (Index y = 0; y < n_; ++y) {
            const auto taped = static_cast<Cost>(y + 1 + row[index(y)]);
            row[index(y + 1)] = std::min(row[index(y + 1)], taped);
            if (f >= a_) offer(row, y + 1, taped, live_[index(f - a_)].data());
            if (f >= 1 && y >= 1) offer(row, y, static_cast<Cost>(y + row[index(y)]), live_[index(f - 1)].data());
        }
    }

    Split best(Index links, Index f, bool held) const {
        const std::vector<Cost>& row = (held ? held_ : live_)[index(f)];
        if (f >= a_ && row[index(links)] == 1 + behind(f - a_)[index(links - 1)]) return {1, true};
        const std::vector<Cost>& upper = live_[index(held ? f : f - 1)];
        Index y = 1;
        while (y + upper[index(links - y)] + row[index(y)] != row[index(links)]) ++y;
        return {y, false};
    }
    Split best(Index links, Index f) const {
        const std::vector<Cost>& row = live_[index(f)];
        for (Index y = 1;; ++y) {
            const Index rest = row[index(links)] - y;
            if (f >= 1 && y < links && row[index(y)] + live_[index(f - 1)][index(links - y)] == rest) return {y, false};
            const Index above = y == links ? 0 : f >= a_ ? live_[index(f - a_)][index(links - y)] : never;
            if (row[index(y - 1)] + above == rest) return {y, true};
        }
    }

    Index n_;
    Index a_;
    bool restart_;
    bool kept_starts_;
    Index units_;
    std::vector<std::vector<Cost>> live_;  // [free units][links]; C for MixedRule::mixed
    std::vector<std::vector<Cost>> held_;
};

/// No count passes n (n + 1) / 2, and two of them are never added but with `never`.
constexpr Index longest_narrow_chain = 40000;

template <class Use>
auto with_tables(const MixedOptions& options, const Use& use) {
    return options.steps <= longest_narrow_chain ? use(Tables<std::int32_t>(options))
                                                 : use(Tables<std::int64_t>(options));
}

void check(const MixedOptions& options) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
}

Index added(Index a, Index b) {
    Index sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) {
        throw InvalidArgument("mixed: the forwards pass 2^63 - 1; give more units");
    }
    return sum;
}

}  // namespace

std::string MixedOptions::problem() const {
    if (steps < 0 || steps > longest_chain) {
        return "mixed: steps must lie in 0 ... 2^62, came " + std::to_string(steps) +
               "; give the number of links of the chain";
    }
    if (tape_units < 1) {
        return "mixed: tape_units must be 1 or more (a state takes 1), came " + std::to_string(tape_units) +
               "; give what a tape takes, rounded up";
    }
    if (units < 0 || (units == 0 && (steps > 1 || rule == MixedRule::hidden || rule == MixedRule::internal))) {
        return "mixed: units must be 1 or more for more than one link, came " + std::to_string(units) +
               "; give what kept states and tapes may take together";
    }
    if (rule == MixedRule::internal && tape_units != 1) {
        return "mixed: rule internal counts its budget in tapes, tape_units must be 1, came " +
               std::to_string(tape_units) + "; divide the budget by the size of a tape, or take another rule";
    }
    if ((rule == MixedRule::internal || rule == MixedRule::mixed) && !restart) {
        return "mixed: this rule of Gruslys et al. starts from kept tapes; set restart, or take rule optimal";
    }
    if (rule == MixedRule::maddison && (restart || tape_units != 1)) {
        return "mixed: rule maddison means tape_units = 1 and restart = false; set them, or take rule optimal";
    }
    if (needs_state && rule != MixedRule::hidden) {
        return "mixed: a tape is reversed without a state in the working state, but needs_state asks for one; take "
               "rule hidden, revolve, or a chain whose tapes hold what their reverse needs";
    }
    if (const std::size_t bytes = mixed_table_bytes(*this); bytes > table_limit) {
        return "mixed: the tables of " + std::to_string(steps) + " steps and " + std::to_string(units) +
               " units take " + std::to_string(bytes) + " bytes, table_limit allows " + std::to_string(table_limit) +
               "; allow more, count in coarser units, or take revolve";
    }
    return {};
}

std::size_t mixed_table_bytes(const MixedOptions& options) {
    if (way(options) != Way::tables) return 0;
    const bool narrow = options.steps <= longest_narrow_chain;
    const std::size_t tables = options.restart && options.rule != MixedRule::mixed ? 2 : 1;
    const std::size_t rows = static_cast<std::size_t>(useful_units(options)) + 1;
    std::size_t bytes = tables * (narrow ? sizeof(std::int32_t) : sizeof(std::int64_t));
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(options.steps) + 1, &bytes) ||
        __builtin_mul_overflow(bytes, rows, &bytes)) {
        return std::numeric_limits<std::size_t>::max();
    }
    return bytes;
}

Index mixed_forwards(const MixedOptions& options) {
    check(options);
    switch (way(options)) {
        case Way::every_tape:
            return options.steps;
        case Way::states_only:
            return added(options.steps, revolve_advances(options.steps, options.units));
        case Way::tapes_only: {
            const bool internal = options.rule == MixedRule::internal;
            return added(internal ? 0 : 1, revolve_advances(options.steps + (internal ? 1 : 0), options.units));
        }
        case Way::tables:
            return with_tables(options, [](const auto& tables) { return tables.forwards(); });
    }
    return 0;
}

std::unique_ptr<Schedule> mixed(const MixedOptions& options) {
    check(options);
    switch (way(options)) {
        case Way::every_tape:
            return store_all(options.steps);
        case Way::states_only:
            return revolve(options.steps, options.units, AdvanceRule::fewest_writes, options.needs_state);
        case Way::tapes_only:
            return std::make_unique<TapesAsStates>(options.steps, options.units, options.rule == MixedRule::internal);
        case Way::tables:
            break;
    }
    std::vector<Split> splits = with_tables(options, [](const auto& tables) { return tables.splits(); });
    return std::make_unique<SplitSweep>(options.steps, std::move(splits), options.restart, false, most);
}

}  // namespace backsweep
