// Networks: layout, offsets, starting values, refusal of what does not fit, the table of devices.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE network
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "nn/cases.hpp"
#include "nn/catalogue.hpp"
#include "nn/cpu/layers.hpp"

#include <cmath>

using namespace backsweep;
using namespace backsweep::test;

namespace {

ModelSpec language_model() {
    return {{EmbeddingSpec{"embedding", 11, 3, 7}, RecurrentSpec{"rnn", 3, 5, 2, true}, DenseSpec{"head", 5, 11, true}},
            LossSpec{}};
}

/// A predicate for messages.
auto says(const std::string& text) {
    return [text](const Error& e) {
        const bool found = std::string(e.what()).find(text) != std::string::npos;
        if (!found) BOOST_TEST_MESSAGE("came: " << e.what());
        return found;
    };
}

}  // namespace

BOOST_AUTO_TEST_CASE(parameters_have_pytorch_names_shapes_and_order) {
    const auto network = cpu::build<float>(language_model());
    struct Row {
        const char* name;
        Index rows, cols, offset;
    };
    const std::vector<Row> rows{
        {"embedding.weight", 11, 3, 0},   {"rnn.weight_ih_l0", 20, 3, 33}, {"rnn.weight_hh_l0", 20, 5, 93},
        {"rnn.bias_ih_l0", 20, 0, 193},   {"rnn.bias_hh_l0", 20, 0, 213},  {"rnn.weight_ih_l1", 20, 5, 233},
        {"rnn.weight_hh_l1", 20, 5, 333}, {"rnn.bias_ih_l1", 20, 0, 433},  {"rnn.bias_hh_l1", 20, 0, 453},
        {"head.weight", 11, 5, 473},      {"head.bias", 11, 0, 528}};
    const auto& views = network.parameters().views();
    BOOST_TEST_REQUIRE(views.size() == rows.size());
    for (std::size_t k = 0; k < rows.size(); ++k) {
        BOOST_TEST(views[k].name == rows[k].name);
        BOOST_TEST(views[k].rows == rows[k].rows);
        BOOST_TEST(views[k].cols == rows[k].cols);
        BOOST_TEST(views[k].offset == rows[k].offset);
    }
    BOOST_TEST(network.parameters().size() == 539);
    BOOST_TEST(network.parameters().find("head.bias").offset == 528);
    BOOST_CHECK_EXCEPTION(network.parameters().find("head.b"), InvalidArgument,
                          says("there are: embedding.weight, rnn.weight_ih_l0"));

    BOOST_TEST(network.depth() == 5);  // embedding, two of the LSTM, dense, loss
    BOOST_TEST(network.parameter_offset(2) == 233);
    BOOST_TEST(network.parameter_offset(4) == 539);
    BOOST_TEST(network.carry() == 20);
    BOOST_TEST(network.carry_offset(1, 3) == 0);
    BOOST_TEST(network.carry_offset(2, 3) == 30);
    BOOST_TEST(network.carry_depth() == 3);
    BOOST_TEST(network.layer(2).name() == "rnn, layer 1");
    BOOST_TEST(network.layer(4).name() == "cross_entropy");
    BOOST_TEST(cpu::build<float>(models()[1].spec).carry_depth() == 0);
}

BOOST_AUTO_TEST_CASE(an_lstm_tape_has_five_numbers_per_cell) {
    const auto network = cpu::build<float>(language_model());
    const Footprint f = network.layer(1).footprint(7, 4);
    BOOST_TEST(f.inputs == 3);
    BOOST_TEST(f.outputs == 5);
    BOOST_TEST(f.carry == 10);
    BOOST_TEST(f.tape == 7 * 4 * 5 * 5);
    BOOST_TEST(f.reads_x);
    BOOST_TEST(network.layer(4).footprint(7, 4).tape == 7 * 4 * 11);
    BOOST_TEST(network.layer(4).footprint(7, 4).outputs == 0);
}

