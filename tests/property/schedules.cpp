// Laws that every schedule obeys, over a grid of lengths and slots, against programs written here for the purpose.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE property_schedules
#include "support/unit_test.hpp"

#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/forward_only.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "support/streams.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Index longest_chain = 200;
constexpr Index most_slots = 12;
constexpr Index never = std::numeric_limits<Index>::max() / 4;
constexpr AdvanceRule rules[] = {AdvanceRule::fewest_writes, AdvanceRule::longest, AdvanceRule::shortest};

/// t(n, s) = min over j of j + t(n - j, s - 1) + t(j, s), and the writes of the optimal schedules that write least.
class Recurrence {
public:
    Recurrence() : cells_(static_cast<std::size_t>((longest_chain + 2) * (most_slots + 1))) {
        for (Index s = 0; s <= most_slots; ++s) {
            for (Index n = 2; n <= longest_chain + 1; ++n) {
                Cell& cell = at(n, s);
                cell = {never, never};
                for (Index j = 1; s > 0 && j < n; ++j) {
                    const Index advances = through(n, s, j);
                    // The start lies stored already; what the advance reaches is saved if more than a link is left.
                    const Index above = n - j >= 2 ? 1 + at(n - j, s - 1).writes : 0;
                    const Index writes = above + at(j, s).writes;
                    if (advances < cell.advances) cell = {advances, writes};
                    if (advances == cell.advances) cell.writes = std::min(cell.writes, writes);
                }
            }
        }
    }

    Index advances(Index n, Index s) const { return at(n, s).advances; }
    Index through(Index n, Index s, Index j) const { return j + at(n - j, s - 1).advances + at(j, s).advances; }
    Index writes(Index n, Index s) const { return n >= 2 ? 1 + at(n, s).writes : 0; }

private:
    struct Cell {
        Index advances = 0;
        Index writes = 0;
    };

    const Cell& at(Index n, Index s) const { return cells_[static_cast<std::size_t>(n * (most_slots + 1) + s)]; }
    Cell& at(Index n, Index s) { return cells_[static_cast<std::size_t>(n * (most_slots + 1) + s)]; }

    std::vector<Cell> cells_;
};

const Recurrence& recurrence() {
    static const Recurrence instance;
    return instance;
}

Limits ram_slots(Index slots) {
    Limits limits;
    limits.slots = {0, 0, slots, 0};
    return limits;
}

}  // namespace

BOOST_AUTO_TEST_CASE(revolve_is_legal_and_optimal) {
    long plays = 0;
    for (Index n = 0; n <= longest_chain; ++n) {
        for (Index s = 1; s <= most_slots; ++s) {
            for (const AdvanceRule rule : rules) {
                BOOST_TEST_CONTEXT(n << " steps, " << s << " slots, rule " << static_cast<int>(rule)) {
                    const Play play = referee(*revolve(n, s, rule), n, {}, {.limits = ram_slots(s)});
                    BOOST_CHECK_EQUAL(play.advances, recurrence().advances(n, s));
                    BOOST_CHECK_EQUAL(play.advances, revolve_advances(n, s));
                    BOOST_CHECK_EQUAL(play.recorded, n);
                    BOOST_CHECK_EQUAL(play.reversed, n);
                    BOOST_CHECK_EQUAL(play.drops, 0);
                    BOOST_CHECK_EQUAL(play.takes, play.saves);
                    BOOST_CHECK(play.actions <= 5 * n + 1);
                    if (rule == AdvanceRule::fewest_writes) {
                        BOOST_CHECK_EQUAL(play.saves, recurrence().writes(n, s));
                    } else {
                        BOOST_CHECK(play.saves >= recurrence().writes(n, s));
                    }
                }
                ++plays;
            }
        }
    }
    BOOST_TEST_MESSAGE(plays << " plays");
}

