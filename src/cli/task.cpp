// SPDX-License-Identifier: MIT
#include "cli/task.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/data/generators.hpp"
#include "backsweep/nn/blocks.hpp"
#include "backsweep/nn/models.hpp"
#include "backsweep/train/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace backsweep::cli {

namespace {

std::string digits_of(const Vocabulary& vocabulary) {
    std::string digits;
    for (const char c : vocabulary.bytes()) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return digits;
}

/// Throws InvalidArgument for a byte of the text that is no token.
void require_tokens(const Data& data, const std::string& path) {
    const Vocabulary occurring(data.text->bytes());
    for (const char c : occurring.bytes())
        if (const auto byte = static_cast<std::uint8_t>(c); data.vocabulary.token(byte) < 0)
            throw InvalidArgument(fmt::format(
                "the byte 0x{:02x} of the text '{}' is not in data.vocabulary; add it, or leave the key out", byte,
                path));
}

Range part_range(const Config::Data& config, Index bytes, std::string_view part) {
    const Split ranges = split({.train = config.split[0] / 100.0, .valid = config.split[1] / 100.0}, bytes);
    return part == "train" ? ranges.train : part == "valid" ? ranges.valid : ranges.test;
}

/// Resolves optimizer.epsilon.
OptimizerSpec optimizer_spec(Config& config, const ParameterLayout& parameters) {
    Config::Optimizer& c = config.optimizer;
    const double momentum = config.rate.cycles_momentum() ? config.rate.momentum_high : c.momentum;
    const auto epsilon = [&](double of_the_rule) { return c.epsilon = c.epsilon < 0.0 ? of_the_rule : c.epsilon; };
    OptimizerSpec spec;
    if (c.kind == "sgd")
        spec.rule = SgdSpec{momentum, c.dampening, c.nesterov, c.weight_decay};
    else if (c.kind == "adam")
        spec.rule = AdamSpec{c.beta1, c.beta2, epsilon(AdamSpec{}.epsilon), c.amsgrad, c.weight_decay};
    else if (c.kind == "adamw")
        spec.rule = AdamWSpec{c.beta1, c.beta2, epsilon(AdamWSpec{}.epsilon), c.amsgrad, c.weight_decay};
    else if (c.kind == "rmsprop")
        spec.rule = RmspropSpec{c.alpha, epsilon(RmspropSpec{}.epsilon), c.centered, momentum, c.weight_decay};
    else if (c.kind == "adagrad")
        spec.rule = AdagradSpec{c.rate_decay, c.initial_accumulator, epsilon(AdagradSpec{}.epsilon), c.weight_decay};
    else
        spec.rule = LambSpec{c.beta1, c.beta2, epsilon(LambSpec{}.epsilon), c.weight_decay};
    const auto& all = parameters.views();
    const bool biases =
        std::any_of(all.begin(), all.end(), [](const ParameterView& v) { return v.name.find("bias") != std::string::npos; });
    if (c.weight_decay != 0.0 && !c.decay_biases && biases) spec.groups = {{.patterns = {"*bias*"}, .weight_decay = 0.0}};
    return spec;
}

/// Resolves rate.length and rate.period; `windows` make an epoch.
RateSpec rate_spec(Config& config, Index windows) {
    constexpr std::array laws{"constant", "cosine", "annealing", "step", "exponential", "one_cycle", "plateau"};
    const Config::Train& t = config.train;
    Config::Rate& r = config.rate;
    RateSpec spec;
    spec.law = static_cast<RateSpec::Law>(std::find(laws.begin(), laws.end(), r.law) - laws.begin());
    spec.peak = config.optimizer.rate;
    spec.floor = r.floor;
    spec.warm_up = r.warm_up;
    spec.warm_up_from = r.warm_up_from;
    const bool random = t.windows != "fixed";  // then an epoch has no fixed number of updates
    using enum RateSpec::Law;
    if (spec.law == cosine || spec.law == annealing || spec.law == one_cycle) {
        const Index by_epochs = random ? 0 : t.epochs * windows;
        if (r.length == 0)
            r.length = t.updates == 0 ? by_epochs : by_epochs == 0 ? t.updates : std::min(t.updates, by_epochs);
        if (r.length == 0)
            throw InvalidArgument(fmt::format(
                "rate.law = \"{}\" needs rate.length, the updates until its end, for {} alone do not tell it", r.law,
                random ? "epochs of windows of random length" : "train.seconds"));
        spec.length = r.length;
    }
    if ((spec.law == step || spec.law == RateSpec::Law::plateau) && r.period == 0) {
        if (random)
            throw InvalidArgument(fmt::format(
                "rate.law = \"{}\" needs rate.period, for an epoch of windows of random length has no fixed number of updates",
                r.law));
        r.period = windows;
    }
    if (spec.law == step) spec.period = r.period;
    if (r.factor > 0.0) spec.factor = r.factor;
    spec.one_cycle = {r.rise,        r.start_divisor,  r.end_divisor,   r.shape == "linear",
                      r.phases == 3, r.cycle_momentum, r.momentum_high, r.momentum_low};
    spec.plateau = {.threshold = r.threshold,
                    .absolute = r.threshold_kind == "absolute",
                    .patience = r.patience,
                    .cooldown = r.cooldown};
    return spec;
}

LossSpec loss_spec(const Config& config) {
    const Config::Loss& c = config.loss;
    LossSpec spec;
    spec.reduction = c.reduction == "sum" ? LossSpec::Reduction::sum : LossSpec::Reduction::mean;
    if (config.data.kind != "adding") {
        spec.class_weights = c.class_weights;
        spec.label_smoothing = c.label_smoothing;
        if (c.ignore_index >= 0) spec.ignore_index = c.ignore_index;
        if (c.save == "auto" ? !Kept::from(config.plan.save).logits : c.save == "nothing") spec.save = {};
        return spec;
    }
    using enum LossSpec::Kind;
    spec.kind = c.kind == "l1"             ? l1
                : c.kind == "huber"        ? huber
                : c.kind == "smooth_l1"    ? smooth_l1
                : c.kind == "gaussian_nll" ? gaussian_nll
                                           : mean_squared_error;
    spec.delta = c.delta;
    spec.beta = c.beta;
    spec.epsilon = c.epsilon;
    spec.full = c.full;
    return spec;
}

template <class Enum>
Enum named(const std::string& name, std::initializer_list<const char*> names) {
    const auto found = std::find(names.begin(), names.end(), name);
    return static_cast<Enum>(found - names.begin());
}

RecurrentSpec recurrent_spec(const Config::Model& m) {
    RecurrentSpec rnn{.name = "rnn", .hidden = m.hidden, .layers = m.layers.count, .bias = m.bias};
    rnn.cell = named<RecurrentSpec::Cell>(m.kind, {"lstm", "gru", "rnn_tanh", "rnn_relu"});
    rnn.projection = m.projection;
    rnn.heads = m.heads;
    rnn.layer_norm = m.layer_norm;
    rnn.learned_state = m.learned_state;
    rnn.start = named<RecurrentSpec::Start>(m.start, {"uniform", "orthogonal", "identity"});
    if (!std::isnan(m.forget_bias)) rnn.forget_bias = m.forget_bias;
    rnn.dropout = m.dropout;
    rnn.locked = m.locked && m.dropout > 0.0;
    rnn.weight_drop = m.weight_drop;
    return rnn;
}

/// What the data give and want: tokens or numbers in, classes or numbers out.
ModelEnds ends_of(const Config& config, const Data& data) {
    const Config::Model& m = config.model;
    ModelEnds ends;
    ends.loss = loss_spec(config);
    if (config.data.kind == "adding") {
        ends.inputs = 2;
        ends.outputs = ends.loss.kind == LossSpec::Kind::gaussian_nll ? 2 : 1;
    } else {
        const bool text = config.data.kind == "text";
        ends.vocabulary = text ? data.vocabulary.size() : config.data.symbols + 2;  // copy: blank and delimiter
        ends.outputs = text ? ends.vocabulary : ends.vocabulary - 1;
    }
    ends.bias = !m.recurrent() || m.bias;
    ends.tied = m.tied;
    ends.input_dropout = m.input_dropout;
    ends.output_dropout = m.output_dropout;
    ends.locked = m.locked;
    return ends;
}

/// What SHA-RNN and Transformer-XL have in common.
template <class Model>
Model with_attention(const Config::Model& m, ModelEnds ends) {
    Model o;
    o.ends = std::move(ends);
    o.features = m.hidden;
    o.layers = m.layers.count;
    o.inner = m.inner;
    o.heads = m.heads;
    if (!m.positions.empty())
        o.position = named<AttentionSpec::Position>(m.positions, {"none", "alibi", "rotary", "relative"});
    o.memory = m.attends() ? m.memory : 0;
    o.detached = m.detached;
    o.window = m.window;
    o.dropout = m.dropout;
    o.attention_dropout = m.attention_dropout;
    return o;
}

/// The most numbers that a step of one sequence is in any layer, memories included, all layers together.
double extent_of(const std::vector<LayerSpec>& layers) {
    double sum = 0.0;
    for (const LayerSpec& layer : layers) {
        const auto* inner = within(layer);
        const auto* recurrent = std::get_if<RecurrentSpec>(&layer);
        const auto* attention = std::get_if<AttentionSpec>(&layer);
        const auto real = [](Index x) { return std::abs(static_cast<double>(x)); };
        if (inner) sum += extent_of(*inner);
        if (recurrent) sum += real(recurrent->layers) * real(recurrent->hidden);
        if (attention) sum += real(attention->features) * (1.0 + real(attention->memory));
        sum += real(ModelSpec{{layer}, {}}.outputs());
    }
    return sum;
}

/// The list of layers, its widths filled in; refuses one that the data do not fit.
ModelSpec listed_model(const Config& config, const ModelEnds& ends) {
    ModelSpec model = with_widths({config.model.layers.list, ends.loss}, {ends.vocabulary, ends.inputs, ends.outputs});
    const auto refuse = [](const std::string& why) { throw InvalidArgument("model.layers: " + why); };
    const EmbeddingSpec* const table = model.table();
    if (ends.vocabulary > 0 && !table) refuse("the data are tokens, so that the first layer must be an embedding");
    if (ends.vocabulary == 0 && table) refuse("the data are numbers, so that no embedding can stand first");
    if (table && table->vocabulary < ends.vocabulary)
        refuse(fmt::format("the embedding has {} tokens, but the data have {}; leave its vocabulary out", table->vocabulary,
                           ends.vocabulary));
    if (const std::string problem = model.problem(); !problem.empty()) refuse(problem);
    if (!table && model.inputs() != ends.inputs)
        refuse(fmt::format("the first layer reads {} numbers a step, but the data have {}; leave its width out",
                           model.inputs(), ends.inputs));
    const Index outputs = model.outputs();
    if (ends.loss.kind == LossSpec::Kind::cross_entropy ? outputs < ends.outputs : outputs != ends.outputs)
        refuse(fmt::format("the last layer gives {} features, but the targets want {}; leave its width out", outputs,
                           ends.outputs));
    if (model.context()) refuse("a layer attends across, but these data have nothing besides their sequences");
    if (extent_of(model.layers) * static_cast<double>(config.data.batch) *
            static_cast<double>(config.train.chunk + config.data.window) > 1e15)
        refuse("layers, memories, data.batch and data.window together are more than 1e15 numbers; make some of them smaller");
    return model;
}

ModelSpec model_of(const Config& config, ModelEnds ends) {
    const Config::Model& m = config.model;
    if (m.kind == "layers") return listed_model(config, ends);
    const Kept planned = Kept::from(config.plan.save);
    const std::string& save = m.save != "auto"         ? m.save
                              : planned.policy.empty() ? save_policies().front()
                                                       : planned.policy;
    if (m.recurrent()) {
        const RecurrentSpec cell = recurrent_spec(m);
        ModelSpec model = recurrent_model({std::move(ends), m.embedding, cell});
        return cell.gated() ? save_policy(std::move(model), save) : model;
    }
    if (m.kind == "transformer_xl") {
        TransformerXl o = with_attention<TransformerXl>(m, std::move(ends));
        o.head_features = m.head_features;
        return save_policy(transformer_xl(o), save);
    }
    ShaRnn o = with_attention<ShaRnn>(m, std::move(ends));
    if (m.attention_layer >= 0) o.attention_layer = m.attention_layer;
    return save_policy(sha_rnn(o), save);
}

}  // namespace

