// SPDX-License-Identifier: MIT
#include "backsweep/schedule/complete.hpp"

#include "backsweep/base/error.hpp"
#include "schedule/binomial.hpp"
#include "schedule/binomial_sweep.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace backsweep {
namespace {

constexpr Index longest_chain = Index{1} << 62;

[[noreturn]] void refuse(const std::string& text) {
    throw InvalidArgument("complete: " + text);
}

bool in_ram(const Stored& state) {
    return state.slot.tier == Tier::ram;
}

void check(std::span<const Stored> stored, Index slots, Index steps) {
    if (steps < 0 || steps > longest_chain) {
        refuse("steps must lie in 0 ... 2^62, came " + std::to_string(steps) + "; give the number of links");
    }
    std::unordered_set<std::int64_t> places;
    bool start = false;
    for (const Stored& state : stored) {
        const std::string name = "x_" + std::to_string(state.step) + " in " + to_string(state.slot);
        if (state.step < 0 || state.step > steps) refuse(name + " lies outside the chain of " + std::to_string(steps));
        if (state.slot.index < 0) refuse(name + ": give the slot that holds it");
        if (!places.insert((static_cast<std::int64_t>(state.slot.tier) << 32) | state.slot.index).second) {
            refuse(name + ": the slot is named twice; a slot holds one state");
        }
        start = start || state.step == 0;
    }
    if (!start) refuse("x_0 is not among the stored states; links before the first state cannot be run again");
    const Index used = std::count_if(stored.begin(), stored.end(), in_ram);
    if (slots < used || slots < 0) {
        refuse(std::to_string(used) + " states lie in RAM but slots is " + std::to_string(slots) +
               "; give all RAM slots, used and free");
    }
}

/// What becomes of the states.
struct Plan {
    std::vector<BinomialSweep::Kept> kept;
    Wide advances = 0;
    Index priced = 0;  // segments whose advances were asked for
};

/// The plan that keeps every state, in strictly rising order of steps.
Plan keep_all(const std::vector<Stored>& states, Index slots, Index steps) {
    Plan plan;
    Index room = slots;
    for (std::size_t i = 0; i < states.size(); ++i) {
        const bool ram = in_ram(states[i]);
        const Index end = i + 1 < states.size() ? states[i + 1].step : steps;
        plan.kept.push_back({states[i], false});
        plan.advances += optimum(end - states[i].step, room + (ram ? 0 : 1)).advances;
        ++plan.priced;
        room -= ram ? 1 : 0;
    }
    return plan;
}

/// The best plan that holds at most one launch between two kept states; states in rising order of steps, all below the
/// end of the chain.
/// With u kept states in RAM below it, the segment from a kept state up to the next one is reversed with slots - u
/// slots, its own one included; a state on another tier brings a slot of its own. A RAM state inside the segment may be
/// held as a launch: the segment's first advance begins there, not at its foot, and saves the links between the two.
/// best[i][u] is the least number of advances that reverse everything above states[i], kept with u below it.
Plan choose(const std::vector<Stored>& states, Index slots, Index steps) {
    Plan plan;
    const std::size_t none = states.size();
    struct Choice {
        Wide advances;
        std::size_t next;
        std::size_t launch;
    };
    std::vector<std::size_t> ram_below(none + 1, 0);
    std::vector<std::size_t> last_ram(none + 1, none);  // the highest RAM state below i
    for (std::size_t i = 0; i < none; ++i) {
        ram_below[i + 1] = ram_below[i] + (in_ram(states[i]) ? 1 : 0);
        last_ram[i + 1] = in_ram(states[i]) ? i : last_ram[i];
    }

    std::vector<std::vector<Choice>> best(none);
    for (std::size_t i = none; i-- > 0;) {
        const Index foot = states[i].step;
        for (std::size_t below = 0; below <= ram_below[i]; ++below) {
            const Index room = slots - static_cast<Index>(below) + (in_ram(states[i]) ? 0 : 1);
            const std::size_t above = below + (in_ram(states[i]) ? 1 : 0);
            Choice choice{~Wide{0}, none, none};
            const auto offer = [&](Wide advances, std::size_t next, std::size_t launch) {
                const std::size_t held = above + (launch == none ? 0 : 1);
                if (next != none) advances += best[next][held].advances;
                if (advances < choice.advances) choice = {advances, next, launch};
            };
            for (std::size_t j = i + 1; j <= none; ++j) {
                const Index links = (j == none ? steps : states[j].step) - foot;
                if (links == 0) continue;
                const Optimum segment = optimum(links, room);
                ++plan.priced;
                offer(segment.advances, j, none);
                if (room < 2 || segment.longest < 2) continue;
                const auto reached = std::partition_point(
                    states.begin() + static_cast<std::ptrdiff_t>(i), states.begin() + static_cast<std::ptrdiff_t>(j),
                    [&](const Stored& state) { return state.step < foot + segment.longest; });
                const std::size_t launch = last_ram[static_cast<std::size_t>(reached - states.begin())];
                if (launch == none || states[launch].step <= foot) continue;
                offer(segment.advances - static_cast<Wide>(states[launch].step - foot), j, launch);
            }
            best[i].push_back(choice);
        }
    }

    std::size_t i = 0;
    for (std::size_t k = 1; k < none && states[k].step == 0; ++k) {
        if (best[k][0].advances < best[i][0].advances) i = k;
    }
    plan.advances = best[i][0].advances;
    std::size_t below = 0;
    const auto keep = [&](std::size_t k, bool launch) {
        plan.kept.push_back({states[k], launch});
        below += in_ram(states[k]) ? 1 : 0;
    };
    while (i != none) {
        const Choice choice = best[i][below];
        keep(i, false);
        if (choice.launch != none) keep(choice.launch, true);
        i = choice.next;
    }
    return plan;
}

/// The best plan without launches that keeps at most `most_kept` RAM states.
///
/// A state on another tier is always kept: t(., s) is superadditive, and a segment that begins there has as much room.
/// Layer u holds, for every state kept with u RAM states kept below it, the least number of advances above it; a RAM
/// state looks into layer u + 1 above it, as far as the next state on another tier, one on another tier into its own
/// layer. t(., s) is convex, so the sums t(p_j - p_i, s) + best_j obey the quadrangle inequality, and the best j rises
/// with i: halving the rows finds a layer of m states in m log2 m steps instead of m^2.
class Layers {
public:
    Layers(std::vector<Stored> states, Index slots, Index steps, std::size_t most_kept)
        : states_(std::move(states)),
          slots_(slots),
          steps_(steps),
          none_(states_.size()),
          rank_(none_ + 1, 0) {
        for (std::size_t i = 0; i < none_; ++i) rank_[i + 1] = rank_[i] + (in_ram(states_[i]) ? 1 : 0);
        most_ = std::min(most_kept, rank_[none_]);
        above_.assign(none_ + 1, unreachable);
        here_.assign(none_ + 1, unreachable);
        above_[none_] = here_[none_] = 0;
        next_.resize((most_ + 1) * none_);
    }

