// Specifications as JSON: there and back, defaults for what is left out, and everything unknown refused by name.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE spec_json
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/train/spec_json.hpp"

#include <functional>
#include <string>

using namespace backsweep;

namespace {

void refused(const std::function<void()>& read, const std::string& word) {
    BOOST_TEST_CONTEXT(word) {
        BOOST_CHECK_EXCEPTION(read(), InvalidArgument, [&](const InvalidArgument& e) {
            const bool found = std::string(e.what()).find(word) != std::string::npos;
            if (!found) BOOST_TEST_MESSAGE(e.what());
            return found;
        });
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(models_come_back) {
    ModelSpec spec;
    spec.layers = {EmbeddingSpec{.name = "words", .vocabulary = 11, .features = 3, .padding = 0},
                   LstmSpec{.name = "lower", .inputs = 3, .hidden = 6, .layers = 2, .bias = false},
                   DenseSpec{.name = "out", .inputs = 6, .outputs = 3, .bias = false}};
    spec.loss = {.reduction = LossSpec::Reduction::sum,
                 .class_weights = {0.1, 2.0, 1e-300},
                 .label_smoothing = 1.0 / 3.0,
                 .ignore_index = -100};
    const ModelSpec back = model_from_json(to_json(spec));
    BOOST_TEST(to_json(back) == to_json(spec));
    BOOST_TEST(std::get<EmbeddingSpec>(back.layers[0]).padding.value() == 0);
    BOOST_TEST(std::get<LstmSpec>(back.layers[1]).name == "lower");
    BOOST_TEST(std::get<LstmSpec>(back.layers[1]).layers == 2);
    BOOST_TEST(!std::get<DenseSpec>(back.layers[2]).bias);
    BOOST_TEST((back.loss.reduction == LossSpec::Reduction::sum));
    BOOST_TEST(back.loss.class_weights == spec.loss.class_weights);
    BOOST_TEST(back.loss.label_smoothing == 1.0 / 3.0);
    BOOST_TEST(back.loss.ignore_index.value() == -100);
    BOOST_TEST(describe(spec) ==
               "embedding 11 -> 3, lstm 3 -> 6 in 2 layers without bias, dense 6 -> 3 without bias, cross_entropy");

    const ModelSpec some = model_from_json(R"({"layers": [{"layer": "dense", "inputs": 2, "outputs": 1}],
                                               "loss": {"kind": "mean_squared_error"}})");
    BOOST_TEST(std::get<DenseSpec>(some.layers[0]).bias);
    BOOST_TEST(std::get<DenseSpec>(some.layers[0]).name == "head");
    BOOST_TEST((some.loss.kind == LossSpec::Kind::mean_squared_error));
}

BOOST_AUTO_TEST_CASE(training_rules_come_back) {
    for (const OptimizerSpec& spec :
         {OptimizerSpec{}, OptimizerSpec{.rule = SgdSpec{.momentum = 0.9, .nesterov = true, .weight_decay = 1e-4}},
          OptimizerSpec{.rule = AdamWSpec{.beta2 = 0.95, .amsgrad = true},
          .groups = {{.patterns = {"*bias*", "norm.*"}, .weight_decay = 0.0},
                     {.patterns = {"head.*"}, .rate_factor = 0.1}}}}) {
        const OptimizerSpec back = optimizer_from_json(to_json(spec));
        BOOST_TEST(to_json(back) == to_json(spec));
        BOOST_TEST(std::string(back.name()) == spec.name());
        BOOST_TEST(back.weight_decay() == spec.weight_decay());
        BOOST_TEST_REQUIRE(back.groups.size() == spec.groups.size());
        for (std::size_t g = 0; g < spec.groups.size(); ++g) {
            BOOST_TEST((back.groups[g].patterns == spec.groups[g].patterns));
            BOOST_TEST((back.groups[g].weight_decay == spec.groups[g].weight_decay));
            BOOST_TEST(back.groups[g].rate_factor == spec.groups[g].rate_factor);
        }
    }
    BOOST_TEST(optimizer_from_json(R"({"rule": "adamw"})").weight_decay() == 0.01);
    const RateSpec rate{
        .law = RateSpec::Law::annealing, .peak = 0.1, .floor = 0.01, .length = 20, .warm_up = 3, .warm_up_from = 0.0};
    BOOST_TEST(to_json(rate_from_json(to_json(rate))) == to_json(rate));
    BOOST_TEST(rate_from_json(to_json(rate)).at(17) == rate.at(17));
    const ClipSpec clip{ClipSpec::Kind::largest_norm, 0.1};
    BOOST_TEST((clip_from_json(to_json(clip)).kind == clip.kind));
    BOOST_TEST(clip_from_json(to_json(clip)).limit == 0.1);
}

BOOST_AUTO_TEST_CASE(what_is_unknown_is_named) {
    const auto model = [](const char* text) { return [=] { model_from_json(text); }; };
    refused(model("{"), "model must be JSON, but is: {");
    refused(model("[]"), "model must be an object, not []");
    refused(model(R"({"layer": []})"), "model has no key \"layer\"; there are: layers, loss");
    refused(model(R"({"layers": {}})"), "model.layers must be a list, not {}");
    refused(model(R"({"layers": [{}]})"), "model.layers[0] needs the key \"layer\"");
    refused(model(R"({"layers": [{"layer": "dense"}, {"layer": "gru4"}]})"),
            "model.layers[1].layer must be one of \"embedding\", \"lstm\", \"dense\", not \"gru4\"");
    refused(model(R"({"layers": [{"layer": "dense", "hidden": 3}]})"),
            "model.layers[0] has no key \"hidden\"; there are: layer, name");
    refused(model(R"({"layers": [{"layer": "dense", "inputs": 1.5}]})"),
            "model.layers[0].inputs must be a whole number, not 1.5");
    refused(model(R"({"layers": [{"layer": "dense", "inputs": 18446744073709551615}]})"), "must be a whole number");
    refused(model(R"({"layers": [{"layer": "dense", "bias": 1}]})"),
            "model.layers[0].bias must be true or false, not 1");
    refused(model(R"({"layers": [{"layer": "dense", "name": 1}]})"), "name must be a text, not 1");
    refused(model(R"({"loss": {"label_smoothing": "a"}})"), "model.loss.label_smoothing must be a number, not \"a\"");
    refused(model(R"({"loss": {"class_weights": [1, "a"]}})"), "model.loss.class_weights[1] must be a number");
    refused(model(R"({"layers": [{"layer": "dense", "inputs": 0, "outputs": 1}]})"), "model: ");
    refused([] { optimizer_from_json(R"({"rule": "adam", "momentum": 0.9})"); }, "optimizer has no key \"momentum\"");
    refused([] { optimizer_from_json(R"({"rule": "sgd", "nesterov": true})"); }, "nesterov needs a momentum");
    refused([] { optimizer_from_json(R"({"rule": "sgd", "groups": [{"pattern": []}]})"); },
            "optimizer.groups[0] has no key \"pattern\"");
    refused([] { rate_from_json(R"({"law": "cosine"})"); }, "rate: length counts all updates");
    refused([] { clip_from_json(R"({"kind": "norm"})"); }, "clip: the limit");
}