Vocabulary vocabulary_from(std::string_view digits) {
    std::string bytes;
    for (std::size_t at = 0; at < digits.size(); at += 2) {
        unsigned byte = 0;
        const std::string_view pair = digits.substr(at, 2);
        const auto [end, error] = std::from_chars(pair.data(), pair.data() + pair.size(), byte, 16);
        if (error != std::errc{} || end != pair.data() + 2 || pair.size() != 2)
            throw InvalidArgument(fmt::format(
                "data.vocabulary = \"{}\" is neither \"occurring\", \"all\" nor pairs of hexadecimal digits", digits));
        bytes.push_back(static_cast<char>(byte));
    }
    return Vocabulary(std::string_view(bytes));
}

Data open_data(Config::Data& config) {
    if (config.kind != "text") return {};
    try {
        Data data;
        data.text = std::make_shared<const ByteText>(config.path);
        const std::string checksum = file_checksum(config.path);
        if (!config.checksum.empty() && config.checksum != checksum)
            throw InvalidArgument(fmt::format(
                "the text '{}' has changed: its checksum was {} and is {}; bring the old one back, or train anew",
                config.path, config.checksum, checksum));
        config.checksum = checksum;
        data.vocabulary = config.vocabulary == "all"         ? Vocabulary()
                          : config.vocabulary == "occurring" ? Vocabulary(data.text->bytes())
                                                             : vocabulary_from(config.vocabulary);
        if (config.vocabulary != "occurring") require_tokens(data, config.path);
        config.vocabulary = digits_of(data.vocabulary);
        return data;
    } catch (const StoreError& error) {
        throw InvalidArgument(error.what());
    }
}

