// Field case G25: "layer count not divisible by the group size". The last group is shorter, and the gradient has the
// bits of storing everything.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_g25
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "support/toy_chains.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

using namespace backsweep;
using test::Oscillator;

namespace {

/// How many links are recorded one after the other, from the first group to the last (the last is recorded first).
std::vector<Index> groups_of(Schedule& schedule) {
    std::vector<Index> groups;
    Index expected = -1;
    for (Action action = schedule.next(); action.verb != Verb::done; action = schedule.next()) {
        if (action.verb != Verb::record && action.verb != Verb::tape) continue;
        if (action.steps.first != expected) groups.push_back(0);
        ++groups.back();
        expected = action.steps.last;
    }
    std::reverse(groups.begin(), groups.end());
    return groups;
}

/// With respect to x_0 and the parameters.
std::vector<double> gradient(Index layers, std::unique_ptr<Schedule> schedule) {
    Oscillator<> chain(layers);
    Execution run(chain, std::move(schedule));
    run.forward();
    run.backward();
    std::vector<double> all = run.adjoint();
    all.insert(all.end(), chain.gradient.begin(), chain.gradient.end());
    return all;
}

struct Row {
    Index layers;
    Index group;
    std::vector<Index> groups;
};

const Row table[] = {
    {24, 7, {7, 7, 7, 3}}, {13, 5, {5, 5, 3}}, {13, 40, {13}},    {1, 1, {1}},
    {1, 7, {1}},           {24, 24, {24}},     {25, 24, {24, 1}},
};

}  // namespace

BOOST_AUTO_TEST_CASE(G25) {
    for (const Row& row : table) {
        BOOST_TEST_CONTEXT(row.layers << " layers in groups of " << row.group) {
            BOOST_CHECK(groups_of(*periodic(row.layers, row.group)) == row.groups);
            const std::vector<double> wanted = gradient(row.layers, store_all(row.layers));
            BOOST_CHECK(test::same_bits(gradient(row.layers, periodic(row.layers, row.group)), wanted));
        }
    }
}
