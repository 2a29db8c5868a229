// optimal_chain on random stacks of unequal layers: never worse than a heuristic that fits, monotone in the budget, and
// a budget below the least is refused with the least. All are priced by the referee on the same costs. BACKSWEEP_STACKS
// says how many stacks.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE property_optimal_depth
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/nonuniform.hpp"
#include "backsweep/schedule/optimal_chain.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/segments.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "support/chain_machine.hpp"
#include "support/script.hpp"
#include "support/stacks.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr double tolerance = 1e-9;  // relative: sums in different orders

struct Heuristic {
    std::string name;
    std::int64_t peak = 0;
    double cost = 0.0;
};

/// The heuristics that no other one beats in both bytes and time, by rising bytes and falling time.
class Heuristics {
public:
    explicit Heuristics(const ChainCosts& chain) : chain_(chain), machine_(chain_machine(chain)) {
        const Index n = chain.links();
        add("store_all", store_all(n, true));
        equal_spacing(n);
        greedy_cuts(n);
        binomial(n);
        weighted(n);
        std::sort(all_.begin(), all_.end(), [](const Heuristic& a, const Heuristic& b) {
            return a.peak != b.peak ? a.peak < b.peak : a.cost < b.cost;
        });
        for (const Heuristic& each : all_)
            if (best_.empty() || each.cost < best_.back().cost) best_.push_back(each);
    }

    const std::vector<Heuristic>& best() const { return best_; }

private:
    void add(std::string name, std::unique_ptr<Schedule> schedule) {
        const Play play = referee(*schedule, chain_.links(), {}, machine_);
        all_.push_back({std::move(name), play.peak_total, play.cost});
    }
    void add(const std::vector<Index>& starts, const std::string& name) {
        if (!cuts_.insert(starts).second) return;
        add(name + ", states from tapes", std::make_unique<Script>(segments_on_tapes(chain_.links(), starts)));
        add(name, segments_at(chain_.links(), starts, true));
    }

    /// Every length from every first start, and every number of segments cut as PyTorch's checkpoint_sequential does,
    /// in one and two levels.
    void equal_spacing(Index n) {
        for (Index k = 1; k <= n; ++k) {
            add("periodic " + std::to_string(k), periodic(n, k, true));
            for (Index first = 1; first <= k; ++first)
                add(equal_segments(k, first, n), "every " + std::to_string(k) + " from " + std::to_string(first));
            SegmentsOptions options;
            options.steps = n;
            options.segments = k;
            options.needs_state = true;
            for (options.levels = 1; options.levels <= 2; ++options.levels)
                add(std::to_string(k) + " segments, levels " + std::to_string(options.levels), segments(options));
            std::vector<Index> starts;
            for (Index s = 0; s < k; ++s) starts.push_back(s * (n / k));
            add(starts, std::to_string(k) + " segments");
        }
    }

    /// Segments closed at a sum of tape bytes, for every sum that tapes can have, and Chen's search for the sum.
    void greedy_cuts(Index n) {
        const std::span<const Index> states(chain_.state_bytes.data(), static_cast<std::size_t>(n));
        std::set<Index> budgets{0};
        for (std::size_t i = 0; i < chain_.tape_bytes.size(); ++i) {
            Index sum = 0;
            for (std::size_t j = i; j < chain_.tape_bytes.size(); ++j) budgets.insert(sum += chain_.tape_bytes[j]);
        }
        for (const Index budget : budgets)
            add(budget_segments(states, chain_.tape_bytes, budget).starts, "greedy " + std::to_string(budget));
        add(search_segments(states, chain_.tape_bytes).starts, "greedy search");
    }

    void binomial(Index n) {
        for (const AdvanceRule rule : {AdvanceRule::fewest_writes, AdvanceRule::longest, AdvanceRule::shortest}) {
            for (Index s = 1; s <= n; ++s)
                add("revolve " + std::to_string(s) + " rule " + std::to_string(static_cast<int>(rule)),
                    revolve(n, s, rule, true));
        }
    }