bool has_part(const Config::Data& config, const Data& data, std::string_view part) {
    return !data.text || part_range(config, data.text->size(), part).size() >= 2;
}

template <class Real>
std::unique_ptr<Source<Real>> make_source(const Config::Data& config, const Data& data, std::string_view part) {
    const bool training = part == "train";
    const Index windows = training ? config.windows : std::max<Index>(1, config.windows / 10);
    const auto seed = static_cast<std::uint64_t>(config.seed) ^ (training          ? 0
                                                                 : part == "valid" ? 0x76616c6964u
                                                                                   : 0x74657374u);
    if (config.kind == "adding")
        return std::make_unique<AddingSource<Real>>(AddingSpec{config.window, config.batch, windows, seed});
    if (config.kind == "copy")
        return std::make_unique<CopySource<Real>>(
            CopySpec{config.delay, config.length, config.symbols, config.batch, windows, seed});
    const Range range = part_range(config, data.text->size(), part);
    const Index batch = training ? config.batch : std::clamp<Index>(range.size() - 1, 1, config.batch);
    return std::make_unique<TextSource<Real>>(data.text, range, data.vocabulary, batch, config.window);
}

template std::unique_ptr<Source<float>> make_source(const Config::Data&, const Data&, std::string_view);
template std::unique_ptr<Source<double>> make_source(const Config::Data&, const Data&, std::string_view);

