// SPDX-License-Identifier: MIT
#include "cli/config.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/blocks.hpp"
#include "backsweep/nn/network.hpp"
#include "backsweep/train/spec_toml.hpp"
#include "base/nearest.hpp"
#include "train/toml_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace backsweep::cli {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Ranges of integers end where products of them (updates of an epoch, bytes of a window) could overflow.
constexpr double most_updates = 1e12, most_epochs = 1e6, most_steps = 1e9, most_wide = 1e6, most_layers = 1e4,
                 most_threads = 1024, most_bytes = 1e18;

Domain at_least(double least) {
    return {.kind = Domain::Kind::number, .least = least, .most = infinity};
}
Domain above(double least) {
    return {.kind = Domain::Kind::number, .least = least, .most = infinity, .open = true};
}
Domain between(double least, double most) {
    return {.kind = Domain::Kind::number, .least = least, .most = most};
}
Domain fraction() {
    return {.kind = Domain::Kind::number, .least = 0.0, .most = 1.0, .below = true};
}
Domain size() {
    return {.kind = Domain::Kind::bytes, .least = 1.0, .most = most_bytes};
}
Domain flag() {
    return {.kind = Domain::Kind::flag};
}
Domain text() {
    return {.kind = Domain::Kind::text};
}
Domain path() {
    return {.kind = Domain::Kind::path};
}
Domain percents() {
    return {.kind = Domain::Kind::percents};
}
Domain weights() {
    return {.kind = Domain::Kind::weights};
}
Domain layers() {
    return {.kind = Domain::Kind::layers, .least = 1.0, .most = most_layers};
}
Domain one_of(std::vector<std::string> choices) {
    return {.kind = Domain::Kind::choice, .choices = std::move(choices)};
}
Domain auto_or(std::vector<std::string> choices) {
    choices.insert(choices.begin(), "auto");
    return one_of(std::move(choices));
}