BOOST_AUTO_TEST_CASE(revolve_with_needs_state_is_a_chain_one_longer_whose_last_advance_is_recorded) {
    for (Index n = 0; n <= longest_chain; ++n) {
        for (Index s = 1; s <= most_slots; ++s) {
            for (const AdvanceRule rule : rules) {
                BOOST_TEST_CONTEXT(n << " steps, " << s << " slots, rule " << static_cast<int>(rule)) {
                    const Play play =
                        referee(*revolve(n, s, rule, true), n, {}, {.limits = ram_slots(s), .needs_state = true});
                    BOOST_CHECK_EQUAL(play.advances, recurrence().advances(n + 1, s) - (n > 0 ? 1 : 0));
                    BOOST_CHECK_EQUAL(play.recorded, n);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(the_interval_of_first_advances_is_complete) {
    for (Index n = 2; n <= longest_chain; ++n) {
        for (Index s = 1; s <= most_slots; ++s) {
            const AdvanceInterval optimal = first_advance_interval(n, s);
            for (Index j = 1; j < n; ++j) {
                const bool is_optimal = recurrence().through(n, s, j) == recurrence().advances(n, s);
                BOOST_CHECK_MESSAGE(is_optimal == (optimal.shortest <= j && j <= optimal.longest),
                                    n << " steps, " << s << " slots, advance " << j);
            }
            for (const AdvanceRule rule : rules) {
                const Index first = referee(*revolve(n, s, rule), n).first_advance;
                BOOST_CHECK(optimal.shortest <= first && first <= optimal.longest);
                if (rule == AdvanceRule::shortest) BOOST_CHECK_EQUAL(first, optimal.shortest);
                if (rule == AdvanceRule::longest) BOOST_CHECK_EQUAL(first, optimal.longest);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(more_slots_than_links_store_every_state_once) {
    for (const Index n : {1, 2, 3, 17}) {
        for (const Index s : {n, n + 1, 5 * n, Index{1} << 40}) {
            const Play play = referee(*revolve(n, s), n);
            BOOST_CHECK_EQUAL(play.advances, n - 1);
            BOOST_CHECK_EQUAL(play.saves, n - 1);
            BOOST_CHECK_EQUAL(play.loads, 0);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_stream_is_the_same_pulled_in_any_way_and_again) {
    std::vector<std::unique_ptr<Schedule>> schedules;
    for (const Index n : {0, 1, 2, 3, 31, 32, 33, 200}) {
        for (const bool needs_state : {false, true}) {
            schedules.push_back(store_all(n, needs_state));
            for (const Index k : {1, 2, 7, 300}) schedules.push_back(periodic(n, k, needs_state));
            for (const Index s : {1, 2, 5, 300}) {
                for (const AdvanceRule rule : rules) schedules.push_back(revolve(n, s, rule, needs_state));
            }
        }
        schedules.push_back(forward_only(n));
        schedules.push_back(forward_only(n, false));
        const std::vector<Stored> stored{
            {0, {Tier::ram, 2}}, {n / 3, {Tier::disk, 0}}, {n / 2, {Tier::ram, 1}}, {n, {Tier::ram, 0}}};
        schedules.push_back(complete(stored, 4, n));
    }
    for (const auto& schedule : schedules) {
        const std::vector<Action> stream = by_next(*schedule);
        BOOST_CHECK(schedule->next().verb == Verb::done);
        for (const std::size_t block : {1, 2, 7, 8, 9, 13, 64, 1000}) {
            schedule->rewind();
            BOOST_CHECK(by_fill(*schedule, block) == stream);
            Action again;
            BOOST_CHECK_EQUAL(schedule->fill({&again, 1}), 1u);
            BOOST_CHECK(again.verb == Verb::done);
        }
        // Both ways in turn, and a rewind in the middle.
        schedule->rewind();
        std::vector<Action> mixed(20);
        mixed.resize(schedule->fill(std::span(mixed).first(3)));
        if (mixed.back().verb != Verb::done) mixed.push_back(schedule->next());
        if (mixed.back().verb != Verb::done) {
            const std::vector<Action> rest = by_fill(*schedule, 11);
            mixed.insert(mixed.end(), rest.begin(), rest.end());
        }
        BOOST_CHECK(mixed == stream);
        schedule->rewind();
        schedule->next();
        schedule->rewind();
        BOOST_CHECK(by_next(*schedule) == stream);
    }
}