Kept Kept::from(const std::string& name) {
    const std::string_view without = "no logits";
    if (!name.ends_with(without)) return {name, true};
    const std::string policy = name.substr(0, name.size() - without.size());
    return {policy.substr(0, policy.rfind(", ")), false};
}

std::string Kept::name() const {
    return logits ? policy : policy + (policy.empty() ? "" : ", ") + "no logits";
}

ModelSpec model_spec(const Config& config, const Data& data) {
    const ModelSpec spec = model_of(config, ends_of(config, data));
    if (const auto& ignored = spec.loss.ignore_index; ignored && *ignored >= spec.outputs())
        throw InvalidArgument(fmt::format("loss.ignore_index = {} has no effect: there are {} classes, from 0 on", *ignored,
                                          spec.outputs()));
    return spec;
}

namespace {

/// The names between semicolons, without the spaces around them.
std::vector<std::string> names_of(const std::string& text) {
    std::vector<std::string> names;
    std::istringstream in(text);
    for (std::string name; std::getline(in, name, ';');) {
        const auto first = name.find_first_not_of(" \t");
        if (first == std::string::npos)
            throw InvalidArgument(fmt::format("depth.always and depth.never want names between semicolons, but one of '{}' is empty", text));
        names.push_back(name.substr(first, name.find_last_not_of(" \t") + 1 - first));
    }
    return names;
}

}  // namespace