    Plan best() {
        for (std::size_t u = most_ + 1; u-- > 0;) layer(u);
        Plan plan;
        plan.advances = here_[0];
        plan.priced = priced_;
        for (std::size_t i = 0, u = 0; i != none_;) {
            plan.kept.push_back({states_[i], false});
            const std::size_t next = next_[u * none_ + i];
            u += in_ram(states_[i]) ? 1 : 0;
            i = next;
        }
        return plan;
    }

private:
    static constexpr Wide unreachable = Wide{1} << 126;

    Index step(std::size_t i) const { return i == none_ ? steps_ : states_[i].step; }

    /// From the top: a block is a state on another tier, or x_0, with the RAM states up to the next such state.
    void layer(std::size_t u) {
        std::swap(above_, here_);
        room_ = slots_ - static_cast<Index>(u);
        layer_ = next_.data() + u * none_;
        std::size_t end = none_;
        for (std::size_t foot = none_; foot-- > 0;) {
            const bool ram = in_ram(states_[foot]);
            if (ram && foot > 0) continue;
            std::size_t first = ram ? foot : foot + 1;
            while (first < end && rank_[first] < u) ++first;
            if (u < most_) {
                halve(first, end, first + 1, end);
            } else {
                std::fill(here_.begin() + static_cast<std::ptrdiff_t>(first),
                          here_.begin() + static_cast<std::ptrdiff_t>(end), unreachable);
            }
            if (!ram && rank_[foot] >= u) look(foot, foot + 1, end, room_ + 1, here_);
            end = foot;
        }
    }

    /// The best next state of `i` among first ... last.
    void look(std::size_t i, std::size_t first, std::size_t last, Index room, const std::vector<Wide>& best) {
        Wide least = 2 * unreachable;
        for (std::size_t j = first; j <= last; ++j) {
            if (best[j] >= least) continue;
            const Wide advances = optimum(step(j) - step(i), room).advances + best[j];
            ++priced_;
            if (advances >= least) continue;
            least = advances;
            layer_[i] = static_cast<std::uint32_t>(j);
        }
        here_[i] = std::min(least, unreachable);
    }

    /// The rows first ... last - 1, whose next states lie among least ... most.
    void halve(std::size_t first, std::size_t last, std::size_t least, std::size_t most) {
        if (first >= last) return;
        const std::size_t middle = first + (last - first) / 2;
        look(middle, std::max(least, middle + 1), most, room_, above_);
        const std::size_t next = layer_[middle];
        halve(first, middle, least, next);
        halve(middle + 1, last, next, most);
    }

