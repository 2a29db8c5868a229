// SPDX-License-Identifier: MIT
#include "backsweep/train/spec_toml.hpp"

#include "backsweep/base/error.hpp"
#include "base/nearest.hpp"
#include "train/layers_toml.hpp"
#include "train/spec_members.hpp"
#include "train/toml_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <type_traits>
#include <utility>

namespace backsweep {

namespace {

using Names = std::vector<std::string>;
using Cell = RecurrentSpec::Cell;

/// In the order of Cell, then of the variant's other alternatives.
const Names cells{"lstm", "gru", "rnn_tanh", "rnn_relu"};
const Names types{"embedding", "lstm",    "gru",  "rnn_tanh",  "rnn_relu", "dense", "norm",
                  "activation", "dropout", "fold", "attention", "residual", "checkpoint", "concatenate"};

/// No width, count or row is larger: sums and products of a few are numbers yet.
constexpr Index most = 1'000'000'000;

std::string words_of(const toml::node& node) {
    std::ostringstream text;
    node.visit([&](const auto& n) { text << n; });
    return text.str();
}

[[noreturn]] void refuse(const std::string& place, const std::string& why) {
    throw InvalidArgument(place + ": " + why);
}

std::vector<LayerSpec> list_from(const toml::array& layers, const PlaceOf& place_of);

/// The members of one specification, each out of the key of its name.
class Reader {
public:
    /// `what` the table describes: "this lstm layer".
    Reader(const toml::table& table, const PlaceOf& place_of, std::string what)
        : table_(table), place_of_(place_of), what_(std::move(what)) {}

    /// Another key that the table may have.
    void known(const char* key) { known_.emplace_back(key); }

    template <class T>
    void member(const char* key, T& value) {
        if (const toml::node* node = find(key)) read(*node, key, value);
    }
    template <class Enum>
    void choice(const char* key, Enum& value, const Names& names) {
        if constexpr (std::is_same_v<Enum, Cell>) return;  // the type of the layer says it
        const toml::node* node = find(key);
        if (!node) return;
        std::string name;
        read(*node, key, name);
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end())
            wrong(*node, key, "is unknown", fmt::format("one of: {}", fmt::join(names, ", ")).c_str());
        value = static_cast<Enum>(found - names.begin());
    }
    /// Call last: refuses keys that nobody asked for.
    void done() const {
        for (const auto& [key, node] : table_)
            if (std::find(known_.begin(), known_.end(), key.str()) == known_.end())
                refuse(place_of_(node), fmt::format("unknown key '{}' of {}; nearest known: '{}'", key.str(), what_,
                                                    nearest(key.str(), known_)));
    }

private:
    const toml::node* find(const char* key) {
        known(key);
        return table_.get(key);
    }
    [[noreturn]] void wrong(const toml::node& node, const std::string& key, const char* what, const char* wanted) const {
        refuse(place_of_(node), fmt::format("'{}' of {} = {} {}; it wants {}", key, what_, words_of(node), what, wanted));
    }

    void read(const toml::node& node, const std::string& key, bool& value) const {
        if (!node.is_boolean()) wrong(node, key, "has the wrong type", "true or false");
        value = node.as_boolean()->get();
    }
    void read(const toml::node& node, const std::string& key, Index& value) const {
        if (!node.is_integer()) wrong(node, key, "has the wrong type", "an integer");
        value = node.as_integer()->get();
        if (value < -most || value > most) wrong(node, key, "is out of range", "at most 1000000000");
    }
    void read(const toml::node& node, const std::string& key, double& value) const {
        if (!node.is_number()) wrong(node, key, "has the wrong type", "a number");
        value = *node.value<double>();
        if (!std::isfinite(value)) wrong(node, key, "is out of range", "a finite number");
    }
    void read(const toml::node& node, const std::string& key, std::string& value) const {
        if (!node.is_string()) wrong(node, key, "has the wrong type", "a text");
        value = node.as_string()->get();
        if (value.empty()) wrong(node, key, "is empty", "a text, or to be left out");
    }
    void read(const toml::node& node, const std::string& key, std::vector<LayerSpec>& value) const {
        if (!node.is_array()) wrong(node, key, "has the wrong type", "a list of layers");
        value = list_from(*node.as_array(), place_of_);
    }
    template <class T>
    void read(const toml::node& node, const std::string& key, std::optional<T>& value) const {
        read(node, key, value.emplace());
    }
    template <class T>
    void read(const toml::node& node, const std::string& key, std::vector<T>& values) const {
        if (!node.is_array()) wrong(node, key, "has the wrong type", "a list");
        values.clear();
        for (const toml::node& each : *node.as_array()) read(each, key, values.emplace_back());
    }