TrainOptions train_options(Config& config, Index windows, const ParameterLayout& parameters, std::size_t memories) {
    const Config::Train& t = config.train;
    TrainOptions o;
    o.look_back = t.look_back;
    o.form = t.look_back_form == "once" ? TrainOptions::LookBack::once : TrainOptions::LookBack::recompute;
    o.carry = t.carry && config.data.kind == "text";
    o.windows.law = named<WindowSpec::Law>(t.windows, {"fixed", "normal", "artbp"});
    o.windows.deviation = t.window_deviation;
    o.windows.half = t.window_half;
    o.windows.shortest = t.window_shortest;
    o.windows.tail = t.window_tail;
    o.windows.longest = t.window_longest;
    o.chunk = t.chunk;
    o.shards = t.shards;
    o.threads = t.threads;
    o.micro_batches = t.micro_batches;
    o.optimizer = optimizer_spec(config, parameters);
    o.rate = rate_spec(config, windows);
    o.clip.kind = config.clip.kind == "norm"           ? ClipSpec::Kind::norm
                  : config.clip.kind == "largest_norm" ? ClipSpec::Kind::largest_norm
                  : config.clip.kind == "value"        ? ClipSpec::Kind::value
                                                       : ClipSpec::Kind::none;
    o.clip.limit = config.clip.limit;
    o.plan_depth = config.depth.family == "auto";
    if (!o.plan_depth) o.depth.family = named<DepthOptions::Family>(config.depth.family, {"store_all", "sqrt", "slots", "optimal"});
    o.depth.period = config.depth.period;
    o.depth.slots = config.depth.slots;
    o.depth.budget = config.depth.budget;
    o.depth.always = names_of(config.depth.always);
    o.depth.never = names_of(config.depth.never);
    o.schedule = config.schedule;
    o.budget = config.memory;
    o.commit.links = config.disk.commit_links;
    o.commit.seconds = config.disk.commit_seconds;
    if (config.memory.disk != 0 || config.disk.commits()) {
        const std::filesystem::path run = config.output.folder.empty() ? "." : config.output.folder;
        o.scratch.folder = config.disk.folder.empty() ? (run / "scratch").string() : config.disk.folder;
        o.scratch.compression = named<Compression>(config.disk.compression, {"none", "zstd"});
        o.scratch.precision = named<Precision>(config.disk.precision, {"exact", "float32", "bfloat16"});
        if (config.disk.throttle > 0.0) o.scratch.throttle = std::make_shared<Throttle>(config.disk.throttle);
        o.scratch.bandwidth = config.disk.bandwidth;
        o.scratch.speed = config.disk.speed;
    }
    o.plan_memories = config.disk.log == "auto";
    if (!o.plan_memories && config.disk.log != "log") {
        if (memories == 0) throw InvalidArgument(fmt::format("memory.log = \"{}\" has no effect: this model remembers no rows; leave it out", config.disk.log));
        if (config.disk.log == "file" && config.memory.disk == 0)
            throw InvalidArgument("memory.log = \"file\" wants memory.disk, bytes on disk for the rows");
        o.memories.places.assign(memories, named<MemoryPlace>(config.disk.log, {"log", "file", "state"}));
        if (config.disk.log == "file") o.memories.folder = o.scratch.folder;
    }
    o.seed = static_cast<std::uint64_t>(t.seed);

    if (std::string why = o.problem(); !why.empty()) throw InvalidArgument(why);
    return o;
}

}  // namespace backsweep::cli
