// The closed formulas of docs/attention.md for the tape of Transformer-XL blocks in a chain, to the byte, and what grows with
// the length of a segment.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE attention_bytes
#include "support/unit_test.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/nn/blocks.hpp"
#include "backsweep/nn/time_chain.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

struct Shape {
    Index E, heads, head, F, M, T, B;
};

ModelSpec blocks(const Shape& s, const char* policy, Index count) {
    ModelSpec m;
    for (Index k = 0; k < count; ++k) {
        TransformerXlBlock xl{.features = s.E, .heads = s.heads, .head_features = s.head, .inner = s.F};
        xl.memory = s.M;
        xl.prefix = "layers." + std::to_string(k) + ".";
        for (LayerSpec& layer : transformer_xl_block(xl)) m.layers.push_back(std::move(layer));
    }
    m.loss.kind = LossSpec::Kind::inner_product;
    return save_policy(std::move(m), policy);
}

/// What a ledger counts of the tape of one link, but for the loss's.
template <class Real>
std::int64_t tape_bytes(const Shape& s, const char* policy, Index count) {
    const Network<Real> network = build<Real>(blocks(s, policy, count));
    std::vector<Real> parameters(static_cast<std::size_t>(network.parameters().size()));
    network.start(1, parameters);
    const std::vector<Real> x(static_cast<std::size_t>(s.T * s.B * s.E), Real{1});
    Window<Real> window;
    window.steps = s.T;
    window.inputs = window.values = x.data();
    window.begins = true;
    Ledger ledger;
    TimeChain<Real> chain(network, s.B, s.T, ledger);
    chain.show(window);
    chain.use(parameters.data());
    auto state = chain.initial();
    typename TimeChain<Real>::Tape tape;
    chain.record({0, 1}, state, tape);
    const Index loss = aligned<Real>(network.layer(network.depth() - 1).footprint(s.T, s.B).tape);
    return ledger.live()[Kind::tape] - loss * static_cast<std::int64_t>(sizeof(Real));
}

/// Of one block.
template <class Real>
std::int64_t formula(const Shape& s, bool everything) {
    const Index TB = s.T * s.B, H = s.heads * s.head, keys = (s.M + s.T) * s.B;
    const auto a = [](Index n) { return aligned<Real>(n); };
    Index attention = a(TB * s.heads) + a(TB * H);  // log-sum-exp, output
    if (everything) attention += a(TB * H) + 2 * a(keys * H);
    const Index input = s.M == 0 ? a(TB * s.E) : 0, norms = 2 * a(TB * s.E), feed_forward = a(TB * s.E) + a(TB * s.F);
    return (attention + input + norms + feed_forward) * static_cast<std::int64_t>(sizeof(Real));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_bytes)

BOOST_AUTO_TEST_CASE(tape_of_blocks_equals_the_closed_formula) {
    for (const Shape& s :
         {Shape{8, 2, 4, 20, 7, 5, 3}, Shape{6, 3, 5, 11, 64, 16, 1}, Shape{64, 1, 64, 256, 0, 32, 2}, Shape{6, 2, 3, 7, 0, 3, 3}}) {
        for (const Index count : {1, 3})
            for (const bool everything : {true, false}) {
                const char* const policy = everything ? "everything" : "selective";
                BOOST_TEST(tape_bytes<double>(s, policy, count) == count * formula<double>(s, everything));
                BOOST_TEST(tape_bytes<float>(s, policy, count) == count * formula<float>(s, everything));
            }
        const Index H = s.heads * s.head;
        BOOST_TEST(tape_bytes<double>(s, "everything", 1) - tape_bytes<double>(s, "selective", 1) ==
                   8 * (aligned<double>(s.T * s.B * H) + 2 * aligned<double>((s.M + s.T) * s.B * H)));
        BOOST_TEST(tape_bytes<double>(s, "selective", 1) - tape_bytes<double>(s, "nothing", 1) ==
                   8 * (aligned<double>(s.T * s.B * s.heads) + aligned<double>(s.T * s.B * H)));
    }
}

// With M = 0, H = E and F = 4 E: 48 s b h + 4 s b a bytes of float, where Korthikanti counts (66 + 9 a s / h) s b h.
BOOST_AUTO_TEST_CASE(a_block_in_floats_takes_48_bytes_a_feature_and_4_a_head) {
    const Index s = 32, b = 2, h = 64, a = 4;
    BOOST_TEST(tape_bytes<float>({h, a, h / a, 4 * h, 0, s, b}, "everything", 1) == 48 * s * b * h + 4 * s * b * a);
}

// Tape and workspace of a segment grow linearly: twice the steps give at most twice the bytes and a constant.
BOOST_AUTO_TEST_CASE(bytes_grow_linearly_with_the_segment) {
    const auto live = [](Index T) {
        const Network<float> network = build<float>(blocks({16, 2, 8, 32, 0, T, 1}, "everything", 1));
        const TimeChainSizes s = time_chain_sizes(network, T, 1, T);
        return static_cast<double>(s.tape + s.workspace + s.log);
    };
    BOOST_TEST(std::log2(live(16384) / live(8192)) <= 1.05);
    BOOST_TEST(std::log2(live(16384) / live(256)) / 6.0 <= 1.05);
}

BOOST_AUTO_TEST_SUITE_END()