// Why a key has no effect, or null.
using C = const Config&;
const char* only_text(C c) {
    return c.data.kind == "text" ? nullptr : "only data.kind = \"text\" reads it";
}
const char* only_made(C c) {
    return c.data.kind != "text" ? nullptr : "only data.kind = \"adding\" and \"copy\" read it";
}
const char* only_copy(C c) {
    return c.data.kind == "copy" ? nullptr : "only data.kind = \"copy\" reads it";
}
const char* not_copy(C c) {
    return c.data.kind != "copy" ? nullptr : "a window of data.kind = \"copy\" has data.delay + 2 data.length steps";
}
const char* with_tokens(C c) {
    return c.data.kind != "adding" ? nullptr : "the inputs of data.kind = \"adding\" are no tokens";
}
const char* with_classes(C c) {
    return c.data.kind != "adding" ? nullptr : "the targets of data.kind = \"adding\" are no classes";
}
const char* with_values(C c) {
    return c.data.kind == "adding" ? nullptr : "the targets of this data.kind are classes: the loss is cross-entropy";
}
const char* only_huber(C c) {
    if (const char* why = with_values(c)) return why;
    return c.loss.kind == "huber" ? nullptr : "only loss.kind = \"huber\" has it";
}
const char* only_smooth_l1(C c) {
    if (const char* why = with_values(c)) return why;
    return c.loss.kind == "smooth_l1" ? nullptr : "only loss.kind = \"smooth_l1\" has it";
}
const char* only_gaussian(C c) {
    if (const char* why = with_values(c)) return why;
    return c.loss.kind == "gaussian_nll" ? nullptr : "only loss.kind = \"gaussian_nll\" has it";
}
const char* with_streams(C c) {
    return c.data.kind == "text" ? nullptr : "each window of this data.kind is new sequences";
}
const char* with_carry(C c) {
    if (const char* why = with_streams(c)) return why;
    return c.train.carry ? nullptr : "without train.carry no step reaches back over its window";
}
const char* with_look_back(C c) {
    return c.train.look_back > 0 ? nullptr : "nothing is looked back at without train.look_back";
}
const char* random_windows(C c) {
    return c.train.windows != "fixed" ? nullptr : "windows of train.windows = \"fixed\" are data.window long";
}
const char* only_normal(C c) {
    return c.train.windows == "normal" ? nullptr : "only train.windows = \"normal\" has it";
}
const char* only_artbp(C c) {
    return c.train.windows == "artbp" ? nullptr : "only train.windows = \"artbp\" has it";
}
const char* not_listed(C c) {
    return c.model.kind != "layers" ? nullptr : "each of [[model.layers]] says such things itself";
}
const char* with_embedding(C c) {
    if (const char* why = with_tokens(c)) return why;
    return c.model.recurrent() ? nullptr : "tokens of this model.kind have model.hidden features, or [[model.layers]] says it";
}
const char* recurrent(C c) {
    if (const char* why = not_listed(c)) return why;
    return c.model.recurrent() ? nullptr : "only model.kind = \"lstm\", \"gru\", \"rnn_tanh\" and \"rnn_relu\" have it";
}
const char* only_lstm(C c) {
    return c.model.kind == "lstm" ? nullptr : "only model.kind = \"lstm\" has it";
}
const char* only_gated(C c) {
    return c.model.kind == "lstm" || c.model.kind == "gru" ? nullptr : "only model.kind = \"lstm\" and \"gru\" have it";
}
const char* with_inner(C c) {
    return c.model.kind == "sha_rnn" || c.model.kind == "transformer_xl"
               ? nullptr
               : "only model.kind = \"sha_rnn\" and \"transformer_xl\" have it";
}
const char* with_attention(C c) {
    if (const char* why = with_inner(c)) return why;
    return c.model.attends() ? nullptr : "model.attention_layer is 0: no layer attends";
}
const char* with_save(C c) {
    return only_gated(c) && with_inner(c) ? "only model.kind = \"lstm\", \"gru\", \"sha_rnn\" and \"transformer_xl\" have it"
                                          : nullptr;
}
const char* with_memory(C c) {
    if (const char* why = with_attention(c)) return why;
    return c.model.memory > 0 ? nullptr : "model.memory is 0";
}
const char* with_heads(C c) {
    if (const char* why = not_listed(c)) return why;
    return c.model.recurrent() ? nullptr : with_attention(c);
}
const char* only_sha_rnn(C c) {
    return c.model.kind == "sha_rnn" ? nullptr : "only model.kind = \"sha_rnn\" has it";
}
const char* only_transformer_xl(C c) {
    return c.model.kind == "transformer_xl" ? nullptr : "only model.kind = \"transformer_xl\" has it";
}
const char* with_layers(C c) {
    if (const char* why = not_listed(c)) return why;
    return !c.model.recurrent() || c.model.layers.count > 1
               ? nullptr
               : "it lies between model.layers, and there is one; model.output_dropout lies behind";
}
const char* with_tied(C c) {
    if (const char* why = not_listed(c)) return why;
    return with_tokens(c);
}
const char* with_weights(C c) {
    return !c.model.weights.empty() ? nullptr : "there is no model.weights";
}
const char* with_dropout(C c) {
    if (const char* why = not_listed(c)) return why;
    const double between = c.model.recurrent() ? c.model.dropout : 0.0;
    return between + c.model.input_dropout + c.model.output_dropout > 0.0
               ? nullptr
               : "there is no dropout between recurrent layers, of the input or of the output";
}
const char* only_sgd(C c) {
    return c.optimizer.kind == "sgd" ? nullptr : "only optimizer.kind = \"sgd\" has it";
}
const char* only_adam(C c) {
    return c.optimizer.kind == "adam" || c.optimizer.kind == "adamw"
               ? nullptr
               : "only optimizer.kind = \"adam\" and \"adamw\" have it";
}
const char* adam_or_lamb(C c) {
    return !only_adam(c) || c.optimizer.kind == "lamb"
               ? nullptr
               : "only optimizer.kind = \"adam\", \"adamw\" and \"lamb\" have it";
}
const char* only_rmsprop(C c) {
    return c.optimizer.kind == "rmsprop" ? nullptr : "only optimizer.kind = \"rmsprop\" has it";
}
const char* only_adagrad(C c) {
    return c.optimizer.kind == "adagrad" ? nullptr : "only optimizer.kind = \"adagrad\" has it";
}
const char* not_sgd(C c) {
    return only_sgd(c) ? nullptr : "optimizer.kind = \"sgd\" has none";
}
const char* not_cycled(C c) {
    return !c.rate.cycles_momentum() ? nullptr
                                     : "rate.law = \"one_cycle\" moves it from rate.momentum_high to "
                                       "rate.momentum_low and back, unless rate.cycle_momentum = false";
}
const char* own_momentum(C c) {
    if (only_sgd(c) && only_rmsprop(c)) return "only optimizer.kind = \"sgd\" and \"rmsprop\" have it";
    return not_cycled(c);
}
const char* own_beta1(C c) {
    if (const char* why = adam_or_lamb(c)) return why;
    return not_cycled(c);
}
const char* with_momentum(C c) {
    if (const char* why = only_sgd(c)) return why;
    return c.optimizer.momentum != 0.0 || c.rate.cycles_momentum() ? nullptr : "optimizer.momentum is 0";
}
const char* with_decay(C c) {
    return c.optimizer.weight_decay != 0.0 ? nullptr : "optimizer.weight_decay is 0";
}
bool is_law(C c, std::initializer_list<std::string_view> laws) {
    return std::find(laws.begin(), laws.end(), c.rate.law) != laws.end();
}
const char* with_floor(C c) {
    return is_law(c, {"cosine", "annealing", "plateau"})
               ? nullptr
               : "only rate.law = \"cosine\", \"annealing\" and \"plateau\" have it";
}
const char* with_length(C c) {
    return is_law(c, {"cosine", "annealing", "one_cycle"})
               ? nullptr
               : "only rate.law = \"cosine\", \"annealing\" and \"one_cycle\" have it";
}
const char* with_factor(C c) {
    return is_law(c, {"step", "exponential", "plateau"})
               ? nullptr
               : "only rate.law = \"step\", \"exponential\" and \"plateau\" have it";
}
const char* with_period(C c) {
    return is_law(c, {"step", "plateau"}) ? nullptr : "only rate.law = \"step\" and \"plateau\" have it";
}
const char* only_one_cycle(C c) {
    return is_law(c, {"one_cycle"}) ? nullptr : "only rate.law = \"one_cycle\" has it";
}
const char* with_cycled_momentum(C c) {
    if (const char* why = only_one_cycle(c)) return why;
    return c.rate.cycle_momentum ? nullptr : "rate.cycle_momentum is false";
}
const char* only_plateau(C c) {
    return is_law(c, {"plateau"}) ? nullptr : "only rate.law = \"plateau\" has it";
}
const char* with_warm_up(C c) {
    return c.rate.warm_up > 0 ? nullptr : "there is no rate.warm_up";
}
const char* with_clip(C c) {
    return c.clip.kind != "none" ? nullptr : "clip.kind is \"none\"";
}
const char* only_revolve(C c) {
    return c.schedule.family == "revolve" ? nullptr : "only schedule.family = \"revolve\" has it";
}
const char* only_periodic(C c) {
    return c.schedule.family == "periodic" ? nullptr : "only schedule.family = \"periodic\" has it";
}
const char* only_sqrt_depth(C c) {
    return c.depth.family == "sqrt" ? nullptr : "only depth.family = \"sqrt\" has it";
}
const char* only_slots_depth(C c) {
    return c.depth.family == "slots" ? nullptr : "only depth.family = \"slots\" has it";
}
const char* only_optimal_depth(C c) {
    return c.depth.family == "optimal" ? nullptr : "only depth.family = \"optimal\" has it";
}
const char* with_planner(C c) {
    return c.schedule.family == "auto" || c.depth.family == "auto" || c.train.chunk == 0 ? nullptr : "nothing is left to the planner";
}
const char* with_memories(C c) {
    return c.model.kind == "layers" ? nullptr : with_memory(c);
}
const char* with_scratch(C c) {
    return c.memory.disk != 0 || c.disk.commits() ? nullptr : "there is no memory.disk, and nothing is committed";
}
const char* with_disk(C c) {
    return c.memory.disk != 0 ? nullptr : "there is no memory.disk";
}
const char* with_valid(C c) {
    return c.data.kind != "text" || c.data.split.size() != 3 || c.data.split[1] > 0.0
               ? nullptr
               : "data.split leaves no validation part";
}
const char* with_plan(C c) {
    return c.pinned() ? nullptr : "a pinned plan begins with plan.chunk";
}

template <Kind kind>
Field predicted(Config& c) {
    return &c.plan.predicted[kind];
}

