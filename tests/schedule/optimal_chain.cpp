// Heterogeneous chains against an independent search over the states of a machine, laws, coarse units and bad input.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_optimal_chain
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/optimal_chain.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "support/chain_machine.hpp"
#include "support/streams.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr double infeasible = std::numeric_limits<double>::infinity();

bool equal(double a, double b) {
    return a == b || std::abs(a - b) <= 1e-9 * std::abs(b);
}

/// What lies in memory, and the adjoint that is there (links + 1: none yet). Bit i of `states`: x_i on its own; bit i
/// of `tapes`: the tape of link i, which holds x_{i+1} too; bit i of `kept`: x_i may not be dropped before its reverse.
struct Memory {
    unsigned states = 1;
    unsigned tapes = 0;
    unsigned kept = 0;
    Index adjoint = 0;

    auto key() const { return std::tie(states, tapes, kept, adjoint); }
    bool operator<(const Memory& other) const { return key() < other.key(); }
};

/// The least time by Dijkstra's search: any forward run from any state that is there, with or without a tape;
/// `persistent` lets a run drop only the state that it starts from, and only if that was never kept.
double least_time(const ChainCosts& chain, std::int64_t budget, bool persistent) {
    const Index n = chain.links();
    const auto at = [](const auto& list, Index i) { return list[static_cast<std::size_t>(i)]; };
    const auto bytes = [&](const Memory& memory) {
        std::int64_t sum = memory.adjoint <= n ? at(chain.state_bytes, memory.adjoint) : 0;
        for (Index i = 0; i <= n; ++i) sum += (memory.states >> i & 1u) != 0 ? at(chain.state_bytes, i) : 0;
        for (Index i = 0; i < n; ++i) sum += (memory.tapes >> i & 1u) != 0 ? at(chain.tape_bytes, i) : 0;
        return sum;
    };
    std::map<Memory, double> best;
    std::priority_queue<std::pair<double, Memory>, std::vector<std::pair<double, Memory>>, std::greater<>> open;
    const auto reach = [&](const Memory& memory, double time) {
        const auto [place, fresh] = best.try_emplace(memory, time);
        if (!fresh && place->second <= time) return;
        place->second = time;
        open.push({time, memory});
    };
    const Memory start{1, 0, 0, n + 1};
    if (bytes(start) > budget) return infeasible;
    reach(start, 0.0);
    while (!open.empty()) {
        const double time = open.top().first;
        const Memory memory = open.top().second;
        open.pop();
        if (best.at(memory) < time) continue;
        if (memory.adjoint == 0) return time;
        const std::int64_t lying = bytes(memory);
        const auto has = [&](Index i) {
            return (memory.states >> i & 1u) != 0 || (i > 0 && (memory.tapes >> (i - 1) & 1u) != 0);
        };
        if (memory.adjoint == n + 1 && has(n) && lying + at(chain.state_bytes, n) <= budget) {
            Memory next = memory;
            next.adjoint = n;
            next.states &= ~(1u << n);
            reach(next, time);
        }
        for (Index i = 0; i < n && i < memory.adjoint; ++i) {
            if (!has(i)) continue;
            const unsigned own = 1u << i;
            const std::int64_t overhead = at(chain.forward_overhead, i);
            if (lying + at(chain.state_bytes, i + 1) + overhead <= budget) {
                Memory next = memory;
                next.states |= 2u << i;
                const bool droppable = (memory.states & own) != 0 && (memory.kept & own) == 0;
                if (droppable) {
                    Memory dropped = next;
                    dropped.states &= ~own;
                    reach(dropped, time + at(chain.forward_time, i));
                }
                if (persistent) next.kept |= own;
                reach(next, time + at(chain.forward_time, i));
            }
            if ((memory.tapes & own) == 0 && lying + at(chain.tape_bytes, i) + overhead <= budget) {
                Memory next = memory;
                next.tapes |= own;
                if (persistent) next.kept |= own;
                reach(next, time + at(chain.forward_time, i));
            }
        }
        if (memory.adjoint <= n) {
            const Index i = memory.adjoint - 1;
            const unsigned own = 1u << i;
            const std::int64_t working = lying + at(chain.state_bytes, i) + at(chain.backward_overhead, i);
            if (has(i) && (memory.tapes & own) != 0 && working <= budget) {
                Memory next = memory;
                next.adjoint = i;
                next.states &= own - 1u;
                next.tapes &= own - 1u;
                next.kept &= own - 1u;
                reach(next, time + at(chain.backward_time, i));
            }
        }
        if (persistent) continue;
        for (Index i = 0; i <= n; ++i) {
            Memory next = memory;
            next.states &= ~(1u << i);
            if (next.states != memory.states) reach(next, time);
            next = memory;
            next.tapes &= ~(1u << i);
            if (next.tapes != memory.tapes) reach(next, time);
        }
    }
    return infeasible;
}

