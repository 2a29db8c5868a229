// The made tasks: what a sequence must look like, the same numbers for every cut, and the errors of the trivial
// answers.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE generators
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/data/generators.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

using namespace backsweep;

namespace {

/// All arrays of a cut are those columns of the whole window.
template <class Real>
void cut_is_part(const Source<Real>& source, Index window, Range columns) {
    Ledger ledger;
    Batch<Real> all(ledger), part;
    source.read({window, {0, source.batch()}}, all);
    BOOST_TEST(ledger.live()[Kind::data] == all.steps * all.batch * source.step_bytes());
    source.read({window, columns}, part);
    BOOST_TEST(part.batch == columns.size());
    BOOST_TEST(part.steps == all.steps);
    const auto same = [&](const auto& a, const auto& p) {
        if (a.empty()) return p.empty();
        const Index features = static_cast<Index>(a.size()) / (all.steps * all.batch);
        bool right = static_cast<Index>(p.size()) == features * part.steps * part.batch;
        for (Index t = 0; right && t < part.steps; ++t)
            right = std::equal(p.begin() + t * part.batch * features, p.begin() + (t + 1) * part.batch * features,
                               a.begin() + (t * all.batch + columns.first) * features);
        return right;
    };
    BOOST_TEST(same(all.tokens, part.tokens));
    BOOST_TEST(same(all.inputs, part.inputs));
    BOOST_TEST(same(all.classes, part.classes));
    BOOST_TEST(same(all.values, part.values));
    BOOST_TEST(same(all.weights, part.weights));
}

}  // namespace

BOOST_AUTO_TEST_CASE(adding_problem_adds_one_value_of_each_half) {
    for (const Index T : {2, 3, 50}) {
        const AddingSource<double> source({.steps = T, .batch = 400, .windows = 3, .seed = 9});
        BOOST_TEST(source.window() == T);
        double squares = 0.0;
        std::set<Index> places;
        Batch<double> batch;
        for (Index w = 0; w < 5; ++w) {
            BOOST_TEST(source.fresh(w));
            source.read({w, {0, 400}}, batch);
            BOOST_TEST(batch.tokens.empty());
            BOOST_TEST(batch.classes.empty());
            bool right = true;
            for (Index b = 0; b < 400; ++b) {
                double sum = 0.0, weight = 0.0;
                Index first = 0, second = 0;
                for (Index t = 0; t < T; ++t) {
                    const double* x = batch.inputs.data() + 2 * (t * 400 + b);
                    right = right && x[0] >= 0.0 && x[0] < 1.0 && (x[1] == 0.0 || x[1] == 1.0);
                    sum += x[0] * x[1];
                    (t < T / 2 ? first : second) += x[1] == 1.0;
                    if (x[1] == 1.0) places.insert(t);
                    weight += batch.weights[static_cast<std::size_t>(t * 400 + b)];
                }
                const auto last = static_cast<std::size_t>((T - 1) * 400 + b);
                right = right && first == 1 && second == 1 && weight == 1.0 && batch.weights[last] == 1.0;
                right = right && std::abs(batch.values[last] - sum) < 1e-15;
                squares += (batch.values[last] - 1.0) * (batch.values[last] - 1.0);
            }
            BOOST_TEST(right);
        }
        BOOST_TEST(static_cast<Index>(places.size()) == T);
        // Mean of 2000 squares with variance 7/180: four standard errors are 0.018.
        BOOST_TEST(std::abs(squares / 2000.0 - 1.0 / 6.0) < 0.018);
    }
}

BOOST_AUTO_TEST_CASE(copy_memory_asks_for_the_symbols_at_the_end) {
    for (const CopySpec& spec : {CopySpec{.delay = 1, .length = 1, .symbols = 1, .batch = 1},
                                 CopySpec{.delay = 37, .length = 10, .symbols = 8, .batch = 50},
                                 CopySpec{.delay = 5, .length = 9, .symbols = 3, .batch = 2}}) {
        const CopySource<float> source(spec);
        const Index T = spec.steps(), B = spec.batch, K = spec.length;
        const auto blank = static_cast<std::int32_t>(spec.symbols);
        BOOST_TEST(source.window() == T);
        Batch<float> batch;
        source.read({4, {0, B}}, batch);
        std::vector<Index> counts(static_cast<std::size_t>(spec.symbols));
        bool right = batch.inputs.empty() && batch.values.empty() && batch.weights.empty();
        for (Index b = 0; b < B; ++b)
            for (Index t = 0; t < T; ++t) {
                const auto at = [&](Index step) { return static_cast<std::size_t>(step * B + b); };
                const std::int32_t token = batch.tokens[at(t)];
                if (t < K) {
                    right = right && token >= 0 && token < blank;
                    ++counts[static_cast<std::size_t>(token)];
                } else {
                    right = right && token == (t == T - K - 1 ? blank + 1 : blank);
                }
                right = right && batch.classes[at(t)] == (t >= T - K ? batch.tokens[at(t - (T - K))] : blank);
            }
        BOOST_TEST(right);
        BOOST_TEST((B < 50 || *std::min_element(counts.begin(), counts.end()) > 30));
        BOOST_TEST(spec.vocabulary() == blank + 2);
    }
}

BOOST_AUTO_TEST_CASE(a_window_is_a_function_of_seed_and_number) {
    const AddingSource<float> adding({.steps = 13, .batch = 7, .seed = 3}), other({.steps = 13, .batch = 7, .seed = 4});
    const CopySource<float> copy({.delay = 11, .batch = 7, .seed = 3}), copied({.delay = 11, .batch = 7, .seed = 4});
    for (const Range columns : {Range{0, 7}, Range{0, 1}, Range{6, 7}, Range{2, 5}})
        for (const Index window : {0, 3, 1'000'000}) {
            cut_is_part(adding, window, columns);
            cut_is_part(copy, window, columns);
        }
    const auto differ = [](const auto& x, const auto& y) { return !std::equal(x.begin(), x.end(), y.begin(), y.end()); };
    Batch<float> a, b;
    adding.read({5, {0, 7}}, a);
    adding.read({6, {0, 7}}, b);
    BOOST_TEST(differ(a.inputs, b.inputs));
    other.read({5, {0, 7}}, b);
    BOOST_TEST(differ(a.inputs, b.inputs));
    copy.read({5, {0, 7}, 20}, a);
    BOOST_TEST(a.loss_from == 0);
    copied.read({5, {0, 7}}, b);
    BOOST_TEST(differ(a.tokens, b.tokens));
    BOOST_TEST(b.inputs.empty());
}

BOOST_AUTO_TEST_CASE(wrong_options_are_named) {
    const auto says = [](const std::string& problem, const char* word) {
        BOOST_TEST_CONTEXT(problem) {
            BOOST_TEST(problem.find(word) != std::string::npos);
        }
    };
    says(AddingSpec{.steps = 1}.problem(), "adding problem: steps must lie between 2");
    says(AddingSpec{.batch = 0}.problem(), "batch");
    says(AddingSpec{.windows = 0}.problem(), "windows");
    says(CopySpec{.delay = 0}.problem(), "copy memory: delay");
    says(CopySpec{.length = -1}.problem(), "length");
    says(CopySpec{.symbols = Index{1} << 40}.problem(), "symbols");
    BOOST_CHECK_THROW(AddingSource<float>({.steps = 1}), InvalidArgument);
    BOOST_CHECK_THROW(CopySource<float>({.delay = 0}), InvalidArgument);
    Batch<double> batch;
    BOOST_CHECK_THROW(AddingSource<double>({}).read({0, {0, 33}}, batch), InvalidArgument);
}