std::vector<Key> make_table() {
    using F = Field;
    const Domain seconds{.kind = Domain::Kind::number, .least = 0.0, .most = 1e9, .open = true};
    const Domain families = auto_or({"store_all", "periodic", "revolve"});
    const Domain rules = one_of({"fewest_writes", "longest", "shortest"});
    std::vector<Key> table{
        {"data.kind", [](Config& c) -> F { return &c.data.kind; }, one_of({"text", "adding", "copy"}),
         "bytes of a file, the adding problem, or copy memory"},
        {"data.path", [](Config& c) -> F { return &c.data.path; }, path(),
         "the text; relative to the file's folder (in `--set`: to the current one)", only_text, true, true},
        {"data.checksum", [](Config& c) -> F { return &c.data.checksum; }, text(),
         "of the text, as the manifest of a run has it; a text with another one is refused", only_text},
        {"data.split", [](Config& c) -> F { return &c.data.split; }, percents(),
         "percent of the text for training, validation and test", only_text},
        {"data.vocabulary", [](Config& c) -> F { return &c.data.vocabulary; }, text(),
         "which bytes are tokens: `occurring`, `all`, or the bytes in rising order as hexadecimal digits", only_text},
        {"data.batch", [](Config& c) -> F { return &c.data.batch; }, between(1, most_wide), "sequences side by side"},
        {"data.window", [](Config& c) -> F { return &c.data.window; }, between(1, most_steps),
         "steps of an update (k1); the last window of an epoch may be shorter", not_copy},
        {"data.delay", [](Config& c) -> F { return &c.data.delay; }, between(1, most_steps),
         "steps between seeing and repeating", only_copy},
        {"data.length", [](Config& c) -> F { return &c.data.length; }, between(1, most_steps), "symbols to remember",
         only_copy},
        {"data.symbols", [](Config& c) -> F { return &c.data.symbols; }, between(1, most_wide), "different symbols",
         only_copy},
        {"data.windows", [](Config& c) -> F { return &c.data.windows; }, between(1, most_steps),
         "windows that are called an epoch", only_made},
        {"data.seed", [](Config& c) -> F { return &c.data.seed; }, at_least(0), "of the made sequences", only_made},

        {"model.kind", [](Config& c) -> F { return &c.model.kind; },
         one_of({"lstm", "gru", "rnn_tanh", "rnn_relu", "sha_rnn", "transformer_xl", "layers"}),
         "a stack of one kind of cell, a model with attention, or the list [[model.layers]]"},
        {"model.embedding", [](Config& c) -> F { return &c.model.embedding; }, between(1, most_wide),
         "features of a token", with_embedding},
        {"model.hidden", [](Config& c) -> F { return &c.model.hidden; }, between(1, most_wide),
         "features of each layer", not_listed},
        {"model.layers", [](Config& c) -> F { return &c.model.layers; }, layers(), "stacked layers, or the layers themselves"},
        {"model.bias", [](Config& c) -> F { return &c.model.bias; }, flag(),
         "whether recurrent layers and head have biases", recurrent},
        {"model.projection", [](Config& c) -> F { return &c.model.projection; }, between(0, most_wide),
         "features of the LSTM's output, less than model.hidden; 0: as many as that", only_lstm},
        {"model.heads", [](Config& c) -> F { return &c.model.heads; }, between(1, most_wide),
         "of attention; of a cell parts of the state, each fed back to itself alone. Divides model.hidden", with_heads},
        {"model.head_features", [](Config& c) -> F { return &c.model.head_features; }, between(0, most_wide),
         "of each head; 0: model.hidden / model.heads", only_transformer_xl},
        {"model.inner", [](Config& c) -> F { return &c.model.inner; }, between(0, most_wide),
         "features within the feed-forward half of a block, or of its boom layer, a multiple of model.hidden; 0: 4 "
         "model.hidden",
         with_inner},
        {"model.attention_layer", [](Config& c) -> F { return &c.model.attention_layer; }, between(0, most_layers),
         "the layer that has the single head, from 1 on; 0: none; not given: the last but one, of a single layer it",
         only_sha_rnn},
        {"model.memory", [](Config& c) -> F { return &c.model.memory; }, between(0, most_steps),
         "steps before a link's own that attention sees", with_attention},
        {"model.detached", [](Config& c) -> F { return &c.model.detached; }, flag(),
         "no gradient goes through the memory: bits and gradients then depend on train.chunk", with_memory},
        {"model.window", [](Config& c) -> F { return &c.model.window; }, between(0, most_steps),
         "steps that attention sees, the present one included, more than model.memory; 0: no limit", with_attention},
        {"model.positions", [](Config& c) -> F { return &c.model.positions; }, one_of({"none", "alibi", "rotary", "relative"}),
         "of attention; not given: relative with model.kind = \"transformer_xl\", none with \"sha_rnn\"", with_attention},
        {"model.save", [](Config& c) -> F { return &c.model.save; }, auto_or(save_policies()),
         "what the tape keeps of attention (query, key, value, output), LSTM and GRU (gates): all, output and gates, or nothing; "
         "the rest is made again; `auto`: the planner chooses",
         with_save},
        {"model.layer_norm", [](Config& c) -> F { return &c.model.layer_norm; }, flag(),
         "layer normalisation within the cell", only_gated},
        {"model.learned_state", [](Config& c) -> F { return &c.model.learned_state; }, flag(),
         "whether sequences start from parameters instead of zero", recurrent},
        {"model.start", [](Config& c) -> F { return &c.model.start; }, one_of({"uniform", "orthogonal", "identity"}),
         "of the recurrent weights; identity with model.kind = \"rnn_relu\" is the IRNN", recurrent},
        {"model.forget_bias", [](Config& c) -> F { return &c.model.forget_bias; }, between(-100.0, 100.0),
         "start of the forget gate's bias; not given: as the others", only_lstm},
        {"model.dropout", [](Config& c) -> F { return &c.model.dropout; }, fraction(),
         "between recurrent layers; of models with attention within every block", with_layers},
        {"model.attention_dropout", [](Config& c) -> F { return &c.model.attention_dropout; }, fraction(),
         "of attention's mixing weights", with_attention},
        {"model.input_dropout", [](Config& c) -> F { return &c.model.input_dropout; }, fraction(),
         "of what the first layer reads", not_listed},
        {"model.output_dropout", [](Config& c) -> F { return &c.model.output_dropout; }, fraction(),
         "of what the head reads", not_listed},
        {"model.locked", [](Config& c) -> F { return &c.model.locked; }, flag(),
         "one mask for all steps of a window, of dropout between recurrent layers, of the input and of the output",
         with_dropout},
        {"model.weight_drop", [](Config& c) -> F { return &c.model.weight_drop; }, fraction(),
         "dropout of recurrent weights, one mask a window", recurrent},
        {"model.tied", [](Config& c) -> F { return &c.model.tied; }, flag(),
         "the head's weights are the embedding's; a stack of cells then needs model.embedding features of its last layer",
         with_tied},

        {"model.weights", [](Config& c) -> F { return &c.model.weights; }, path(),
         "`.safetensors` that the parameters start from, such as a state_dict of PyTorch or what `backsweep export` wrote"},
        {"model.checksum", [](Config& c) -> F { return &c.model.checksum; }, text(),
         "of that file; one with another is refused", with_weights},

        {"loss.kind", [](Config& c) -> F { return &c.loss.kind; },
         one_of({"mean_squared_error", "l1", "huber", "smooth_l1", "gaussian_nll"}),
         "of targets that are numbers; with gaussian_nll the head gives mean and variance", with_values},
        {"loss.reduction", [](Config& c) -> F { return &c.loss.reduction; }, one_of({"mean", "sum"}),
         "over the positions of an update that have a loss"},
        {"loss.class_weights", [](Config& c) -> F { return &c.loss.class_weights; }, weights(),
         "what each class of targets counts; not given: all 1", with_classes},
        {"loss.label_smoothing", [](Config& c) -> F { return &c.loss.label_smoothing; }, fraction(),
         "part of each target that is spread over all classes", with_classes},
        {"loss.ignore_index", [](Config& c) -> F { return &c.loss.ignore_index; }, between(0, most_wide),
         "number of a token that gives no loss as a target (in copy memory, data.symbols is the blank)", with_classes},
        {"loss.delta", [](Config& c) -> F { return &c.loss.delta; }, above(0.0), "where huber turns linear", only_huber},
        {"loss.beta", [](Config& c) -> F { return &c.loss.beta; }, at_least(0.0), "where smooth_l1 turns linear",
         only_smooth_l1},
        {"loss.epsilon", [](Config& c) -> F { return &c.loss.epsilon; }, above(0.0), "the least variance",
         only_gaussian},
        {"loss.full", [](Config& c) -> F { return &c.loss.full; }, flag(), "with the constant log(2 pi) / 2",
         only_gaussian},
        {"loss.save", [](Config& c) -> F { return &c.loss.save; }, auto_or({"logits", "nothing"}),
         "what the tape keeps of the head: the logits' derivative, or nothing: then head and loss run in blocks, and reverse "
         "makes logits again; `auto`: the planner chooses",
         with_classes},

        {"train.updates", [](Config& c) -> F { return &c.train.updates; }, between(1, most_updates),
         "stop after so many updates; one of the three limits is needed, the first one reached counts", nullptr, false,
         true},
        {"train.epochs", [](Config& c) -> F { return &c.train.epochs; }, between(1, most_epochs),
         "stop after so many epochs", nullptr, false, true},
        {"train.seconds", [](Config& c) -> F { return &c.train.seconds; }, seconds,
         "stop after so many seconds of training, evaluation and snapshots not counted", nullptr, false, true},
        {"train.look_back", [](Config& c) -> F { return &c.train.look_back; }, between(0, most_steps),
         "steps before an update's own that its gradient reaches back (k2 - k1)", with_carry},
        {"train.look_back_form", [](Config& c) -> F { return &c.train.look_back_form; }, one_of({"recompute", "once"}),
         "through the window run again with the present parameters, or each step with those of its first run",
         with_look_back},
        {"train.carry", [](Config& c) -> F { return &c.train.carry; }, flag(),
         "the state goes on from window to window", with_streams},
        {"train.windows", [](Config& c) -> F { return &c.train.windows; }, one_of({"fixed", "normal", "artbp"}),
         "length of the windows: data.window; normal: random about it, the rate scaled by the length; artbp: cut at random, "
         "the gradient unbiased",
         with_carry},
        {"train.window_deviation", [](Config& c) -> F { return &c.train.window_deviation; }, at_least(0.0),
         "standard deviation of the length", only_normal},
        {"train.window_half", [](Config& c) -> F { return &c.train.window_half; }, between(0.0, 1.0),
         "chance that a window is about half as long", only_normal},
        {"train.window_shortest", [](Config& c) -> F { return &c.train.window_shortest; }, between(1, most_steps),
         "least length", only_normal},
        {"train.window_tail", [](Config& c) -> F { return &c.train.window_tail; }, at_least(0.0),
         "alpha of the chance to cut, above 3; 0: a constant chance", only_artbp},
        {"train.window_longest", [](Config& c) -> F { return &c.train.window_longest; }, between(0, most_steps),
         "steps that the plan must have room for; 0: data.window and 6 deviations, or 64 data.window", random_windows},
        {"train.chunk", [](Config& c) -> F { return &c.train.chunk; }, between(1, most_steps),
         "steps of a link: what is stored and recomputed as one; not given: the planner chooses. Bits depend on it"},
        {"train.shards", [](Config& c) -> F { return &c.train.shards; }, between(0, most_wide),
         "parts of the batch that sweep side by side; 0: min(batch, 4). Bits depend on it"},
        {"train.threads", [](Config& c) -> F { return &c.train.threads; }, between(1, most_threads),
         "for the shards; beyond them, for the large products of each. Bits do not depend on it", nullptr, false, true},
        {"train.micro_batches", [](Config& c) -> F { return &c.train.micro_batches; }, between(1, most_wide),
         "parts of the batch that sweep one after the other; divides the batch"},
        {"train.seed", [](Config& c) -> F { return &c.train.seed; }, at_least(0), "of the starting parameters"},
        {"train.precision", [](Config& c) -> F { return &c.train.precision; }, one_of({"float", "double"}),
         "of all arithmetic"},
        {"train.device", [](Config& c) -> F { return &c.train.device; }, one_of(devices()),
         "where layers are computed"},

        {"optimizer.kind", [](Config& c) -> F { return &c.optimizer.kind; },
         one_of({"sgd", "adam", "adamw", "rmsprop", "adagrad", "lamb"}), "the rule"},
        {"optimizer.rate", [](Config& c) -> F { return &c.optimizer.rate; }, above(0.0), "the (highest) learning rate"},
        {"optimizer.momentum", [](Config& c) -> F { return &c.optimizer.momentum; }, at_least(0.0),
         "of sgd and rmsprop", own_momentum},
        {"optimizer.dampening", [](Config& c) -> F { return &c.optimizer.dampening; }, between(0.0, 1.0),
         "of sgd's momentum", with_momentum},
        {"optimizer.nesterov", [](Config& c) -> F { return &c.optimizer.nesterov; }, flag(),
         "sgd: look ahead along the momentum", with_momentum},
        {"optimizer.beta1", [](Config& c) -> F { return &c.optimizer.beta1; }, fraction(), "decay of the first moment",
         own_beta1},
        {"optimizer.beta2", [](Config& c) -> F { return &c.optimizer.beta2; }, fraction(), "decay of the second moment",
         adam_or_lamb},
        {"optimizer.epsilon", [](Config& c) -> F { return &c.optimizer.epsilon; }, at_least(0.0),
         "added to the root of the second moment; not given: 1e-8, adagrad 1e-10, lamb 1e-6", not_sgd},
        {"optimizer.amsgrad", [](Config& c) -> F { return &c.optimizer.amsgrad; }, flag(),
         "the greatest second moment so far", only_adam},
        {"optimizer.alpha", [](Config& c) -> F { return &c.optimizer.alpha; }, fraction(),
         "decay of rmsprop's mean of squares", only_rmsprop},
        {"optimizer.centered", [](Config& c) -> F { return &c.optimizer.centered; }, flag(),
         "rmsprop: less the square of the mean gradient", only_rmsprop},
        {"optimizer.rate_decay", [](Config& c) -> F { return &c.optimizer.rate_decay; }, at_least(0.0),
         "adagrad: the rate is divided by 1 + rate_decay times the updates made", only_adagrad},
        {"optimizer.initial_accumulator", [](Config& c) -> F { return &c.optimizer.initial_accumulator; },
         at_least(0.0), "what adagrad's sum of squares begins with", only_adagrad},
        {"optimizer.weight_decay", [](Config& c) -> F { return &c.optimizer.weight_decay; }, at_least(0.0),
         "sgd, adam, rmsprop, adagrad: added to the gradient; adamw: on the parameter alone; lamb: in the update whose "
         "norm counts"},
        {"optimizer.decay_biases", [](Config& c) -> F { return &c.optimizer.decay_biases; }, flag(),
         "whether biases decay too", with_decay},

        {"rate.law", [](Config& c) -> F { return &c.rate.law; },
         one_of({"constant", "cosine", "annealing", "step", "exponential", "one_cycle", "plateau"}),
         "of the rate behind the warm-up; annealing rises again behind rate.length; plateau heeds the validation loss"},
        {"rate.floor", [](Config& c) -> F { return &c.rate.floor; }, at_least(0.0), "the least rate", with_floor},
        {"rate.length", [](Config& c) -> F { return &c.rate.length; }, between(1, most_updates),
         "updates until the end of the curve; not given: those of the run", with_length},
        {"rate.factor", [](Config& c) -> F { return &c.rate.factor; }, above(0.0),
         "what the rate is multiplied by at each step, update or plateau", with_factor, true},
        {"rate.period", [](Config& c) -> F { return &c.rate.period; }, between(1, most_updates),
         "updates between steps, or between the validation losses that plateau heeds; not given: those of an epoch",
         with_period},
        {"rate.warm_up", [](Config& c) -> F { return &c.rate.warm_up; }, between(0, most_updates),
         "updates over which the rate rises to the law's first one"},
        {"rate.warm_up_from", [](Config& c) -> F { return &c.rate.warm_up_from; }, between(0.0, 1.0),
         "where it starts, a fraction of that", with_warm_up},
        {"rate.rise", [](Config& c) -> F { return &c.rate.rise; }, fraction(),
         "part of the cycle in which the rate rises", only_one_cycle},
        {"rate.start_divisor", [](Config& c) -> F { return &c.rate.start_divisor; }, at_least(1.0),
         "the highest rate over the first one", only_one_cycle},
        {"rate.end_divisor", [](Config& c) -> F { return &c.rate.end_divisor; }, at_least(1.0),
         "the first rate over the last one", only_one_cycle},
        {"rate.shape", [](Config& c) -> F { return &c.rate.shape; }, one_of({"cosine", "linear"}), "of the cycle",
         only_one_cycle},
        {"rate.phases", [](Config& c) -> F { return &c.rate.phases; }, between(2, 3),
         "3: back to the first rate as fast as it rose, then to the last one", only_one_cycle},
        {"rate.cycle_momentum", [](Config& c) -> F { return &c.rate.cycle_momentum; }, flag(),
         "the momentum (of sgd and rmsprop; beta1 of the others) falls while the rate rises, and rises again",
         only_one_cycle},
        {"rate.momentum_high", [](Config& c) -> F { return &c.rate.momentum_high; }, fraction(), "where it begins",
         with_cycled_momentum},
        {"rate.momentum_low", [](Config& c) -> F { return &c.rate.momentum_low; }, fraction(),
         "where it is at the highest rate", with_cycled_momentum},
        {"rate.patience", [](Config& c) -> F { return &c.rate.patience; }, between(0, most_updates),
         "validation losses in a row that may be no better before the rate is lowered", only_plateau},
        {"rate.cooldown", [](Config& c) -> F { return &c.rate.cooldown; }, between(0, most_updates),
         "validation losses after that which do not count as worse", only_plateau},
        {"rate.threshold", [](Config& c) -> F { return &c.rate.threshold; }, at_least(0.0),
         "a loss is better if it is lower than the best by more than this", only_plateau},
        {"rate.threshold_kind", [](Config& c) -> F { return &c.rate.threshold_kind; }, one_of({"relative", "absolute"}),
         "this part of the best loss, or the number itself", only_plateau},

        {"clip.kind", [](Config& c) -> F { return &c.clip.kind; }, one_of({"none", "norm", "largest_norm", "value"}),
         "2-norm, infinity norm, or each element"},
        {"clip.limit", [](Config& c) -> F { return &c.clip.limit; }, above(0.0), "what is clipped to", with_clip, true},

        {"memory.limit", [](Config& c) -> F { return &c.memory.ram; }, size(),
         "for everything that the library holds (or `--memory`)"},
        {"memory.time_axis", [](Config& c) -> F { return &c.memory.time_axis; }, size(),
         "for what grows with the window: data, carry, slots, tape, log"},
        {"memory.disk", [](Config& c) -> F { return &c.memory.disk; }, size(),
         "for states and remembered rows on disk (or `--disk`); not given: none"},
        {"memory.log", [](Config& c) -> F { return &c.disk.log; }, auto_or({"log", "file", "state"}),
         "where the rows that attention remembers lie: in RAM, in a file, in every state", with_memories},
        {"memory.folder", [](Config& c) -> F { return &c.disk.folder; }, path(),
         "of what lies on disk; not given: scratch/ in the run's folder", with_scratch, false, true},
        {"memory.compression", [](Config& c) -> F { return &c.disk.compression; }, one_of({"none", "zstd"}),
         "of states on disk; loses nothing", with_disk, false, true},
        {"memory.precision", [](Config& c) -> F { return &c.disk.precision; }, one_of({"exact", "float32", "bfloat16"}),
         "of states on disk; bits depend on it", with_disk},
        {"memory.throttle", [](Config& c) -> F { return &c.disk.throttle; }, above(0.0),
         "bytes a second that states on disk take at most, of all shards together, where others use the disk too", with_disk,
         false, true},
        {"memory.bandwidth", [](Config& c) -> F { return &c.disk.bandwidth; }, above(0.0),
         "bytes a second that the disk reads or writes, for the planner", with_disk},
        {"memory.speed", [](Config& c) -> F { return &c.disk.speed; }, above(0.0),
         "counted operations a second that the disk is weighed against", with_disk},

        {"memory.commit_links", [](Config& c) -> F { return &c.disk.commit_links; }, between(1, most_steps),
         "links after which a sweep writes down where it stands, so that `--resume` goes on in the middle of an update", nullptr,
         false, true},
        {"memory.commit_seconds", [](Config& c) -> F { return &c.disk.commit_seconds; }, above(0.0),
         "seconds after which it does", nullptr, false, true},
        {"schedule.family", [](Config& c) -> F { return &c.schedule.family; }, families,
         "`auto`: the cheapest that fits [memory]"},
        {"schedule.calibrate", [](Config& c) -> F { return &c.calibrate; }, flag(),
         "plan by measured seconds of every layer instead of counted operations (or `--calibrate`)", with_planner},
        {"schedule.slots", [](Config& c) -> F { return &c.schedule.slots; }, between(1, most_steps),
         "states that may be kept, x_0 included", only_revolve, true},
        {"schedule.period", [](Config& c) -> F { return &c.schedule.period; }, between(1, most_steps),
         "links between kept states", only_periodic, true},
        {"schedule.rule", [](Config& c) -> F { return &c.schedule.rule; }, rules,
         "which of the optimal first advances is taken", only_revolve},

        {"depth.family", [](Config& c) -> F { return &c.depth.family; }, auto_or({"store_all", "sqrt", "slots", "optimal"}),
         "what a link keeps of its layers: every tape; inputs of groups; a number of inputs; the least work within bytes; "
         "`auto`: the planner chooses"},
        {"depth.period", [](Config& c) -> F { return &c.depth.period; }, between(0, most_steps),
         "layers of a group; 0: as many as take the fewest bytes", only_sqrt_depth},
        {"depth.slots", [](Config& c) -> F { return &c.depth.slots; }, between(0, most_steps),
         "inputs that are kept besides the first layer's", only_slots_depth},
        {"depth.budget", [](Config& c) -> F { return &c.depth.budget; }, size(),
         "for inputs, tapes and adjoints of a link's layers that are alive at once, of each shard", only_optimal_depth, true},
        {"depth.always", [](Config& c) -> F { return &c.depth.always; }, text(),
         "names of layers whose tape is made again in reverse, between semicolons; `*` stands for any characters"},
        {"depth.never", [](Config& c) -> F { return &c.depth.never; }, text(),
         "names of layers that run forward once, between semicolons"},

        {"output.folder", [](Config& c) -> F { return &c.output.folder; }, path(),
         "of the run (or `--out`); not given: runs/ and the file's name", nullptr, false, true},
        {"output.snapshot_every", [](Config& c) -> F { return &c.output.snapshot_every; }, between(0, most_updates),
         "updates between snapshots; 0: at the end only", nullptr, false, true},
        {"output.keep", [](Config& c) -> F { return &c.output.keep; }, between(2, most_updates),
         "snapshots that are kept", nullptr, false, true},
        {"output.eval_every", [](Config& c) -> F { return &c.output.eval_every; }, between(0, most_updates),
         "updates between evaluations on the validation part; 0: at the end only", with_valid, false, true},

        {"plan.family", [](Config& c) -> F { return &c.plan.schedule.family; },
         one_of({"store_all", "periodic", "revolve", "mixed", "tiered_revolve", "periodic_disk"}), "the pinned schedule"},
        {"plan.slots", [](Config& c) -> F { return &c.plan.schedule.slots; }, between(1, most_steps), "its slots, or units"},
        {"plan.period", [](Config& c) -> F { return &c.plan.schedule.period; }, between(1, most_steps), "its period"},
        {"plan.rule", [](Config& c) -> F { return &c.plan.schedule.rule; }, rules, "its rule"},
        {"plan.tape_units", [](Config& c) -> F { return &c.plan.schedule.tape_units; }, between(1, most_bytes),
         "units of a tape"},
        {"plan.ram_slots", [](Config& c) -> F { return &c.plan_ram_slots; }, between(0, most_steps),
         "its slots in RAM, where others lie on disk"},
        {"plan.disk_slots", [](Config& c) -> F { return &c.plan.disk_slots; }, between(1, most_steps), "its slots on disk"},
        {"plan.links", [](Config& c) -> F { return &c.plan.schedule.steps; }, between(1, most_steps),
         "links of a full window"},
        {"plan.chunk", [](Config& c) -> F { return &c.plan.chunk; }, between(1, most_steps), "steps of a link"},
        {"plan.save", [](Config& c) -> F { return &c.plan.save; }, text(), "what attention, cells and head keep inside"},
        {"plan.memories", [](Config& c) -> F { return &c.plan.memories; }, text(), "where remembered rows lie"},
        {"plan.advances", [](Config& c) -> F { return &c.plan.advances; }, between(0, most_bytes),
         "links advanced an update"},
        {"plan.recorded", [](Config& c) -> F { return &c.plan.recorded; }, between(0, most_bytes),
         "links recorded an update"},
        {"plan.cost", [](Config& c) -> F { return &c.plan.cost; }, at_least(0.0), "of a window: operations, or seconds"},
        {"plan.least_cost", [](Config& c) -> F { return &c.plan.least_cost; }, at_least(0.0), "with every tape kept"},
        {"plan.measured", [](Config& c) -> F { return &c.plan.measured; }, flag(), "whether the costs are seconds"},
        {"plan.disk", [](Config& c) -> F { return &c.plan.disk; }, between(0, most_bytes), "bytes on disk"},
        {"plan.depth.family", [](Config& c) -> F { return &c.plan.depth.family; },
         one_of({"store_all", "sqrt", "slots", "optimal"}), "what a link keeps of its layers"},
        {"plan.depth.period", [](Config& c) -> F { return &c.plan.depth.period; }, between(0, most_steps), "its period"},
        {"plan.depth.slots", [](Config& c) -> F { return &c.plan.depth.slots; }, between(0, most_steps), "its slots"},
        {"plan.depth.budget", [](Config& c) -> F { return &c.plan.depth.budget; }, between(0, most_bytes), "its bytes"},
        {"plan.depth.work", [](Config& c) -> F { return &c.plan.depth.work; }, weights(),
         "seconds of every layer, forward and reverse, that it was made by"},
        {"plan.bytes.parameters", predicted<Kind::parameters>, between(0, most_bytes), "predicted peak"},
        {"plan.bytes.gradients", predicted<Kind::gradients>, between(0, most_bytes), "predicted peak"},
        {"plan.bytes.moments", predicted<Kind::moments>, between(0, most_bytes), "predicted peak"},
        {"plan.bytes.data", predicted<Kind::data>, between(0, most_bytes), "predicted peak"},
        {"plan.bytes.carry", predicted<Kind::carry>, between(0, most_bytes), "predicted peak"},
        {"plan.bytes.slots", predicted<Kind::slots>, between(0, most_bytes), "predicted peak"},
        {"plan.bytes.tape", predicted<Kind::tape>, between(0, most_bytes), "predicted peak"},
        {"plan.bytes.log", predicted<Kind::log>, between(0, most_bytes), "predicted peak"},
        {"plan.bytes.workspace", predicted<Kind::workspace>, between(0, most_bytes), "predicted peak"},
    };
    for (Key& key : table) {
        if (!key.name.starts_with("plan.")) continue;
        key.idle = with_plan;
        key.written = true;
    }
    return table;
}

