// SPDX-License-Identifier: MIT
#include "cli/task.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/data/generators.hpp"
#include "backsweep/train/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

OptimizerSpec optimizer_spec(const Config::Optimizer& c) {
    OptimizerSpec spec;
    if (c.kind == "sgd")
        spec.rule = SgdSpec{c.momentum, c.dampening, c.nesterov, c.weight_decay};
    else if (c.kind == "adam")
        spec.rule = AdamSpec{c.beta1, c.beta2, c.epsilon, c.amsgrad, c.weight_decay};
    else
        spec.rule = AdamWSpec{c.beta1, c.beta2, c.epsilon, c.amsgrad, c.weight_decay};
    if (c.weight_decay != 0.0 && !c.decay_biases) spec.groups = {{.patterns = {"*bias*"}, .weight_decay = 0.0}};
    return spec;
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

ModelSpec model_spec(const Config& config, const Data& data) {
    const Config::Model& m = config.model;
    const auto rnn = [&](Index inputs) { return LstmSpec{"rnn", inputs, m.hidden, m.layers, m.bias}; };
    const auto head = [&](Index outputs) { return DenseSpec{"head", m.hidden, outputs, m.bias}; };
    ModelSpec spec;
    if (config.data.kind == "adding") {
        spec.layers = {rnn(2), head(1)};
        spec.loss.kind = LossSpec::Kind::mean_squared_error;
        return spec;
    }
    const bool text = config.data.kind == "text";
    const Index tokens = text ? data.vocabulary.size() : config.data.symbols + 2;  // copy: blank and delimiter
    spec.layers = {EmbeddingSpec{"embedding", tokens, m.embedding, {}}, rnn(m.embedding),
                   head(text ? tokens : tokens - 1)};
    return spec;
}

TrainOptions train_options(Config& config, Index windows) {
    const Config::Train& t = config.train;
    TrainOptions o;
    o.look_back = t.look_back;
    o.form = t.look_back_form == "once" ? TrainOptions::LookBack::once : TrainOptions::LookBack::recompute;
    o.carry = t.carry && config.data.kind == "text";
    o.chunk = t.chunk;
    o.shards = t.shards;
    o.threads = t.threads;
    o.micro_batches = t.micro_batches;
    o.optimizer = optimizer_spec(config.optimizer);
    o.clip.kind = config.clip.kind == "norm"           ? ClipSpec::Kind::norm
                  : config.clip.kind == "largest_norm" ? ClipSpec::Kind::largest_norm
                  : config.clip.kind == "value"        ? ClipSpec::Kind::value
                                                       : ClipSpec::Kind::none;
    o.clip.limit = config.clip.limit;
    o.schedule = config.schedule;
    o.budget = config.memory;
    o.seed = static_cast<std::uint64_t>(t.seed);

    Config::Rate& r = config.rate;
    o.rate.peak = config.optimizer.rate;
    o.rate.warm_up = r.warm_up;
    o.rate.warm_up_from = r.warm_up_from;
    if (r.law != "constant") {
        const Index by_epochs = t.epochs * windows;
        if (r.length == 0)
            r.length = t.updates == 0 ? by_epochs : by_epochs == 0 ? t.updates : std::min(t.updates, by_epochs);
        if (r.length == 0)
            throw InvalidArgument(fmt::format(
                "rate.law = \"{}\" needs rate.length, the updates until its floor, for train.seconds alone do "
                "not tell it",
                r.law));
        o.rate.law = r.law == "cosine" ? RateSpec::Law::cosine : RateSpec::Law::annealing;
        o.rate.floor = r.floor;
        o.rate.length = r.length;
    }
    if (std::string why = o.problem(); !why.empty()) throw InvalidArgument(why);
    return o;
}

}  // namespace backsweep::cli
