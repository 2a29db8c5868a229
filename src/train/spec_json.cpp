// Each specification lists its members once, for both directions.
// SPDX-License-Identifier: MIT
#include "backsweep/train/spec_json.hpp"

#include "backsweep/base/error.hpp"
#include "train/spec_members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace backsweep {

namespace {

using nlohmann::json;

/// The names of an enumeration's values, or of a variant's alternatives, in their order.
using Names = std::vector<std::string>;

/// The number of a name; throws InvalidArgument if there is none such.
std::size_t place_of(const json& value, const std::string& what, const Names& names) {
    for (std::size_t k = 0; k < names.size(); ++k)
        if (value == names[k]) return k;
    throw InvalidArgument(
        fmt::format("{} must be one of \"{}\", not {}", what, fmt::join(names, "\", \""), value.dump()));
}

class Writer {
public:
    template <class T>
    void member(const char* key, T& value) {
        write(object_[key], value);
    }
    template <class Enum>
    void choice(const char* key, Enum& value, const Names& names) {
        object_[key] = names.at(static_cast<std::size_t>(value));
    }
    template <class... Specs>
    void alternative(const char* key, std::variant<Specs...>& spec, const Names& names) {
        object_[key] = names.at(spec.index());
        std::visit([this](auto& s) { members(*this, s); }, spec);
    }
    json take() { return std::move(object_); }

private:
    template <class T>
    static void write(json& to, T& value) {
        if constexpr (requires { json(value); }) {
            to = value;
        } else {
            Writer writer;
            members(writer, value);
            to = writer.take();
        }
    }
    template <class T>
    static void write(json& to, std::optional<T>& value) {
        if (value) to = *value;
    }
    template <class T>
    static void write(json& to, std::vector<T>& values) {
        to = json::array();
        for (T& value : values) write(to.emplace_back(), value);
    }

    json object_ = json::object();
};

class Reader {
public:
    Reader(const json& object, std::string what) : object_(object), what_(std::move(what)) {
        if (!object_.is_object())
            throw InvalidArgument(fmt::format("{} must be an object, not {}", what_, object_.dump()));
    }

    template <class T>
    void member(const char* key, T& value) {
        if (const json* found = find(key)) read(*found, what_ + '.' + key, value);
    }
    template <class Enum>
    void choice(const char* key, Enum& value, const Names& names) {
        if (const json* found = find(key)) value = static_cast<Enum>(place_of(*found, what_ + '.' + key, names));
    }
    template <class... Specs>
    void alternative(const char* key, std::variant<Specs...>& spec, const Names& names) {
        const json* found = find(key);
        if (!found) throw InvalidArgument(fmt::format("{} needs the key \"{}\"", what_, key));
        const std::size_t place = place_of(*found, what_ + '.' + key, names);
        std::size_t k = 0;
        ((k++ == place ? members(*this, spec.template emplace<Specs>()) : void()), ...);
    }
    /// Call last: throws for keys that nobody asked for.
    void done() const {
        for (const auto& item : object_.items())
            if (std::find(known_.begin(), known_.end(), item.key()) == known_.end())
                throw InvalidArgument(
                    fmt::format("{} has no key \"{}\"; there are: {}", what_, item.key(), fmt::join(known_, ", ")));
    }

private:
    const json* find(const char* key) {
        known_.emplace_back(key);
        const auto found = object_.find(key);
        return found == object_.end() ? nullptr : &*found;
    }

    template <class T>
    static void read(const json& from, const std::string& what, T& value) {
        const auto refuse = [&](const char* wanted) {
            throw InvalidArgument(fmt::format("{} must be {}, not {}", what, wanted, from.dump()));
        };
        if constexpr (std::is_same_v<T, bool>) {
            if (!from.is_boolean()) refuse("true or false");
            value = from.get<bool>();
        } else if constexpr (std::is_same_v<T, Index>) {
            if (!from.is_number_integer() || (from.is_number_unsigned() && from.get<std::uint64_t>() > INT64_MAX))
                refuse("a whole number");
            value = from.get<Index>();
        } else if constexpr (std::is_same_v<T, double>) {
            if (!from.is_number()) refuse("a number");
            value = from.get<double>();
        } else if constexpr (std::is_same_v<T, std::string>) {
            if (!from.is_string()) refuse("a text");
            value = from.get<std::string>();
        } else {
            Reader reader(from, what);
            members(reader, value);
            reader.done();
        }
    }
    template <class T>
    static void read(const json& from, const std::string& what, std::optional<T>& value) {
        if (from.is_null())
            value.reset();
        else
            read(from, what, value.emplace());
    }
    template <class T>
    static void read(const json& from, const std::string& what, std::vector<T>& values) {
        if (!from.is_array()) throw InvalidArgument(fmt::format("{} must be a list, not {}", what, from.dump()));
        values.clear();
        for (const json& item : from) {
            const std::string item_what = fmt::format("{}[{}]", what, values.size());
            read(item, item_what, values.emplace_back());
        }
    }

