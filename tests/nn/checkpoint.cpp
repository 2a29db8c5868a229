// Checkpoint blocks: the bits of the same layers without them, a tape of nothing but the shared input, and a replay that
// ends where the last number is there that reverse reads.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE checkpoint
#include "support/unit_test.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/nn/depth_program.hpp"
#include "nn/composite.hpp"
#include "nn/counting_layer.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/layer_laws.hpp"
#include "nn/swept_window.hpp"

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// One model with its blocks, and without.
struct Pair {
    std::string name;
    std::vector<LayerSpec> wrapped;
    LossSpec::Kind loss = LossSpec::Kind::mean_squared_error;
};

/// The layers with those of blocks in their place.
std::vector<LayerSpec> unwrapped(const std::vector<LayerSpec>& layers) {
    std::vector<LayerSpec> all;
    for (LayerSpec layer : layers) {
        if (const auto* block = std::get_if<CheckpointSpec>(&layer)) {
            for (LayerSpec& inner : unwrapped(block->layers)) all.push_back(std::move(inner));
            continue;
        }
        if (auto* residual = std::get_if<ResidualSpec>(&layer)) residual->layers = unwrapped(residual->layers);
        all.push_back(std::move(layer));
    }
    return all;
}

/// Blocks get names of their own.
void number(std::vector<LayerSpec>& layers, int& blocks) {
    for (LayerSpec& layer : layers) {
        if (auto* block = std::get_if<CheckpointSpec>(&layer)) block->name += std::to_string(blocks++);
        if (auto* inner = within(layer)) number(*inner, blocks);
    }
}

ModelSpec of(std::vector<LayerSpec> layers, LossSpec::Kind kind) {
    int blocks = 0;
    number(layers, blocks);
    ModelSpec model{std::move(layers), {}};
    model.loss.kind = kind;
    return model;
}

std::vector<Pair> pairs() {
    using Kind = ActivationSpec::Kind;
    const auto act = [](const char* name, Index features, Kind kind) { return ActivationSpec{name, features, kind}; };
    const auto rnn = [](const char* name, RecurrentSpec::Cell cell, Index in, Index out) {
        return RecurrentSpec{.name = name, .inputs = in, .hidden = out, .cell = cell};
    };
    using Cell = RecurrentSpec::Cell;
    const AttentionSpec remembers{.name = "mem", .features = 6, .heads = 2, .position = AttentionSpec::Position::relative, .memory = 3};
    AttentionSpec gated{.name = "gated", .features = 6, .projection = AttentionSpec::Projection::gated, .dropout = 0.2};
    AttentionSpec sparing{.name = "sparing", .features = 6, .heads = 3, .memory = 4, .detached = true};
    sparing.save = {"key"};
    std::vector<Pair> all;
    all.push_back({"nested in a residual block",
                   {DenseSpec{"a", 3, 6},
                    ResidualSpec{"r", {NormSpec{"n", 6}, checkpoint(DenseSpec{"b", 6, 11}, checkpoint(act("g", 11, Kind::gelu)),
                                                                    DenseSpec{"c", 11, 6}),
                                       checkpoint(act("s", 6, Kind::softmax))}},
                    act("t", 6, Kind::tanh)}});
    all.push_back({"a block in a block, which ends both",
                   {checkpoint(ResidualSpec{"r", {DenseSpec{"a", 5, 5}, act("u", 5, Kind::relu)}},
                               checkpoint(NormSpec{"n", 5}, DenseSpec{"b", 5, 4}))}});
    all.push_back({"embedding and dense", {checkpoint(EmbeddingSpec{"e", 9, 5, 2}, DenseSpec{"head", 5, 9})},
                   LossSpec::Kind::cross_entropy});
    all.push_back({"a table within a block that the head shares",
                   {checkpoint(EmbeddingSpec{"e", 9, 5, {}}, DenseSpec{"a", 5, 5}), DenseSpec{"head", 5, 9, true, "e"}},
                   LossSpec::Kind::cross_entropy});
    all.push_back({"cells with carry", {checkpoint(rnn("lstm", Cell::lstm, 4, 7)), DenseSpec{"d", 7, 3},
                                        checkpoint(rnn("gru", Cell::gru, 3, 5), rnn("rnn", Cell::rnn_tanh, 5, 2))}});
    RecurrentSpec normed = rnn("normed", Cell::lstm, 6, 8);
    normed.layer_norm = normed.learned_state = true;
    normed.layers = 2, normed.dropout = 0.3, normed.weight_drop = 0.2, normed.projection = 0;
    all.push_back({"dropout before, inside and behind",
                   {DropoutSpec{"d0", 6, 0.25}, checkpoint(normed, DropoutSpec{"d1", 8, 0.4, true}, DenseSpec{"a", 8, 6}),
                    DropoutSpec{"d2", 6, 0.25}}});
    all.push_back({"attention with memory",
                   {rnn("rnn", Cell::rnn_relu, 6, 6), checkpoint(remembers, NormSpec{"n", 6, NormSpec::Kind::rms}),
                    ResidualSpec{"r", {checkpoint(gated, checkpoint(sparing))}}, DenseSpec{"head", 6, 4}}});
    return all;
}