    const toml::table& table_;
    const PlaceOf& place_of_;
    std::string what_;
    Names known_;
};

LayerSpec empty_layer(const std::string& type) {
    if (const auto cell = std::find(cells.begin(), cells.end(), type); cell != cells.end()) {
        RecurrentSpec spec;
        spec.cell = static_cast<Cell>(cell - cells.begin());
        return spec;
    }
    if (type == "embedding") return EmbeddingSpec{};
    if (type == "dense") return DenseSpec{};
    if (type == "norm") return NormSpec{};
    if (type == "activation") return ActivationSpec{};
    if (type == "dropout") return DropoutSpec{};
    if (type == "fold") return FoldSpec{};
    if (type == "attention") return AttentionSpec{};
    if (type == "checkpoint") return CheckpointSpec{};
    if (type == "concatenate") return ConcatenateSpec{};
    return ResidualSpec{};
}

std::string type_of(const LayerSpec& layer) {
    if (const auto* recurrent = std::get_if<RecurrentSpec>(&layer)) return cells[static_cast<std::size_t>(recurrent->cell)];
    static const Names alternatives{"embedding", "", "dense", "norm", "activation", "dropout", "fold", "attention", "residual",
                                    "checkpoint", "concatenate"};
    return alternatives[layer.index()];
}

LayerSpec layer_from(const toml::table& table, const std::string& place, const PlaceOf& place_of) {
    const toml::node* named = table.get("type");
    const std::string known = fmt::format("{}", fmt::join(types, ", "));
    if (!named || !named->is_string())
        refuse(named ? place_of(*named) : place, fmt::format("a layer needs its 'type', one of: {}", known));
    const std::string type = named->as_string()->get();
    if (std::find(types.begin(), types.end(), type) == types.end())
        refuse(place_of(*named), fmt::format("there is no layer of the type '{}'; nearest known: '{}' (of {})", type,
                                             nearest(type, types), known));
    LayerSpec layer = empty_layer(type);
    Reader reader(table, place_of, fmt::format("this {} layer", type));
    reader.known("type");
    std::visit(
        [&](auto& spec) {
            spec.name.clear();
            members(reader, spec);
        },
        layer);
    reader.done();
    return layer;
}

std::vector<LayerSpec> list_from(const toml::array& layers, const PlaceOf& place_of) {
    std::vector<LayerSpec> list;
    for (const toml::node& node : layers) {
        if (!node.is_table())
            refuse(place_of(node), fmt::format("a layer is a table with its 'type', not {}", words_of(node)));
        list.push_back(layer_from(*node.as_table(), place_of(node), place_of));
    }
    return list;
}

/// Calls f for every layer, in order, and for those within.
template <class F>
void for_each_layer(std::vector<LayerSpec>& layers, const F& f) {
    for (LayerSpec& layer : layers) {
        std::visit(f, layer);
        if (auto* inner = within(layer)) for_each_layer(*inner, f);
    }
}

void give_names(std::vector<LayerSpec>& layers) {
    std::set<std::string> taken;
    for_each_layer(layers, [&](const auto& spec) { taken.insert(spec.name); });
    std::map<std::string, int> uses;
    for_each_layer(layers, [&](auto& spec) {
        if (!spec.name.empty()) return;
        const std::string usual = std::decay_t<decltype(spec)>{}.name;
        do {
            const int use = ++uses[usual];
            spec.name = use == 1 ? usual : usual + std::to_string(use);
        } while (!taken.insert(spec.name).second);
    });
}

std::string list_as_text(std::vector<LayerSpec>& layers, const std::string& indent);

/// The members of one specification as `key = value`.
class Writer {
public:
    explicit Writer(std::string indent) : indent_(std::move(indent)) {}

