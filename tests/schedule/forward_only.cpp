// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_forward_only
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/forward_only.hpp"
#include "backsweep/schedule/referee.hpp"
#include "support/streams.hpp"

using namespace backsweep;
using namespace backsweep::test;

BOOST_AUTO_TEST_CASE(with_and_without_loss) {
    BOOST_CHECK_EQUAL(text_of(by_next(*forward_only(2))),
                      "record [0, 1)\ndrop [0, 1)\nrecord [1, 2)\ndrop [1, 2)\ndone\n");
    BOOST_CHECK_EQUAL(text_of(by_next(*forward_only(2, false))), "advance [0, 2)\ndone\n");
    BOOST_CHECK_EQUAL(text_of(by_next(*forward_only(0))), "done\n");
    BOOST_CHECK_EQUAL(text_of(by_next(*forward_only(0, false))), "done\n");
}

BOOST_AUTO_TEST_CASE(the_referee_agrees) {
    for (const Index steps : {0, 1, 31, 32, 33, 1000}) {
        const Play loss = referee(*forward_only(steps), steps, {}, {.reverses = false});
        BOOST_CHECK_EQUAL(loss.recorded, steps);
        BOOST_CHECK_EQUAL(loss.drops, steps);
        BOOST_CHECK_EQUAL(loss.advances, 0);
        const Play state = referee(*forward_only(steps, false), steps, {}, {.needs_state = true, .reverses = false});
        BOOST_CHECK_EQUAL(state.advances, steps);
        BOOST_CHECK_EQUAL(state.recorded, 0);
    }
}

BOOST_AUTO_TEST_CASE(refusals) {
    BOOST_CHECK_EXCEPTION(forward_only(-1), InvalidArgument, says("forward_only: steps must be 0 or more, came -1"));
}