class Random {
public:
    explicit Random(std::uint64_t seed) : bits_(seed) {}
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(n)); }

private:
    std::mt19937_64 bits_;
};

ChainCosts random_chain(Random& random, Index links, std::int64_t largest, std::int64_t overhead) {
    ChainCosts chain;
    chain.state_bytes.push_back(1 + random.below(largest));
    for (Index i = 0; i < links; ++i) {
        chain.forward_time.push_back(0.25 * static_cast<double>(1 + random.below(36)));
        chain.backward_time.push_back(0.25 * static_cast<double>(random.below(40)));
        chain.state_bytes.push_back(1 + random.below(largest));
        chain.tape_bytes.push_back(chain.state_bytes.back() + random.below(largest + 2));
        chain.forward_overhead.push_back(random.below(3) == 0 ? random.below(overhead + 1) : 0);
        chain.backward_overhead.push_back(random.below(3) == 0 ? random.below(overhead + 1) : 0);
    }
    return chain;
}

ChainCosts uniform_chain(Index links, std::int64_t state = 1, std::int64_t tape = 1) {
    const auto n = static_cast<std::size_t>(links);
    ChainCosts chain;
    chain.forward_time.assign(n, 1.0);
    chain.backward_time.assign(n, 2.0);
    chain.state_bytes.assign(n + 1, state);
    chain.tape_bytes.assign(n, tape);
    return chain;
}

ChainOptions options_of(const ChainCosts& chain, std::int64_t budget, bool second_table = true) {
    ChainOptions options;
    options.chain = chain;
    options.budget = budget;
    options.second_table = second_table;
    return options;
}

/// The plan's cost, having played it: legal, of that cost, within the budget, nothing left; infinite without a plan.
double played(const ChainOptions& options) {
    const std::optional<ChainPlan> plan = plan_optimal_chain(options);
    if (!plan) return infeasible;
    const auto schedule = optimal_chain(*plan);
    const Index n = options.chain.links();
    const Play play = referee(*schedule, n, {}, chain_machine(options.chain));
    BOOST_CHECK(equal(play.cost, plan->cost));
    BOOST_CHECK_EQUAL(play.peak_total, plan->peak);
    BOOST_CHECK(play.peak_total <= options.budget);
    BOOST_CHECK_EQUAL(play.drops, 0);
    BOOST_CHECK(play.actions <= 8 * n + 2);
    BOOST_CHECK(plan->lower_bound <= plan->cost);
    BOOST_CHECK(!plan->exact || plan->lower_bound == plan->cost);
    return plan->cost;
}

/// Every size times `factor`.
ChainCosts scaled(ChainCosts chain, std::int64_t factor) {
    for (auto* sizes : {&chain.state_bytes, &chain.tape_bytes, &chain.forward_overhead, &chain.backward_overhead}) {
        for (std::int64_t& bytes : *sizes) bytes *= factor;
    }
    return chain;
}

}  // namespace

