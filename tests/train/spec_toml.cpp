// Models as TOML and JSON: there and back, what is left out, and errors with their line.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE spec_toml
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/train/spec_json.hpp"
#include "backsweep/train/spec_toml.hpp"

#include <string>

using namespace backsweep;

namespace {

ModelSpec odd_model() {
    AttentionSpec a;
    a.name = "attn \"odd\"";
    a.features = 12;
    a.heads = 2;
    a.head_features = 7;
    a.position = AttentionSpec::Position::rotary;
    a.memory = 5;
    a.detached = true;
    a.window = 9;
    a.rotary_base = 1e3;
    a.rotary_features = 4;
    a.interleaved = true;
    a.scale = 1.0 / 3.0;
    a.bias = false;
    a.dropout = 0.25;
    a.save = {};
    AttentionSpec b;
    b.name = "across";
    b.features = 12;
    b.mask = AttentionSpec::Mask::full;
    b.across = true;
    b.key_features = 5;
    b.value_features = 3;
    b.save = {"output", "key"};
    AttentionSpec g;
    g.name = "gated";
    g.features = 12;
    g.projection = AttentionSpec::Projection::gated;
    g.position = AttentionSpec::Position::alibi;
    ModelSpec m{{EmbeddingSpec{"e", 11, 12, 3}, a,
                 ResidualSpec{"r",
                              {b, g,
                               CheckpointSpec{"c",
                                              {RecurrentSpec{.name = "n", .inputs = 12, .hidden = 6, .cell = RecurrentSpec::Cell::gru, .save = {}},
                                               checkpoint(DenseSpec{"d", 6, 24})}},
                               FoldSpec{"f", 24, 12}}},
                 DenseSpec{.name = "head", .inputs = 12, .outputs = 11, .tied = "e"}},
                {}};
    m.loss.class_weights = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1e-300, 1.0 / 3.0};
    m.loss.ignore_index = -100;
    m.loss.reduction = LossSpec::Reduction::sum;
    return m;
}

void refused(const char* text, const std::string& words) {
    BOOST_CHECK_EXCEPTION(model_from_toml(text, {}, "m.toml"), InvalidArgument, [&](const InvalidArgument& e) {
        BOOST_TEST_MESSAGE(e.what());
        return std::string(e.what()).find(words) != std::string::npos;
    });
}

}  // namespace

BOOST_AUTO_TEST_CASE(models_come_back) {
    const ModelSpec m = odd_model();
    BOOST_TEST_REQUIRE(m.problem() == "");
    BOOST_TEST(to_json(model_from_json(to_json(m))) == to_json(m));
    BOOST_TEST(to_json(model_from_toml(to_toml(m))) == to_json(m));
    BOOST_TEST(describe(m) ==
               "embedding 11 -> 12, causal attention 12 in 2 heads with 5 steps of detached memory, "
               "x + (cross attention 12, causal attention 12, checkpoint (gru 12 -> 6, checkpoint (dense 6 -> 24)), fold 24 -> 12), "
               "dense 12 -> 11, cross_entropy");
}

BOOST_AUTO_TEST_CASE(what_is_left_out_is_filled_in) {
    const ModelSpec m = model_from_toml(R"(
[[layers]]
type = "dense"
name = "norm2"
outputs = 4
[[layers]]
type = "norm"
[[layers]]
type = "residual"
[[layers.layers]]
type = "norm"
[[layers.layers]]
type = "rnn_relu"
hidden = 4
[[layers]]
type = "dense"
[loss]
kind = "huber"
delta = 2
)",
                                        {.inputs = 3, .outputs = 2});
    BOOST_TEST(m.inputs() == 3);
    BOOST_TEST(m.outputs() == 2);
    BOOST_TEST(m.loss.delta == 2.0);
    BOOST_TEST(std::get<NormSpec>(m.layers[1]).name == "norm");
    const auto& inner = std::get<ResidualSpec>(m.layers[2]).layers;
    BOOST_TEST(std::get<NormSpec>(inner[0]).name == "norm3");  // norm2 is taken
    BOOST_TEST((std::get<RecurrentSpec>(inner[1]).cell == RecurrentSpec::Cell::rnn_relu));
    BOOST_TEST(std::get<RecurrentSpec>(inner[1]).inputs == 4);
}

BOOST_AUTO_TEST_CASE(widths_go_through_checkpoint_blocks) {
    const ModelSpec m = model_from_toml(R"(
[[layers]]
type = "checkpoint"
[[layers.layers]]
type = "embedding"
features = 5
[[layers.layers]]
type = "checkpoint"
name = "inner"
[[layers.layers.layers]]
type = "gru"
hidden = 4
[[layers]]
type = "checkpoint"
[[layers.layers]]
type = "dense"
[loss]
kind = "cross_entropy"
)",
                                        {.vocabulary = 9, .outputs = 9});
    BOOST_TEST(m.problem() == "");
    const auto& block = std::get<CheckpointSpec>(m.layers[0]);
    const auto& inner = std::get<CheckpointSpec>(block.layers[1]);
    BOOST_TEST(std::get<EmbeddingSpec>(block.layers[0]).vocabulary == 9);
    BOOST_TEST(inner.name == "inner");
    BOOST_TEST(std::get<RecurrentSpec>(inner.layers[0]).inputs == 5);
    const auto& head = std::get<DenseSpec>(std::get<CheckpointSpec>(m.layers[1]).layers[0]);
    BOOST_TEST((head.inputs == 4 && head.outputs == 9));
    BOOST_TEST(block.name != std::get<CheckpointSpec>(m.layers[1]).name);
    BOOST_TEST(to_json(model_from_toml(to_toml(m))) == to_json(m));
}

BOOST_AUTO_TEST_CASE(errors_name_their_line) {
    refused("[[layers]]\ntype = \"dense\"\noutputz = 3", "m.toml:3: unknown key 'outputz' of this dense layer; nearest known: 'outputs'");
    refused("[[layers]]\ntype = \"dens\"", "m.toml:2: there is no layer of the type 'dens'; nearest known: 'dense'");
    refused("[[layers]]\noutputs = 3", "m.toml:1: a layer needs its 'type'");
    refused("[[layers]]\ntype = \"dense\"\noutputs = 2.5", "m.toml:3: 'outputs' of this dense layer = 2.5 has the wrong type");
    refused("[[layers]]\ntype = \"dense\"\noutputs = 9223372036854775807", "out of range");
    refused("[[layers]]\ntype = \"dense\"\ninputs = 2\noutputs = -1", "m.toml: layer 'head': outputs must be at least 1");
    refused("[[layers]]\ntype = \"attention\"\nsave = [\"query\", 3]", "'save' of this attention layer = 3");
    refused("[[layers]]\ntype = \"attention\"\nfeatures = 4\nsave = [\"all\"]", "one name is 'all'");
    refused("[[layers]]\ntype = \"lstm\"\ninputs = 4\nhidden = 4\nsave = [\"all\"]", "keeps: gates, but one name is 'all'");
    refused("[loss]\nkind = \"huber\"\ndelt = 1", "m.toml:3: unknown key 'delt' of the loss; nearest known: 'delta'");
    refused("layers = 3", "m.toml:1: a model has [[layers]] and [loss], but this is 'layers'");
    refused("x", "m.toml:1: this is no TOML");
    BOOST_CHECK_THROW(read_model("/nowhere.toml"), InvalidArgument);
    BOOST_CHECK_THROW(read_model("/"), InvalidArgument);
}