BOOST_AUTO_TEST_CASE(starting_values_follow_their_laws) {
    const ModelSpec spec{
        {EmbeddingSpec{"embedding", 200, 50, 7}, RecurrentSpec{"rnn", 50, 64, 1, true}, DenseSpec{"head", 64, 200, true}},
        LossSpec{}};
    const auto network = cpu::build<double>(spec);
    std::vector<double> p(static_cast<std::size_t>(network.parameters().size()));
    network.start(5, p);
    for (const ParameterView& view : network.parameters().views()) {
        double sum = 0.0, squares = 0.0, largest = 0.0;
        for (Index k = view.offset; k < view.offset + view.size(); ++k) {
            const double v = p[static_cast<std::size_t>(k)];
            sum += v;
            squares += v * v;
            largest = std::fmax(largest, std::abs(v));
        }
        const double n = static_cast<double>(view.size()), bound = 0.125;  // 64^-1/2, of the LSTM and of the head
        BOOST_TEST_CONTEXT(view.name) {
            if (view.name == "embedding.weight") {
                BOOST_TEST(std::abs(sum / n) < 4.0 / std::sqrt(n));
                BOOST_TEST(std::abs(squares / n - 1.0) < 6.0 / std::sqrt(n));
                BOOST_TEST(largest > 3.0);
            } else {
                BOOST_TEST(largest <= bound);
                BOOST_TEST(largest > 0.95 * bound);
                BOOST_TEST(std::abs(sum / n) < 4.0 * bound / std::sqrt(3.0 * n));
                BOOST_TEST(std::abs(squares / n / (bound * bound / 3.0) - 1.0) < 5.0 / std::sqrt(n));
            }
        }
    }
    for (Index k = 0; k < 50; ++k) BOOST_TEST(p[static_cast<std::size_t>(7 * 50 + k)] == 0.0);  // the padding row

    std::vector<double> again(p.size()), other(p.size());
    network.start(5, again);
    network.start(6, other);
    BOOST_TEST(same_bits(again, p));
    BOOST_TEST(!same_bits(other, p).passed);
    std::vector<float> single(p.size());
    cpu::build<float>(spec).start(5, single);
    BOOST_TEST(same_bits(single, cast<float>(p)));
    // Names are no part of the law: only the number of the parameter counts.
    ModelSpec renamed = spec;
    std::get<RecurrentSpec>(renamed.layers[1]).name = "lstm";
    cpu::build<double>(renamed).start(5, again);
    BOOST_TEST(same_bits(again, p));
    BOOST_CHECK_EXCEPTION(network.start(1, std::span(p).first(3)), InvalidArgument, says("room was given for 3"));
}