const Key* find_key(std::string_view name) {
    const auto all = keys();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Key& k) { return k.name == name; });
    return found == all.end() ? nullptr : &*found;
}

std::vector<std::string_view> split_at(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(std::min(text.size(), end + 1))) {
        end = text.find(at);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) break;
    }
    return parts;
}

std::pair<std::string_view, std::string_view> table_and_leaf(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string_view::npos ? std::pair{std::string_view{}, name}
                                         : std::pair{name.substr(0, dot), name.substr(dot + 1)};
}

/// For reading only.
Field field_of(const Key& key, const Config& config) {
    return key.field(const_cast<Config&>(config));
}

[[noreturn]] void refuse(const std::string& place, const std::string& why) {
    throw InvalidArgument(place + ": " + why);
}

/// Refuses what no machine holds, so that no count of bytes overflows.
void check_extent(const Config& c) {
    const auto real = [](Index x) { return static_cast<double>(x); };
    const Index layers = c.model.layers.count;
    const double steps = c.data.kind == "copy" ? real(c.data.delay) + 2.0 * real(c.data.length) : real(c.data.window),
                 features = real(layers) * (real(c.model.hidden) + real(c.model.inner)) + real(c.model.embedding) +
                            real(c.data.symbols),
                 memory = c.model.attends() ? real(c.model.memory) : 0.0;
    const double activations =
                     real(c.data.batch) * (steps + memory + real(c.train.look_back) + real(c.train.chunk)) * features,
                 weights = features * (real(c.model.hidden) + real(c.model.embedding));
    if (std::max(activations, weights) > 1e15)
        throw InvalidArgument(fmt::format(
            "data.batch = {}, windows of {:.0f} steps (train.look_back = {}, train.chunk = {}), model.hidden = {}, "
            "model.layers = {} and model.embedding = {} together are more than 1e15 numbers; make some of them smaller",
            c.data.batch, steps, c.train.look_back, c.train.chunk, c.model.hidden, layers, c.model.embedding));
}

