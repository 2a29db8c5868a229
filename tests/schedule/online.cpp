// Open-ended schedules: streams by hand, the exact range, both policies against plain programs, and the excess of work.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_online
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/online.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "support/streams.hpp"
#include "support/told.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr OnlinePolicy policies[] = {OnlinePolicy::greedy, OnlinePolicy::wang_moin};

/// t(n, s) = min over j of j + t(n - j, s - 1) + t(j, s), so that the exact range does not rest on the closed form.
class Recurrence {
public:
    static constexpr Index longest = 110, most_slots = 16;
    Recurrence() {
        for (auto& row : t_) row.fill(0);
        for (Index n = 2; n <= longest; ++n) {
            for (Index s = 1; s <= most_slots; ++s) {
                Index least = std::numeric_limits<Index>::max();
                for (Index j = s == 1 ? n - 1 : 1; j < n; ++j) {
                    least = std::min(least, j + (n - j > 1 ? at(n - j, s - 1) : 0) + at(j, s));
                }
                t_[static_cast<std::size_t>(n)][static_cast<std::size_t>(s)] = least;
            }
        }
    }
    Index at(Index n, Index s) const { return t_[static_cast<std::size_t>(n)][static_cast<std::size_t>(s)]; }

private:
    std::array<std::array<Index, most_slots + 1>, longest + 1> t_{};
};

const Recurrence& recurrence() {
    static const Recurrence instance;
    return instance;
}

Machine machine(Index slots, Ending ending = Ending::closed, bool needs_state = false) {
    Machine m;
    m.limits.slots = {0, 0, slots, 0};
    m.ending = ending;
    m.needs_state = needs_state;
    return m;
}

/// Plays a chain of `steps` links whose end is told where the chain stands at `at`.
Play told(const OnlineOptions& options, Index steps, Index at) {
    Told schedule(online(options), steps, at);
    return referee(schedule, steps, {}, machine(options.slots, Ending::closed, options.needs_state));
}

