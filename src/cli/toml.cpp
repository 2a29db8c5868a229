// SPDX-License-Identifier: MIT
#include "cli/toml.hpp"

#include "backsweep/base/error.hpp"
#include "train/layers_toml.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace backsweep::cli {

namespace {

Value words_of(const std::string& words) {
    return {words, '"' + words + '"'};
}

/// None: of a kind that no key has. Lists of tables are lists of layers.
std::optional<Value> value_of(const toml::node& node, const PlaceOf& place_of) {
    std::ostringstream text;
    node.visit([&](const auto& n) { text << n; });
    const auto value = [&](auto is) { return Value{std::move(is), text.str()}; };
    if (const auto* n = node.as_boolean()) return value(n->get());
    if (const auto* n = node.as_integer()) return value(Index{n->get()});
    if (const auto* n = node.as_floating_point()) return value(n->get());
    if (const auto* n = node.as_string()) return words_of(n->get());
    if (const auto* n = node.as_array()) {
        if (!n->empty() && n->front().is_table()) return value(layers_from(*n, place_of));
        std::vector<double> numbers;
        for (const toml::node& element : *n) {
            const std::optional<double> number = element.is_number() ? element.value<double>() : std::nullopt;
            if (!number) return std::nullopt;
            numbers.push_back(*number);
        }
        return value(std::move(numbers));
    }
    return std::nullopt;
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& source,
             const std::filesystem::path& base, std::vector<Given>& given) {
    for (const auto& [key, node] : table) {
        const std::string name = prefix + std::string(key.str());
        const auto line = [&](const auto& at) { return fmt::format("{}:{}", source, at.source().begin.line); };
        const std::string place = line(key);
        if (key.str().find('.') != std::string_view::npos)
            throw InvalidArgument(
                fmt::format("{}: unknown key '{}\"{}\"': no key has a dot in its own name; write a "
                            "table and its key without quotes",
                            place, prefix, key.str()));
        if (const toml::table* inner = node.as_table()) {
            if (inner->empty() && !is_table(name))
                throw InvalidArgument(
                    fmt::format("{}: unknown table '{}'; nearest known: '{}'", place, name, nearest_table(name)));
            flatten(*inner, name + ".", source, base, given);
            continue;
        }
        const bool listed = name == "model.layers";
        if (!listed && node.is_array_of_tables())
            throw InvalidArgument(fmt::format("{}: '{}' is a list of tables; only model.layers is one", line(node), name));
        const std::optional<Value> value = value_of(node, line);
        if (!value)
            throw InvalidArgument(
                fmt::format("{}: the value of '{}' is a date, or a list of other things than {}; no key has such values",
                            place, name, listed ? "tables" : "numbers"));
        given.push_back({name, *value, place, base});
    }
}

}  // namespace

std::vector<Given> parse_toml(std::string_view text, const std::string& source, const std::filesystem::path& base) {
    try {
        const toml::table table = toml::parse(text, std::string_view(source));
        std::vector<Given> given;
        flatten(table, "", source, base, given);
        return given;
    } catch (const toml::parse_error& error) {
        throw InvalidArgument(fmt::format("{}:{}: this is no TOML: {}", source, error.source().begin.line,
                                          std::string(error.description())));
    }
}

std::vector<Given> read_toml(const std::filesystem::path& path) {
    const auto refuse = [&](const std::string& why) {
        throw InvalidArgument(
            fmt::format("cannot read the configuration '{}': {}; give the path of a .toml file", path.string(), why));
    };
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) refuse(error ? error.message() : "no such file");
    if (std::filesystem::is_directory(status)) refuse("it is a folder");
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text;
    if (file) text.assign(std::istreambuf_iterator<char>(file), {});
    if (!file) refuse(std::strerror(errno));
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
        throw InvalidArgument(
            fmt::format("the configuration '{}' is empty; docs/program.md lists the keys", path.string()));
    return parse_toml(text, path.string(), std::filesystem::absolute(path).parent_path());
}

Given parse_setting(const std::string& setting) {
    const std::size_t equals = setting.find('=');
    const std::string place = "--set " + setting;
    if (equals == 0 || equals == std::string::npos)
        throw InvalidArgument(fmt::format("'{}': a setting is written key=value, such as data.window=64", place));
    const std::string name = setting.substr(0, equals), words = setting.substr(equals + 1);
    std::optional<Value> value;
    try {
        const toml::table table = toml::parse(std::string_view("value = " + words));
        if (table.size() == 1) value = value_of(*table.get("value"), [&](const toml::node&) { return place; });
    } catch (const toml::parse_error&) {
        value.reset();
    }
    return {name, value.value_or(words_of(words)), place, std::filesystem::current_path()};
}

Loaded configure_with(std::vector<Given> given, const std::vector<std::string>& settings) {
    for (const std::string& setting : settings) given.push_back(parse_setting(setting));
    return configure(given);
}

}  // namespace backsweep::cli
