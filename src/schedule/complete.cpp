// SPDX-License-Identifier: MIT
#include "backsweep/schedule/complete.hpp"

#include "backsweep/base/error.hpp"
#include "schedule/binomial.hpp"
#include "schedule/binomial_sweep.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_set>
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

/// What becomes of the states, in rising order of steps, all below the end of the chain.
/// With u kept states in RAM below it, the segment from a kept state up to the next one is reversed with slots - u
/// slots, its own one included; a state on another tier brings a slot of its own. A RAM state inside the segment may be
/// held as a launch: the segment's first advance begins there, not at its foot, and saves the links between the two.
/// best[i][u] is the least number of advances that reverse everything above states[i], kept with u below it.
std::vector<BinomialSweep::Kept> choose(const std::vector<Stored>& states, Index slots, Index steps) {
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
    std::vector<BinomialSweep::Kept> kept;
    std::size_t below = 0;
    const auto keep = [&](std::size_t k, bool launch) {
        kept.push_back({states[k], launch});
        below += in_ram(states[k]) ? 1 : 0;
    };
    while (i != none) {
        const Choice choice = best[i][below];
        keep(i, false);
        if (choice.launch != none) keep(choice.launch, true);
        i = choice.next;
    }
    return kept;
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

}  // namespace

std::unique_ptr<Schedule> complete(std::span<const Stored> stored, Index slots, Index steps) {
    check(stored, slots, steps);
    // More RAM slots than links and states are never used.
    slots = std::min({slots, std::max<Index>(steps, static_cast<Index>(stored.size())),
                      Index{std::numeric_limits<std::int32_t>::max() - 1}});

    std::vector<Stored> states(stored.begin(), stored.end());
    std::stable_sort(states.begin(), states.end(), [](const Stored& a, const Stored& b) { return a.step < b.step; });
    // x_steps has nothing above it to reverse.
    std::vector<Stored> candidates;
    std::vector<Stored> dropped;
    for (const Stored& state : states) (state.step < steps ? candidates : dropped).push_back(state);

    std::vector<BinomialSweep::Kept> kept;
    if (!candidates.empty()) kept = choose(candidates, slots, steps);
    for (auto next = kept.begin(); const Stored& state : candidates) {
        if (next != kept.end() && next->state.slot == state.slot) {
            ++next;
        } else {
            dropped.push_back(state);
        }
    }
    std::vector<std::int32_t> names = slot_names(kept, slots);
    return std::make_unique<BinomialSweep>(steps, slots, std::move(kept), std::move(dropped), std::move(names));
}

}  // namespace backsweep