BOOST_AUTO_TEST_CASE(problems_of_specifications_are_said_in_words) {
    BOOST_TEST(language_model().problem() == "");
    BOOST_TEST(language_model().inputs() == 0);
    BOOST_TEST(language_model().outputs() == 11);
    const auto expect = [](auto change, const std::string& problem) {
        ModelSpec spec = language_model();
        change(spec);
        BOOST_TEST(spec.problem() == problem);
        BOOST_CHECK_EXCEPTION(cpu::build<float>(spec), InvalidArgument, says(problem));
        BOOST_CHECK_EXCEPTION(reference::build<double>(spec), InvalidArgument, says(problem));
    };
    const auto embedding = [](ModelSpec& s) -> EmbeddingSpec& { return std::get<EmbeddingSpec>(s.layers[0]); };
    const auto lstm = [](ModelSpec& s) -> RecurrentSpec& { return std::get<RecurrentSpec>(s.layers[1]); };
    const auto dense = [](ModelSpec& s) -> DenseSpec& { return std::get<DenseSpec>(s.layers[2]); };
    expect([](ModelSpec& s) { s.layers.clear(); }, "a model needs at least one layer");
    expect([&](ModelSpec& s) { embedding(s).vocabulary = 0; },
           "layer 'embedding': vocabulary must be at least 1, but is 0");
    expect([&](ModelSpec& s) { embedding(s).padding = 11; },
           "layer 'embedding': padding must be in [0, 11), but is 11");
    expect([&](ModelSpec& s) { embedding(s).vocabulary = Index{1} << 32; },
           "layer 'embedding': vocabulary must be at most 2^31, for tokens have 32 bits, but is 4294967296");
    expect([&](ModelSpec& s) { lstm(s).hidden = -5; }, "layer 'rnn': hidden must be at least 1, but is -5");
    expect([&](ModelSpec& s) { lstm(s).layers = 0; }, "layer 'rnn': layers must be at least 1, but is 0");
    expect([&](ModelSpec& s) { lstm(s).save = {"gates", "c"}; },
           "layer 'rnn': save names what the tape keeps: gates, but one name is 'c'");
    expect([&](ModelSpec& s) { lstm(s).save = {"gates", "gates"}; },
           "layer 'rnn': save has the name 'gates' twice; leave one out");
    expect([&](ModelSpec& s) { lstm(s).save = {}, lstm(s).cell = RecurrentSpec::Cell::rnn_relu; },
           "layer 'rnn': save belongs to the lstm and the gru: the tape of a plain cell has no gates; leave it out");
    expect([&](ModelSpec& s) { lstm(s).inputs = 4; },
           "layer 'rnn': it reads 4 features, but 'embedding' below it gives 3; make them equal");
    expect([&](ModelSpec& s) { dense(s).inputs = 6; },
           "layer 'head': it reads 6 features, but 'rnn' below it gives 5; make them equal");
    expect([&](ModelSpec& s) { dense(s).outputs = 0; }, "layer 'head': outputs must be at least 1, but is 0");
    expect([&](ModelSpec& s) { dense(s).name = "rnn"; },
           "layer 'rnn': another layer has this name; give them different ones");
    expect([&](ModelSpec& s) { dense(s).name = ""; }, "layer 2 has no name; its parameters need one");
    expect(
        [&](ModelSpec& s) {
            s.layers.push_back(EmbeddingSpec{"again", 3, 3, std::nullopt});
        },
        "layer 'again': an embedding reads tokens and can only stand first");
    expect([](ModelSpec& s) { s.loss.class_weights = {1.0}; },
           "loss: class_weights must have one entry for each of the 11 classes, but has 1");
    expect([](ModelSpec& s) { s.loss.class_weights.assign(11, -1.0); },
           "loss: class_weights must be finite and >= 0, but one is -1.000000");
    expect([](ModelSpec& s) { s.loss.save = {"probabilities"}; },
           "loss: save names what the tape keeps: logits, but one name is 'probabilities'");
    expect([](ModelSpec& s) { s.loss.save = {}, s.loss.kind = LossSpec::Kind::l1; },
           "loss: save belongs to cross_entropy; leave it out");
    expect(
        [](ModelSpec& s) {
            s.loss.save = {};
            s.layers.push_back(ActivationSpec{"act", 11});
        },
        "loss: save without logits wants a dense layer at the end, which makes them again, but the last is 'act'; "
        "leave it out, or end with a dense layer");
    expect([](ModelSpec& s) { s.loss.label_smoothing = 1.0; },
           "loss: label_smoothing must be in [0, 1), but is 1.000000");
    expect([](ModelSpec& s) { s.loss.kind = LossSpec::Kind::mean_squared_error, s.loss.ignore_index = 3; },
           "loss: ignore_index belongs to cross_entropy; leave it out");
    expect([](ModelSpec& s) { s.loss.kind = LossSpec::Kind::inner_product, s.loss.label_smoothing = 0.1; },
           "loss: label_smoothing belongs to cross_entropy; leave it 0");
    BOOST_CHECK_THROW(ModelSpec{}.outputs(), InvalidArgument);
    BOOST_CHECK_THROW(ModelSpec{}.inputs(), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(a_network_checks_the_layers_it_is_given) {
    const auto network_of = [](bool wide, bool loss) {
        Network<float>::Layers layers;
        layers.push_back(cpu::dense<float>({"first", 2, 3, true}));
        layers.push_back(cpu::dense<float>({"second", wide ? 4 : 3, 5, true}));
        if (loss) layers.push_back(cpu::loss<float>({}, 5));
        return Network<float>({}, std::move(layers));
    };
    BOOST_CHECK_NO_THROW(network_of(false, true));
    BOOST_CHECK_EXCEPTION(network_of(true, true), InvalidArgument,
                          says("layer 'second' reads 4 features, but 'first' below it gives 3"));
    BOOST_CHECK_EXCEPTION(network_of(false, false), InvalidArgument, says("ends with its loss"));
    BOOST_CHECK_THROW(Network<float>({}, {}), InvalidArgument);
}

BOOST_AUTO_TEST_CASE(devices_are_found_by_name) {
    BOOST_TEST(build<float>(language_model(), "cpu").parameters().size() == 539);
    BOOST_CHECK_EXCEPTION(build<double>(language_model(), "tpu"), InvalidArgument,
                          says("unknown device 'tpu'; known: cpu"));
    register_builder("loops", &reference::build<float>, &reference::build<double>);
    BOOST_TEST((devices() == std::vector<std::string>{"cpu", "loops"}));
    BOOST_TEST(build<double>(language_model(), "loops").parameters().size() == 539);
    BOOST_CHECK_EXCEPTION(build<double>(language_model(), "tpu"), InvalidArgument, says("known: cpu, loops"));
    BOOST_CHECK_THROW(register_builder("cpu", &reference::build<float>, &reference::build<double>), InvalidArgument);
}