    std::vector<Stored> states_;
    Index slots_;
    Index steps_;
    std::size_t none_;
    std::size_t most_ = 0;
    std::vector<std::size_t> rank_;    // RAM states below
    std::vector<Wide> above_;          // layer u + 1
    std::vector<Wide> here_;           // layer u
    std::vector<std::uint32_t> next_;  // of every layer and state
    Index room_ = 0;
    std::uint32_t* layer_ = nullptr;
    Index priced_ = 0;
};

/// One state of each step: one on another tier if there is one, for it takes no RAM slot.
std::vector<Stored> without_doubles(const std::vector<Stored>& states) {
    std::vector<Stored> unique;
    for (const Stored& state : states) {
        if (unique.empty() || unique.back().step != state.step) {
            unique.push_back(state);
        } else if (in_ram(unique.back())) {
            unique.back() = state;
        }
    }
    return unique;
}

/// Layers that completion_work pays for.
std::size_t layers_of(std::size_t states) {
    const auto m = static_cast<Index>(states);
    const Index a_layer = m * (static_cast<Index>(std::bit_width(states)) + 2);
    return static_cast<std::size_t>(std::max<Index>(completion_work / a_layer - 1, 1));
}

Plan best_plan(const std::vector<Stored>& states, Index slots, Index steps) {
    const std::vector<Stored> unique = without_doubles(states);
    Plan all = keep_all(unique, slots, steps);
    // No reverse from these states is better than a sweep of its own with a slot for each of them: then n + advances,
    // the links run and not taped, would be less than those of the best sweep over a chain one link longer.
    const auto lent = static_cast<Index>(unique.size()) - std::count_if(unique.begin(), unique.end(), in_ram);
    const Wide least = optimum(steps + 1, slots + lent).advances - static_cast<Wide>(steps);
    if (all.advances == least) return all;
    const Index priced = all.priced;
    Plan plan = states.size() <= exact_completion ? choose(states, slots, steps)
                                                  : Layers(unique, slots, steps, layers_of(unique.size())).best();
    plan.priced += priced;
    if (all.advances < plan.advances) {
        all.priced = plan.priced;
        return all;
    }
    return plan;
}

/// RAM slot indices in the order in which a stack above `kept` takes them: those of `kept`, then the free ones in
/// rising order. Beyond the highest index that a kept state has, the k-th slot is simply slot k, and the list ends.
std::vector<std::int32_t> slot_names(const std::vector<BinomialSweep::Kept>& kept, Index slots) {
    std::vector<std::int32_t> names;
    for (const auto& [state, launch] : kept) {
        if (in_ram(state)) names.push_back(state.slot.index);
    }
    const std::unordered_set<std::int32_t> taken(names.begin(), names.end());
    const Index highest = names.empty() ? -1 : *std::max_element(names.begin(), names.end());
    const auto size = static_cast<std::size_t>(std::min(highest + 1, slots));
    for (std::int32_t index = 0; names.size() < size; ++index) {
        if (!taken.contains(index)) names.push_back(index);
    }
    return names;
}

/// Checked and sorted.
struct Problem {
    Index slots;
    std::vector<Stored> candidates;
    std::vector<Stored> dropped;  // x_steps has nothing above it to reverse

    Problem(std::span<const Stored> stored, Index slots_in_all, Index steps) {
        check(stored, slots_in_all, steps);
        // More RAM slots than links and states are never used.
        slots = std::min({slots_in_all, std::max<Index>(steps, static_cast<Index>(stored.size())),
                          Index{std::numeric_limits<std::int32_t>::max() - 1}});
        std::vector<Stored> states(stored.begin(), stored.end());
        std::stable_sort(states.begin(), states.end(),
                         [](const Stored& a, const Stored& b) { return a.step < b.step; });
        for (const Stored& state : states) (state.step < steps ? candidates : dropped).push_back(state);
    }
};

}  // namespace

std::unique_ptr<Schedule> complete(std::span<const Stored> stored, Index slots, Index steps) {
    Problem problem(stored, slots, steps);
    std::vector<BinomialSweep::Kept> kept;
    if (!problem.candidates.empty()) kept = best_plan(problem.candidates, problem.slots, steps).kept;
    for (auto next = kept.begin(); const Stored& state : problem.candidates) {
        if (next != kept.end() && next->state.slot == state.slot) {
            ++next;
        } else {
            problem.dropped.push_back(state);
        }
    }
    std::vector<std::int32_t> names = slot_names(kept, problem.slots);
    return std::make_unique<BinomialSweep>(steps, problem.slots, std::move(kept), std::move(problem.dropped),
                                           std::move(names));
}

Completion completion(std::span<const Stored> stored, Index slots, Index steps) {
    const Problem problem(stored, slots, steps);
    if (problem.candidates.empty()) return {};
    const Plan plan = best_plan(problem.candidates, problem.slots, steps);
    if (plan.advances > static_cast<Wide>(std::numeric_limits<Index>::max())) {
        refuse("the advances of " + std::to_string(steps) + " steps with " + std::to_string(slots) +
               " slots pass 2^63 - 1; give more slots");
    }
    return {static_cast<Index>(plan.advances), plan.priced};
}

}  // namespace backsweep
