// Models with attention and free lists of layers, trained as a user does: the same bits under every schedule, in one process
// or two; and keys that cannot be used.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_models
#include "support/unit_test.hpp"

#include "backsweep/nn/models.hpp"
#include "cli/place.hpp"

using namespace backsweep;
using namespace backsweep::test;
using nlohmann::json;

namespace {

/// small_config with another [model].
std::string with_model(const std::string& model, const std::string& train = "updates = 6",
                       const std::string& data = "batch = 5\nwindow = 7") {
    return "[data]\npath = \"text.txt\"\nsplit = [80, 10, 10]\n" + data + "\n[train]\nchunk = 3\nseed = 4\n" + train +
           "\n[model]\n" + model;
}

const std::string sha = "kind = \"sha_rnn\"\nhidden = 6\nlayers = 3\ninner = 18\nmemory = 5\ndropout = 0.1\ntied = true\n"
                        "attention_dropout = 0.2\ninput_dropout = 0.1\nlocked = true\n";
const std::string xl = "kind = \"transformer_xl\"\nhidden = 6\nlayers = 2\nheads = 2\nhead_features = 5\ninner = 9\nmemory = 4\n"
                       "dropout = 0.1\nattention_dropout = 0.2\nsave = \"selective\"\n";
const std::string listed = R"(kind = "layers"
[[model.layers]]
type = "embedding"
features = 6
[[model.layers]]
type = "residual"
[[model.layers.layers]]
type = "norm"
[[model.layers.layers]]
type = "attention"
heads = 3
memory = 9
window = 11
position = "rotary"
save = ["output"]
[[model.layers.layers]]
type = "residual"
layers = [{type = "lstm", hidden = 5}, {type = "dense", name = "back"}, {type = "dropout", rate = 0.25}]
[[model.layers]]
type = "residual"
layers = [{type = "norm", kind = "rms"}, {type = "dense", name = "boom", outputs = 18},
          {type = "activation", kind = "gelu"}, {type = "fold"}]
[[model.layers]]
type = "gru"
hidden = 7
[[model.layers]]
type = "dense"
)";
const std::vector<std::pair<std::string, std::string>> models{{"sha_rnn", sha}, {"transformer_xl", xl}, {"layers", listed}};

/// Counts of advances may differ, nothing that was computed.
void check_same_bits(const fs::path& a, const fs::path& b) {
    BOOST_TEST((tensors(a) == tensors(b)));
    const std::vector<json> x = updates(a), y = updates(b);
    BOOST_TEST_REQUIRE(x.size() == y.size());
    for (std::size_t k = 0; k < x.size(); ++k)
        for (const char* key : {"loss", "gradient_norm"}) BOOST_TEST((x[k].at(key) == y[k].at(key)), key);
}

}  // namespace

