// Mixed storage against an exhaustive search over what a machine can hold, against the published recurrences, and in a
// grid under the referee's budget.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_mixed
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/mixed.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "support/streams.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Index never = Index{1} << 40;

Play play_within(const MixedOptions& options) {
    Machine machine;
    machine.sizes.state = [](Index) { return std::int64_t{1}; };
    machine.sizes.tape = [&](Index) { return options.tape_units; };
    machine.limits.bytes = {0, 0, options.units, 0};
    machine.limits.slots = {0, 0, options.units, 0};
    return referee(*mixed(options), options.steps, {}, machine);
}

/// The least forwards that any sequence of actions needs: a shortest path over (links left, working state, kept states,
/// kept tapes). Everything but running a link is free.
class Search {
public:
    Search(int steps, int units, int tape_units, bool restart)
        : n_(steps),
          units_(units),
          a_(tape_units),
          restart_(restart) {}

    Index forwards() {
        const int sets = 1 << (n_ + 1);
        best_.assign(static_cast<std::size_t>((n_ + 1) * (n_ + 2) * sets * sets), never);
        offer(0, {n_, 0, 0, 0}, true);
        while (!queue_.empty()) {
            const auto [at, cost] = queue_.front();
            queue_.pop_front();
            if (cost > best_[key(at)]) continue;
            if (at.left == 0) return cost;
            expand(at, cost);
        }
        return never;
    }

private:
    struct Point {
        int left;    // links [0, left) are not reversed
        int x;       // -1: unspecified
        int states;  // bit i: x_i is kept
        int tapes;   // bit i: the tape of link i is kept
    };
    struct Entry {
        Point at;
        Index cost;
    };

    std::size_t key(const Point& p) const {
        const int sets = 1 << (n_ + 1);
        return static_cast<std::size_t>(((p.left * (n_ + 2) + p.x + 1) * sets + p.states) * sets + p.tapes);
    }
    void offer(Index cost, const Point& p, bool free) {
        if (__builtin_popcount(static_cast<unsigned>(p.states)) +
                a_ * __builtin_popcount(static_cast<unsigned>(p.tapes)) >
            units_) {
            return;
        }
        if (cost >= best_[key(p)]) return;
        best_[key(p)] = cost;
        if (free) {
            queue_.push_front({p, cost});
        } else {
            queue_.push_back({p, cost});
        }
    }
    void expand(const Point& p, Index cost) {
        for (int i = 0; i <= n_; ++i) {
            if ((p.states >> i & 1) != 0) {
                offer(cost, {p.left, i, p.states, p.tapes}, true);
                offer(cost, {p.left, p.x, p.states & ~(1 << i), p.tapes}, true);
            }
            if ((p.tapes >> i & 1) != 0) {
                if (restart_) offer(cost, {p.left, i + 1, p.states, p.tapes}, true);
                offer(cost, {p.left, p.x, p.states, p.tapes & ~(1 << i)}, true);
            }
        }
        const int top = p.left - 1;
        // A kept tape of the last link is reversed from its slot; `turn` came when that link was recorded.
        if ((p.tapes >> top & 1) != 0) offer(cost, {top, -1, p.states, p.tapes & ~(1 << top)}, true);
        if (p.x < 0 || p.x >= p.left) return;
        offer(cost, {p.left, p.x, p.states | 1 << p.x, p.tapes}, true);
        offer(cost + 1, {p.left, p.x + 1, p.states, p.tapes}, false);
        offer(cost + 1, {p.left, p.x + 1, p.states, p.tapes | 1 << p.x}, false);
        if (p.x == top) offer(cost + 1, {top, -1, p.states, p.tapes}, false);
    }

    int n_, units_, a_;
    bool restart_;
    std::vector<Index> best_;
    std::deque<Entry> queue_;
};