/// Writes the value into the field, or says why it cannot.
void assign(const Key& key, Config& config, const Given& given) {
    const Field field = key.field(config);
    const Domain& domain = key.domain;
    const auto wrong = [&](const char* what) {
        refuse(given.place,
               fmt::format("{} = {} {}; it wants {}", key.name, given.value.text, what, domain.in_words(field)));
    };
    const auto& is = given.value.is;
    const auto* words = std::get_if<std::string>(&is);
    const auto* whole = std::get_if<Index>(&is);
    if (auto* const* to = std::get_if<bool*>(&field)) {
        if (!std::holds_alternative<bool>(is)) wrong("has the wrong type");
        **to = std::get<bool>(is);
    } else if (auto* const* to_index = std::get_if<Index*>(&field)) {
        Index value = whole ? *whole : 0;
        if (domain.kind == Domain::Kind::bytes && words) {
            value = bytes_from(*words);
            if (value < 0) wrong("is no size");
        } else if (!whole) {
            wrong("has the wrong type");
        }
        if (!domain.holds(static_cast<double>(value))) wrong("is out of range");
        **to_index = value;
    } else if (auto* const* to_real = std::get_if<double*>(&field)) {
        const auto* given_real = std::get_if<double>(&is);
        if (!whole && !given_real) wrong("has the wrong type");
        const double value = whole ? static_cast<double>(*whole) : *given_real;
        if (!std::isfinite(value) || !domain.holds(value)) wrong("is out of range");
        **to_real = value;
    } else if (auto* const* to_text = std::get_if<std::string*>(&field)) {
        if (!words) wrong("has the wrong type");
        if (domain.kind == Domain::Kind::choice &&
            std::find(domain.choices.begin(), domain.choices.end(), *words) == domain.choices.end())
            wrong("is unknown");
        if (words->empty()) wrong("is empty");
        std::string is_now =
            domain.kind == Domain::Kind::path ? (given.base / *words).lexically_normal().string() : *words;
        if (!is_utf8(is_now)) wrong("is no UTF-8");
        **to_text = std::move(is_now);
    } else if (auto* const* to_list = std::get_if<std::vector<double>*>(&field)) {
        const auto* list = std::get_if<std::vector<double>>(&is);
        if (!list) wrong("has the wrong type");
        double sum = 0.0;
        for (const double x : *list) sum += x >= 0.0 ? x : infinity;
        if (!std::isfinite(sum) || list->empty()) wrong("is out of range");
        if (domain.kind == Domain::Kind::percents &&
            (list->size() != 3 || !((*list)[0] > 0.0) || std::abs(sum - 100.0) > 1e-9))
            wrong("is out of range");
        **to_list = *list;
    } else if (auto* const* to_layers = std::get_if<Layers*>(&field)) {
        const auto* list = std::get_if<std::vector<LayerSpec>>(&is);
        if (!list && !whole) wrong("has the wrong type");
        if (list ? list->empty() : !domain.holds(static_cast<double>(*whole))) wrong("is out of range");
        **to_layers = list ? Layers{0, *list} : Layers{*whole, {}};
    }
}