BOOST_AUTO_TEST_CASE(attention_and_lists_train_with_the_same_bits_under_every_schedule) {
    for (const auto& [name, model] : models) {
        // Truncated: windows of 7 steps, carried; full: a window holds a whole stream, which begins with it.
        for (const bool truncated : {true, false}) {
            const Place place(truncated ? with_model(model)
                                        : with_model(model, "updates = 3\ncarry = false", "batch = 5\nwindow = 400"),
                              some_text(truncated ? 2000 : 400));
            BOOST_TEST_CONTEXT(name << (truncated ? ", truncated" : ", full")) {
                const json stored = place.train("stored", {"schedule.family=store_all"}, {"--json"}).json();
                BOOST_TEST((stored.at("bytes").at("predicted") == stored.at("bytes").at("measured")));
                int number = 0;
                const std::string limit = std::to_string(stored.at("bytes").at("measured").at("time_axis").get<long>() * 9 / 10);
                for (const std::vector<std::string>& settings :
                     {std::vector<std::string>{"schedule.family=revolve", "schedule.slots=2"},
                      {"memory.time_axis=" + limit},
                      {"train.threads=2"},
                      {"depth.family=sqrt"},
                      {"depth.family=slots", "depth.slots=1", "depth.always=*", "schedule.family=revolve", "schedule.slots=1"},
                      {"depth.family=optimal", "depth.budget=1 MiB", "depth.never=head; embedding"}}) {
                    const std::string run = "run" + std::to_string(number++);
                    const json report = place.train(run, settings, {"--json"}).json();
                    BOOST_TEST((report.at("bytes").at("predicted") == report.at("bytes").at("measured")));
                    BOOST_TEST_CONTEXT(settings.front()) check_same_bits(place.path() / "stored", place.path() / run);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(attention_and_lists_resume_evaluate_write_and_export) {
    for (const auto& [name, model] : models) {
        const Place place(with_model(model, "updates = 8"));
        BOOST_TEST_CONTEXT(name) {
            place.train("whole");
            place.train("parts", {"train.updates=3"});
            place.train("parts", {}, {"--resume"});
            check_same_end(place.path() / "whole", place.path() / "parts");
            // The resolved file says the same model.
            const Answer again = run_program({"train", "whole/config.toml", "--out", "again"}, place.path());
            BOOST_TEST_CONTEXT(again.err) BOOST_CHECK_EQUAL(again.code, 0);
            check_same_end(place.path() / "whole", place.path() / "again");
            for (const std::vector<std::string>& words :
                 {std::vector<std::string>{"eval", "whole"}, {"sample", "whole", "--bytes", "40"},
                  {"plan", "config.toml"}, {"export", "whole", "w.safetensors"}}) {
                const Answer answer = run_program(words, place.path());
                BOOST_TEST_CONTEXT(words.front() << answer.err) BOOST_CHECK_EQUAL(answer.code, 0);
            }
            place.train("started", {"model.weights=w.safetensors", "train.updates=1"});
            const json info = run_program({"info", "config.toml", "--json"}, place.path()).json();
            long memory = 0;
            for (const json& layer : info.at("layers")) memory += layer.at("bytes").at("memory").get<long>();
            // Rows x features x 5 sequences x 4 bytes; two layers of transformer_xl, one of the others.
            BOOST_CHECK_EQUAL(memory, (name == "sha_rnn" ? 5 : name == "layers" ? 9 : 2 * 4) * 6 * 5 * 4);
        }
    }
}

// What the model is fed one byte at a time must be what it was trained on: with temperature 0 a model that has learnt a
// period writes it, and only a memory, the one thing here that knows the past, can tell where in the period it is.
BOOST_AUTO_TEST_CASE(a_sample_has_a_memory) {
    std::string text;
    while (text.size() < 4000) text += "aab";
    const Place place(with_model("kind = \"transformer_xl\"\nhidden = 8\nlayers = 1\nmemory = 3\n",
                                 "updates = 500", "batch = 4\nwindow = 12") +
                          "[optimizer]\nrate = 0.005\n",
                      text);
    place.train("run");
    const auto said = [&](const char* prompt) {
        return run_program({"sample", "run", "--bytes", "30", "--temperature", "0", "--prompt", prompt}, place.path()).out;
    };
    for (const char* prompt : {"aab", "aba", "baabaaba"}) {
        std::string wanted = prompt;
        while (wanted.size() < std::string(prompt).size() + 30)
            wanted += wanted.ends_with("aa") ? 'b' : 'a';
        BOOST_CHECK_EQUAL(said(prompt), wanted + "\n");
    }
}

BOOST_AUTO_TEST_CASE(model_keys_have_no_effect_in_other_kinds) {
    const auto refused = [](const std::string& model, const std::vector<std::string>& words) {
        const Place place(with_model(model));
        const Answer answer = run_program({"train", "config.toml", "--out", "none"}, place.path());
        BOOST_TEST_CONTEXT(model << "\n" << answer.err) {
            BOOST_CHECK_EQUAL(answer.code, 2);
            for (const std::string& word : words) BOOST_TEST(answer.says(word), word);
            BOOST_TEST(!fs::exists(place.path() / "none"));
        }
    };
    const auto idle = [&](const std::string& kind, const std::vector<std::string>& lines) {
        for (const std::string& line : lines) {
            const std::string layers = kind == "layers" ? "[[model.layers]]\ntype = \"embedding\"\n" : "";
            refused("kind = \"" + kind + "\"\n" + line + "\n" + layers,
                    {"config.toml:12", "'model." + line.substr(0, line.find(' ')) + "' has no effect here"});
        }
    };
    idle("lstm", {"head_features = 3", "inner = 8", "attention_layer = 1", "memory = 3", "detached = true", "window = 3",
                  "positions = \"alibi\"", "attention_dropout = 0.1"});
    idle("rnn_tanh", {"save = \"nothing\""});
    idle("sha_rnn", {"embedding = 3", "bias = false", "projection = 3", "head_features = 3", "layer_norm = true",
                     "learned_state = true", "start = \"identity\"", "forget_bias = 1", "weight_drop = 0.1", "locked = true"});
    idle("transformer_xl", {"embedding = 3", "bias = false", "attention_layer = 1", "learned_state = true", "weight_drop = 0.1"});
    idle("layers", {"embedding = 3", "hidden = 3", "bias = false", "heads = 2", "memory = 3", "save = \"nothing\"", "dropout = 0.1",
                    "input_dropout = 0.1", "output_dropout = 0.1", "tied = true", "locked = true", "start = \"identity\""});
    refused("kind = \"sha_rnn\"\nattention_layer = 0\nmemory = 3\n", {"'model.memory' has no effect", "no layer attends"});
    refused("kind = \"sha_rnn\"\nmemory = 0\ndetached = true\n", {"'model.detached' has no effect", "model.memory is 0"});
    refused("kind = \"sha_rnn\"\nattention_layer = 9\n", {"attention_layer must be in [0, layers = 1]"});
    refused("kind = \"sha_rnn\"\npositions = \"relative\"\n", {"relative"});
    refused("kind = \"sha_rnn\"\nhidden = 6\ninner = 8\n", {"outputs must divide inputs = 8"});
    refused("kind = \"transformer_xl\"\nsave = \"some\"\n", {"model.save", "everything, selective, nothing"});
    refused("kind = \"transformer_xl\"\nmemory = 64\nwindow = 9\n", {"memory is 64"});
    refused("cell = \"lstm\"\n", {"config.toml:11", "unknown key 'model.cell'", "'model.kind'"});
    refused("kind = \"lstmm\"\n", {"model.kind", "sha_rnn, transformer_xl, layers"});
    refused("kind = \"layers\"\n", {"config.toml:11", "[[model.layers]]"});
    refused("kind = \"layers\"\nlayers = 2\n", {"[[model.layers]]"});
    refused("[[model.layers]]\ntype = \"embedding\"\n", {"config.toml:11", "model.kind is \"lstm\""});
    refused("[[model.heads]]\ntype = \"embedding\"\n", {"config.toml:11", "only model.layers"});
}

BOOST_AUTO_TEST_CASE(depth_keys_that_cannot_be_used_are_named) {
    const auto refused = [](const std::string& depth, const std::vector<std::string>& words) {
        const Place place(with_model("kind = \"gru\"\nhidden = 4\nlayers = 2\n[depth]\n" + depth));
        const Answer answer = run_program({"train", "config.toml", "--out", "none"}, place.path());
        BOOST_TEST_CONTEXT(depth << "\n" << answer.err) {
            BOOST_CHECK_EQUAL(answer.code, 2);
            for (const std::string& word : words) BOOST_TEST(answer.says(word), word);
            BOOST_TEST(!fs::exists(place.path() / "none"));
        }
    };
    refused("family = \"squareroot\"\n", {"depth.family", "store_all, sqrt, slots, optimal"});
    refused("period = 2\n", {"config.toml:15", "'depth.period' has no effect", "depth.family = \"sqrt\""});
    refused("slots = 2\n", {"'depth.slots' has no effect"});
    refused("budget = 4096\n", {"'depth.budget' has no effect"});
    refused("family = \"optimal\"\n", {"depth.budget"});
    refused("family = \"optimal\"\nbudget = 64\n", {"64"});
    refused("family = \"sqrt\"\nperiod = 99\n", {"depth.period wants layers of a group, 1 to 4"});
    refused("always = \"rnm*\"\n", {"depth.always names 'rnm*', which no layer is called", "rnn, layer 1"});
    refused("always = \"rnn*\"\nnever = \"*1\"\n", {"layer 'rnn, layer 1' is on the lists"});
}

BOOST_AUTO_TEST_CASE(layers_that_cannot_be_used_are_named_with_their_line) {
    const auto refused = [](const std::string& layers, const std::vector<std::string>& words) {
        const Place place(with_model("kind = \"layers\"\n" + layers));
        const Answer answer = run_program({"train", "config.toml", "--out", "none"}, place.path());
        BOOST_TEST_CONTEXT(layers << "\n" << answer.err) {
            BOOST_CHECK_EQUAL(answer.code, 2);
            for (const std::string& word : words) BOOST_TEST(answer.says(word), word);
            BOOST_TEST(!fs::exists(place.path() / "none"));
        }
    };
    const std::string embedding = "[[model.layers]]\ntype = \"embedding\"\nfeatures = 4\n",
                      head = "[[model.layers]]\ntype = \"dense\"\n";
    refused(embedding + "[[model.layers]]\ntype = \"lstm\"\nhiden = 3\n" + head,
            {"config.toml:17", "unknown key 'hiden' of this lstm layer", "'hidden'"});
    refused(embedding + "[[model.layers]]\ntype = \"lstn\"\n", {"config.toml:16", "type 'lstn'", "nearest known: 'lstm'"});
    refused(embedding + "[[model.layers]]\nhidden = 3\n", {"config.toml:15", "needs its 'type'"});
    refused(embedding + "[[model.layers]]\ntype = \"lstm\"\nhidden = \"3\"\n", {"config.toml:17", "'hidden' of this lstm layer", "an integer"});
    refused(embedding + "[[model.layers]]\ntype = \"lstm\"\ncell = \"gru\"\n", {"config.toml:17", "unknown key 'cell'"});
    refused(embedding + "[[model.layers]]\ntype = \"norm\"\nkind = \"batch\"\n", {"config.toml:17", "'kind' of this norm layer", "layer, rms"});
    refused(embedding + "[[model.layers]]\ntype = \"residual\"\n[[model.layers.layers]]\ntype = \"lstm\"\nhiddn = 4\n",
            {"config.toml:19", "'hiddn'"});
    refused(embedding + "[[model.layers]]\ntype = \"lstm\"\n" + head, {"layer 'rnn'", "hidden must be at least 1"});
    refused(head, {"the first layer must be an embedding"});
    refused("[[model.layers]]\ntype = \"embedding\"\nfeatures = 4\nvocabulary = 3\n" + head, {"3 tokens", "leave its vocabulary out"});
    refused(embedding + "[[model.layers]]\ntype = \"dense\"\noutputs = 2\n", {"gives 2 features"});
    refused(embedding + "[[model.layers]]\ntype = \"attention\"\nmask = \"full\"\nacross = true\n" + head, {"attends across"});
    refused(embedding + "[[model.layers]]\ntype = \"norm\"\nname = \"head\"\n[[model.layers]]\ntype = \"dense\"\nname = \"head\"\n",
            {"another layer has this name"});
    refused(embedding + "[[model.layers]]\ntype = \"norm\"\nname = \"\"\n" + head, {"config.toml:17", "'name'", "left out"});
    refused("layers = [1, 2]\n", {"config.toml:12", "model.layers"});
    refused("layers = \"two\"\n", {"model.layers", "a list of tables"});
}

BOOST_AUTO_TEST_CASE(a_list_may_stand_on_the_command_line_and_read_numbers) {
    const Place place("[data]\nkind = \"adding\"\nwindow = 9\nbatch = 4\nwindows = 3\n[model]\nkind = \"layers\"\n[train]\n"
                      "updates = 3\nchunk = 4\n");
    place.train("run", {"model.layers=[{type=\"dense\",name=\"in\",outputs=4},{type=\"attention\",memory=8},"
                        "{type=\"dense\"}]"});
    const std::string config = text_of_file(place.path() / "run/config.toml");
    BOOST_TEST(config.find("{type = \"attention\", name = \"attention\", memory = 8}") != std::string::npos, config);
    place.train("biased", {"optimizer.weight_decay=0.1", "model.layers=[{type=\"dense\",bias=false}]"});
    const Answer tokens = run_program({"train", "config.toml", "--out", "no", "--set",
                                       "model.layers=[{type=\"embedding\",features=4}]"},
                                      place.path());
    BOOST_CHECK_EQUAL(tokens.code, 2);
    BOOST_TEST(tokens.says("no embedding can stand first"), tokens.err);
    const Answer other = run_program({"train", "config.toml", "--out", "run", "--resume", "--set",
                                      "model.layers=[{type=\"dense\",name=\"in\",outputs=5},{type=\"dense\"}]"},
                                     place.path());
    BOOST_CHECK_EQUAL(other.code, 2);
    BOOST_TEST(other.says("model.layers: "), other.err);
}

BOOST_AUTO_TEST_CASE(one_head_is_all_that_differs) {
    const Place place(with_model("kind = \"sha_rnn\"\nhidden = 6\nlayers = 2\nmemory = 5\n"));
    const auto names = [&](const std::string& setting) {
        std::vector<std::string> all;
        const json info = run_program({"info", "config.toml", "--json", "--set", setting}, place.path()).json();
        for (const json& layer : info.at("layers")) all.push_back(layer.at("name").get<std::string>());
        return all;
    };
    const auto with = names("model.attention_layer=1");
    BOOST_TEST((with == names("train.seed=4")));  // the last but one
    BOOST_TEST((names("model.attention_layer=2") != with));
    auto without = with;
    std::erase_if(without, [](const std::string& name) {
        return name.find("attn") != std::string::npos || name.find("lnmid") != std::string::npos;
    });
    BOOST_CHECK_EQUAL(without.size() + 2, with.size());
    write_file(place.path() / "config.toml", with_model("kind = \"sha_rnn\"\nhidden = 6\nlayers = 2\nattention_layer = 0\n"));
    BOOST_TEST((names("train.seed=4") == without));
}
