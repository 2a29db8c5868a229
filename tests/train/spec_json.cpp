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
                   RecurrentSpec{.name = "lower", .inputs = 3, .hidden = 6, .layers = 2, .bias = false},
                   DenseSpec{.name = "out", .inputs = 6, .outputs = 3, .bias = false}};
    spec.loss = {.reduction = LossSpec::Reduction::sum,
                 .class_weights = {0.1, 2.0, 1e-300},
                 .label_smoothing = 1.0 / 3.0,
                 .ignore_index = -100};
    const ModelSpec back = model_from_json(to_json(spec));
    BOOST_TEST(to_json(back) == to_json(spec));
    BOOST_TEST(std::get<EmbeddingSpec>(back.layers[0]).padding.value() == 0);
    BOOST_TEST(std::get<RecurrentSpec>(back.layers[1]).name == "lower");
    BOOST_TEST(std::get<RecurrentSpec>(back.layers[1]).layers == 2);
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

BOOST_AUTO_TEST_CASE(losses_come_back) {
    using enum LossSpec::Kind;
    const auto back = [](const LossSpec& loss) {
        const ModelSpec spec{{DenseSpec{.inputs = 2, .outputs = 4}}, loss};
        BOOST_TEST(to_json(model_from_json(to_json(spec))) == to_json(spec));
        return model_from_json(to_json(spec)).loss;
    };
    const std::vector<std::pair<LossSpec::Kind, std::string>> names{
        {cross_entropy, "cross_entropy"}, {mean_squared_error, "mean_squared_error"},
        {inner_product, "inner_product"}, {l1, "l1"},
        {huber, "huber"},                 {smooth_l1, "smooth_l1"},
        {gaussian_nll, "gaussian_nll"},   {binary_cross_entropy, "binary_cross_entropy"}};
    for (const auto& [kind, name] : names) {
        LossSpec loss;
        loss.kind = kind;
        BOOST_TEST((back(loss).kind == kind));
        BOOST_TEST(describe({{DenseSpec{.inputs = 2, .outputs = 4}}, loss}).ends_with(name));
    }
    LossSpec loss;
    loss.save = {};
    BOOST_TEST(back(loss).save.empty());
    BOOST_TEST(model_from_json(R"({"layers": [{"layer": "dense", "inputs": 2, "outputs": 4}], "loss": {}})")
                   .loss.saves("logits"));
    loss = {};
    loss.at = LossSpec::At::last;
    loss.kind = huber;
    loss.delta = 1.0 / 3.0;
    BOOST_TEST((back(loss).at == LossSpec::At::last));
    BOOST_TEST(back(loss).delta == 1.0 / 3.0);
    loss = {};
    loss.kind = smooth_l1;
    loss.beta = 0.1;
    BOOST_TEST(back(loss).beta == 0.1);
    loss = {};
    loss.kind = binary_cross_entropy;
    loss.pos_weight = {0.1, 2.0, 1e-300, 0.0};
    BOOST_TEST(back(loss).pos_weight == loss.pos_weight);
    loss = {};
    loss.kind = gaussian_nll;
    loss.epsilon = 1e-3;
    loss.full = loss.shared_variance = true;
    BOOST_TEST(back(loss).epsilon == 1e-3);
    BOOST_TEST(back(loss).full);
    BOOST_TEST(back(loss).shared_variance);
}

BOOST_AUTO_TEST_CASE(every_member_of_attention_comes_back) {
    AttentionSpec all{.name = "a", .features = 6, .heads = 3, .head_features = 4};
    all.memory = 5;
    all.detached = true;
    all.window = 9;
    all.position = AttentionSpec::Position::rotary;
    all.rotary_base = 1.0 / 3.0;
    all.rotary_features = 2;
    all.interleaved = true;
    all.scale = 0.1;
    all.bias = false;
    all.dropout = 0.3;
    all.save = {"output", "key"};
    AttentionSpec across{.name = "b", .features = 6, .heads = 2, .mask = AttentionSpec::Mask::full, .across = true};
    across.key_features = 3;
    across.value_features = 7;
    across.save = {};
    AttentionSpec gated{.name = "c", .features = 6, .projection = AttentionSpec::Projection::gated};
    gated.position = AttentionSpec::Position::alibi;
    const ModelSpec model{{ResidualSpec{"r", {all, ResidualSpec{"s", {across}}, gated}}, CheckpointSpec{"k", {FoldSpec{"f", 6, 2}}}},
                          LossSpec{}};
    const ModelSpec back = model_from_json(to_json(model));
    BOOST_TEST(to_json(back) == to_json(model));
    const auto& r = std::get<ResidualSpec>(back.layers[0]);
    const auto& a = std::get<AttentionSpec>(r.layers[0]);
    BOOST_TEST((a.head_features == 4 && a.memory == 5 && a.detached && a.window == 9 && a.rotary_features == 2));
    BOOST_TEST((a.position == all.position && a.rotary_base == all.rotary_base && a.interleaved && a.scale == 0.1));
    BOOST_TEST((!a.bias && a.dropout == 0.3 && a.save == all.save && a.mask == all.mask && a.heads == 3));
    const auto& b = std::get<AttentionSpec>(std::get<ResidualSpec>(r.layers[1]).layers[0]);
    BOOST_TEST((b.across && b.mask == across.mask && b.key_features == 3 && b.value_features == 7 && b.save.empty()));
    const auto& c = std::get<AttentionSpec>(r.layers[2]);
    BOOST_TEST((c.projection == gated.projection && c.position == gated.position && c.save == gated.save && !c.scale));
    const auto& k = std::get<CheckpointSpec>(back.layers[1]);
    const auto& f = std::get<FoldSpec>(k.layers.at(0));
    BOOST_TEST((k.name == "k" && f.name == "f" && f.inputs == 6 && f.outputs == 2));
}