BOOST_AUTO_TEST_CASE(short_chains_against_a_search_of_all_machine_states) {
    Random random(7);
    long points = 0;
    long beyond = 0;
    long missed = 0;
    for (int round = 0; round < 160; ++round) {
        const Index links = 4 - round % 8 / 3;
        const ChainCosts chain = random_chain(random, links, 1 + random.below(6), 4 * random.below(4));
        const std::int64_t full = full_chain_budget(chain);
        for (std::int64_t budget = 0; budget <= full + 1; budget += 1 + full / 12) {
            BOOST_TEST_CONTEXT("round " << round << ", budget " << budget) {
                const double persistent = least_time(chain, budget, true);
                const double exhaustive = least_time(chain, budget, false);
                BOOST_CHECK(equal(played(options_of(chain, budget, false)), persistent));
                const double ours = played(options_of(chain, budget));
                BOOST_CHECK(ours <= persistent || equal(ours, persistent));
                BOOST_CHECK(ours >= exhaustive || equal(ours, exhaustive));
                ++points;
                beyond += exhaustive < persistent && !equal(exhaustive, persistent) ? 1 : 0;
                missed += exhaustive < ours && !equal(exhaustive, ours) ? 1 : 0;
            }
        }
    }
    BOOST_TEST_MESSAGE(points << " points, persistent schedules miss " << beyond << ", ours " << missed);
    BOOST_CHECK(beyond > 0);
    BOOST_CHECK(missed * 10 <= beyond);
}

BOOST_AUTO_TEST_CASE(five_links_against_a_search_of_all_machine_states) {
    Random random(3);
    for (int round = 0; round < 3; ++round) {
        const ChainCosts chain = random_chain(random, 5, 5, 2);
        const std::int64_t full = full_chain_budget(chain);
        for (const std::int64_t budget : {full * 2 / 5, full * 3 / 5, full * 4 / 5}) {
            const double persistent = least_time(chain, budget, true);
            BOOST_CHECK(equal(played(options_of(chain, budget, false)), persistent));
            const double ours = played(options_of(chain, budget));
            BOOST_CHECK(ours <= persistent || equal(ours, persistent));
            const double exhaustive = least_time(chain, budget, false);
            BOOST_CHECK(ours >= exhaustive || equal(ours, exhaustive));
        }
    }
}

