// Graphs from JSON: what is read, and what is refused.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE graph_graph_json
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/graph/graph_json.hpp"
#include "support/streams.hpp"

using namespace backsweep;
using namespace backsweep::test;

namespace {

void refused(const std::string& text, const std::string& words) {
    BOOST_TEST_CONTEXT(text) {
        BOOST_CHECK_EXCEPTION(graph_from_json(text), InvalidArgument, Says{words});
    }
}

/// A file of two nodes, with one part of it replaced.
std::string with(const std::string& old, const std::string& fresh) {
    std::string text = R"({"nodes": [{"name": "a", "time": 1, "bytes": 3}, {"name": "b", "time": 2, "bytes": 4}],
                           "edges": [["a", "b"]]})";
    const auto place = text.find(old);
    BOOST_REQUIRE(place != std::string::npos);
    return text.replace(place, old.size(), fresh);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
    const Graph graph = graph_from_json(R"({
        "edges": [["in", "mid"], ["mid", "out"], ["in", "out"]],
        "nodes": [{"name": "out", "time": 0.25, "bytes": 0}, {"bytes": 9223372036854775000, "time": 1e-3, "name": "in"},
                  {"name": "mid", "time": 7, "bytes": 12}]})");
    BOOST_REQUIRE(graph.nodes.size() == 3);
    BOOST_CHECK_EQUAL(graph.nodes[0].name, "out");
    BOOST_CHECK_EQUAL(graph.nodes[0].time, 0.25);
    BOOST_CHECK_EQUAL(graph.nodes[1].bytes, 9223372036854775000);
    BOOST_CHECK_EQUAL(graph.nodes[1].time, 1e-3);
    BOOST_CHECK_EQUAL(graph.nodes[2].time, 7.0);
    BOOST_TEST((graph.nodes[0].preds == std::vector<Index>{2, 1}));
    BOOST_TEST((graph.nodes[1].preds.empty()));
    BOOST_TEST((graph.nodes[2].preds == std::vector<Index>{1}));
    BOOST_CHECK_EQUAL(graph_from_json(with(R"([["a", "b"]])", R"([["b", "a"]])")).nodes[0].preds.at(0), 1);
}

BOOST_AUTO_TEST_CASE(everything_else_is_refused) {
    refused("", "cannot be read as JSON");
    refused("{\"nodes\": [", "cannot be read as JSON");
    refused(with("\"time\": 1", "\"time\": NaN"), "cannot be read as JSON");
    refused(with("\"time\": 1", "\"time\": 1e999"), "cannot be read as JSON");
    refused("[]", "the file must be an object with the keys \"nodes\", \"edges\", not []");
    refused("{\"nodes\": []}", "the file needs the key \"edges\"");
    refused(with("\"edges\"", "\"egdes\""), "the file needs the key \"edges\"");
    refused(with("{\"nodes\"", "{\"budget\": 3, \"nodes\""),
            "the file has no key \"budget\"; there are \"nodes\", \"edges\"");
    refused("{\"nodes\": {}, \"edges\": []}", "nodes must be a list, not {}");
    refused("{\"nodes\": [], \"edges\": 3}", "edges must be a list, not 3");
    refused("{\"nodes\": [], \"edges\": []}", "at least one node");
    refused("{\"nodes\": [3], \"edges\": []}", "nodes[0] must be an object");
    refused(with("\"time\": 2, ", ""), "nodes[1] needs the key \"time\"");
    refused(with("\"time\": 2", "\"time\": 2, \"cost\": 2"), "nodes[1] has no key \"cost\"");
    refused(with("\"time\": 2", "\"time\": \"2\""), "nodes[1].time must be a number, not \"2\"");
    refused(with("\"time\": 2", "\"time\": -2"), "node 1 (b): time must be finite and 0 or more");
    refused(with("\"bytes\": 4", "\"bytes\": 4.5"), "nodes[1].bytes must be a whole number below 2^63, not 4.5");
    refused(with("\"bytes\": 4", "\"bytes\": 9223372036854775808"), "nodes[1].bytes must be a whole number");
    refused(with("\"bytes\": 4", "\"bytes\": -4"), "node 1 (b): bytes must be 0 or more, came -4");
    refused(with("\"bytes\": 4", "\"bytes\": 9223372036854775807"), "more than 2^63 - 1 bytes");
    refused(with("\"name\": \"b\"", "\"name\": 7"), "nodes[1].name must be a text, not 7");
    refused(with("\"name\": \"b\"", "\"name\": \"\""), "nodes[1].name must be a text");
    refused(with("\"name\": \"b\"", "\"name\": \"a\""), "nodes[1]: there is a node \"a\" already");
    refused(with(R"(["a", "b"])", R"(["a", "c"])"), "edges[0]: there is no node \"c\"");
    refused(with(R"(["a", "b"])", R"(["a", "b", "b"])"), "edges[0] must be two names");
    refused(with(R"(["a", "b"])", R"(["a", 1])"), "edges[0] must be two names");
    refused(with(R"(["a", "b"])", R"(["a", "b"], ["a", "b"])"), "edges[1]: [\"a\",\"b\"] twice");
    refused(with(R"(["a", "b"])", R"(["a", "b"], ["b", "a"])"), "needs itself through a cycle");
    refused(with(R"(["a", "b"])", ""), "are both needed by no other");
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read_back) {
    Graph graph{{{1.0 / 3.0, 7, {}, "a"}, {0.0, 0, {0}, "b \"quoted\""}, {2.5e300, 1, {1, 0}, "c"}}};
    const Graph again = graph_from_json(to_json(graph));
    BOOST_TEST_REQUIRE(again.nodes.size() == 3u);
    for (std::size_t n = 0; n < 3; ++n) {
        BOOST_TEST(again.nodes[n].time == graph.nodes[n].time);
        BOOST_TEST(again.nodes[n].bytes == graph.nodes[n].bytes);
        BOOST_TEST(again.nodes[n].name == graph.nodes[n].name);
        BOOST_TEST((again.nodes[n].preds == graph.nodes[n].preds));
    }
    graph.nodes[1].name = graph.nodes[0].name;
    BOOST_CHECK_THROW(to_json(graph), InvalidArgument);
    graph.nodes[1].name.clear();
    BOOST_CHECK_THROW(to_json(graph), InvalidArgument);
    graph.nodes[1].preds = {2};
    BOOST_CHECK_THROW(to_json(graph), InvalidArgument);
}