/// The choice of the greedy policy by its definition: the cost of every set from scratch.
std::size_t greedy_by_definition(const std::vector<Index>& stored, Index slots, Index j) {
    const auto cost = [&](const std::vector<Index>& set) {
        Index sum = 0;  // of a chain of j + 2 links whose last is recorded as it is run
        for (std::size_t i = 0; i < set.size(); ++i) {
            const Index end = i + 1 < set.size() ? set[i + 1] : j + 1;
            sum += revolve_advances(end - set[i], slots - static_cast<Index>(i));
        }
        return sum;
    };
    Index least = cost(stored);
    std::size_t replaced = stored.size();  // nothing
    for (std::size_t d = 1; d < stored.size(); ++d) {
        std::vector<Index> set = stored;
        set.erase(set.begin() + static_cast<std::ptrdiff_t>(d));
        set.push_back(j);
        if (cost(set) > least) continue;
        least = cost(set);
        replaced = d;
    }
    return replaced;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stream_by_hand_with_the_end_told_where_it_is_met) {
    Told schedule(online({.slots = 2}), 4, 4);
    BOOST_CHECK_EQUAL(text_of(by_next(schedule)),
                      "save x_0 to ram slot 0\n"
                      "advance [0, 1)\n"
                      "save x_1 to ram slot 1\n"
                      "advance [1, 2)\n"
                      "advance [2, 3)\n"
                      "drop x_1 from ram slot 1\n"
                      "save x_3 to ram slot 1\n"
                      "advance [3, 4)\n"
                      "turn x_4\n"
                      "take x_3 from ram slot 1\n"
                      "tape [3, 4)\n"
                      "reverse [3, 4)\n"
                      "load x_0 from ram slot 0\n"
                      "advance [0, 1)\n"
                      "save x_1 to ram slot 1\n"
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

BOOST_AUTO_TEST_CASE(a_stream_by_hand_with_the_end_told_ahead) {
    Told schedule(online({.slots = 3}), 3, 2);
    BOOST_CHECK_EQUAL(text_of(by_next(schedule)),
                      "save x_0 to ram slot 0\n"
                      "advance [0, 1)\n"
                      "save x_1 to ram slot 1\n"
                      "advance [1, 2)\n"
                      "record [2, 3)\n"
                      "turn x_3\n"
                      "reverse [2, 3)\n"
                      "take x_1 from ram slot 1\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "take x_0 from ram slot 0\n"
                      "tape [0, 1)\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(a_stream_by_hand_with_an_advance_revoked) {
    const auto schedule = online({.slots = 3});
    std::vector<Action> actions(5);
    for (Action& action : actions) action = schedule->next();
    BOOST_CHECK_EQUAL(to_string(actions[3]), "advance [1, 2)");
    actions.push_back(schedule->next());
    BOOST_CHECK_EQUAL(to_string(actions[5]), "advance [2, 3)");
    schedule->finish(2);
    BOOST_CHECK_EQUAL(text_of(by_next(*schedule)),
                      "drop x_2 from ram slot 2\n"
                      "turn x_2\n"
                      "take x_1 from ram slot 1\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "take x_0 from ram slot 0\n"
                      "tape [0, 1)\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(chains_of_no_and_of_one_link) {
    for (const OnlinePolicy policy : policies) {
        const auto schedule = online({.slots = 1, .policy = policy});
        schedule->finish(0);
        BOOST_CHECK_EQUAL(text_of(by_next(*schedule)), "turn x_0\ndone\n");
        schedule->rewind();
        schedule->finish(1);
        BOOST_CHECK_EQUAL(text_of(by_next(*schedule)), "record [0, 1)\nturn x_1\nreverse [0, 1)\ndone\n");
        schedule->rewind();
        BOOST_CHECK_EQUAL(to_string(schedule->next()), "save x_0 to ram slot 0");
        schedule->finish(1);  // the advance was not given out yet: the link is recorded
        BOOST_CHECK_EQUAL(text_of(by_next(*schedule)),
                          "drop x_0 from ram slot 0\nrecord [0, 1)\nturn x_1\nreverse [0, 1)\ndone\n");
        schedule->rewind();
        schedule->next();
        BOOST_CHECK_EQUAL(to_string(schedule->next()), "advance [0, 1)");
        schedule->finish(0);
        BOOST_CHECK_EQUAL(text_of(by_next(*schedule)), "drop x_0 from ram slot 0\nturn x_0\ndone\n");
    }
}

BOOST_AUTO_TEST_CASE(told_between_drop_and_save) {
    // The pending save is made: x_3 is at hand, and the completion drops it or begins there.
    for (const Index steps : {3, 4, 5, 9}) {
        for (const int given : {1, 2}) {
            const auto schedule = online({.slots = 2});
            std::vector<Action> actions;
            while (actions.empty() || actions.back().verb != Verb::drop) actions.push_back(schedule->next());
            if (given == 2) actions.push_back(schedule->next());
            schedule->finish(steps);
            const std::vector<Action> rest = by_next(*schedule);
            actions.insert(actions.end(), rest.begin(), rest.end());
            Script script(actions);
            const Play play = referee(script, steps, {}, machine(2));
            BOOST_CHECK_EQUAL(play.reversed, steps);
            if (steps > 4) BOOST_CHECK_EQUAL(play.advances, online_advances({.slots = 2}, steps, true));
        }
    }
}

BOOST_AUTO_TEST_CASE(as_good_as_the_offline_optimum_up_to_the_exact_range) {
    for (Index c = 1; c <= 12; ++c) {
        const Index range = (c + 1) * (c + 2) / 2;
        for (Index n = 0; n <= range + 1; ++n) {
            BOOST_TEST_CONTEXT(n << " steps, " << c << " slots") {
                const Play ahead = told({.slots = c}, n, std::max<Index>(n - 1, 0));
                BOOST_CHECK_EQUAL(ahead.advances, recurrence().at(n, c));
                BOOST_CHECK_EQUAL(ahead.recorded, n);
                if (n > range) continue;
                BOOST_CHECK_EQUAL(told({.slots = c}, n, n).advances, recurrence().at(n + 1, c));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(legal_over_the_grid) {
    for (Index n = 0; n <= 64; ++n) {
        for (Index c = 1; c <= 16; ++c) {
            for (const OnlinePolicy policy : policies) {
                for (const bool needs_state : {false, true}) {
                    BOOST_TEST_CONTEXT(n << " steps, " << c << " slots, policy " << static_cast<int>(policy)
                                         << ", needs_state " << needs_state) {
                        const OnlineOptions options{c, policy, needs_state};
                        const auto by_referee = [&](Ending ending) {
                            return referee(*online(options), n, {}, machine(c, ending, needs_state));
                        };
                        const Index optimum = recurrence().at(n + 1, c);  // a sweep that tapes nothing
                        const Index optimum_ahead = needs_state ? optimum : recurrence().at(n, c);
                        const Play ahead = by_referee(Ending::ahead);
                        BOOST_CHECK(ahead.advances >= optimum_ahead);
                        BOOST_CHECK_EQUAL(ahead.advances, online_advances(options, n, true));
                        const Play met = told(options, n, n);
                        BOOST_CHECK(met.advances >= optimum);
                        BOOST_CHECK_EQUAL(met.advances, online_advances(options, n));
                        const Play revoked = by_referee(Ending::late);
                        BOOST_CHECK(revoked.advances >= optimum);
                        for (const Play& play : {ahead, met, revoked}) {
                            BOOST_CHECK_EQUAL(play.recorded, n);
                            BOOST_CHECK_EQUAL(play.reversed, n);
                        }
                        for (const Index at : {Index{0}, n / 3, std::max<Index>(n - 2, 0)}) {
                            BOOST_CHECK_EQUAL(told(options, n, at).advances, ahead.advances);
                        }
                    }
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(the_greedy_policy_is_its_definition) {
    for (const Index c : {2, 3, 4, 5, 8, 13, 20, 41}) {
        const auto schedule = online({.slots = c});
        Shelved shelf;
        const Index range = (c + 1) * (c + 2) / 2;
        long replacements = 0;
        for (Index j = 0; j < range + 1500; ++j) {
            std::vector<Index> before;
            for (const Stored& state : shelf.states()) before.push_back(state.step);
            step_on(*schedule, shelf);
            if (j < range - 1) continue;
            std::vector<Index> expected = before;
            if (const std::size_t d = greedy_by_definition(before, c, j); d < before.size()) {
                expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(d));
                expected.push_back(j);
                ++replacements;
            }
            std::vector<Index> after;
            for (const Stored& state : shelf.states()) after.push_back(state.step);
            BOOST_TEST_REQUIRE((after == expected), c << " slots, x_" << j);
        }
        BOOST_CHECK(replacements > 20);
    }
}

BOOST_AUTO_TEST_CASE(the_levels_of_wang_moin_iaccarino) {
    for (const Index c : {2, 3, 4, 5, 10, 17, 30}) {
        const auto schedule = online({.slots = c, .policy = OnlinePolicy::wang_moin});
        Shelved shelf;
        std::vector<std::pair<Index, Index>> expected;  // step and level
        for (Index j = 0; j < 3000; ++j) {
            Index level = 0;
            if (j == 0) level = std::numeric_limits<Index>::max();
            if (static_cast<Index>(expected.size()) == c) {
                std::size_t replaced = 0;
                for (std::size_t i = 1; i < expected.size() && replaced == 0; ++i) {
                    const std::size_t each = expected.size() - i;  // the latest first
                    for (std::size_t later = each; later < expected.size(); ++later) {
                        if (each > 0 && expected[later].second > expected[each].second) replaced = each;
                    }
                }
                if (replaced == 0) {
                    replaced = expected.size() - 1;
                    level = expected[replaced].second + 1;
                }
                expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(replaced));
            }
            expected.emplace_back(j, level);
            step_on(*schedule, shelf);
            BOOST_TEST_REQUIRE(shelf.states().size() == expected.size());
            for (std::size_t i = 0; i < expected.size(); ++i) {
                BOOST_TEST_REQUIRE(shelf.states()[i].step == expected[i].first, c << " slots, x_" << j);
            }
            // Fewest repetitions: no link of a gap is run more often than in the best sweep.
            for (std::size_t i = 0; i < expected.size(); ++i) {
                const Index end = i + 1 < expected.size() ? expected[i + 1].first : j + 1;
                BOOST_CHECK(repetitions(end - expected[i].first, c - static_cast<Index>(i)) <= repetitions(j + 2, c));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(excess_over_the_offline_optimum) {
    for (const Index c : {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 30, 50, 100}) {
        const auto schedule = online({.slots = c});
        Shelved shelf;
        double worst = 0.0;
        for (Index j = 1; j <= 2000; ++j) {
            step_on(*schedule, shelf);
            // The chain stands at j, nothing is decided there yet.
            const Index all = shelf.keeping_all(j, c);
            const Index met = 2 * j + all;
            const Index ahead = (j + 1) + j + all;
            const Index optimum = revolve_advances(j + 1, c);
            BOOST_CHECK(met >= j + optimum);
            if (j >= 20) worst = std::max(worst, static_cast<double>(met) / static_cast<double>(j + optimum) - 1.0);
            if (j >= 19) {
                worst = std::max(worst, static_cast<double>(ahead) / static_cast<double>(j + 1 + optimum) - 1.0);
            }
            if (j % 331 != 7) continue;
            const Play play = told({.slots = c}, j + 1, j);
            BOOST_CHECK(play.advances + play.recorded <= ahead);
            BOOST_CHECK(play.advances >= optimum);
            BOOST_CHECK(told({.slots = c}, j, j).advances <= j + all);
        }
        BOOST_TEST(worst <= (c == 20 ? 0.019 : 0.031), c << " slots, excess " << worst);
    }
}

/// online_completion.json, `bounds`: no policy that keeps every state has a smaller worst case over these lengths.
BOOST_AUTO_TEST_CASE(never_below_what_any_policy_can_promise) {
    struct Bound {
        Index slots, longest;
        double ratio;
    };
    for (const auto& [c, longest, ratio] :
         {Bound{2, 200, 1.096154}, Bound{3, 200, 1.042955}, Bound{4, 120, 1.022599}, Bound{5, 80, 1.015625}}) {
        const auto schedule = online({.slots = c});
        Shelved shelf;
        double worst = 1.0;
        for (Index j = 0; j < longest; ++j) {
            const Index total = (j + 1) + j + shelf.keeping_all(j, c);
            const Index optimum = (j + 1) + revolve_advances(j + 1, c);
            worst = std::max(worst, static_cast<double>(total) / static_cast<double>(optimum));
            step_on(*schedule, shelf);
        }
        BOOST_TEST(worst >= ratio - 1e-6, c << " slots: " << worst);
        BOOST_TEST(worst <= 1.0 + 1.8 * (ratio - 1.0), c << " slots: " << worst);
    }
}

BOOST_AUTO_TEST_CASE(fill_ends_at_the_next_advance) {
    for (const OnlinePolicy policy : policies) {
        for (const std::size_t block : {1, 2, 3, 64}) {
            const auto one = online({.slots = 4, .policy = policy});
            const auto other = online({.slots = 4, .policy = policy});
            std::vector<Action> room(block);
            Index reached = 0;
            while (reached < 300) {
                const std::size_t count = other->fill(room);
                BOOST_TEST_REQUIRE((count >= 1 && count <= std::min<std::size_t>(block, 3)));
                for (std::size_t i = 0; i < count; ++i) {
                    BOOST_CHECK(room[i] == one->next());
                    if (room[i].verb != Verb::advance) continue;
                    BOOST_CHECK_EQUAL(i + 1, count);
                    reached = room[i].steps.last;
                }
            }
            one->finish(301);
            other->finish(301);
            BOOST_CHECK(by_next(*one) == by_fill(*other, block));
            BOOST_CHECK(one->next().verb == Verb::done);
            BOOST_CHECK_EQUAL(other->fill(room), 1u);
            BOOST_CHECK_EQUAL(other->fill({}), 0u);
            BOOST_CHECK(room[0].verb == Verb::done);
            // Again, and to another end.
            one->rewind();
            Told fresh(online({.slots = 4, .policy = policy}), 77, 77);
            Told again(online({.slots = 4, .policy = policy}), 77, 77);
            by_next(again);
            again.rewind();
            BOOST_CHECK(by_next(fresh) == by_next(again));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_finish_that_cannot_be) {
    const auto schedule = online({.slots = 3});
    for (int i = 0; i < 6; ++i) schedule->next();  // ... advance [2, 3)
    for (const Index steps : {Index{-1}, Index{0}, Index{1}, (Index{1} << 62) + 1}) {
        BOOST_CHECK_EXCEPTION(schedule->finish(steps), InvalidArgument, says("the chain has come to x_3"));
    }
    schedule->finish(3);
    BOOST_CHECK_EXCEPTION(schedule->finish(3), ScheduleError,
                          says("told already that the chain ends after 3 links; call finish once a sweep"));
    by_next(*schedule);
    BOOST_CHECK_THROW(schedule->finish(4), ScheduleError);
    BOOST_CHECK(schedule->next().verb == Verb::done);
    schedule->rewind();
    BOOST_CHECK_THROW(schedule->finish(-1), InvalidArgument);
    std::vector<Action> actions{schedule->next()};  // save x_0: the advance behind it is not given out
    BOOST_CHECK_EXCEPTION(schedule->finish(-1), InvalidArgument, says("x_0, so it ends after that many links, or"));
    schedule->finish(5);
    const std::vector<Action> rest = by_next(*schedule);
    actions.insert(actions.end(), rest.begin(), rest.end());
    Script script(actions);
    BOOST_CHECK_EQUAL(referee(script, 5, {}, machine(3)).advances, recurrence().at(5, 3));
}

BOOST_AUTO_TEST_CASE(options_in_words) {
    const auto refused = [](const OnlineOptions& options, const char* words) {
        BOOST_CHECK(options.problem().find(words) != std::string::npos);
        BOOST_CHECK_EXCEPTION(online(options), InvalidArgument, says(words));
        BOOST_CHECK_THROW(online_advances(options, 5), InvalidArgument);
        BOOST_CHECK_THROW(online_table_bytes(options), InvalidArgument);
    };
    refused({}, "slots must lie in 1 ... 2^31 - 1 (x_0 takes one), came 0; give the number");
    refused({.slots = -4}, "came -4");
    refused({.slots = Index{1} << 31}, "came 2147483648");
    refused({.slots = 3, .policy = static_cast<OnlinePolicy>(7)}, "policy 7 is not known; give greedy or wang_moin");
    BOOST_CHECK_EXCEPTION(online_advances({.slots = 3}, -1), InvalidArgument, says("steps must be 0 or more, came -1"));
    BOOST_CHECK(OnlineOptions{.slots = 1}.problem().empty());
    BOOST_CHECK(online_table_bytes({.slots = 1000000}) < 200u * 1000000u);
    BOOST_CHECK(online_table_bytes({.slots = 1000, .policy = OnlinePolicy::wang_moin}) <
                online_table_bytes({.slots = 1000}));
}