BOOST_AUTO_TEST_CASE(breakpoints_say_what_a_table_of_every_unit_says) {
    // The odd factors on two sizes leave no common unit: the second chain is planned by breakpoints, and a byte more or
    // less does not matter to it.
    Random random(11);
    for (const bool second_table : {false, true}) {
        for (const Index links : {1, 2, 3, 8, 21, 33}) {
            const ChainCosts small = random_chain(random, links, 9, 3);
            ChainCosts large = scaled(small, 100000);
            large.tape_bytes.back() += 1;
            const std::int64_t full = full_chain_budget(small);
            const std::int64_t least = least_chain_budget(small, second_table);
            for (std::int64_t budget = least - 1; budget <= full + 1; budget += 1 + (full - least) / 9) {
                BOOST_TEST_CONTEXT(links << " links, budget " << budget << ", second table " << second_table) {
                    const double fine = played(options_of(large, budget * 100000 + 1, second_table));
                    BOOST_CHECK(equal(fine, played(options_of(small, budget, second_table))));
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(more_memory_never_costs_more) {
    Random random(5);
    for (int round = 0; round < 6; ++round) {
        const ChainCosts chain = random_chain(random, 3 + 4 * round, 1000, 700);
        const std::int64_t least = least_chain_budget(chain);
        const std::int64_t full = full_chain_budget(chain);
        BOOST_CHECK(least <= least_chain_budget(chain, false));
        BOOST_CHECK(played(options_of(chain, least - 1)) == infeasible);
        double before = played(options_of(chain, least));
        BOOST_CHECK(before < infeasible);
        for (int part = 1; part <= 12; ++part) {
            const std::int64_t budget = least + (full - least) * part / 12;
            const double now = played(options_of(chain, budget));
            BOOST_CHECK(now <= before * (1.0 + 1e-12));
            BOOST_CHECK(now <= played(options_of(chain, budget, false)) * (1.0 + 1e-12));
            before = now;
        }
        double once = 0.0;
        for (const double time : chain.forward_time) once += time;
        for (const double time : chain.backward_time) once += time;
        BOOST_CHECK(equal(before, once));
        BOOST_CHECK(played(options_of(chain, full - 1)) > once);
    }
}

BOOST_AUTO_TEST_CASE(uniform_chains_over_a_grid) {
    for (Index n = 0; n <= 64; n += n < 12 ? 1 : 13) {
        for (std::int64_t budget = 1; budget <= 16; ++budget) {
            for (const std::int64_t tape : {1, 3}) {
                for (const bool second_table : {false, true}) {
                    BOOST_TEST_CONTEXT(n << " links, budget " << budget << ", tapes of " << tape) {
                        const ChainCosts chain = uniform_chain(n, 1, tape);
                        const double cost = played(options_of(chain, budget, second_table));
                        BOOST_CHECK_EQUAL(cost < infeasible, budget >= least_chain_budget(chain, second_table));
                    }
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(one_tape_at_a_time_makes_it_revolve) {
    // Tapes so large that only one of them is ever there, and equal states: what is left are the slots of revolve. The
    // states of s slots, the live one, both adjoints of a link, and its tape.
    for (const Index n : {1, 2, 3, 7, 20, 41}) {
        for (const Index s : {1, 2, 3, 5, 50}) {
            BOOST_TEST_CONTEXT(n << " links, " << s << " slots") {
                const std::int64_t tape = 1000;
                const ChainCosts chain = uniform_chain(n, 1, tape);
                const double cost = played(options_of(chain, s + 3 + tape, false));
                BOOST_CHECK_EQUAL(cost, static_cast<double>(revolve_advances(n, s) + 3 * n));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(coarse_units_say_what_they_lose) {
    Random random(9);
    ChainCosts chain = random_chain(random, 40, 1000000, 1000);
    const std::int64_t budget = full_chain_budget(chain) * 2 / 5;
    ChainOptions options = options_of(chain, budget);
    const double exact = played(options);
    for (const Index units : {60, 200, 1000}) {
        options.units = units;
        const std::optional<ChainPlan> plan = plan_optimal_chain(options);
        BOOST_TEST_REQUIRE(plan.has_value());
        BOOST_CHECK(!plan->exact);
        BOOST_CHECK(plan->unit > 1);
        BOOST_CHECK(plan->lower_bound <= exact && exact <= plan->cost);
        BOOST_CHECK(plan->loss() > 0.0);
        BOOST_CHECK(equal(played(options), plan->cost));
    }
    // Where the exact tables are too large the units are refined until the loss is proven small.
    options.units = 0;
    options.table_limit = 3 << 20;
    options.loss = 0.02;
    options.second_table = false;
    const double persistent = played(options_of(chain, budget, false));
    const std::optional<ChainPlan> plan = plan_optimal_chain(options);
    BOOST_TEST_REQUIRE(plan.has_value());
    BOOST_CHECK(!plan->exact);
    BOOST_CHECK(plan->table_bytes <= options.table_limit);
    BOOST_CHECK(plan->lower_bound <= persistent && persistent <= plan->cost);
    BOOST_CHECK(plan->loss() <= options.loss);
    options.table_limit = 1000;
    BOOST_CHECK_EXCEPTION(plan_optimal_chain(options), NoPlan, says("table_limit"));
}

BOOST_AUTO_TEST_CASE(units_too_coarse_for_a_tight_budget) {
    Random random(13);
    const ChainCosts chain = random_chain(random, 12, 1000000, 0);
    ChainOptions options = options_of(chain, least_chain_budget(chain));
    BOOST_CHECK(played(options) < infeasible);
    options.units = 3;
    BOOST_CHECK_EXCEPTION(plan_optimal_chain(options), NoPlan, says("3 units find no plan within this budget"));
}

BOOST_AUTO_TEST_CASE(the_stream_is_the_same_pulled_in_any_way) {
    Random random(17);
    for (const Index links : {0, 1, 2, 9, 30}) {
        const ChainCosts chain = random_chain(random, links, 9, 2);
        const auto schedule =
            optimal_chain(options_of(chain, (least_chain_budget(chain) + full_chain_budget(chain)) / 2));
        const std::vector<Action> stream = by_next(*schedule);
        BOOST_CHECK(schedule->next().verb == Verb::done);
        for (const std::size_t block : {1, 7, 8, 64, 1000}) {
            schedule->rewind();
            BOOST_CHECK(by_fill(*schedule, block) == stream);
            Action again;
            BOOST_CHECK_EQUAL(schedule->fill({&again, 1}), 1u);
            BOOST_CHECK(again.verb == Verb::done);
        }
    }
}

BOOST_AUTO_TEST_CASE(no_links_and_sizes_of_nothing) {
    ChainCosts nothing;
    nothing.state_bytes = {5};
    BOOST_CHECK_EQUAL(least_chain_budget(nothing), 10);  // x_0 and its adjoint
    BOOST_CHECK_EQUAL(text_of(by_next(*optimal_chain(options_of(nothing, 10)))), "turn x_0\ndone\n");
    BOOST_CHECK(!plan_optimal_chain(options_of(nothing, 9)));
    BOOST_CHECK_EQUAL(played(options_of(uniform_chain(9, 0, 0), 0)), 27.0);
}

BOOST_AUTO_TEST_CASE(zero_times_make_no_detours) {
    ChainCosts chain = uniform_chain(6, 1, 2);
    chain.forward_time.assign(6, 0.0);
    BOOST_CHECK_EQUAL(
        referee(*optimal_chain(options_of(chain, full_chain_budget(chain))), 6, {}, chain_machine(chain)).recorded, 6);
    BOOST_CHECK_EQUAL(
        referee(*optimal_chain(options_of(chain, full_chain_budget(chain))), 6, {}, chain_machine(chain)).advances, 0);
}

BOOST_AUTO_TEST_CASE(bad_input_is_refused_in_words) {
    constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 2;
    const auto refused = [](const std::function<void(ChainOptions&)>& spoil, const char* words) {
        ChainOptions options = options_of(uniform_chain(4, 8, 24), 200);
        spoil(options);
        BOOST_CHECK_EXCEPTION(plan_optimal_chain(options), InvalidArgument, says(words));
        BOOST_CHECK_EXCEPTION(optimal_chain(options), InvalidArgument, says(words));
    };
    refused([](ChainOptions& o) { o.chain = {}; }, "state_bytes must have 1 entries, has 0");
    refused([](ChainOptions& o) { o.chain.backward_time.pop_back(); }, "backward_time must have 4 entries, has 3");
    refused([](ChainOptions& o) { o.chain.tape_bytes.push_back(1); }, "tape_bytes must have 4 entries, has 5");
    refused([](ChainOptions& o) { o.chain.forward_overhead = {1}; }, "forward_overhead must have 4 entries, has 1");
    refused([](ChainOptions& o) { o.chain.forward_time[2] = -1.0; },
            "forward_time[2] must be a finite number of 0 or more");
    refused([](ChainOptions& o) { o.chain.backward_time[1] = std::nan(""); },
            "backward_time[1] must be a finite number");
    refused([](ChainOptions& o) { o.chain.forward_time[0] = infeasible; }, "forward_time[0] must be a finite number");
    refused([](ChainOptions& o) { o.chain.forward_time.assign(4, 1e308); }, "the times must have a finite sum");
    refused([](ChainOptions& o) { o.chain.state_bytes[3] = -8; },
            "state_bytes[3] must be a finite number of 0 or more, came -8");
    refused([](ChainOptions& o) { o.chain.tape_bytes[0] = 7; }, "tape_bytes[0] must count state_bytes[1] = 8");
    refused([](ChainOptions& o) { o.chain.tape_bytes[0] = huge, o.chain.tape_bytes[1] = huge; }, "within 2^60 bytes");
    refused([](ChainOptions& o) { o.budget = -1; }, "budget must be 0 bytes or more, came -1");
    refused([](ChainOptions& o) { o.units = -5; }, "units must be 0");
    refused([](ChainOptions& o) { o.loss = std::nan(""); }, "loss must be a share of 0 or more");
    BOOST_CHECK_EXCEPTION(least_chain_budget({}), InvalidArgument, says("state_bytes must have 1 entries"));

    ChainOptions options = options_of(uniform_chain(4, 8, 24), 40);
    BOOST_CHECK_EXCEPTION(optimal_chain(options), NoPlan,
                          says("needs a budget of " + std::to_string(least_chain_budget(options.chain)) + " bytes"));
    options.budget = std::numeric_limits<std::int64_t>::max();
    BOOST_CHECK_EQUAL(played(options), 12.0);
    options.chain = scaled(options.chain, std::int64_t{1} << 52);
    BOOST_CHECK_EQUAL(played(options), 12.0);
}
