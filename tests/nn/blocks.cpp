// Blocks and whole models as specifications: their layers, names and numbers of parameters, widths that are filled in,
// save policies.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE blocks
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/blocks.hpp"
#include "backsweep/nn/models.hpp"
#include "backsweep/nn/network.hpp"

#include <map>
#include <string>

using namespace backsweep;

namespace {

ModelSpec of(std::vector<LayerSpec> layers) {
    ModelSpec model{std::move(layers), {}};
    model.loss.kind = LossSpec::Kind::inner_product;
    return model;
}

std::map<std::string, Index> sizes(const ModelSpec& model) {
    BOOST_TEST_REQUIRE(model.problem() == "");
    std::map<std::string, Index> all;
    const auto network = build<double>(model);  // lives as long as its views
    for (const ParameterView& v : network.parameters().views()) all[v.name] = v.size();
    return all;
}

Index total(const ModelSpec& model) {
    Index sum = 0;
    for (const auto& [name, size] : sizes(model)) sum += size;
    return sum;
}

using Sizes = std::map<std::string, Index>;

Sizes encoder_sizes(const std::string& p) {
    return {{p + "self_attn.in_proj_weight", 3 * 6 * 6}, {p + "self_attn.in_proj_bias", 18},
            {p + "self_attn.out_proj.weight", 36},       {p + "self_attn.out_proj.bias", 6},
            {p + "norm1.weight", 6},                     {p + "norm1.bias", 6},
            {p + "linear1.weight", 10 * 6},              {p + "linear1.bias", 10},
            {p + "linear2.weight", 6 * 10},              {p + "linear2.bias", 6},
            {p + "norm2.weight", 6},                     {p + "norm2.bias", 6}};
}

AttentionSpec attention() {
    AttentionSpec a;
    a.features = 6;
    a.heads = 2;
    a.memory = 3;
    return a;
}

}  // namespace

BOOST_AUTO_TEST_CASE(encoder_and_decoder_layers_are_named_as_pytorchs) {
    for (const bool first : {false, true}) {
        const auto layers = encoder_layer(
            {.attention = attention(), .hidden = 10, .norm_first = first, .dropout = 0.1, .prefix = "layers.0."});
        BOOST_TEST((sizes(of(layers)) == encoder_sizes("layers.0.")));
        BOOST_TEST(layers.size() == (first ? 2U : 4U));
        const auto& half = std::get<ResidualSpec>(layers[0]).layers;
        BOOST_TEST(half.size() == (first ? 3U : 2U));
        const auto& mixes = std::get<AttentionSpec>(half[first ? 1 : 0]);
        BOOST_TEST(mixes.dropout == 0.1);
        BOOST_TEST(mixes.memory == 3);
        BOOST_TEST(std::get<DropoutSpec>(half.back()).rate == 0.1);
        const auto& ff = std::get<ResidualSpec>(layers[first ? 1 : 2]).layers;
        BOOST_TEST((std::get<ActivationSpec>(ff[first ? 2 : 1]).kind == ActivationSpec::Kind::relu));
        BOOST_TEST(ff.size() == (first ? 6U : 5U));

        Sizes wanted = encoder_sizes("");
        wanted.insert({{"multihead_attn.q_proj_weight", 36},
                       {"multihead_attn.k_proj_weight", 6 * 5},
                       {"multihead_attn.v_proj_weight", 6 * 4},
                       {"multihead_attn.in_proj_bias", 18},
                       {"multihead_attn.out_proj.weight", 36},
                       {"multihead_attn.out_proj.bias", 6},
                       {"norm3.weight", 6},
                       {"norm3.bias", 6}});
        const ModelSpec decoder = of(decoder_layer({.attention = attention(),
                                                    .heads = 3,
                                                    .key_features = 5,
                                                    .value_features = 4,
                                                    .hidden = 10,
                                                    .norm_first = first}));
        BOOST_TEST((sizes(decoder) == wanted));
        BOOST_TEST((decoder.context() == std::pair<Index, Index>{5, 4}));
    }
}

