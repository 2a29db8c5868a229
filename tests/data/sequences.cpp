// Sequences of unequal length in batches: what stands where, every sequence once an epoch, and what is refused.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE sequences
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/data/sequences.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

/// Sequence s has lengths[s] steps; step t reads (100 s + t, -t) and its target is the class s + t, its weight 1 / (t +
/// 1).
Sequences<double> made(const std::vector<Index>& lengths) {
    Sequences<double> set;
    set.features = 2;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
        set.append(lengths[s]);
        for (Index t = 0; t < lengths[s]; ++t) {
            set.inputs.push_back(100.0 * static_cast<double>(s) + static_cast<double>(t));
            set.inputs.push_back(-static_cast<double>(t));
            set.classes.push_back(static_cast<std::int32_t>(s) + static_cast<std::int32_t>(t));
            set.weights.push_back(1.0 / static_cast<double>(t + 1));
        }
    }
    return set;
}

/// Reads an epoch of `source` and checks every position against the set; returns how often each step of each sequence
/// came.
std::vector<std::vector<int>> read_all(const SequenceSource<double>& source, Index epoch, Index look_back = 0) {
    std::vector<std::vector<int>> seen;
    for (Index s = 0; s < source.set().count(); ++s)
        seen.emplace_back(static_cast<std::size_t>(source.set().length(s)), 0);
    Batch<double> batch;
    for (Index w = 0; w < source.windows(); ++w) {
        const Index window = epoch * source.windows() + w;
        source.read({window, {0, source.batch()}, look_back}, batch);
        BOOST_TEST_REQUIRE(batch.batch == source.batch());
        BOOST_TEST_REQUIRE(batch.steps <= source.window() + look_back);
        BOOST_TEST(source.fresh(window) == (batch.first + batch.loss_from == 0));
        for (Index b = 0; b < batch.batch; ++b) {
            const Index s = source.sequence(window, b);
            for (Index t = 0; t < batch.steps; ++t) {
                const Index p = t * batch.batch + b, at = batch.first + t;
                if (s < 0 || at >= source.set().length(s)) {
                    BOOST_TEST((batch.marks[p] == Mark::filler));
                    BOOST_TEST(batch.weights[p] == 0.0);
                    continue;
                }
                BOOST_TEST((batch.marks[p] == (at == 0 ? Mark::first : Mark::step)));
                BOOST_TEST(batch.inputs[2 * p] == 100.0 * static_cast<double>(s) + static_cast<double>(at));
                BOOST_TEST(batch.inputs[2 * p + 1] == -static_cast<double>(at));
                BOOST_TEST(batch.classes[p] == s + at);
                BOOST_TEST(batch.weights[p] == 1.0 / static_cast<double>(at + 1));
                if (t >= batch.loss_from) ++seen[static_cast<std::size_t>(s)][static_cast<std::size_t>(at)];
            }
        }
    }
    return seen;
}

bool once_each(const std::vector<std::vector<int>>& seen) {
    return std::all_of(seen.begin(), seen.end(), [](const auto& steps) {
        return std::all_of(steps.begin(), steps.end(), [](int times) { return times == 1; });
    });
}

std::vector<Index> order(const SequenceSource<double>& source, Index epoch) {
    std::vector<Index> order;
    for (Index w = 0; w < source.windows(); ++w)
        for (Index b = 0; b < source.batch(); ++b) order.push_back(source.sequence(epoch * source.windows() + w, b));
    return order;
}

const std::vector<Index> lengths{7, 4, 2, 1, 9, 3, 3, 11, 5, 6};

}  // namespace

BOOST_AUTO_TEST_CASE(every_step_of_every_sequence_comes_once_an_epoch) {
    for (const auto groups : {SequenceBatches::Groups::in_order, SequenceBatches::Groups::by_length})
        for (const bool shuffle : {false, true})
            for (const Index window : {0, 1, 3, 4, 11, 50})
                for (const Index batch : {1, 3, 4, 10, 13}) {
                    const SequenceSource<double> source(made(lengths), {batch, window, groups, shuffle, 5});
                    for (const Index epoch : {0, 1, 7})
                        for (const Index look_back : {0, 2}) BOOST_TEST(once_each(read_all(source, epoch, look_back)));
                }
}

