// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_periodic
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "support/streams.hpp"

#include <algorithm>
#include <limits>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr auto in_ram = static_cast<std::size_t>(Tier::ram);

}  // namespace

BOOST_AUTO_TEST_CASE(five_links_in_blocks_of_two) {
    BOOST_CHECK_EQUAL(text_of(by_next(*periodic(5, 2))),
                      "save x_0 to ram slot 0\n"
                      "advance [0, 2)\n"
                      "save x_2 to ram slot 1\n"
                      "advance [2, 4)\n"
                      "record [4, 5)\n"
                      "turn x_5\n"
                      "reverse [4, 5)\n"
                      "take x_2 from ram slot 1\n"
                      "record [2, 3)\n"
                      "stow [2, 3) to ram slot 2\n"
                      "tape [3, 4)\n"
                      "reverse [3, 4)\n"
                      "fetch [2, 3) from ram slot 2\n"
                      "reverse [2, 3)\n"
                      "take x_0 from ram slot 0\n"
                      "record [0, 1)\n"
                      "stow [0, 1) to ram slot 2\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "fetch [0, 1) from ram slot 2\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(blocks_of_two_that_need_their_states) {
    BOOST_CHECK_EQUAL(text_of(by_next(*periodic(4, 2, true))),
                      "save x_0 to ram slot 0\n"
                      "advance [0, 2)\n"
                      "save x_2 to ram slot 1\n"
                      "record [2, 3)\n"
                      "stow [2, 3) to ram slot 3\n"
                      "save x_3 to ram slot 2\n"
                      "record [3, 4)\n"
                      "turn x_4\n"
                      "take x_3 from ram slot 2\n"
                      "reverse [3, 4)\n"
                      "fetch [2, 3) from ram slot 3\n"
                      "take x_2 from ram slot 1\n"
                      "reverse [2, 3)\n"
                      "load x_0 from ram slot 0\n"
                      "record [0, 1)\n"
                      "stow [0, 1) to ram slot 3\n"
                      "tape [1, 2)\n"
                      "reverse [1, 2)\n"
                      "fetch [0, 1) from ram slot 3\n"
                      "take x_0 from ram slot 0\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(counts_for_every_period) {
    for (Index steps = 0; steps <= 40; ++steps) {
        for (Index period = 1; period <= steps + 2; ++period) {
            for (const bool needs_state : {false, true}) {
                BOOST_TEST_CONTEXT(steps << " steps, period " << period << ", needs_state " << needs_state) {
                    const auto schedule = periodic(steps, period, needs_state);
                    const Play play = referee(*schedule, steps, {}, {.needs_state = needs_state});
                    const Index blocks = (steps + period - 1) / period;
                    const Index outer = std::max<Index>(blocks - 1, 0);
                    const Index block = std::min(period, steps);
                    BOOST_CHECK_EQUAL(play.advances, outer * period);
                    BOOST_CHECK_EQUAL(play.recorded, steps);
                    BOOST_CHECK_EQUAL(play.tape_slots[in_ram], std::max<Index>(block - 1, 0));
                    if (!needs_state) {
                        BOOST_CHECK_EQUAL(play.state_slots[in_ram], outer);
                    } else {
                        BOOST_CHECK(play.state_slots[in_ram] <= outer + block);
                    }
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(one_block_is_store_all) {
    for (const Index period : {Index{9}, Index{10}, std::numeric_limits<Index>::max()}) {
        for (const bool needs_state : {false, true}) {
            BOOST_CHECK_EQUAL(text_of(by_next(*periodic(9, period, needs_state))),
                              text_of(by_next(*store_all(9, needs_state))));
        }
    }
}

BOOST_AUTO_TEST_CASE(refusals) {
    BOOST_CHECK_EXCEPTION(periodic(5, 0), InvalidArgument, says("periodic: period must be 1 or more, came 0"));
    BOOST_CHECK_EXCEPTION(periodic(-3, 2), InvalidArgument, says("periodic: steps must be 0 or more, came -3"));
    BOOST_CHECK_EXCEPTION(periodic(Index{1} << 40, 4), InvalidArgument, says("more than the 2147483647 slots"));
    BOOST_CHECK_EXCEPTION(periodic(Index{1} << 62, Index{1} << 61), InvalidArgument, says("near the square root"));
    BOOST_CHECK_NO_THROW(periodic(Index{1} << 40, Index{1} << 20));
}