BOOST_AUTO_TEST_CASE(training_rules_come_back) {
    for (const OptimizerSpec& spec : {
             OptimizerSpec{}, OptimizerSpec{.rule = SgdSpec{.momentum = 0.9, .nesterov = true, .weight_decay = 1e-4}},
             OptimizerSpec{
                 .rule = AdamWSpec{.beta2 = 0.95, .amsgrad = true},
   .groups = {{.patterns = {"*bias*", "norm.*"}, .weight_decay = 0.0}, {.patterns = {"head.*"}, .rate_factor = 0.1}}},
             OptimizerSpec{.rule = RmspropSpec{0.9, 1e-6, true, 0.5, 0.1}},
             OptimizerSpec{.rule = AdagradSpec{0.1, 0.2, 1e-6, 0.3}},
             OptimizerSpec{.rule = LambSpec{0.8, 0.9, 1e-3, 0.4}}}) {
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
    BOOST_TEST(std::get<LambSpec>(optimizer_from_json(R"({"rule": "lamb"})").rule).epsilon == 1e-6);
    const RateSpec cycle{.law = RateSpec::Law::one_cycle,
                         .length = 30,
                         .one_cycle = {.rise = 0.4,
                                       .start_divisor = 3.0,
                                       .end_divisor = 7.0,
                                       .linear = true,
                                       .three_phase = true,
                                       .momentum_high = 0.9,
                                       .momentum_low = 0.1}};
    BOOST_TEST((rate_from_json(to_json(cycle)).one_cycle == cycle.one_cycle));
    const RateSpec flat{.law = RateSpec::Law::plateau,
                        .factor = 0.5,
                        .plateau = {.rising = true, .threshold = 0.1, .absolute = true, .patience = 3, .cooldown = 2}};
    BOOST_TEST((rate_from_json(to_json(flat)).plateau == flat.plateau));
    BOOST_TEST(rate_from_json(to_json(flat)).factor == 0.5);
    const RateSpec steps{.law = RateSpec::Law::step, .factor = 0.3, .period = 4};
    BOOST_TEST(rate_from_json(to_json(steps)).at(17) == steps.at(17));
    for (const Plateau& state :
         {Plateau{}, Plateau{.seen = 7, .best = -1.0 / 3.0, .bad = 2, .cooldown = 1, .factor = 0.1}})
        BOOST_TEST((plateau_from_json(to_json(state)) == state));
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
            "model.layers[1].layer must be one of \"embedding\", \"recurrent\", \"dense\", \"norm\", \"activation\", \"dropout\", "
            "\"fold\", \"attention\", \"residual\", \"checkpoint\", \"concatenate\", not \"gru4\"");
    refused(model(R"({"layers": [{"layer": "dense", "hidden": 3}]})"),
            "model.layers[0] has no key \"hidden\"; there are: layer, name");
    refused(model(R"({"layers": [{"layer": "dense", "inputs": 1.5}]})"),
            "model.layers[0].inputs must be a whole number, not 1.5");
    refused(model(R"({"layers": [{"layer": "dense", "inputs": 18446744073709551615}]})"), "must be a whole number");
    refused(model(R"({"layers": [{"layer": "dense", "bias": 1}]})"),
            "model.layers[0].bias must be true or false, not 1");
    refused(model(R"({"layers": [{"layer": "dense", "name": 1}]})"), "name must be a text, not 1");
    refused(model(R"({"loss": {"kind": "hubert"}})"),
            "model.loss.kind must be one of \"cross_entropy\", \"mean_squared_error\", \"inner_product\", \"l1\", "
            "\"huber\", \"smooth_l1\", \"binary_cross_entropy\", \"gaussian_nll\", not \"hubert\"");
    refused(model(R"({"loss": {"at": "first"}})"), "model.loss.at must be one of \"every\", \"last\", not \"first\"");
    refused(model(R"({"layers": [{"layer": "dense", "inputs": 1, "outputs": 1}], "loss": {"kind": "l1", "delta": 2}})"),
            "model: loss: delta belongs to huber; leave it out");
    refused(model(R"({"loss": {"label_smoothing": "a"}})"), "model.loss.label_smoothing must be a number, not \"a\"");
    refused(model(R"({"loss": {"class_weights": [1, "a"]}})"), "model.loss.class_weights[1] must be a number");
    refused(model(R"({"layers": [{"layer": "dense", "inputs": 0, "outputs": 1}]})"), "model: ");
    refused([] { optimizer_from_json(R"({"rule": "adam", "momentum": 0.9})"); }, "optimizer has no key \"momentum\"");
    refused([] { optimizer_from_json(R"({"rule": "sgd", "nesterov": true})"); }, "nesterov needs a momentum");
    refused([] { optimizer_from_json(R"({"rule": "sgd", "groups": [{"pattern": []}]})"); },
            "optimizer.groups[0] has no key \"pattern\"");
    refused([] { rate_from_json(R"({"law": "cosine"})"); }, "rate: length counts all updates");
    refused([] { optimizer_from_json(R"({"rule": "adagrad", "momentum": 0.9})"); },
            "optimizer has no key \"momentum\"");
    refused([] { rate_from_json(R"({"law": "plateau", "factor": 0.5, "plateau": {"mode": "min"}})"); },
            "rate.plateau has no key \"mode\"; there are: rising");
    refused([] { rate_from_json(R"({"law": "step", "factor": 0.5})"); }, "rate: period");
    refused([] { plateau_from_json(R"({"factor": 0})"); }, "plateau: counts of a plateau must be >= 0");
    refused([] { clip_from_json(R"({"kind": "norm"})"); }, "clip: the limit");
}
