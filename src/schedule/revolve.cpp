// SPDX-License-Identifier: MIT
#include "backsweep/schedule/revolve.hpp"

#include "backsweep/base/error.hpp"
#include "schedule/binomial_sweep.hpp"
#include "schedule/split_sweep.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace backsweep {
namespace {

constexpr Index longest_chain = Index{1} << 62;

std::size_t index(Index i) {
    return static_cast<std::size_t>(i);
}

Index links_of(const RevolveOptions& options) {
    return options.steps + (options.needs_state ? 1 : 0);
}

/// Slots that can be used, that of x_0 included.
Index useful_slots(const RevolveOptions& options) {
    const Index enough = std::max<Index>(links_of(options) - 1, 1);
    if (options.slots >= enough) return enough;
    return std::max<Index>(options.slots + (options.first == FirstState::external ? 1 : 0), 1);
}

void check(const RevolveOptions& options) {
    if (const std::string problem = options.problem(); !problem.empty()) throw InvalidArgument(problem);
}

/// Least disk accesses D_d(n) of reversing n links above a start kept at depth d, over all optimal first advances:
///   D_d(n) = min_j [n - j >= 2] (on_disk(d + 1) + D_{d+1}(n - j)) + on_disk(d) + D_d(j)
/// A part of one link keeps nothing and reads nothing.
class DiskAccesses {
public:
    explicit DiskAccesses(const RevolveOptions& options)
        : links_(links_of(options)),
          slots_(useful_slots(options)),
          choices_(index(slots_ * (links_ + 1))) {
        std::vector<Index> deeper;
        for (Index depth = slots_ - 1; depth >= 0; --depth) {
            const Index read = depth >= options.ram ? 1 : 0;
            const Index write = depth + 1 >= options.ram ? 1 : 0;
            std::vector<Index> least(index(links_ + 1), 0);
            for (Index n = 2; n <= links_; ++n) {
                const AdvanceInterval optimal = first_advance_interval(n, slots_ - depth);
                Index best = std::numeric_limits<Index>::max();
                for (Index j = optimal.shortest; j <= optimal.longest; ++j) {
                    const Index above = n - j >= 2 ? write + deeper[index(n - j)] : 0;
                    const Index accesses = above + read + least[index(j)];
                    if (accesses >= best) continue;
                    best = accesses;
                    choices_[index(depth * (links_ + 1) + n)] = static_cast<std::uint32_t>(j);
                }
                least[index(n)] = best;
            }
            deeper = std::move(least);
        }
        accesses_ = links_ >= 2 ? deeper[index(links_)] + (options.ram == 0 ? 1 : 0) : 0;
    }

    Index accesses() const { return accesses_; }

    std::vector<Split> splits() const {
        struct Segment {
            Index links;
            Index depth;
        };
        std::vector<Split> splits;
        std::vector<Segment> below;
        Segment now{links_, 0};
        for (;;) {
            if (now.links >= 2) {
                const Index j = choices_[index(now.depth * (links_ + 1) + now.links)];
                splits.push_back({j, false});
                below.push_back({j, now.depth});
                now = {now.links - j, now.depth + 1};
            } else if (below.empty()) {
                return splits;
            } else {
                now = below.back();
                below.pop_back();
            }
        }
    }

private:
    Index links_;
    Index slots_;
    std::vector<std::uint32_t> choices_;  // [depth][links]
    Index accesses_;
};

}  // namespace

std::string RevolveOptions::problem() const {
    if (steps < 0 || steps > longest_chain) {
        return "revolve: steps must lie in 0 ... 2^62, came " + std::to_string(steps) +
               "; give the number of links of the chain";
    }
    if (first == FirstState::in_slot && slots < 1) {
        return "revolve: slots must be 1 or more (x_0 takes one), came " + std::to_string(slots) +
               "; give the number of states that may be kept";
    }
    if (slots < 0 || (first == FirstState::live && slots < 1 && links_of(*this) > 1)) {
        return "revolve: slots must be " + std::string(first == FirstState::live && slots == 0 ? "1" : "0") +
               " or more, came " + std::to_string(slots) + "; give the number of states that may be kept";
    }
    if (align < 1 || (align != 1 && rule != AdvanceRule::aligned)) {
        return "revolve: align must be 1 or more, and is used by rule aligned only; came " + std::to_string(align);
    }
    if (rule != AdvanceRule::fewest_disk) {
        return ram == -1 ? "" : "revolve: ram is used by rule fewest_disk only, came " + std::to_string(ram);
    }
    if (ram < 0) {
        return "revolve: rule fewest_disk wants ram, the kept states that lie in RAM, 0 or more; came " +
               std::to_string(ram);
    }
    if (const std::size_t bytes = revolve_table_bytes(*this); bytes > table_limit) {
        return "revolve: the tables of rule fewest_disk take " + std::to_string(bytes) + " bytes for " +
               std::to_string(steps) + " steps, table_limit allows " + std::to_string(table_limit) +
               "; allow more, or take rule fewest_writes";
    }
    return {};
}

std::size_t revolve_table_bytes(const RevolveOptions& options) {
    if (options.rule != AdvanceRule::fewest_disk) return 0;
    const std::size_t row = index(links_of(options)) + 1;
    std::size_t bytes = 0;
    if (row > std::numeric_limits<std::uint32_t>::max() ||
        __builtin_mul_overflow(row, sizeof(std::uint32_t) * index(useful_slots(options)), &bytes) ||
        __builtin_add_overflow(bytes, 2 * sizeof(Index) * row, &bytes)) {
        return std::numeric_limits<std::size_t>::max();
    }
    return bytes;
}

Index revolve_advances(const RevolveOptions& options) {
    check(options);
    const Index recorded = options.needs_state && options.steps > 0 ? 1 : 0;  // the last link, in the first sweep
    return revolve_advances(links_of(options), useful_slots(options)) - recorded;
}

Index revolve_disk_accesses(const RevolveOptions& options) {
    check(options);
    if (options.rule != AdvanceRule::fewest_disk) {
        throw InvalidArgument("revolve_disk_accesses: rule must be fewest_disk; the referee counts those of others");
    }
    return DiskAccesses(options).accesses();
}

std::unique_ptr<Schedule> revolve(const RevolveOptions& options) {
    check(options);
    if (options.rule == AdvanceRule::fewest_disk) {
        return std::make_unique<SplitSweep>(options.steps, DiskAccesses(options).splits(), false, options.needs_state,
                                            options.ram);
    }
    return std::make_unique<BinomialSweep>(options.steps, useful_slots(options), options.rule, options.needs_state,
                                           options.align);
}

std::unique_ptr<Schedule> revolve(Index steps, Index slots, AdvanceRule rule, bool needs_state) {
    RevolveOptions options;
    options.steps = steps;
    options.slots = slots;
    options.rule = rule;
    options.needs_state = needs_state;
    return revolve(options);
}

}  // namespace backsweep
