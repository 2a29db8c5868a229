// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE schedule_action
#include "support/unit_test.hpp"

#include "backsweep/schedule/action.hpp"

#include <cstring>
#include <set>
#include <string>

using namespace backsweep;

BOOST_AUTO_TEST_CASE(bytes_lie_where_c_and_fortran_look_for_them) {
    const Action action{Verb::move, {Tier::pinned, 7}, {Tier::disk, 9}, 0, {Index{1} << 40, (Index{1} << 40) + 1}};
    std::int32_t words[5];
    std::int64_t range[2];
    std::memcpy(words, &action, sizeof words);
    std::memcpy(range, reinterpret_cast<const char*>(&action) + 24, sizeof range);
    const std::int32_t expected[5] = {11, 1, 7, 3, 9};
    for (int k = 0; k < 5; ++k) BOOST_CHECK_EQUAL(words[k], expected[k]);
    BOOST_CHECK_EQUAL(range[0], 1099511627776);
    BOOST_CHECK_EQUAL(range[1], 1099511627777);
}

BOOST_AUTO_TEST_CASE(a_default_action_is_done_and_names_no_slot) {
    const Action action;
    BOOST_TEST((action.verb == Verb::done));
    BOOST_CHECK_EQUAL(action.from.index, -1);
    BOOST_CHECK_EQUAL(action.to.index, -1);
    BOOST_CHECK_EQUAL(to_string(action), "done");
}

BOOST_AUTO_TEST_CASE(every_verb_and_tier_has_a_name_of_its_own) {
    std::set<std::string> verbs;
    for (int verb = 0; verb <= static_cast<int>(Verb::done); ++verb) verbs.insert(to_string(static_cast<Verb>(verb)));
    BOOST_CHECK_EQUAL(verbs.size(), 14u);
    BOOST_CHECK_EQUAL(verbs.count("unknown verb"), 0u);
    BOOST_CHECK_EQUAL(std::string(to_string(static_cast<Verb>(99))), "unknown verb");
    std::set<std::string> tiers;
    for (int tier = 0; tier <= static_cast<int>(Tier::disk); ++tier) tiers.insert(to_string(static_cast<Tier>(tier)));
    BOOST_CHECK_EQUAL(tiers.size(), 4u);
    BOOST_CHECK_EQUAL(std::string(to_string(static_cast<Tier>(9))), "unknown tier");
}

BOOST_AUTO_TEST_CASE(actions_in_words) {
    BOOST_CHECK_EQUAL(to_string(Action{Verb::advance, {}, {}, 0, {3, 12}}), "advance [3, 12)");
    BOOST_CHECK_EQUAL(to_string(Action{Verb::save, {}, {Tier::ram, 2}, 0, {12, 12}}), "save x_12 to ram slot 2");
    BOOST_CHECK_EQUAL(to_string(Action{Verb::take, {Tier::disk, 0}, {}, 0, {5, 5}}), "take x_5 from disk slot 0");
    BOOST_CHECK_EQUAL(to_string(Action{Verb::drop, {}, {}, 0, {4, 5}}), "drop [4, 5)");
    BOOST_CHECK_EQUAL(to_string(Slot{}), "no slot");
}