BOOST_AUTO_TEST_CASE(published_blocks_have_their_names) {
    const ModelSpec xl = of(transformer_xl_block(
        {.features = 6, .heads = 2, .head_features = 5, .inner = 9, .memory = 4, .dropout = 0.2, .prefix = "layers.0."}));
    BOOST_TEST((sizes(xl) == Sizes{{"layers.0.dec_attn.qkv_net.weight", 30 * 6},
                                   {"layers.0.dec_attn.r_net.weight", 10 * 6},
                                   {"layers.0.dec_attn.r_w_bias", 10},
                                   {"layers.0.dec_attn.r_r_bias", 10},
                                   {"layers.0.dec_attn.o_net.weight", 60},
                                   {"layers.0.dec_attn.layer_norm.weight", 6},
                                   {"layers.0.dec_attn.layer_norm.bias", 6},
                                   {"layers.0.pos_ff.CoreNet.0.weight", 54},
                                   {"layers.0.pos_ff.CoreNet.0.bias", 9},
                                   {"layers.0.pos_ff.CoreNet.3.weight", 54},
                                   {"layers.0.pos_ff.CoreNet.3.bias", 6},
                                   {"layers.0.pos_ff.layer_norm.weight", 6},
                                   {"layers.0.pos_ff.layer_norm.bias", 6}}));
    const Index lstm = 4 * 6 * (6 + 6 + 2), norm = 12, ff = 24 * 6 + 24, head = 36 + 6 + norm + 3 * 6;
    const ShaBlock block{.features = 6, .memory = 3, .dropout = 0.1, .attention_dropout = 0.2, .prefix = "b."};
    BOOST_TEST(total(of(sha_block(block))) == lstm + 3 * norm + ff + head);
    ShaBlock without = block;
    without.attention = false;
    BOOST_TEST(total(of(sha_block(without))) == lstm + 2 * norm + ff);
    const auto layers = sha_block(block);
    BOOST_TEST_REQUIRE(layers.size() == 6U);
    BOOST_TEST(std::get<NormSpec>(layers[2]).name == "b.lnmid");
    BOOST_TEST(std::get<NormSpec>(layers[2]).epsilon == 1e-12);
    BOOST_TEST(std::get<ResidualSpec>(layers[5]).layers.size() == 5U);
    BOOST_TEST(of(boom({.features = 6, .inner = 8})).problem().find("outputs must divide inputs = 8") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(whole_models) {
    ModelEnds ends{.vocabulary = 11, .outputs = 11, .tied = true, .input_dropout = 0.1, .output_dropout = 0.2};
    const Index lstm = 4 * 6 * (6 + 6 + 2), norm = 12, ff = 24 * 6 + 24, head = 36 + 6 + norm + 3 * 6;
    for (const Index at : {0, 1, 2, 3}) {
        ShaRnn o{.ends = ends, .features = 6, .layers = 3, .memory = 4};
        o.attention_layer = at;
        BOOST_TEST(total(sha_rnn(o)) == 66 + 3 * (lstm + 2 * norm + ff) + (at > 0 ? norm + head : 0) + 11);
    }
    BOOST_TEST((ShaRnn{.layers = 4}.attends() == 3 && ShaRnn{.layers = 1}.attends() == 1));
    ShaRnn none{.ends = ends, .features = 6, .layers = 3};
    none.attention_layer = 4;
    BOOST_CHECK_THROW(sha_rnn(none), InvalidArgument);

    ends = {.inputs = 2, .outputs = 3, .bias = false};
    ends.loss.kind = LossSpec::Kind::mean_squared_error;
    const ModelSpec xl = transformer_xl({.ends = ends, .features = 6, .layers = 2, .heads = 3});
    BOOST_TEST(total(xl) == 2 * 6 + 6 + 2 * (18 * 6 + 36 + 12 + 36 + norm + 24 * 6 + 24 + 6 * 24 + 6 + norm) + 18);
    RecurrentModel rnn{.ends = ends, .rnn = {.hidden = 5}};
    BOOST_TEST(total(lstm_model(rnn)) == 4 * 5 * (2 + 5 + 2) + 15);
    BOOST_TEST(total(gru_model(rnn)) == 3 * 5 * (2 + 5 + 2) + 15);
}

BOOST_AUTO_TEST_CASE(save_policies_have_names) {
    const ModelSpec xl = transformer_xl({.ends = {.vocabulary = 5, .outputs = 5}, .features = 6, .layers = 2});
    for (const auto& [policy, save] :
         std::map<std::string, std::vector<std::string>>{{"everything", {"query", "key", "value", "output"}},
                                                         {"selective", {"output"}},
                                                         {"nothing", {}}}) {
        const ModelSpec model = save_policy(xl, policy);
        int seen = 0;
        for (const LayerSpec& layer : model.layers)
            if (const auto* residual = std::get_if<ResidualSpec>(&layer))
                if (const auto* a = std::get_if<AttentionSpec>(&residual->layers[0])) {
                    ++seen;
                    BOOST_TEST((a->save == save));
                }
        BOOST_TEST(seen == 2);
    }
    const auto says = [](const char* words) {
        return [=](const InvalidArgument& e) { return std::string(e.what()).find(words) != std::string::npos; };
    };
    BOOST_CHECK_EXCEPTION(save_policy(xl, "some"), InvalidArgument, says("'some'; there are: everything, selective, nothing"));
    BOOST_CHECK_EXCEPTION(save_policy(of({DenseSpec{"d", 2, 2}}), "nothing"), InvalidArgument, says("no effect"));

    using Cell = RecurrentSpec::Cell;
    const ModelSpec cells = of({RecurrentSpec{.name = "a", .inputs = 2, .hidden = 3},
                                CheckpointSpec{"c", {RecurrentSpec{.name = "b", .inputs = 3, .hidden = 3, .cell = Cell::gru}}},
                                RecurrentSpec{.name = "d", .inputs = 3, .hidden = 3, .cell = Cell::rnn_tanh}});
    for (const std::string& policy : save_policies()) {
        const ModelSpec model = save_policy(cells, policy);
        const bool kept = policy != "nothing";
        BOOST_TEST(model.problem() == "");
        BOOST_TEST(std::get<RecurrentSpec>(model.layers[0]).saves("gates") == kept);
        BOOST_TEST(std::get<RecurrentSpec>(std::get<CheckpointSpec>(model.layers[1]).layers[0]).saves("gates") == kept);
        BOOST_TEST(std::get<RecurrentSpec>(model.layers[2]).saves("gates"));  // it has none, and nothing else to say
    }
    BOOST_CHECK_EXCEPTION(save_policy(of({cells.layers[2]}), "nothing"), InvalidArgument, says("no effect"));
}

BOOST_AUTO_TEST_CASE(widths_are_filled_in) {
    ModelSpec model{{EmbeddingSpec{"words", 0, 4, {}},
                     ResidualSpec{"r", {NormSpec{}, RecurrentSpec{.hidden = 3}, DenseSpec{.name = "back"}, DropoutSpec{}}},
                     DenseSpec{}},
                    {}};
    model = with_widths(model, {.vocabulary = 9, .outputs = 7});
    BOOST_TEST(model.problem() == "");
    BOOST_TEST(std::get<EmbeddingSpec>(model.layers[0]).vocabulary == 9);
    BOOST_TEST(std::get<DenseSpec>(std::get<ResidualSpec>(model.layers[1]).layers[2]).outputs == 4);
    BOOST_TEST(model.outputs() == 7);
    const ModelSpec open = with_widths({{DenseSpec{.name = "a"}, DenseSpec{.name = "b"}}, {}}, {.inputs = 2, .outputs = 3});
    BOOST_TEST(open.problem() == "layer 'a': outputs must be at least 1, but is 0");
}