const std::vector<Marking> unequal{Marking::none, Marking::tails, Marking::packed};

/// Forward and reverse of one layer that reads x and no y, on two steps of one sequence.
void run(const Layer<double>& layer) {
    const Footprint f = layer.footprint(2, 1);
    Index size = 0;
    for (const ParameterShape& shape : layer.parameters()) size += shape.size();
    const auto x = random_values(2 * f.inputs, 1), p = random_values(size, 2), dy = random_values(2 * f.outputs, 3);
    auto y = unassigned<double>(2 * f.outputs), tape = unassigned<double>(f.tape), workspace = unassigned<double>(f.workspace),
         dx = unassigned<double>(2 * f.inputs);
    std::vector<double> gradients(p.size());
    Segment<double> at;
    at.steps = 2, at.batch = 1;
    layer.record({at, p.data(), x.data(), y.data(), nullptr, nullptr, tape.data(), workspace.data()});
    layer.reverse({at, p.data(), gradients.data(), tape.data(), nullptr, dy.data(), dx.data(), nullptr, workspace.data(), nullptr,
                   nullptr, nullptr, nullptr, x.data()});
    BOOST_TEST(all_assigned(y));
    BOOST_TEST(all_assigned(dx));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_blocks)

BOOST_AUTO_TEST_CASE(names_and_random_streams_are_those_without_blocks) {
    for (const Pair& pair : pairs()) BOOST_TEST_CONTEXT(pair.name) {
            const auto with = build<double>(of(pair.wrapped, pair.loss)), without = build<double>(of(unwrapped(pair.wrapped), pair.loss));
            BOOST_TEST_REQUIRE(with.parameters().size() == without.parameters().size());
            const auto &a = with.parameters().views(), &b = without.parameters().views();
            BOOST_TEST_REQUIRE(a.size() == b.size());
            for (std::size_t k = 0; k < a.size(); ++k) BOOST_TEST((a[k].name == b[k].name && a[k].offset == b[k].offset));
            BOOST_TEST(with.carry() == without.carry());
            BOOST_TEST(with.memories().size() == without.memories().size());
        }
}

