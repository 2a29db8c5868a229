// Closed forms against sums and recurrences, the stream for small chains by hand, and lengths that only 64 bits hold.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_revolve
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "support/streams.hpp"
#include "support/tier_search.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Index most = std::numeric_limits<Index>::max();

}  // namespace

BOOST_AUTO_TEST_CASE(binomials_by_pascals_rule) {
    constexpr Index size = 40;
    for (Index s = 0; s <= size; ++s) {
        BOOST_CHECK_EQUAL(binomial(s, 0), 1);
        BOOST_CHECK_EQUAL(binomial(0, s), 1);
        BOOST_CHECK_EQUAL(binomial(s, -1), 0);
        BOOST_CHECK_EQUAL(binomial(-1, s), 0);
    }
    for (Index s = 1; s <= size; ++s) {
        for (Index r = 1; r <= size; ++r) {
            Index sum = 0;
            if (__builtin_add_overflow(binomial(s - 1, r), binomial(s, r - 1), &sum)) sum = most;
            BOOST_CHECK_EQUAL(binomial(s, r), sum);
        }
    }
    BOOST_CHECK_EQUAL(binomial(1, most - 1), most);
    BOOST_CHECK_EQUAL(binomial(1, most), most);
    BOOST_CHECK_EQUAL(binomial(most, most), most);
    BOOST_CHECK_EQUAL(binomial(2, 3037000498), 4611686016981624750);
}

BOOST_AUTO_TEST_CASE(repetitions_are_the_least_that_suffice) {
    for (const Index s : {1, 2, 3, 4, 5, 17, 100, 100000}) {
        for (const Index n : {Index{1}, Index{2}, Index{3}, Index{1000}, Index{123457}, (Index{1} << 40) + 1,
                              (Index{1} << 62) - 1, Index{1} << 62, most}) {
            BOOST_TEST_CONTEXT(n << " steps, " << s << " slots") {
                const Index r = repetitions(n, s);
                BOOST_CHECK(binomial(s, r) >= n);
                BOOST_CHECK(r == 0 || binomial(s, r - 1) < n);
            }
        }
    }
    BOOST_CHECK_EQUAL(repetitions(0, 4), 0);
}

BOOST_AUTO_TEST_CASE(refusals) {
    BOOST_CHECK_EXCEPTION(repetitions(5, 0), InvalidArgument, says("slots must be 1 or more (x_0 takes one), came 0"));
    BOOST_CHECK_EXCEPTION(repetitions(-5, 1), InvalidArgument, says("steps must be 0 or more, came -5"));
    BOOST_CHECK_EXCEPTION(first_advance_interval(1, 1), InvalidArgument, says("steps must be 2 or more, came 1"));
    BOOST_CHECK_EXCEPTION(revolve_advances(Index{1} << 62, 3), InvalidArgument, says("pass 2^63 - 1; give more slots"));
    BOOST_CHECK_EXCEPTION(least_slots(10, 8), InvalidArgument,
                          says("advances at least 9 links, at most 8 were allowed"));
    BOOST_CHECK_EXCEPTION(revolve(5, 0), InvalidArgument, says("slots must be 1 or more"));
    BOOST_CHECK_EXCEPTION(revolve(-1, 1), InvalidArgument, says("steps must lie in 0 ... 2^62, came -1"));
    BOOST_CHECK_EXCEPTION(revolve((Index{1} << 62) + 1, 9), InvalidArgument, says("steps must lie in 0 ... 2^62"));
    BOOST_CHECK_EXCEPTION(revolve(Index{1} << 62, most), InvalidArgument, says("2147483647 that have numbers"));
}