/// A list of layers with model.kind = "layers", and no other kind with one.
void check_layers(const Loaded& loaded) {
    const Config::Model& m = loaded.config.model;
    if ((m.kind == "layers") != m.layers.list.empty()) return;
    const auto place = loaded.places.find(m.layers.list.empty() ? "model.kind" : "model.layers");
    if (m.layers.list.empty())
        refuse(place->second, "model.kind = \"layers\" wants the layers, each as a table [[model.layers]] with its 'type'");
    refuse(place->second, fmt::format("[[model.layers]] has no effect here: model.kind is \"{}\"; set it to \"layers\"", m.kind));
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
    const auto at = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
    for (std::size_t k = 0; k < text.size();) {
        const unsigned first = at(k), second = at(k + 1);
        const std::size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        if (length == 0 || first > 0xf4) return false;
        for (std::size_t j = 1; j < length; ++j)
            if ((at(k + j) & 0xc0) != 0x80) return false;
        // Longer than needed, half of a surrogate pair, above U+10FFFF.
        if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
            (first == 0xf4 && second > 0x8f))
            return false;
        k += length;
    }
    return true;
}

std::string Domain::in_words(const Field& field) const {
    const auto range = [&](const char* what) {
        return fmt::format("{} in {}{}, {}{}", what, open ? '(' : '[', least, most,
                           below || std::isinf(most) ? ')' : ']');
    };
    switch (kind) {
        case Kind::flag:
            return "true or false";
        case Kind::number:
            return range(std::holds_alternative<Index*>(field) ? "an integer" : "a number");
        case Kind::bytes:
            return "a size of 1 byte or more, such as 4096 or \"2 MiB\"";
        case Kind::choice:
            return fmt::format("one of: {}", fmt::join(choices, ", "));
        case Kind::text:
            return "a text";
        case Kind::path:
            return "a path";
        case Kind::weights:
            return "a list of numbers >= 0, one for each class";
        case Kind::layers:
            return range("an integer") + ", or with model.kind = \"layers\" a list of tables";
        case Kind::percents:
            return "three numbers >= 0 that add up to 100, the first > 0";
    }
    return {};
}

