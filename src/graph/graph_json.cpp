// SPDX-License-Identifier: MIT
#include "backsweep/graph/graph_json.hpp"

#include "backsweep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>

namespace backsweep {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& what) {
    throw InvalidArgument("graph: " + what);
}

/// The members of an object that must have exactly these keys.
void check_keys(const json& object, const std::string& what, std::initializer_list<const char*> keys) {
    std::string list;
    for (const char* key : keys) list += std::string(list.empty() ? "\"" : ", \"") + key + "\"";
    if (!object.is_object()) refuse(what + " must be an object with the keys " + list + ", not " + object.dump());
    for (const char* key : keys) {
        if (!object.contains(key)) refuse(what + " needs the key \"" + key + "\"; it has the keys " + list);
    }
    for (const auto& member : object.items()) {
        if (std::find(keys.begin(), keys.end(), member.key()) == keys.end()) {
            refuse(what + " has no key \"" + member.key() + "\"; there are " + list);
        }
    }
}

const json& list_of(const json& object, const char* key) {
    const json& list = object.at(key);
    if (!list.is_array()) refuse(std::string(key) + " must be a list, not " + list.dump());
    return list;
}

GraphNode node_from(const json& from, const std::string& what) {
    check_keys(from, what, {"name", "time", "bytes"});
    const json& name = from.at("name");
    const json& time = from.at("time");
    const json& bytes = from.at("bytes");
    if (!name.is_string() || name.get<std::string>().empty()) refuse(what + ".name must be a text, not " + name.dump());
    if (!time.is_number()) refuse(what + ".time must be a number, not " + time.dump());
    if (!bytes.is_number_integer() || (bytes.is_number_unsigned() && bytes.get<std::uint64_t>() > INT64_MAX)) {
        refuse(what + ".bytes must be a whole number below 2^63, not " + bytes.dump());
    }
    return {time.get<double>(), bytes.get<std::int64_t>(), {}, name.get<std::string>()};
}

Graph graph_from(const json& from) {
    check_keys(from, "the file", {"nodes", "edges"});
    Graph graph;
    std::map<std::string, Index> numbers;
    for (const json& node : list_of(from, "nodes")) {
        const std::string what = "nodes[" + std::to_string(graph.nodes.size()) + "]";
        graph.nodes.push_back(node_from(node, what));
        const std::string& name = graph.nodes.back().name;
        if (!numbers.emplace(name, static_cast<Index>(graph.nodes.size()) - 1).second) {
            refuse(what + ": there is a node \"" + name + "\" already; give each a name of its own");
        }
    }
    std::size_t edge = 0;
    for (const json& ends : list_of(from, "edges")) {
        const std::string what = "edges[" + std::to_string(edge++) + "]";
        if (!ends.is_array() || ends.size() != 2 || !ends[0].is_string() || !ends[1].is_string()) {
            refuse(what + " must be two names, [\"from\", \"to\"], not " + ends.dump());
        }
        const auto number = [&](const json& name) {
            const auto found = numbers.find(name.get<std::string>());
            if (found == numbers.end()) refuse(what + ": there is no node " + name.dump());
            return found->second;
        };
        const Index source = number(ends[0]);
        std::vector<Index>& preds = graph.nodes[number(ends[1])].preds;
        if (std::find(preds.begin(), preds.end(), source) != preds.end()) refuse(what + ": " + ends.dump() + " twice");
        preds.push_back(source);
    }
    if (const std::string wrong = graph.problem(); !wrong.empty()) refuse(wrong);
    return graph;
}

}  // namespace

Graph graph_from_json(std::string_view text) {
    try {
        return graph_from(json::parse(text));
    } catch (const json::exception& error) {
        refuse(std::string("the text cannot be read as JSON: ") + error.what());
    }
}

std::string to_json(const Graph& graph) {
    if (const std::string wrong = graph.problem(); !wrong.empty()) refuse(wrong);
    nlohmann::ordered_json out{{"nodes", json::array()}, {"edges", json::array()}};
    std::set<std::string> names;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        const GraphNode& node = graph.nodes[n];
        if (node.name.empty() || !names.insert(node.name).second)
            refuse("node " + std::to_string(n) + " has no name of its own, '" + node.name + "'; give it one");
        out["nodes"].push_back({{"name", node.name}, {"time", node.time}, {"bytes", node.bytes}});
        for (const Index pred : node.preds)
            out["edges"].push_back({graph.nodes[static_cast<std::size_t>(pred)].name, node.name});
    }
    return out.dump(1) + "\n";
}

}  // namespace backsweep