BOOST_AUTO_TEST_CASE(a_shuffle_is_another_every_epoch_and_the_same_for_a_seed) {
    const auto source = [](std::uint64_t seed, bool shuffle, Index window) {
        return SequenceSource<double>(made(lengths), {4, window, SequenceBatches::Groups::in_order, shuffle, seed});
    };
    const auto whole = source(1, true, 0), again = source(1, true, 0), other = source(2, true, 0);
    BOOST_TEST(whole.windows() == 3);
    BOOST_TEST((order(whole, 0) != order(whole, 1)));
    BOOST_TEST((order(whole, 3) == order(again, 3)));
    BOOST_TEST((order(whole, 0) == order(again, 0)));  // after epoch 3
    BOOST_TEST((order(whole, 0) != order(other, 0)));
    const auto plain = source(1, false, 0);
    BOOST_TEST((order(plain, 0) == order(plain, 5)));
    BOOST_TEST((order(plain, 0) == std::vector<Index>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -1}));
    // Cut in time, whole groups change places.
    const auto cut = source(1, true, 4);
    std::set<std::vector<Index>> groups;
    for (Index epoch = 0; epoch < 20; ++epoch)
        for (Index w = 0; w < cut.windows(); ++w) {
            std::vector<Index> group;
            for (Index b = 0; b < 4; ++b) group.push_back(cut.sequence(epoch * cut.windows() + w, b));
            groups.insert(group);
        }
    BOOST_TEST((groups == std::set<std::vector<Index>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, -1, -1}}));
}

BOOST_AUTO_TEST_CASE(groups_by_length_have_fewer_fillers) {
    const SequenceSource<double> plain(made(lengths), {4, 0, SequenceBatches::Groups::in_order});
    const SequenceSource<double> grouped(made(lengths), {4, 0, SequenceBatches::Groups::by_length});
    // in order: longest 7, 11, 6; by length: 1 2 3 3 | 4 5 6 7 | 9 11
    BOOST_TEST(plain.filler() == 1.0 - 51.0 / (4.0 * 24.0));
    BOOST_TEST(grouped.filler() == 1.0 - 51.0 / (4.0 * 21.0));
    BOOST_TEST(grouped.window() == 11);
}

BOOST_AUTO_TEST_CASE(one_target_lies_at_the_last_step) {
    Sequences<double> set = made({3, 1});
    set.weights.clear();
    set.one_target = true;
    set.classes = {8, 9};
    const SequenceSource<double> source(set, {3, 2});
    Batch<double> batch;
    source.read({0, {0, 3}, 0}, batch);
    const auto weights = [&] { return std::vector<double>(batch.weights.begin(), batch.weights.end()); };
    BOOST_TEST((weights() == std::vector<double>{0, 1, 0, 0, 0, 0}));
    BOOST_TEST(batch.classes[1] == 9);
    source.read({1, {0, 3}, 0}, batch);
    BOOST_TEST((weights() == std::vector<double>{1, 0, 0}));
    BOOST_TEST(batch.classes[0] == 8);
    source.read({1, {0, 1}, 1}, batch);  // one column, a step looked back at
    BOOST_TEST(batch.loss_from == 1);
    BOOST_TEST((weights() == std::vector<double>{0, 1}));
}

BOOST_AUTO_TEST_CASE(sets_that_cannot_be_are_refused_in_words) {
    const auto refused = [](auto&& change, const char* word) {
        Sequences<double> set = made({3, 2});
        change(set);
        return set.problem().find(word) != std::string::npos;
    };
    BOOST_TEST(made({3, 2}).problem().empty());
    BOOST_TEST(refused([](auto& s) { s.begins = {0}; }, "begins"));
    BOOST_TEST(refused([](auto& s) { s.begins = {1, 3}; }, "begins"));
    BOOST_TEST(refused([](auto& s) { s.begins = {0, 3, 3}; }, "sequence 1 has 0 steps"));
    BOOST_TEST(refused([](auto& s) { s.inputs.pop_back(); },
                       "inputs must have the shape [step][feature], 10 elements, but has 9"));
    BOOST_TEST(refused([](auto& s) { s.classes.pop_back(); }, "classes must have the shape [step]"));
    BOOST_TEST(
        refused([](auto& s) { s.one_target = true; }, "classes must have the shape [sequence], 2 elements, but has 5"));
    BOOST_TEST(refused([](auto& s) { s.weights.push_back(1.0); }, "weights"));
    BOOST_TEST(refused([](auto& s) { s.inputs.clear(); }, "either tokens or inputs"));
    BOOST_TEST(refused([](auto& s) { s.tokens.assign(5, 0); }, "either tokens or inputs"));
    const auto words = [](const char* word) {
        return [word](const InvalidArgument& e) { return std::string(e.what()).find(word) != std::string::npos; };
    };
    BOOST_CHECK_EXCEPTION(SequenceSource<double>(made({3}), {0}), InvalidArgument, words("batch"));
    BOOST_CHECK_EXCEPTION(SequenceSource<double>(made({3}), {1, -1}), InvalidArgument, words("window"));
    const SequenceSource<double> source(made({3}), {2});
    Batch<double> batch;
    BOOST_CHECK_EXCEPTION(source.read({0, {0, 3}, 0}, batch), InvalidArgument, words("sequences"));
    BOOST_CHECK_EXCEPTION(source.read({0, {0, 2}, 0, {0, 2}}, batch), InvalidArgument, words("cannot be cut"));
}