    const json& object_;
    std::string what_;
    std::vector<std::string> known_;
};

template <class Io>
void members(Io& io, SgdSpec& spec) {
    io.member("momentum", spec.momentum);
    io.member("dampening", spec.dampening);
    io.member("nesterov", spec.nesterov);
    io.member("weight_decay", spec.weight_decay);
}

template <class Io, class Adam>
void adam_members(Io& io, Adam& spec) {
    io.member("beta1", spec.beta1);
    io.member("beta2", spec.beta2);
    io.member("epsilon", spec.epsilon);
    io.member("amsgrad", spec.amsgrad);
    io.member("weight_decay", spec.weight_decay);
}

template <class Io>
void members(Io& io, AdamSpec& spec) {
    adam_members(io, spec);
}

template <class Io>
void members(Io& io, AdamWSpec& spec) {
    adam_members(io, spec);
}

template <class Io>
void members(Io& io, RmspropSpec& spec) {
    io.member("alpha", spec.alpha);
    io.member("epsilon", spec.epsilon);
    io.member("centered", spec.centered);
    io.member("momentum", spec.momentum);
    io.member("weight_decay", spec.weight_decay);
}

template <class Io>
void members(Io& io, AdagradSpec& spec) {
    io.member("rate_decay", spec.rate_decay);
    io.member("initial_accumulator", spec.initial_accumulator);
    io.member("epsilon", spec.epsilon);
    io.member("weight_decay", spec.weight_decay);
}

template <class Io>
void members(Io& io, LambSpec& spec) {
    io.member("beta1", spec.beta1);
    io.member("beta2", spec.beta2);
    io.member("epsilon", spec.epsilon);
    io.member("weight_decay", spec.weight_decay);
}

template <class Io>
void members(Io& io, ParameterGroup& spec) {
    io.member("patterns", spec.patterns);
    io.member("weight_decay", spec.weight_decay);
    io.member("rate_factor", spec.rate_factor);
}

template <class Io>
void members(Io& io, OptimizerSpec& spec) {
    io.alternative("rule", spec.rule, {"sgd", "adam", "adamw", "rmsprop", "adagrad", "lamb"});
    io.member("groups", spec.groups);
}

template <class Io>
void members(Io& io, OneCycleSpec& spec) {
    io.member("rise", spec.rise);
    io.member("start_divisor", spec.start_divisor);
    io.member("end_divisor", spec.end_divisor);
    io.member("linear", spec.linear);
    io.member("three_phase", spec.three_phase);
    io.member("cycle_momentum", spec.cycle_momentum);
    io.member("momentum_high", spec.momentum_high);
    io.member("momentum_low", spec.momentum_low);
}

template <class Io>
void members(Io& io, PlateauSpec& spec) {
    io.member("rising", spec.rising);
    io.member("threshold", spec.threshold);
    io.member("absolute", spec.absolute);
    io.member("patience", spec.patience);
    io.member("cooldown", spec.cooldown);
}

template <class Io>
void members(Io& io, Plateau& state) {
    io.member("seen", state.seen);
    io.member("best", state.best);
    io.member("bad", state.bad);
    io.member("cooldown", state.cooldown);
    io.member("factor", state.factor);
}

template <class Io>
void members(Io& io, RateSpec& spec) {
    io.choice("law", spec.law, {"constant", "cosine", "annealing", "step", "exponential", "one_cycle", "plateau"});
    io.member("peak", spec.peak);
    io.member("floor", spec.floor);
    io.member("length", spec.length);
    io.member("warm_up", spec.warm_up);
    io.member("warm_up_from", spec.warm_up_from);
    io.member("factor", spec.factor);
    io.member("period", spec.period);
    io.member("one_cycle", spec.one_cycle);
    io.member("plateau", spec.plateau);
}

template <class Io>
void members(Io& io, ClipSpec& spec) {
    io.choice("kind", spec.kind, {"none", "norm", "largest_norm", "value"});
    io.member("limit", spec.limit);
}

template <class Io>
void members(Io& io, WindowSpec& spec) {
    io.choice("law", spec.law, {"fixed", "normal", "artbp"});
    io.member("deviation", spec.deviation);
    io.member("half", spec.half);
    io.member("shortest", spec.shortest);
    io.member("tail", spec.tail);
    io.member("longest", spec.longest);
}

template <class Spec>
std::string text_of(Spec spec) {
    Writer writer;
    members(writer, spec);
    return writer.take().dump();
}

template <class Spec>
Spec spec_of(std::string_view text, const char* what) {
    const json object = json::parse(text, nullptr, false);
    if (object.is_discarded())
        throw InvalidArgument(fmt::format("{} must be JSON, but is: {}", what, text.substr(0, 80)));
    Spec spec;
    Reader reader(object, what);
    members(reader, spec);
    reader.done();
    if (const std::string problem = spec.problem(); !problem.empty())
        throw InvalidArgument(fmt::format("{}: {}", what, problem));
    return spec;
}

std::string words(const EmbeddingSpec& s) {
    return fmt::format("embedding {} -> {}", s.vocabulary, s.features);
}
std::string words(const DenseSpec& s) {
    return fmt::format("dense {} -> {}{}", s.inputs, s.outputs, s.bias ? "" : " without bias");
}
std::string words(const RecurrentSpec& s) {
    constexpr const char* cells[] = {"lstm", "gru", "rnn_tanh", "rnn_relu"};
    return fmt::format("{} {} -> {}{}{}{}", cells[static_cast<std::size_t>(s.cell)], s.inputs, s.outputs(),
                       s.layers > 1 ? fmt::format(" in {} layers", s.layers) : "",
                       s.bidirectional ? " in both directions" : "", s.bias ? "" : " without bias");
}
std::string words(const NormSpec& s) {
    return fmt::format("{} norm {}", s.kind == NormSpec::Kind::layer ? "layer" : "rms", s.features);
}
std::string words(const ActivationSpec& s) {
    constexpr const char* names[] = {"relu", "silu",     "gelu",    "gelu_tanh",  "tanh",
                                     "sigmoid", "softplus", "softmax", "log_softmax"};
    return names[static_cast<std::size_t>(s.kind)];
}
std::string words(const DropoutSpec& s) {
    return fmt::format("{}dropout {}", s.locked ? "locked " : "", s.rate);
}
std::string words(const FoldSpec& s) {
    return fmt::format("fold {} -> {}", s.inputs, s.outputs);
}
std::string words(const AttentionSpec& s) {
    std::string line = fmt::format("{} attention {}", s.across                              ? "cross"
                                                      : s.mask == AttentionSpec::Mask::full ? "full"
                                                                                            : "causal",
                                   s.features);
    if (s.heads > 1) line += fmt::format(" in {} heads", s.heads);
    if (s.memory > 0) line += fmt::format(" with {} steps of {}memory", s.memory, s.detached ? "detached " : "");
    return line;
}
std::string words(const ResidualSpec& s);
std::string words(const CheckpointSpec& s);
std::string words(const ConcatenateSpec& s);
std::string list(const std::vector<LayerSpec>& layers) {
    std::string line;
    for (const LayerSpec& layer : layers)
        line += (line.empty() ? "" : ", ") + std::visit([](const auto& each) { return words(each); }, layer);
    return line;
}
std::string words(const ResidualSpec& s) {
    return "x + (" + list(s.layers) + ")";
}
std::string words(const CheckpointSpec& s) {
    return "checkpoint (" + list(s.layers) + ")";
}
std::string words(const ConcatenateSpec& s) {
    return "[x, (" + list(s.layers) + ")]";
}

}  // namespace

