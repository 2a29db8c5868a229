// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_store_all
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "support/streams.hpp"

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr auto in_ram = static_cast<std::size_t>(Tier::ram);

}  // namespace

BOOST_AUTO_TEST_CASE(three_links) {
    BOOST_CHECK_EQUAL(text_of(by_next(*store_all(3))),
                      "record [0, 1)\n"
                      "stow [0, 1) to ram slot 0\n"
                      "record [1, 2)\n"
                      "stow [1, 2) to ram slot 1\n"
                      "record [2, 3)\n"
                      "turn x_3\n"
                      "reverse [2, 3)\n"
                      "fetch [1, 2) from ram slot 1\n"
                      "reverse [1, 2)\n"
                      "fetch [0, 1) from ram slot 0\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(two_links_that_need_their_states) {
    BOOST_CHECK_EQUAL(text_of(by_next(*store_all(2, true))),
                      "save x_0 to ram slot 0\n"
                      "record [0, 1)\n"
                      "stow [0, 1) to ram slot 2\n"
                      "save x_1 to ram slot 1\n"
                      "record [1, 2)\n"
                      "turn x_2\n"
                      "take x_1 from ram slot 1\n"
                      "reverse [1, 2)\n"
                      "fetch [0, 1) from ram slot 2\n"
                      "take x_0 from ram slot 0\n"
                      "reverse [0, 1)\n"
                      "done\n");
}

BOOST_AUTO_TEST_CASE(an_empty_chain_turns_at_once) {
    BOOST_CHECK_EQUAL(text_of(by_next(*store_all(0))), "turn x_0\ndone\n");
    BOOST_CHECK_EQUAL(text_of(by_next(*store_all(0, true))), "turn x_0\ndone\n");
}

BOOST_AUTO_TEST_CASE(counts) {
    for (const Index steps : {1, 2, 7, 64, 1000}) {
        const Play plain = referee(*store_all(steps), steps);
        BOOST_CHECK_EQUAL(plain.advances, 0);
        BOOST_CHECK_EQUAL(plain.recorded, steps);
        BOOST_CHECK_EQUAL(plain.tape_slots[in_ram], steps - 1);
        BOOST_CHECK_EQUAL(plain.state_slots[in_ram], 0);
        const Play needs = referee(*store_all(steps, true), steps, {}, {.needs_state = true});
        BOOST_CHECK_EQUAL(needs.advances, 0);
        BOOST_CHECK_EQUAL(needs.recorded, steps);
        BOOST_CHECK_EQUAL(needs.tape_slots[in_ram], steps - 1);
        BOOST_CHECK_EQUAL(needs.state_slots[in_ram], steps);
    }
}

BOOST_AUTO_TEST_CASE(refusals) {
    BOOST_CHECK_EXCEPTION(store_all(-1), InvalidArgument, says("store_all: steps must be 0 or more, came -1"));
    BOOST_CHECK_EXCEPTION(store_all(Index{1} << 40), InvalidArgument, says("more than the 2147483647 slots"));
    BOOST_CHECK_EXCEPTION(store_all(Index{1} << 62, true), InvalidArgument, says("take revolve"));
}
