// Training of models whose attention remembers earlier steps: bytes predicted and measured, and the same bits wherever
// the rows live, under every plan, with any number of threads and after a restart.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE memories
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/models.hpp"
#include "backsweep/train/trainer.hpp"
#include "support/compare.hpp"
#include "train/made_text.hpp"

#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// Two memories each: SHA-RNN with two heads, Transformer-XL of two layers.
std::vector<ModelSpec> models() {
    ShaRnn sha;
    sha.ends.vocabulary = sha.ends.outputs = 12;
    sha.features = 6;
    sha.layers = 2;
    sha.memory = 7;
    sha.dropout = 0.1;
    TransformerXl xl;
    xl.ends.vocabulary = xl.ends.outputs = 12;
    xl.ends.tied = true;
    xl.features = 6;
    xl.layers = 2;
    xl.heads = 2;
    xl.head_features = 5;
    xl.inner = 9;
    xl.memory = 11;
    xl.detached = true;
    return {sha_rnn(sha), transformer_xl(xl)};
}

TrainOptions options(const char* family, Index slots = 0) {
    TrainOptions o;
    o.chunk = 3;
    o.schedule.family = family;
    o.schedule.slots = slots;
    o.rate.peak = 0.02;
    o.seed = 9;
    return o;
}

template <class Real>
std::vector<Real> trained(const Network<Real>& network, const Source<Real>& source, const TrainOptions& o,
                          Index updates) {
    Trainer<Real> t(network, source, o);
    t.run(updates);
    BOOST_TEST((t.measured() == t.plan().predicted));
    return {t.parameters().begin(), t.parameters().end()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memories)

BOOST_AUTO_TEST_CASE(bits_depend_on_neither_place_nor_plan_and_bytes_are_predicted) {
    const Text text(1 + 6 * 53);
    for (const ModelSpec& spec : models()) {
        const Network<float> network = build<float>(spec);
        const auto source = text.source<float>(6, 13);
        for (const bool carry : {true, false}) {
            TrainOptions o = options("store_all");
            o.carry = carry;
            const std::vector<float> wanted = trained(network, source, o, 9);
            const std::size_t count = network.memories().size();
            BOOST_TEST_REQUIRE(count >= 1u);
            for (const MemoryPlace place : {MemoryPlace::log, MemoryPlace::file, MemoryPlace::state}) {
                o = options("revolve", 2);
                o.carry = carry;
                o.threads = 2;
                o.plan_memories = false;
                o.memories.places.assign(count, place);
                if (place == MemoryPlace::file) o.memories.folder = text.folder();
                BOOST_TEST(same_bits(trained(network, source, o, 9), wanted));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_restart_and_a_look_back_carry_the_rows) {
    const Text text(1 + 6 * 60);
    for (const ModelSpec& spec : models()) {
        const Network<double> network = build<double>(spec);
        const auto source = text.source<double>(4, 6);
        TrainOptions o = options("revolve", 1);
        o.look_back = spec.random() ? 6 : 12;
        const std::vector<double> wanted = trained(network, source, o, 17);
        Trainer<double> first(network, source, o);
        first.run(11);
        Trainer<double> second(network, source, o);
        second.restore(first.snapshot());
        second.run(6);
        BOOST_TEST(same_bits(std::vector<double>(second.parameters().begin(), second.parameters().end()), wanted));
        if (spec.random()) continue;
        o.form =
            TrainOptions::LookBack::once;  // the window's rows are made again with the parameters of their first run
        BOOST_TEST(!same_bits(trained(network, source, o, 17), wanted));
    }
}

// Evaluation with a carry sees what training saw: windows that carry their memory are one long window.
BOOST_AUTO_TEST_CASE(evaluation_in_windows_is_that_of_one_long_window) {
    const Text text(1 + 4 * 48);
    for (const ModelSpec& spec : models()) {
        const Network<double> network = build<double>(spec);
        std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size()));
        network.start(4, parameters);
        const auto loss = [&](Index window, bool carry) {
            return evaluate<double>(network, parameters, text.source<double>(4, window), 6, 2, 1, carry).loss;
        };
        const double whole = loss(48, true);
        BOOST_TEST(std::abs(loss(12, true) - whole) <= 1e-14 * whole);
        BOOST_TEST(std::abs(loss(12, false) - whole) > 1e-6 * whole);
    }
}

BOOST_AUTO_TEST_SUITE_END()