std::span<const Key> keys() {
    static const std::vector<Key> table = make_table();
    return table;
}

bool Key::is_set(const Config& config) const {
    const Field at = field_of(*this, config);
    if (const auto* x = std::get_if<Index*>(&at)) return domain.holds(static_cast<double>(**x));
    if (const auto* x = std::get_if<double*>(&at)) return domain.holds(**x);
    if (const auto* x = std::get_if<std::string*>(&at)) return !(*x)->empty();
    if (const auto* x = std::get_if<std::vector<double>*>(&at)) return !(*x)->empty();
    return true;
}

std::string Key::text(const Config& config) const {
    const Field at = field_of(*this, config);
    if (const auto* x = std::get_if<bool*>(&at)) return **x ? "true" : "false";
    if (const auto* x = std::get_if<Index*>(&at)) return fmt::format("{}", **x);
    if (const auto* x = std::get_if<double*>(&at)) return toml_number(**x);
    if (const auto* x = std::get_if<std::string*>(&at)) return toml_string(**x);
    if (const auto* x = std::get_if<Layers*>(&at))
        return (*x)->list.empty() ? fmt::format("{}", (*x)->count) : to_toml((*x)->list);
    std::vector<std::string> all;
    for (const double x : *std::get<std::vector<double>*>(at)) all.push_back(toml_number(x));
    return fmt::format("[{}]", fmt::join(all, ", "));
}