    /// By the times alone, and by times and sizes in a few units.
    void weighted(Index n) {
        NonuniformOptions options;
        options.costs = chain_.forward_time;
        options.needs_state = true;
        for (options.slots = 1; options.slots <= n; ++options.slots)
            add("nonuniform " + std::to_string(options.slots), nonuniform(options));
        const std::int64_t unit =
            std::max<std::int64_t>(*std::max_element(chain_.state_bytes.begin(), chain_.state_bytes.end()) / 8, 1);
        Index all = 0;
        for (Index i = 0; i < n; ++i) {
            options.sizes.push_back(1 + (chain_.state_bytes[static_cast<std::size_t>(i)] - 1) / unit);
            all += options.sizes.back();
        }
        for (const Index part : {1, 2, 4, 8}) {
            options.slots = options.sizes.front() + (all - options.sizes.front()) * part / 8;
            add("nonuniform by sizes " + std::to_string(options.slots), nonuniform(options));
        }
    }

    const ChainCosts& chain_;
    Machine machine_;
    std::set<std::vector<Index>> cuts_;
    std::vector<Heuristic> all_, best_;
};

/// Plans a stack at budgets from the least to the full one and at those of the best heuristics.
class Planned {
public:
    explicit Planned(const ChainCosts& chain) : least(least_chain_budget(chain)), full(full_chain_budget(chain)) {
        options_.chain = chain;
    }

    void plan(std::int64_t budget) {
        options_.budget = budget;
        const std::optional<ChainPlan> plan = plan_optimal_chain(options_);
        BOOST_TEST_REQUIRE(plan.has_value());
        BOOST_CHECK(plan->exact);
        BOOST_CHECK(plan->peak <= budget);
        costs_[budget] = plan->cost;
    }

    void refuse_below_least() {
        options_.budget = least - 1;
        BOOST_CHECK(!plan_optimal_chain(options_));
        BOOST_CHECK_EXCEPTION(optimal_chain(options_), NoPlan, [&](const NoPlan& error) {
            return std::string(error.what()).find("needs a budget of " + std::to_string(least) + " bytes") !=
                   std::string::npos;
        });
    }

    /// By rising budget.
    const std::map<std::int64_t, double>& costs() const { return costs_; }

    const std::int64_t least, full;

private:
    ChainOptions options_;
    std::map<std::int64_t, double> costs_;
};

void judge(std::uint64_t k) {
    const ChainCosts chain = random_stack(k);
    const Heuristics heuristics(chain);
    const std::vector<Heuristic>& best = heuristics.best();
    Planned plans(chain);
    for (int part = 0; part <= 6; ++part) plans.plan(plans.least + (plans.full - plans.least) * part / 6);
    // The hardest budgets are those that a heuristic just fits.
    BOOST_TEST_REQUIRE(best.front().peak >= plans.least, best.front().name << " fits less than the least budget");
    for (std::size_t h = 0; h < best.size(); h += 1 + best.size() / 8) plans.plan(best[h].peak);

    double before = std::numeric_limits<double>::infinity();
    for (const auto& [budget, cost] : plans.costs()) {
        BOOST_CHECK_MESSAGE(cost <= before * (1.0 + tolerance), "the cost rises at a budget of " << budget);
        before = cost;
        const auto fits = [&, limit = budget](const Heuristic& each) { return each.peak <= limit; };
        const auto beyond = std::partition_point(best.begin(), best.end(), fits);
        if (beyond == best.begin()) continue;
        const Heuristic& other = *(beyond - 1);
        BOOST_CHECK_MESSAGE(cost <= other.cost * (1.0 + tolerance), "in " << budget << " bytes the plan takes " << cost
                                                                          << ", " << other.name << ' ' << other.cost);
    }
    plans.refuse_below_least();
}

}  // namespace

BOOST_AUTO_TEST_CASE(never_worse_than_a_heuristic) {
    for (std::uint64_t k = 0; k < BACKSWEEP_STACKS; ++k) {
        BOOST_TEST_CONTEXT("stack " << k) {
            judge(k);
        }
    }
}
