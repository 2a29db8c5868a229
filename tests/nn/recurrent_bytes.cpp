// What a link keeps of stacked cells, to the byte: with the gates, and where reverse makes them again.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE recurrent_bytes
#include "support/unit_test.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/nn/time_chain.hpp"

#include <cstdint>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

using Cell = RecurrentSpec::Cell;

/// Bytes of a link's tape but for the carry before it, the input of the lowest layer and what the loss keeps.
template <class Real>
std::int64_t kept_bytes(const RecurrentSpec& cells, Index steps, Index batch) {
    ModelSpec model{{cells}, {}};
    model.loss.kind = LossSpec::Kind::inner_product;
    const Network<Real> network = build<Real>(model);
    const Index loss = network.layer(network.depth() - 1).footprint(steps, batch).tape;
    const Index rest = depth_program(network, steps, batch, {}).rest;
    const Index carry = network.carry() * batch, input = aligned<Real>(cells.inputs * steps * batch);
    const TimeChainSizes sizes = time_chain_sizes(network, 10 * steps, batch, steps);
    BOOST_TEST(sizes.tape == rest * static_cast<std::int64_t>(sizeof(Real)));
    BOOST_TEST(sizes.tape_carry == carry * static_cast<std::int64_t>(sizeof(Real)));
    BOOST_TEST(sizes.working == sizes.tape_carry);
    return (rest - input - aligned<Real>(loss)) * static_cast<std::int64_t>(sizeof(Real));
}

/// In numbers of hidden a step, sequence and layer; whole, or the arrays are rounded up.
template <class Real>
double numbers(RecurrentSpec cells, Index steps, Index batch) {
    const std::int64_t unit = cells.hidden * steps * batch * cells.layers * static_cast<std::int64_t>(sizeof(Real));
    return static_cast<double>(kept_bytes<Real>(cells, steps, batch)) / static_cast<double>(unit);
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_gates_made_again_a_link_keeps_h_and_c) {
    const auto body = [](auto real) {
        using Real = decltype(real);
        for (const Index layers : {1, 2, 3, 4})
            for (const Index hidden : {32, 128})
                for (const Index inputs : {3, 128})
                    BOOST_TEST_CONTEXT(layers << " layers of " << hidden << ", inputs " << inputs) {
                        RecurrentSpec cells{.name = "rnn", .inputs = inputs, .hidden = hidden, .layers = layers};
                        BOOST_TEST(numbers<Real>(cells, 32, 8) == 6.0);
                        cells.save = {};
                        BOOST_TEST(numbers<Real>(cells, 32, 8) == 2.0);
                        cells.cell = Cell::gru;
                        BOOST_TEST(numbers<Real>(cells, 32, 8) == 1.0);
                        cells.save = {"gates"};
                        BOOST_TEST(numbers<Real>(cells, 32, 8) == 5.0);
                        cells.cell = Cell::rnn_tanh;
                        BOOST_TEST(numbers<Real>(cells, 32, 8) == 1.0);
                    }
    };
    body(float{});
    body(double{});
}

// Odd sizes: every array is rounded up to 64 bytes, at most one for y and one for c.
BOOST_AUTO_TEST_CASE(odd_sizes_are_rounded_up_to_64_bytes) {
    for (const Index layers : {1, 2, 3, 4})
        for (const Index hidden : {1, 33}) {
            const RecurrentSpec cells{.name = "rnn", .inputs = 5, .hidden = hidden, .layers = layers, .save = {}};
            const std::int64_t array = aligned<float>(hidden * 7 * 3) * static_cast<std::int64_t>(sizeof(float));
            BOOST_TEST(kept_bytes<float>(cells, 7, 3) == layers * 2 * array);
        }
}