std::string nearest_key(std::string_view name) {
    if (name == "model.cell") return "model.kind";
    const auto [table, leaf] = table_and_leaf(name);
    const std::vector<std::string_view> words = split_at(leaf, '_');
    std::tuple<std::size_t, std::size_t, std::size_t> least{std::size_t(-1), 0, 0};
    std::string_view nearest;
    for (const Key& key : keys()) {
        if (key.written) continue;
        const auto [key_table, key_leaf] = table_and_leaf(key.name);
        const std::size_t whole = edits(leaf, key_leaf);
        std::size_t by_word = whole;  // 'chekpoint_slots' means 'slots'
        for (const std::string_view word : words)
            for (const std::string_view key_word : split_at(key_leaf, '_'))
                by_word = std::min(by_word, 1 + edits(word, key_word));
        const std::tuple distance{by_word, edits(table, key_table), whole};
        if (distance < least) least = distance, nearest = key.name;
    }
    return std::string(nearest);
}

bool is_table(std::string_view name) {
    const auto all = keys();
    return std::any_of(all.begin(), all.end(), [&](const Key& k) { return table_and_leaf(k.name).first == name; });
}

std::string nearest_table(std::string_view name) {
    const auto all = keys();
    const auto away = [&](const Key& k) { return edits(name, table_and_leaf(k.name).first); };
    const auto least =
        std::min_element(all.begin(), all.end(), [&](const Key& a, const Key& b) { return away(a) < away(b); });
    return std::string(table_and_leaf(least->name).first);
}

Loaded configure(std::span<const Given> given) {
    Loaded loaded;
    Config& config = loaded.config;
    for (const Given& g : given) {
        const Key* key = find_key(g.name);
        if (!key) refuse(g.place, fmt::format("unknown key '{}'; nearest known: '{}'", g.name, nearest_key(g.name)));
        assign(*key, config, g);
        loaded.places[g.name] = g.place;
    }
    for (const Key& key : keys()) {
        if (key.name == "model.layers") check_layers(loaded);
        const auto place = loaded.places.find(key.name);
        if (place != loaded.places.end() && !key.has_effect(config))
            refuse(place->second, fmt::format("'{}' has no effect here: {}; leave it out", key.name, key.idle(config)));
        if (key.required && key.has_effect(config) && !key.is_set(config))
            throw InvalidArgument(fmt::format("'{}' is missing: {}; it wants {}", key.name, key.doc,
                                              key.domain.in_words(key.field(config))));
    }
    if (config.pinned() && config.plan_ram_slots >= 0) {
        Level in_ram, on_disk;
        in_ram.slots = config.plan_ram_slots;
        on_disk.tier = Tier::disk;
        on_disk.slots = config.plan.schedule.family == "periodic_disk" ? -1 : config.plan.disk_slots;
        config.plan.schedule.levels = {in_ram, on_disk};
    }
    const Config::Train& train = config.train;
    if (train.updates == 0 && train.epochs == 0 && train.seconds == 0.0)
        throw InvalidArgument("no limit is given: set train.updates, train.epochs or train.seconds");
    check_extent(config);
    return loaded;
}

void pin(Config& config, const Plan& plan) {
    config.plan = plan;
    config.plan_ram_slots = plan.schedule.levels.empty() ? -1 : plan.schedule.levels.front().slots;
}

std::string to_toml(const Config& config) {
    std::string out;
    std::string_view open;
    for (const Key& key : keys()) {
        if (!key.has_effect(config) || !key.is_set(config)) continue;
        const auto [table, leaf] = table_and_leaf(key.name);
        if (table != open) out += fmt::format("{}[{}]\n", open.empty() ? "" : "\n", table);
        open = table;
        out += fmt::format("{} = {}\n", leaf, key.text(config));
    }
    return out;
}

std::string difference(const Config& then, const Config& now) {
    for (const Key& key : keys()) {
        if (key.may_change || (key.written && !now.pinned())) continue;
        const auto value = [&](const Config& c) {
            return !key.has_effect(c) ? std::string("without effect")
                   : !key.is_set(c)   ? std::string("not given")
                                      : key.text(c);
        };
        if (value(then) != value(now)) return fmt::format("{}: {} then, {} now", key.name, value(then), value(now));
    }
    return {};
}

std::string keys_as_markdown() {
    const Config defaults;
    std::string out;
    std::string_view open;
    for (const Key& key : keys()) {
        const auto [table, leaf] = table_and_leaf(key.name);
        if (table != open)
            out += fmt::format("{}### [{}]\n| key | value | default | meaning |\n|---|---|---|---|\n",
                               open.empty() ? "" : "\n", table);
        open = table;
        std::string needs;
        if (key.idle && !key.written && !key.has_effect(defaults))
            needs = fmt::format(" (not by default: {})", key.idle(defaults));
        const bool has_default = key.is_set(defaults) && !key.written;
        out += fmt::format("| `{}` | {} | {} | {}{} |\n", leaf, key.domain.in_words(field_of(key, defaults)),
                           has_default    ? fmt::format("`{}`", key.text(defaults))
                           : key.required ? "required"
                                          : "",
                           key.doc, needs);
    }
    return out;
}

std::int64_t bytes_from(std::string_view words) noexcept {
    static constexpr std::array<std::pair<std::string_view, double>, 10> units{{{"", 1.0},
                                                                                {"B", 1.0},
                                                                                {"kB", 1e3},
                                                                                {"MB", 1e6},
                                                                                {"GB", 1e9},
                                                                                {"TB", 1e12},
                                                                                {"KiB", 0x1p10},
                                                                                {"MiB", 0x1p20},
                                                                                {"GiB", 0x1p30},
                                                                                {"TiB", 0x1p40}}};
    double number = 0.0;
    const auto [end, error] =
        std::from_chars(words.data(), words.data() + words.size(), number, std::chars_format::fixed);
    if (error != std::errc{} || !(number >= 0.0)) return -1;
    words.remove_prefix(static_cast<std::size_t>(end - words.data()));
    if (words.starts_with(' ')) words.remove_prefix(1);
    for (const auto& [unit, factor] : units)
        if (words == unit && number * factor < 0x1p62) return std::llround(number * factor);
    return -1;
}

}  // namespace backsweep::cli