// Layer by layer, which checks the laws of layers too, and in the time chain under a schedule.
BOOST_AUTO_TEST_CASE(bits_are_those_without_blocks) {
    for (const Driver driver : drivers)
        for (const Pair& pair : pairs()) BOOST_TEST_CONTEXT(pair.name << ", " << to_string(driver)) {
                const auto with = build<double>(driver, of(pair.wrapped, pair.loss)),
                           without = build<double>(driver, of(unwrapped(pair.wrapped), pair.loss));
                const auto parameters = untamed_parameters(without);
                for (const Index steps : {1, 7})
                    for_each_marking({pair.name, without.spec()}, without.carry(), steps, 3, unequal, [&](const Problem<double>& problem) {
                        for (const Index chunk : {1, 3, 7})
                            BOOST_TEST_CONTEXT(steps << " steps in chunks of " << chunk) {
                                const auto got = sweep(with, parameters, problem, chunk),
                                           wanted = sweep(without, parameters, problem, chunk);
                                BOOST_TEST(got.loss == wanted.loss);
                                check_same(got, wanted);
                                const auto start = without.memories().empty() ? random_values(without.state() * 3, 9) : remembering(without, 3, 3, 9);
                                const auto chained = swept(with, parameters, problem, start, chunk),
                                           plain = swept(without, parameters, problem, start, chunk);
                                BOOST_TEST(chained.objective == plain.objective);
                                BOOST_TEST(same_bits(chained.gradients, plain.gradients));
                                BOOST_TEST(same_bits(chained.dx, plain.dx));
                                BOOST_TEST(same_bits(chained.dstart, plain.dstart));
                            }
                    });
            }
}

BOOST_AUTO_TEST_CASE(reverse_agrees_with_central_differences) {
    std::vector<Model> models;
    for (const Pair& pair : pairs())
        if (const ModelSpec model = of(pair.wrapped, pair.loss); build<double>(model).memories().empty())
            models.push_back({pair.name, model});
    check_against_central_differences(models, {Marking::none, Marking::packed});
}

// Of a block between two dense layers the link keeps its input, which the layer behind it does not know of, and no more.
BOOST_AUTO_TEST_CASE(the_tape_is_the_shared_input) {
    constexpr Index T = 5, B = 3;
    const auto a = [](Index features) { return aligned<double>(T * B * features); };
    const std::vector<LayerSpec> inner{RecurrentSpec{.name = "rnn", .inputs = 7, .hidden = 9}, NormSpec{"n", 9},
                                       ActivationSpec{"s", 9, ActivationSpec::Kind::softplus}};
    const std::vector<LayerSpec> layers{DenseSpec{"a", 4, 7}, checkpoint(inner), DenseSpec{"b", 9, 2}};
    const auto with = build<double>(of(layers, LossSpec::Kind::mean_squared_error)),
               without = build<double>(of(unwrapped(layers), LossSpec::Kind::mean_squared_error));
    const Footprint block = with.layer(1).footprint(T, B);
    BOOST_TEST(block.tape == 0);
    BOOST_TEST(block.reads_x);
    BOOST_TEST(!block.reads_y);
    BOOST_TEST(block.carry == without.layer(1).footprint(T, B).carry);
    const Index kept = a(4) + a(7) + a(9) + a(2);  // inputs of the three layers, and the loss's derivative
    BOOST_TEST(depth_program(with, T, B, {}).rest == kept);
    BOOST_TEST(depth_program(without, T, B, {}).rest > kept);
}

