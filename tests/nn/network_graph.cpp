// The graph of a network: nodes, edges, bytes and times, blocks opened.
#define BOOST_TEST_MODULE nn_network_graph
#include "support/unit_test.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/error.hpp"
#include "backsweep/nn/network_graph.hpp"
#include "support/graph_models.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

struct Row {
    std::string name;
    std::int64_t bytes;
    std::set<std::string> needs;
};

template <class Real>
void check_rows(const NetworkGraph<Real>& graph, const std::vector<Row>& rows) {
    BOOST_TEST_REQUIRE(graph.graph.nodes.size() == rows.size());
    for (std::size_t n = 0; n < rows.size(); ++n) {
        const GraphNode& node = graph.graph.nodes[n];
        std::set<std::string> needs;
        for (const Index pred : node.preds) needs.insert(graph.graph.nodes[static_cast<std::size_t>(pred)].name);
        BOOST_TEST_CONTEXT("node " << n << ", " << rows[n].name) {
            BOOST_TEST(node.name == rows[n].name);
            BOOST_TEST(node.bytes == rows[n].bytes);
            BOOST_TEST((needs == rows[n].needs));
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stack_with_a_cell) {
    constexpr Index T = 3, B = 2, P = T * B, H = 7;
    const ModelSpec spec{{EmbeddingSpec{"table", 9, 5, std::nullopt}, RecurrentSpec{.name = "rnn", .inputs = 5, .hidden = H}, DenseSpec{"head", H, 11}},
                         {}};
    const Network<double> network = build<double>(spec);
    const Network<double> same = network.opened();
    BOOST_TEST(same.depth() == network.depth());
    const NetworkGraph<double> graph = network_graph(network, T, B);
    // The cell's tape, gates and c, is larger than its output: either may be kept without the other.
    const std::int64_t tape = 8 * (aligned<double>(5 * H * P) + H * P);
    const Footprint loss = network.layer(3).footprint(T, B);
    const std::int64_t kept = 8 * aligned<double>(loss.tape);
    check_rows(graph, {{"table", 8 * 5 * P, {}},
                       {"rnn, tape", tape, {"table"}},
                       {"rnn", 8 * H * P, {"rnn, tape"}},
                       {"head", 8 * 11 * P, {"rnn"}},
                       {"cross_entropy", kept, {"head"}},
                       {"cross_entropy, reverse", 8 * 11 * P, {"cross_entropy"}},
                       {"head, reverse", 8 * H * P, {"rnn", "cross_entropy, reverse"}},
                       {"rnn, reverse", 8 * 5 * P, {"table", "rnn, tape", "head, reverse"}},
                       {"table, reverse", 0, {"rnn, reverse"}}});
    BOOST_TEST(graph.graph.problem().empty());
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        const NetworkNode& node = graph.nodes[n];
        if (node.layer < 0) continue;
        const Work work = network.layer(node.layer).work(T, B);
        BOOST_TEST(graph.graph.nodes[n].time == (node.forward() ? work.forward : work.reverse));
    }
    BOOST_TEST(graph.graph.nodes[2].time == H * P);  // the copy
}

// x, the adjoint of y and that of f(x) meet where the first layer of f is reversed.
BOOST_AUTO_TEST_CASE(a_residual_block_is_opened) {
    constexpr Index P = 4;
    const auto tanh = ActivationSpec{"tanh", 6, ActivationSpec::Kind::tanh};
    ModelSpec spec{{ResidualSpec{"r", {DenseSpec{"a", 3, 6}, tanh, DenseSpec{"b", 6, 3}}}}, {}};
    spec.loss.kind = LossSpec::Kind::mean_squared_error;
    const Network<float> network = build<float>(spec);
    const std::int64_t kept = 4 * aligned<float>(network.layer(1).footprint(2, 2).tape);
    std::vector<Row> rows{{"input", 4 * 3 * P, {}},
                          {"a", 4 * 6 * P, {"input"}},
                          {"tanh", 4 * 6 * P, {"a"}},
                          {"b", 4 * 3 * P, {"tanh", "input"}},
                          {"mean_squared_error", kept, {"b"}},
                          {"mean_squared_error, reverse", 4 * 3 * P, {"mean_squared_error"}},
                          {"b, reverse", 4 * 6 * P, {"tanh", "mean_squared_error, reverse"}},
                          {"tanh, reverse", 4 * 6 * P, {"tanh", "b, reverse"}},
                          {"a, reverse", 4 * 3 * P, {"input", "tanh, reverse", "mean_squared_error, reverse"}}};
    check_rows(network_graph(network, 2, 2, true), rows);
    rows.back() = {"a, reverse", 0, {"input", "tanh, reverse"}};  // nobody wants the inputs' adjoint
    check_rows(network_graph(network, 2, 2), rows);
    // A last output that its own reverse run reads is not summed in place.
    spec.layers = {ResidualSpec{"r", {DenseSpec{"a", 6, 6}, tanh}}};
    const NetworkGraph<float> apart = network_graph(build<float>(spec), 2, 2);
    BOOST_TEST(apart.graph.nodes[3].name == "r");
    BOOST_TEST((apart.graph.nodes[3].preds == std::vector<Index>{2, 0}));
    BOOST_TEST(apart.graph.nodes[3].time == 6 * P);
}

BOOST_AUTO_TEST_CASE(skips_over_several_layers) {
    constexpr Index P = 2;
    ModelSpec spec{{DenseSpec{"below", 5, 4},
                    ConcatenateSpec{"outer", {DenseSpec{"down", 4, 3}, ConcatenateSpec{"inner", {DenseSpec{"low", 3, 2}}}}}},
                   {}};
    spec.loss.kind = LossSpec::Kind::mean_squared_error;
    const Network<double> network = build<double>(spec);
    const std::int64_t kept = 8 * aligned<double>(network.layer(2).footprint(2, 1).tape);
    check_rows(network_graph(network, 2, 1),
               {{"input", 8 * 5 * P, {}},
                {"below", 8 * 4 * P, {"input"}},
                {"down", 8 * 3 * P, {"below"}},
                {"low", 8 * 2 * P, {"down"}},
                {"inner", 8 * 5 * P, {"down", "low"}},
                {"outer", 8 * 9 * P, {"below", "inner"}},
                {"mean_squared_error", kept, {"outer"}},
                {"mean_squared_error, reverse", 8 * 9 * P, {"mean_squared_error"}},
                {"outer, split", 8 * 5 * P, {"mean_squared_error, reverse"}},
                {"inner, split", 8 * 2 * P, {"outer, split"}},
                {"low, reverse", 8 * 3 * P, {"down", "inner, split", "outer, split"}},
                {"down, reverse", 8 * 4 * P, {"below", "low, reverse", "mean_squared_error, reverse"}},
                {"below, reverse", 0, {"input", "down, reverse"}}});
}

BOOST_AUTO_TEST_CASE(graphs_of_whole_models) {
    for (const GraphModel& model : graph_models()) BOOST_TEST_CONTEXT(model.name) {
            const Network<float> network = build<float>(model.spec), opened = network.opened();
            BOOST_TEST(opened.carry() == network.carry());
            BOOST_TEST(opened.state() == network.state());
            BOOST_TEST(opened.adjoint() == network.adjoint());
            Index offset = 0;  // parameters lie in the order of the layers
            for (Index l = 0; l < opened.depth(); ++l) {
                BOOST_TEST(opened.parameter_offset(l) == offset);
                for (const ParameterShape& shape : opened.layer(l).parameters()) offset += shape.size();
            }
            BOOST_TEST(offset == network.parameters().size());

            const NetworkGraph<float> graph = network_graph(network, 5, 2);
            BOOST_TEST(graph.graph.problem() == "");
            std::set<std::string> names;
            double time = 0.0, copies = 0.0, work = 0.0;
            for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
                const NetworkNode& node = graph.nodes[n];
                const double numbers = static_cast<double>(10 * node.features);
                BOOST_TEST(names.insert(graph.graph.nodes[n].name).second);
                BOOST_TEST(graph.graph.nodes[n].bytes == 4 * node.size);
                BOOST_TEST(node.size == node.before + 10 * node.features);
                time += graph.graph.nodes[n].time;
                if (node.what == NetworkNode::What::input || node.what == NetworkNode::What::output) copies += numbers;
            }
            for (Index l = 0; l < network.depth(); ++l)
                work += network.layer(l).work(5, 2).forward + network.layer(l).work(5, 2).reverse;
            BOOST_TEST(time == work + copies);  // joins are in the work of their blocks
        }
}

