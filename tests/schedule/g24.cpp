// Field case G24: "4 steps with 4 slots wasted one". The convention: x_0 takes a slot; links recorded or taped are not
// counted as advances. The referee counts what was planned, and both equal the table.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_g24
#include "support/unit_test.hpp"

#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"

using namespace backsweep;

namespace {

struct Row {
    Index steps;
    Index slots;
    Index advances;
};

constexpr Row table[] = {{4, 4, 3},    {5, 2, 6},      {10, 3, 15},      {30, 5, 62},         {50, 3, 180},
                         {60, 6, 144}, {225, 15, 522}, {1000, 10, 3636}, {81912, 286, 204120}};

}  // namespace

BOOST_AUTO_TEST_CASE(G24) {
    for (const Row& row : table) {
        for (const AdvanceRule rule : {AdvanceRule::fewest_writes, AdvanceRule::longest, AdvanceRule::shortest}) {
            BOOST_TEST_CONTEXT(row.steps << " steps, " << row.slots << " slots, rule " << static_cast<int>(rule)) {
                BOOST_CHECK_EQUAL(revolve_advances(row.steps, row.slots), row.advances);
                Limits limits;
                limits.slots[static_cast<std::size_t>(Tier::ram)] = row.slots;
                const Play play = referee(*revolve(row.steps, row.slots, rule), row.steps, {}, {.limits = limits});
                BOOST_CHECK_EQUAL(play.advances, row.advances);
                BOOST_CHECK_EQUAL(play.recorded, row.steps);
            }
        }
    }
}