BOOST_AUTO_TEST_CASE(advances_near_the_end_of_64_bits) {
    BOOST_CHECK_EQUAL(revolve_advances(0, 1), 0);
    BOOST_CHECK_EQUAL(revolve_advances(1, 1), 0);
    BOOST_CHECK_EQUAL(revolve_advances(Index{1} << 62, Index{1} << 62), (Index{1} << 62) - 1);
    BOOST_CHECK_EQUAL(revolve_advances(Index{1} << 32, 1), (Index{1} << 31) * ((Index{1} << 32) - 1));
    BOOST_CHECK_THROW(revolve_advances(Index{1} << 33, 1), InvalidArgument);
    // The longest chain with r = 2: t = 2 n - B(s + 1, 1).
    const Index s = 3000000000;
    const Index n = binomial(s, 2);
    BOOST_CHECK_EQUAL(n, 4500000004500000001);
    BOOST_CHECK_EQUAL(revolve_advances(n, s), 2 * n - (s + 2));
}

BOOST_AUTO_TEST_CASE(four_links_with_two_slots) {
    BOOST_CHECK_EQUAL(text_of(by_next(*revolve(4, 2))),
                      "save x_0 to ram slot 0\n"
                      "advance [0, 1)\n"
                      "save x_1 to ram slot 1\n"
                      "advance [1, 3)\n"
                      "record [3, 4)\n"
                      "turn x_4\n"
                      "reverse [3, 4)\n"
                      "load x_1 from ram slot 1\n"
                      "advance [1, 2)\n"
                      "tape [2, 3)\n"
                      "reverse [2, 3)\n"
                      "take x_1 from ram slot 1\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "take x_0 from ram slot 0\n"
                      "tape [0, 1)\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(two_links_that_need_their_states) {
    BOOST_CHECK_EQUAL(text_of(by_next(*revolve(2, 2, AdvanceRule::fewest_writes, true))),
                      "save x_0 to ram slot 0\n"
                      "advance [0, 1)\n"
                      "save x_1 to ram slot 1\n"
                      "record [1, 2)\n"
                      "turn x_2\n"
                      "take x_1 from ram slot 1\n"
                      "reverse [1, 2)\n"
                      "take x_0 from ram slot 0\n"
                      "tape [0, 1)\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(chains_of_none_and_one) {
    BOOST_CHECK_EQUAL(text_of(by_next(*revolve(0, 1))), "turn x_0\ndone\n");
    BOOST_CHECK_EQUAL(text_of(by_next(*revolve(0, 1, AdvanceRule::longest, true))), "turn x_0\ndone\n");
    BOOST_CHECK_EQUAL(text_of(by_next(*revolve(1, 7))), "record [0, 1)\nturn x_1\nreverse [0, 1)\ndone\n");
}

BOOST_AUTO_TEST_CASE(growth_of_work_with_log_many_slots) {
    const std::vector<std::pair<int, double>> expected{{10, 3.667}, {14, 5.054}, {17, 0.0}, {20, 6.871}};
    for (const auto& [log_steps, each] : expected) {
        const Index steps = Index{1} << log_steps;
        const Play play = referee(*revolve(steps, log_steps), steps);
        BOOST_CHECK_EQUAL(play.advances, revolve_advances(steps, log_steps));
        BOOST_CHECK_EQUAL(play.peak_slots[static_cast<std::size_t>(Tier::ram)], log_steps);
        const double per_step = static_cast<double>(play.advances) / static_cast<double>(steps);
        if (each > 0) BOOST_CHECK(per_step > each - 5e-4 && per_step < each + 5e-4);
    }
}

BOOST_AUTO_TEST_CASE(the_first_actions_of_enormous_chains) {
    const std::vector<std::pair<Index, Index>> sizes{
        {Index{1} << 40, 100000}, {Index{1} << 40, 100000000}, {Index{1} << 62, 1}, {Index{1} << 62, 2},
        {Index{1} << 62, 3},      {Index{1} << 62, 1000000},   {1000000000, 20},    {1000000000, 2}};
    for (const auto& [steps, slots] : sizes) {
        for (const AdvanceRule rule : {AdvanceRule::fewest_writes, AdvanceRule::longest, AdvanceRule::shortest}) {
            BOOST_TEST_CONTEXT(steps << " steps, " << slots << " slots, rule " << static_cast<int>(rule)) {
                const auto schedule = revolve(steps, slots, rule);
                Index at = 0;
                for (Index free = slots; free >= 1 && free > slots - 200 && steps - at >= 2; --free) {
                    const Action save = schedule->next();
                    BOOST_TEST_REQUIRE((save.verb == Verb::save && save.steps.first == at));
                    BOOST_CHECK_EQUAL(save.to.index, slots - free);
                    const AdvanceInterval optimal = first_advance_interval(steps - at, free);
                    const Action advance = schedule->next();
                    BOOST_TEST_REQUIRE((advance.verb == Verb::advance && advance.steps.first == at));
                    const Index length = advance.steps.size();
                    BOOST_CHECK(length >= optimal.shortest && length <= optimal.longest);
                    if (rule == AdvanceRule::longest) BOOST_CHECK_EQUAL(length, optimal.longest);
                    if (rule == AdvanceRule::shortest) BOOST_CHECK_EQUAL(length, optimal.shortest);
                    at = advance.steps.last;
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(least_slots_is_the_inverse_of_advances) {
    for (const Index n : {1, 2, 3, 10, 97, 1000}) {
        for (Index s = 1; s <= 40; ++s) {
            const Index work = revolve_advances(n, s);
            const Index least = least_slots(n, work);
            BOOST_CHECK_EQUAL(revolve_advances(n, least), work);
            BOOST_CHECK(least == 1 || revolve_advances(n, least - 1) > work);
        }
    }
    BOOST_CHECK_EQUAL(least_slots(Index{1} << 62, most), least_slots(Index{1} << 62, most - 1));
    BOOST_CHECK(revolve_advances(Index{1} << 62, least_slots(Index{1} << 62, most)) > 0);
}

BOOST_AUTO_TEST_CASE(fewest_disk_accesses_by_trying_every_optimal_advance) {
    constexpr auto disk = static_cast<std::size_t>(Tier::disk);
    for (const Index slots : {1, 2, 3, 5, 9}) {
        // (advances, accesses) of n links above a start kept at a depth, the least in this order.
        using Cost = std::pair<Index, Index>;
        for (Index ram = 0; ram <= slots; ++ram) {
            std::map<std::pair<Index, Index>, Cost> known;
            const std::function<Cost(Index, Index)> least = [&](Index n, Index depth) -> Cost {
                if (n < 2) return {0, 0};
                const auto [entry, fresh] = known.try_emplace({n, depth}, Cost{most, most});
                if (!fresh) return entry->second;
                Cost best{most, most};
                for (Index j = 1; j < n; ++j) {
                    const bool keeps = n - j >= 2;
                    if (keeps && depth + 1 == slots) continue;
                    Cost cost = least(j, depth);
                    cost.first += j;
                    cost.second += depth >= ram ? 1 : 0;
                    if (keeps) {
                        const Cost above = least(n - j, depth + 1);
                        cost.first += above.first;
                        cost.second += above.second + (depth + 1 >= ram ? 1 : 0);
                    }
                    best = std::min(best, cost);
                }
                return known[{n, depth}] = best;
            };
            for (const Index n : {0, 1, 2, 3, 4, 7, 12, 25, 40, 64}) {
                for (const bool needs_state : {false, true}) {
                    BOOST_TEST_CONTEXT(n << " steps, " << slots << " slots, " << ram << " in RAM, " << needs_state) {
                        RevolveOptions options;
                        options.steps = n;
                        options.slots = slots;
                        options.rule = AdvanceRule::fewest_disk;
                        options.ram = ram;
                        options.needs_state = needs_state;
                        const Index links = n + (needs_state ? 1 : 0);
                        const auto [advances, accesses] = least(links, 0);
                        const Index first = ram == 0 && links >= 2 ? 1 : 0;
                        Machine machine;
                        machine.limits.slots = {0, 0, ram, slots - ram};
                        machine.needs_state = needs_state;
                        const Play play = referee(*revolve(options), n, {}, machine);
                        BOOST_CHECK_EQUAL(play.advances, advances - (needs_state && n > 0 ? 1 : 0));
                        BOOST_CHECK_EQUAL(play.advances, revolve_advances(options));
                        BOOST_CHECK_EQUAL(play.writes[disk] + play.reads[disk], accesses + first);
                        BOOST_CHECK_EQUAL(revolve_disk_accesses(options), accesses + first);
                        options.ram = slots;
                        BOOST_CHECK_EQUAL(revolve_disk_accesses(options), 0);
                    }
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(aligned_states_wherever_an_optimal_advance_allows) {
    long on_multiples = 0;
    for (const Index n : {1, 2, 3, 10, 41, 64, 97, 200}) {
        for (Index slots = 1; slots <= 9; ++slots) {
            for (const Index align : {1, 2, 3, 8, 10, 1000}) {
                RevolveOptions options{n, slots, AdvanceRule::aligned};
                options.align = align;
                const auto schedule = revolve(options);
                BOOST_CHECK_EQUAL(referee(*schedule, n).advances, revolve_advances(n, slots));
                schedule->rewind();
                Index kept = 0;
                Index end = n;
                for (const Action& action : by_next(*schedule)) {
                    if (action.verb == Verb::save) ++kept;
                    if (action.verb == Verb::take) --kept;
                    if (action.verb == Verb::reverse) --end;
                    if (action.verb != Verb::advance) continue;
                    const auto [at, to] = action.steps;
                    const AdvanceInterval optimal = first_advance_interval(end - at, slots - kept + 1);
                    BOOST_CHECK(to - at >= optimal.shortest && to - at <= optimal.longest);
                    const Index first = (at + optimal.shortest + align - 1) / align * align;
                    if (first <= std::min(at + optimal.longest, end - 2)) {
                        BOOST_CHECK_EQUAL(to % align, 0);
                        ++on_multiples;
                    } else {
                        const Index own = referee(*revolve(end - at, slots - kept + 1), end - at).first_advance;
                        BOOST_CHECK_EQUAL(to - at, own);
                    }
                }
            }
        }
    }
    BOOST_CHECK(on_multiples > 1000);
    RevolveOptions enormous{Index{1} << 62, 5, AdvanceRule::aligned};
    enormous.align = most;
    const auto schedule = revolve(enormous);
    const auto own = revolve(Index{1} << 62, 5);
    for (int k = 0; k < 8; ++k) BOOST_CHECK(schedule->next() == own->next());
}

BOOST_AUTO_TEST_CASE(the_last_link_of_a_chain_that_needs_its_states_is_recorded_in_the_first_sweep) {
    BOOST_CHECK_EQUAL(text_of(by_next(*revolve(3, 1, AdvanceRule::fewest_writes, true))),
                      "save x_0 to ram slot 0\n"
                      "advance [0, 2)\n"
                      "record [2, 3)\n"
                      "turn x_3\n"
                      "load x_0 from ram slot 0\n"
                      "advance [0, 2)\n"
                      "reverse [2, 3)\n"
                      "load x_0 from ram slot 0\n"
                      "advance [0, 1)\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "take x_0 from ram slot 0\n"
                      "tape [0, 1)\n"
                      "reverse [0, 1)\n"
                      "done\n");
    BOOST_CHECK_EQUAL(text_of(by_next(*revolve(1, 5, AdvanceRule::longest, true))),
                      "save x_0 to ram slot 0\n"
                      "record [0, 1)\n"
                      "turn x_1\n"
                      "take x_0 from ram slot 0\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(no_reversal_of_a_chain_that_needs_its_states_advances_less) {
    for (Index n = 0; n <= 7; ++n) {
        for (Index slots = 1; slots <= 8; ++slots) {
            for (const AdvanceRule rule : {AdvanceRule::fewest_writes, AdvanceRule::longest, AdvanceRule::shortest}) {
                BOOST_TEST_CONTEXT(n << " steps, " << slots << " slots, rule " << static_cast<int>(rule)) {
                    RevolveOptions options{.steps = n, .slots = slots, .rule = rule, .needs_state = true};
                    const double least = cheapest_reversal(
                        {.steps = n, .levels = {{Tier::ram, slots}}, .reverse = 0.0, .needs_state = true});
                    BOOST_CHECK_EQUAL(static_cast<double>(revolve_advances(options)), least);
                    const Play play = referee(*revolve(options), n, {}, {.needs_state = true});
                    BOOST_CHECK_EQUAL(play.advances, revolve_advances(options));
                    BOOST_CHECK_EQUAL(play.recorded, n);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(three_conventions_for_the_first_state) {
    for (Index n = 0; n <= 30; ++n) {
        for (Index slots = 0; slots <= 6; ++slots) {
            for (const bool needs_state : {false, true}) {
                BOOST_TEST_CONTEXT(n << " steps, " << slots << " slots, " << needs_state) {
                    RevolveOptions options;
                    options.steps = n;
                    options.slots = slots;
                    options.needs_state = needs_state;
                    const Index links = n + (needs_state ? 1 : 0);
                    const Index recorded = needs_state && n > 0 ? 1 : 0;
                    Machine machine;
                    machine.needs_state = needs_state;
                    if (slots == 0) BOOST_CHECK_THROW(revolve(options), InvalidArgument);
                    options.first = FirstState::external;
                    machine.limits.slots = {0, 0, slots + 1, 0};
                    Play play = referee(*revolve(options), n, {}, machine);
                    BOOST_CHECK_EQUAL(play.advances, revolve_advances(links, slots + 1) - recorded);
                    BOOST_CHECK_EQUAL(play.advances, revolve_advances(options));
                    options.first = FirstState::live;
                    machine.limits.slots = {0, 0, slots, 0};
                    if (slots == 0 && links > 1) {
                        BOOST_CHECK_EXCEPTION(revolve(options), InvalidArgument, says("slots must be 1 or more"));
                        continue;
                    }
                    play = referee(*revolve(options), n, {}, machine);
                    BOOST_CHECK_EQUAL(play.advances, revolve_advances(links, std::max<Index>(slots, 1)) - recorded);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(refused_choices) {
    const auto refused = [](const RevolveOptions& options, const char* words) {
        BOOST_TEST_CONTEXT(words) {
            BOOST_CHECK_MESSAGE(options.problem().find(words) != std::string::npos, options.problem());
            BOOST_CHECK_EXCEPTION(revolve(options), InvalidArgument, says(words));
            BOOST_CHECK_EXCEPTION(revolve_advances(options), InvalidArgument, says(words));
        }
    };
    RevolveOptions good;
    good.steps = 100;
    good.slots = 4;
    BOOST_CHECK_EQUAL(good.problem(), "");
    BOOST_CHECK_EXCEPTION(revolve_disk_accesses(good), InvalidArgument, says("rule must be fewest_disk"));
    RevolveOptions options = good;
    options.align = 5;
    refused(options, "align must be 1 or more, and is used by rule aligned only; came 5");
    options.rule = AdvanceRule::aligned;
    options.align = 0;
    refused(options, "align must be 1 or more");
    options = good;
    options.ram = 2;
    refused(options, "ram is used by rule fewest_disk only, came 2");
    options.rule = AdvanceRule::fewest_disk;
    options.ram = -1;
    refused(options, "rule fewest_disk wants ram");
    options.ram = 2;
    options.steps = Index{1} << 40;
    refused(options, "allow more, or take rule fewest_writes");
    options.steps = 1000;
    options.table_limit = 1000;
    refused(options, "take 32032 bytes");
    options = good;
    options.first = FirstState::external;
    options.slots = -1;
    refused(options, "slots must be 0 or more, came -1");
    options.slots = most;
    BOOST_CHECK_EQUAL(revolve_advances(options), 99);
}