std::string to_json(const ModelSpec& spec) {
    return text_of(spec);
}
std::string to_json(const OptimizerSpec& spec) {
    return text_of(spec);
}
std::string to_json(const RateSpec& spec) {
    return text_of(spec);
}
std::string to_json(const Plateau& state) {
    return text_of(state);
}
std::string to_json(const ClipSpec& spec) {
    return text_of(spec);
}
std::string to_json(const WindowSpec& spec) {
    return text_of(spec);
}

ModelSpec model_from_json(std::string_view text) {
    return spec_of<ModelSpec>(text, "model");
}
OptimizerSpec optimizer_from_json(std::string_view text) {
    return spec_of<OptimizerSpec>(text, "optimizer");
}
RateSpec rate_from_json(std::string_view text) {
    return spec_of<RateSpec>(text, "rate");
}
Plateau plateau_from_json(std::string_view text) {
    return spec_of<Plateau>(text, "plateau");
}
ClipSpec clip_from_json(std::string_view text) {
    return spec_of<ClipSpec>(text, "clip");
}
WindowSpec windows_from_json(std::string_view text) {
    return spec_of<WindowSpec>(text, "windows");
}

std::string describe(const ModelSpec& spec) {
    std::string line;
    for (const LayerSpec& layer : spec.layers) line += std::visit([](const auto& s) { return words(s); }, layer) + ", ";
    return line + nlohmann::json::parse(to_json(spec))["loss"]["kind"].get<std::string>();
}

}  // namespace backsweep