// The last record makes no output, and where the last layer is a block it makes nothing.
BOOST_AUTO_TEST_CASE(a_replay_ends_with_the_last_tape) {
    using Layers = std::vector<LayerPointer<double>>;
    std::deque<LayerCalls> calls;
    Layers counted;
    const auto count = [&](LayerPointer<double> layer) {
        counted.push_back(std::move(layer));
        return std::make_unique<CountingLayer<double>>(*counted.back(), calls.emplace_back());
    };
    const auto dense = [&](Index in, Index out) { return count(cpu::dense<double>({"dense", in, out})); };
    const auto block = [](auto... layers) {
        Layers all;
        (all.push_back(std::move(layers)), ...);
        return checkpointed<double>("block", std::move(all));
    };
    /// How often each layer, in the order of their making, is advanced, recorded, recorded without y, reversed.
    const auto check = [&](const Layer<double>& layer, const std::vector<std::array<Index, 4>>& wanted) {
        run(layer);
        BOOST_TEST_REQUIRE(calls.size() == wanted.size());
        for (std::size_t k = 0; k < wanted.size(); ++k) {
            const std::array<Index, 4> got{calls[k].advances, calls[k].records, calls[k].unread, calls[k].reverses};
            BOOST_TEST(got == wanted[k], boost::test_tools::per_element());
        }
        calls.clear();
    };
    {
        auto a = dense(3, 5), b = dense(5, 4), c = dense(4, 6), d = dense(6, 2);
        check(*block(std::move(a), std::move(b), std::move(c), std::move(d)), {{1, 1, 0, 1}, {1, 1, 0, 1}, {1, 1, 0, 1}, {1, 1, 1, 1}});
    }
    {  // the last layer's reverse reads its output
        auto a = dense(3, 4), b = count(cpu::activation<double>({"act", 4, ActivationSpec::Kind::sigmoid}));
        check(*block(std::move(a), std::move(b)), {{1, 1, 0, 1}, {1, 1, 0, 1}});
    }
    {  // the inner block runs forward once in the replay of the outer one, and once in its own
        auto a = dense(3, 4), b = dense(4, 5), c = dense(5, 4), d = dense(4, 2);
        auto inner = block(std::move(b), std::move(c));
        check(*block(std::move(a), std::move(inner), std::move(d)), {{1, 1, 0, 1}, {2, 1, 0, 1}, {2, 1, 1, 1}, {1, 1, 1, 1}});
    }
    {  // but as the last it waits for its own
        auto a = dense(3, 4), b = dense(4, 5), c = dense(5, 4);
        auto inner = block(std::move(b), std::move(c));
        check(*block(std::move(a), std::move(inner)), {{1, 1, 0, 1}, {1, 1, 0, 1}, {1, 1, 1, 1}});
    }
}

BOOST_AUTO_TEST_CASE(an_embedding_stands_first_within_blocks_alone) {
    const EmbeddingSpec table{"e", 9, 5, {}};
    const auto model = [](std::vector<LayerSpec> layers) { return of(std::move(layers), LossSpec::Kind::cross_entropy); };
    const ModelSpec nested = model({checkpoint(checkpoint(table), DenseSpec{"a", 5, 5}), DenseSpec{"head", 5, 9, true, "e"}});
    BOOST_TEST(nested.problem() == "");
    BOOST_TEST_REQUIRE(nested.table());
    BOOST_TEST(nested.table()->name == "e");
    BOOST_TEST(model({DenseSpec{"a", 5, 9}}).table() == nullptr);
    const std::string why = "layer 'e': an embedding reads tokens and can only stand first";
    for (const ModelSpec& bad : {model({checkpoint(DenseSpec{"a", 5, 5}, table)}), model({DenseSpec{"a", 5, 5}, checkpoint(table)}),
                                 model({checkpoint(ResidualSpec{"r", {table}})})})
        BOOST_TEST(bad.problem().ends_with(why), bad.problem());
}

BOOST_AUTO_TEST_CASE(counted_work_has_one_more_run_forward) {
    const std::vector<LayerSpec> layers{DenseSpec{"a", 4, 7}, RecurrentSpec{.name = "rnn", .inputs = 7, .hidden = 5}};
    const auto with = build<double>(of({checkpoint(layers)}, LossSpec::Kind::l1)), without = build<double>(of(layers, LossSpec::Kind::l1));
    const Work block = with.layer(0).work(6, 2), a = without.layer(0).work(6, 2), b = without.layer(1).work(6, 2);
    BOOST_TEST(block.forward == a.forward + b.forward);
    BOOST_TEST(block.reverse == a.reverse + b.reverse + block.forward);
    BOOST_TEST(a.forward == 2.0 * 4 * 7 * 12);
    BOOST_TEST(a.reverse == 2.0 * a.forward);
}

BOOST_AUTO_TEST_SUITE_END()
