// The closed formulas of docs/attention.md for the tape of a Transformer-XL block, to the byte, and what grows with the
// length of a segment.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE attention_bytes
#include "support/unit_test.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/nn/blocks.hpp"
#include "backsweep/nn/time_chain.hpp"

#include <cmath>
#include <string>

using namespace backsweep;

namespace {

struct Shape {
    Index E, heads, head, F, M, T, B;
};

ModelSpec block(const Shape& s, const char* policy) {
    TransformerXlBlock xl{.features = s.E, .heads = s.heads, .head_features = s.head, .inner = s.F};
    xl.memory = s.M;
    ModelSpec m;
    m.layers = transformer_xl_block(xl);
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    return save_policy(std::move(m), policy);
}

template <class Real>
std::int64_t tape_bytes(const Shape& s, const char* policy) {
    const Network<Real> network = build<Real>(block(s, policy));
    Index elements = 0;
    for (Index l = 0; l + 1 < network.depth(); ++l) elements += network.layer(l).footprint(s.T, s.B).tape;
    return elements * static_cast<std::int64_t>(sizeof(Real));
}

/// h log-sum-exps, two more H and 2 F and 3 E a position; keys and values of the memory too.
template <class Real>
std::int64_t formula(const Shape& s, bool everything) {
    const Index TB = s.T * s.B, H = s.heads * s.head, keys = (s.M + s.T) * s.B;
    const auto a = [](Index n) { return aligned<Real>(n); };
    Index n = a(TB * s.heads) + a(TB * H) + (s.M == 0 ? a(TB * s.E) : 0);  // log-sum-exp, output, input
    if (everything) n += a(TB * H) + 2 * a(keys * H);
    // Parts within a residual block are not rounded one by one.
    n += TB * s.E + (TB * s.E + 2 * TB * s.F) + TB * s.E;  // norm; first product, activation, second; norm
    return n * static_cast<std::int64_t>(sizeof(Real));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_bytes)

BOOST_AUTO_TEST_CASE(tape_of_a_block_equals_the_closed_formula) {
    for (const Shape& s :
         {Shape{8, 2, 4, 20, 7, 5, 3}, Shape{6, 3, 5, 11, 64, 16, 1}, Shape{64, 1, 64, 256, 0, 32, 2}}) {
        for (const bool everything : {true, false}) {
            const char* const policy = everything ? "everything" : "selective";
            BOOST_TEST(tape_bytes<double>(s, policy) == formula<double>(s, everything));
            BOOST_TEST(tape_bytes<float>(s, policy) == formula<float>(s, everything));
        }
        const Index H = s.heads * s.head;
        BOOST_TEST(tape_bytes<double>(s, "everything") - tape_bytes<double>(s, "selective") ==
                   8 * (aligned<double>(s.T * s.B * H) + 2 * aligned<double>((s.M + s.T) * s.B * H)));
    }
}

// Tape and workspace of a segment grow linearly: twice the steps give at most twice the bytes and a constant.
BOOST_AUTO_TEST_CASE(bytes_grow_linearly_with_the_segment) {
    const auto live = [](Index T) {
        const Network<float> network = build<float>(block({16, 2, 8, 32, 0, T, 1}, "everything"));
        const TimeChainSizes s = time_chain_sizes(network, T, 1, T);
        return static_cast<double>(s.tape + s.workspace + s.log);
    };
    BOOST_TEST(std::log2(live(16384) / live(8192)) <= 1.05);
    BOOST_TEST(std::log2(live(16384) / live(256)) / 6.0 <= 1.05);
}

BOOST_AUTO_TEST_SUITE_END()