BOOST_AUTO_TEST_CASE(names_are_told_apart) {
    const ModelSpec spec{{DenseSpec{"input", 3, 3}, DenseSpec{"cross_entropy", 3, 4}}, {}};
    std::set<std::string> names;
    for (const GraphNode& node : network_graph(build<float>(spec), 1, 1).graph.nodes) BOOST_TEST(names.insert(node.name).second);
}

BOOST_AUTO_TEST_CASE(what_has_no_graph) {
    const Network<float> network = build<float>(graph_models()[0].spec);
    BOOST_CHECK_THROW(network_graph(network, 0, 1), InvalidArgument);
    BOOST_CHECK_THROW(network_graph(network, 1, 0), InvalidArgument);
    BOOST_CHECK_THROW(network_graph(network, 1, 1, true), InvalidArgument);
    BOOST_CHECK_THROW(network_graph(network.part({0, 2}), 1, 1), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(concatenations_without_layers_are_none) {
    ModelSpec spec{{DenseSpec{"below", 3, 3}, ConcatenateSpec{"c", {}}}, {}};
    BOOST_TEST(spec.problem() == "layer 'c': a concatenation needs at least one layer");
    spec.layers[1] = ConcatenateSpec{"c", {DenseSpec{"inner", 3, 2}}};
    BOOST_TEST(spec.problem() == "");
    BOOST_TEST(spec.outputs() == 5);
    spec.layers.emplace_back(DenseSpec{"head", 4, 2});
    BOOST_TEST(spec.problem() == "layer 'head': it reads 4 features, but 'c' below it gives 5; make them equal");
}