/// A table [units][steps], filled by a formula that is given what stands in it already.
class Table {
public:
    Table(Index units, Index steps)
        : width_(steps + 1),
          cells_(static_cast<std::size_t>((units + 1) * width_), never) {}
    Index& operator()(Index f, Index n) { return cells_[static_cast<std::size_t>(f * width_ + n)]; }

private:
    Index width_;
    std::vector<Index> cells_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(no_search_finds_fewer_forwards) {
    long cases = 0;
    for (int n = 0; n <= 6; ++n) {
        for (int units = 0; units <= 6; ++units) {
            for (int a = 1; a <= 4; ++a) {
                for (const bool restart : {false, true}) {
                    BOOST_TEST_CONTEXT(n << " steps, " << units << " units, tape " << a << ", restart " << restart) {
                        const Index least = Search(n, units, a, restart).forwards();
                        MixedOptions options{n, units, a, restart};
                        if (least == never) {
                            BOOST_CHECK_THROW(mixed(options), InvalidArgument);
                            continue;
                        }
                        BOOST_CHECK_EQUAL(mixed_forwards(options), least);
                        const Play play = play_within(options);
                        BOOST_CHECK_EQUAL(play.advances + play.recorded, least);
                    }
                    ++cases;
                }
            }
        }
    }
    BOOST_CHECK(cases > 300);
}

BOOST_AUTO_TEST_CASE(a_grid_of_the_default_rule) {
    constexpr Index longest = 64;
    constexpr Index most_units = 16;
    for (const Index a : {1, 2, 3, 5, 20}) {
        for (const bool g : {false, true}) {
            Table live(most_units, longest);
            Table held(most_units, longest);
            for (Index f = 0; f <= most_units; ++f) {
                for (Table* const table : {&live, &held}) {
                    const Index above = table == &live ? f - 1 : f;
                    (*table)(f, 0) = 0;
                    (*table)(f, 1) = 1;
                    for (Index n = 2; n <= longest; ++n) {
                        Index& cell = (*table)(f, n);
                        for (Index y = 1; y < n && above >= 0; ++y) {
                            cell = std::min(cell, y + live(above, n - y) + (*table)(f, y));
                        }
                        if (f >= a) cell = std::min(cell, 1 + (g ? held(f - a, n - 1) : live(f - a, n - 1)));
                    }
                }
            }
            for (Index n = 0; n <= longest; ++n) {
                for (Index units = 1; units <= most_units; ++units) {
                    BOOST_TEST_CONTEXT(n << " steps, " << units << " units, tape " << a << ", restart " << g) {
                        const MixedOptions options{n, units, a, g};
                        BOOST_CHECK_EQUAL(mixed_forwards(options), live(units, n));
                        const Play play = play_within(options);
                        BOOST_CHECK_EQUAL(play.advances + play.recorded, live(units, n));
                        BOOST_CHECK_EQUAL(play.reversed, n);
                        BOOST_CHECK_EQUAL(play.drops, 0);
                        BOOST_CHECK_EQUAL(play.takes, play.saves);
                        BOOST_CHECK_EQUAL(play.fetches, play.stows);
                        if (!g) BOOST_CHECK_EQUAL(play.restarts, 0);
                        BOOST_CHECK(play.actions <= 5 * n + 1);
                    }
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(published_rules_play_what_they_count) {
    constexpr Index longest = 40;
    constexpr Index most_units = 12;
    const auto count = [](MixedRule rule, Index n, Index units, Index a) {
        const MixedOptions options{n, units, a, rule != MixedRule::maddison, rule};
        const Index forwards = mixed_forwards(options);
        const Play play = play_within(options);
        BOOST_CHECK_EQUAL(play.advances + play.recorded, forwards);
        return forwards;
    };
    for (const Index a : {1, 2, 4}) {
        Table msm(most_units, longest);
        for (Index m = 1; m <= most_units; ++m) {
            msm(m, 0) = 0;
            for (Index t = 1; t <= longest; ++t) {
                Index& cell = msm(m, t);
                cell = t * (t + 1) / 2;
                for (Index y = 1; y <= t; ++y) {
                    if (y < t) cell = std::min(cell, y + msm(m, y) + msm(m - 1, t - y));
                    cell = std::min(cell, y + msm(m, y - 1) + (y == t ? 0 : m > a ? msm(m - a, t - y) : never));
                }
                BOOST_TEST_CONTEXT(t << " steps, " << m << " units, tape " << a) {
                    BOOST_CHECK_EQUAL(count(MixedRule::mixed, t, m, a), cell);
                    BOOST_CHECK(mixed_forwards({t, m, a}) <= cell);
                    if (a == 1) BOOST_CHECK_EQUAL(count(MixedRule::internal, t, m, 1), cell);
                    BOOST_CHECK_EQUAL(count(MixedRule::hidden, t, m, a), t + revolve_advances(t, m));
                }
            }
        }
    }
    Table maddison(most_units, longest);  // M(n, s) of [Maddison24]
    for (Index s = 1; s <= most_units; ++s) {
        for (Index n = 0; n <= longest; ++n) {
            Index& cell = maddison(s, n);
            if (n <= s + 1) {
                cell = n;
            } else if (s == 1) {
                cell = n * (n + 1) / 2 - 1;
            } else {
                cell = 1 + maddison(s - 1, n - 1);
                for (Index i = 2; i < n; ++i) cell = std::min(cell, i + maddison(s, i) + maddison(s - 1, n - i));
            }
            BOOST_TEST_CONTEXT(n << " steps, " << s << " units") {
                BOOST_CHECK_EQUAL(count(MixedRule::maddison, n, s, 1), cell);
            }
        }
    }
    for (const MixedRule rule : {MixedRule::hidden, MixedRule::internal, MixedRule::mixed, MixedRule::maddison}) {
        for (const Index n : {0, 1, 2}) {
            BOOST_TEST_CONTEXT(n << " steps, rule " << static_cast<int>(rule)) {
                BOOST_CHECK(count(rule, n, 1, 1) >= n);
                BOOST_CHECK(count(rule, n, 100, 1) >= n);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_thousand_steps) {
    const auto forwards = [](Index units, Index a, bool restart) {
        const MixedOptions options{1000, units, a, restart};
        const Play play = play_within(options);
        BOOST_CHECK_EQUAL(play.advances + play.recorded, mixed_forwards(options));
        return play.advances + play.recorded;
    };
    BOOST_CHECK_EQUAL(forwards(50, 1, true), 1949);
    BOOST_CHECK_EQUAL(forwards(50, 4, true), 2648);
    BOOST_CHECK_EQUAL(forwards(100, 8, true), 2310);
    BOOST_CHECK_EQUAL(forwards(50, 1, false), 1974);
    BOOST_CHECK_EQUAL(forwards(50, 4, false), 2651);
    BOOST_CHECK_EQUAL(forwards(10, 1, true), 3637);
    BOOST_CHECK_EQUAL(forwards(10, 1, false), 3921);
}

BOOST_AUTO_TEST_CASE(four_links_with_a_tape_of_two_units) {
    BOOST_CHECK_EQUAL(text_of(by_next(*mixed({4, 3, 2, true}))),
                      "record [0, 1)\n"
                      "stow [0, 1) to ram slot 0\n"
                      "advance [1, 2)\n"
                      "save x_2 to ram slot 1\n"
                      "advance [2, 3)\n"
                      "record [3, 4)\n"
                      "turn x_4\n"
                      "reverse [3, 4)\n"
                      "take x_2 from ram slot 1\n"
                      "tape [2, 3)\n"
                      "reverse [2, 3)\n"
                      "restart x_1 from ram slot 0\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "fetch [0, 1) from ram slot 0\n"
                      "reverse [0, 1)\n"
                      "done\n");
    BOOST_CHECK_EQUAL(text_of(by_next(*mixed({4, 2, 1, true, MixedRule::internal}))),
                      "save x_0 to ram slot 0\n"
                      "advance [0, 1)\n"
                      "record [1, 2)\n"
                      "stow [1, 2) to ram slot 1\n"
                      "advance [2, 3)\n"
                      "record [3, 4)\n"
                      "turn x_4\n"
                      "reverse [3, 4)\n"
                      "restart x_2 from ram slot 1\n"
                      "tape [2, 3)\n"
                      "reverse [2, 3)\n"
                      "fetch [1, 2) from ram slot 1\n"
                      "reverse [1, 2)\n"
                      "take x_0 from ram slot 0\n"
                      "tape [0, 1)\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(closed_forms_start_at_once_however_long_the_chain) {
    const Index n = Index{1} << 40;
    const MixedOptions options{n, 100, 1, true};
    BOOST_CHECK_EQUAL(mixed_table_bytes(options), 0u);
    BOOST_CHECK_EQUAL(mixed_forwards(options), 1 + revolve_advances(n, 100));
    const auto schedule = mixed(options);
    BOOST_CHECK(schedule->next().verb == Verb::record);
    BOOST_CHECK(schedule->next().verb == Verb::stow);
    BOOST_CHECK_EQUAL(mixed_forwards({n, 100, 101, false}), n + revolve_advances(n, 100));
    BOOST_CHECK_EQUAL(mixed_table_bytes({1000, 50, 4, true}), 2u * 51 * 1001 * 4);
    BOOST_CHECK_EQUAL(mixed_table_bytes({1000, 50, 4, false}), 51u * 1001 * 4);
    BOOST_CHECK_EQUAL(mixed_table_bytes({1000, 50, 4, true, MixedRule::mixed}), 50u * 1001 * 4);
}

BOOST_AUTO_TEST_CASE(refusals) {
    const auto refused = [](const MixedOptions& options, const char* words) {
        BOOST_TEST_CONTEXT(words) {
            BOOST_CHECK_MESSAGE(options.problem().find(words) != std::string::npos, options.problem());
            BOOST_CHECK_EXCEPTION(mixed(options), InvalidArgument, says(words));
            BOOST_CHECK_EXCEPTION(mixed_forwards(options), InvalidArgument, says(words));
        }
    };
    constexpr Index most = std::numeric_limits<Index>::max();
    refused({-1, 4}, "steps must lie in 0 ... 2^62, came -1");
    refused({most, 4}, "steps must lie in 0 ... 2^62");
    refused({5, -1}, "units must be 1 or more for more than one link, came -1");
    refused({2, 0}, "units must be 1 or more for more than one link, came 0");
    refused({5, 3, 0}, "tape_units must be 1 or more (a state takes 1), came 0");
    refused({5, 3, -7}, "tape_units must be 1 or more (a state takes 1), came -7");
    refused({5, 3, 2, true, MixedRule::internal}, "tape_units must be 1, came 2");
    refused({5, 3, 1, false, MixedRule::internal}, "set restart");
    refused({5, 3, 1, false, MixedRule::mixed}, "set restart");
    refused({5, 3, 1, true, MixedRule::maddison}, "means tape_units = 1 and restart = false");
    refused({5, 3, 2, false, MixedRule::maddison}, "means tape_units = 1 and restart = false");
    refused({5, 3, 1, true, MixedRule::optimal, true}, "take rule hidden, revolve, or a chain");
    refused({1000, 50, 4, true, MixedRule::optimal, false, 1000}, "take 408408 bytes, table_limit allows 1000");
    refused({1000000, 5000, 4}, "count in coarser units");
    refused({Index{1} << 62, most / 2, 2}, "count in coarser units");
    refused({Index{1} << 62, most, most}, "");
    BOOST_CHECK_EXCEPTION(mixed_forwards({Index{1} << 62, 3, 1}), InvalidArgument, says("pass 2^63 - 1"));
    BOOST_CHECK_EXCEPTION(mixed({Index{1} << 62, most, 1, false}), InvalidArgument, says("2147483647"));
    BOOST_CHECK_EQUAL(mixed_forwards({Index{1} << 62, most, 1, false}), Index{1} << 62);
    MixedOptions hidden{9, 3, 1, true, MixedRule::hidden, true};
    Machine machine;
    machine.needs_state = true;
    BOOST_CHECK_EQUAL(referee(*mixed(hidden), 9, {}, machine).recorded, 9);
}