    template <class T>
    void member(const char* key, T& value) {
        if (std::string words = text(value); !words.empty()) items.emplace_back(key, std::move(words));
    }
    template <class Enum>
    void choice(const char* key, Enum& value, const Names& names) {
        if constexpr (!std::is_same_v<Enum, Cell>)
            items.emplace_back(key, toml_string(names.at(static_cast<std::size_t>(value))));
    }

    std::vector<std::pair<std::string, std::string>> items;

private:
    std::string text(bool value) const { return value ? "true" : "false"; }
    std::string text(Index value) const { return std::to_string(value); }
    std::string text(double value) const { return toml_number(value); }
    std::string text(const std::string& value) const { return value.empty() ? "" : toml_string(value); }
    std::string text(std::vector<LayerSpec>& value) const { return list_as_text(value, indent_); }
    template <class T>
    std::string text(std::optional<T>& value) const {
        return value ? text(*value) : "";
    }
    template <class T>
    std::string text(std::vector<T>& values) const {
        Names all;
        for (T& value : values) all.push_back(text(value));
        return fmt::format("[{}]", fmt::join(all, ", "));
    }

    std::string indent_;
};

/// `key = value` of the members that are not at their defaults; of layers the name too.
template <class Spec>
Names lines_of(Spec& spec, const std::string& indent) {
    Writer writer(indent), usual(indent);
    Spec defaults;
    members(writer, spec);
    members(usual, defaults);
    Names lines;
    for (const auto& item : writer.items)
        if (item.first == "name" || std::find(usual.items.begin(), usual.items.end(), item) == usual.items.end())
            lines.push_back(item.first + " = " + item.second);
    return lines;
}

std::string list_as_text(std::vector<LayerSpec>& layers, const std::string& indent) {
    const std::string inner = indent + "    ";
    std::string out = "[\n";
    for (LayerSpec& layer : layers) {
        const Names lines = std::visit([&](auto& spec) { return lines_of(spec, inner); }, layer);
        out += fmt::format("{}{{type = \"{}\", {}}},\n", inner, type_of(layer), fmt::join(lines, ", "));
    }
    return out + indent + "]";
}

}  // namespace

std::vector<LayerSpec> layers_from(const toml::array& layers, const PlaceOf& place_of) {
    std::vector<LayerSpec> list = list_from(layers, place_of);
    give_names(list);
    return list;
}

ModelSpec model_from_toml(std::string_view text, const Widths& widths, const std::string& source) {
    const PlaceOf place_of = [&](const toml::node& node) { return fmt::format("{}:{}", source, node.source().begin.line); };
    ModelSpec model;
    try {
        const toml::table table = toml::parse(text, std::string_view(source));
        for (const auto& [key, node] : table) {
            if (key.str() == "layers" && node.is_array()) {
                model.layers = layers_from(*node.as_array(), place_of);
            } else if (key.str() == "loss" && node.is_table()) {
                Reader reader(*node.as_table(), place_of, "the loss");
                members(reader, model.loss);
                reader.done();
            } else {
                refuse(place_of(node), fmt::format("a model has [[layers]] and [loss], but this is '{}'", key.str()));
            }
        }
    } catch (const toml::parse_error& error) {
        refuse(fmt::format("{}:{}", source, error.source().begin.line),
               fmt::format("this is no TOML: {}", std::string(error.description())));
    }
    model = with_widths(std::move(model), widths);
    if (const std::string problem = model.problem(); !problem.empty()) refuse(source, problem);
    return model;
}

ModelSpec read_model(const std::filesystem::path& path, const Widths& widths) {
    const auto refuse_file = [&](const char* why) {
        throw InvalidArgument(
            fmt::format("cannot read the model '{}': {}; give the path of a .toml file", path.string(), why));
    };
    if (std::filesystem::is_directory(path)) refuse_file("it is a folder");
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text;
    if (file) text.assign(std::istreambuf_iterator<char>(file), {});
    if (!file) refuse_file(std::strerror(errno));
    return model_from_toml(text, widths, path.string());
}

std::string to_toml(const std::vector<LayerSpec>& layers) {
    std::vector<LayerSpec> copy = layers;
    return list_as_text(copy, "");
}

std::string to_toml(const ModelSpec& model) {
    LossSpec loss = model.loss;
    return fmt::format("layers = {}\n\n[loss]\n{}\n", to_toml(model.layers), fmt::join(lines_of(loss, ""), "\n"));
}

}  // namespace backsweep
