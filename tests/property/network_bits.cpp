// The bit laws on networks: one chunking, one gradient and one loss, under every schedule.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE network_bits
#include "support/unit_test.hpp"

#include "backsweep/nn/blocks.hpp"
#include "nn/reference/build.hpp"
#include "property/network_case.hpp"

#include <future>
#include <memory>
#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

ModelSpec text_model(Index layers) {
    ModelSpec m;
    m.layers = {EmbeddingSpec{"embedding", 9, 5, 2}, RecurrentSpec{"rnn", 5, 7, layers, true}, DenseSpec{"head", 7, 11, true}};
    m.loss.label_smoothing = 0.1;
    m.loss.ignore_index = 4;
    return m;
}

ModelSpec real_model(Index layers) {
    ModelSpec m;
    m.layers = {RecurrentSpec{"rnn", 3, 33, layers, layers != 2}, DenseSpec{"head", 33, 2, true}};
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    return m;
}

ScheduleOptions of(const char* family, Index slots = 0, Index period = 0) {
    ScheduleOptions o;
    o.family = family;
    o.slots = slots;
    o.period = period;
    return o;
}

ModelSpec cell_model(RecurrentSpec::Cell cell, bool learned_state) {
    ModelSpec m;
    RecurrentSpec rnn{.name = "rnn", .inputs = 3, .hidden = 33, .layers = 2, .cell = cell};
    rnn.learned_state = learned_state;
    m.layers = {rnn, DenseSpec{"head", 33, 2, true}};
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    return m;
}

/// Every cell, one on the other.
ModelSpec mixed_model(const std::vector<std::string>& save = {"gates"}) {
    using Cell = RecurrentSpec::Cell;
    ModelSpec m;
    m.layers = {EmbeddingSpec{"embedding", 9, 5, std::nullopt},
                RecurrentSpec{.name = "gru", .inputs = 5, .hidden = 6, .cell = Cell::gru, .heads = 2},
                RecurrentSpec{.name = "norm", .inputs = 6, .hidden = 7, .cell = Cell::gru, .layer_norm = true},
                RecurrentSpec{.name = "plain", .inputs = 7, .hidden = 4, .cell = Cell::rnn_tanh, .learned_state = true},
                RecurrentSpec{.name = "lstm", .inputs = 4, .hidden = 5},
                DenseSpec{"head", 5, 11, true}};
    for (LayerSpec& layer : m.layers)
        if (auto* cell = std::get_if<RecurrentSpec>(&layer); cell && cell->gated()) cell->save = save;
    return m;
}

/// Every layer around the cells; the table of the embedding is the head's too.
ModelSpec small_model() {
    using Kind = ActivationSpec::Kind;
    ModelSpec m;
    m.layers = {EmbeddingSpec{"embedding", 11, 6, 2}, NormSpec{.name = "layer", .features = 6},
                RecurrentSpec{.name = "rnn", .inputs = 6, .hidden = 7, .layers = 2, .dropout = 0.3, .locked = true, .weight_drop = 0.2},
                ResidualSpec{"residual", {NormSpec{.name = "rms", .features = 7, .kind = NormSpec::Kind::rms},
                                          RecurrentSpec{.name = "inner", .inputs = 7, .hidden = 7}, DropoutSpec{"dropout", 7, 0.4}}}};
    for (const Kind kind : {Kind::relu, Kind::silu, Kind::gelu, Kind::gelu_tanh, Kind::tanh, Kind::sigmoid, Kind::softplus, Kind::softmax,
                            Kind::log_softmax})
        for (LayerSpec& layer : feed_forward({.features = 7, .hidden = 9, .activation = kind, .dropout = 0.1,
                                              .prefix = std::to_string(m.layers.size()) + "."}))
            m.layers.push_back(std::move(layer));
    m.layers.push_back(DenseSpec{"proj", 7, 6});
    m.layers.push_back(DenseSpec{.name = "head", .inputs = 6, .outputs = 11, .tied = "embedding"});
    return m;
}

struct Model {
    std::string name;
    ModelSpec spec;
    bool marked = false;
};

std::vector<Model> models() {
    using Cell = RecurrentSpec::Cell;
    std::vector<Model> all;
    for (const Index layers : {1, 2, 3}) {
        all.push_back({"text, layers " + std::to_string(layers), text_model(layers)});
        all.push_back({"real, layers " + std::to_string(layers), real_model(layers)});
    }
    all.push_back({"gru", cell_model(Cell::gru, false)});
    all.push_back({"marked gru with learned state", cell_model(Cell::gru, true), true});
    all.push_back({"rnn_relu", cell_model(Cell::rnn_relu, false)});
    all.push_back({"marked rnn_tanh with learned state", cell_model(Cell::rnn_tanh, true), true});
    all.push_back({"every cell, marked", mixed_model(), true});
    all.push_back({"every cell, gates made again, marked", mixed_model({}), true});
    all.push_back({"every small layer", small_model()});
    all.push_back({"every small layer, marked", small_model(), true});
    return all;
}

template <class Real>
void check(Network<Real> (*build)(const ModelSpec&)) {
    for (const Model& model : models())
        for (const Index batch : {1, 5})
            for (const Index chunk : {1, 3, 32}) {
                constexpr Index steps = 37;
                const Case<Real> run(build(model.spec), steps, batch, chunk, model.marked);
                BOOST_TEST_CONTEXT(model.name << ", batch " << batch << ", chunk " << chunk) {
                    const Outcome<Real> all = run(of("store_all"));
                    BOOST_TEST(std::isfinite(all.loss));
                    Real largest = 0;
                    for (const Real g : all.gradients) largest = std::max(largest, std::abs(g));
                    BOOST_TEST(static_cast<double>(largest) > 1e-4);
                    for (const Index slots : {Index{1}, Index{2}, Index{3}, Index{5}, run.links()})
                        BOOST_TEST(same_bits(all, run(of("revolve", slots))), "revolve with " << slots << " slots differs");
                    for (const Index period : {Index{1}, Index{2}, Index{5}, run.links()})
                        BOOST_TEST(same_bits(all, run(of("periodic", 0, period))), "periodic with period " << period << " differs");
                    for (const ScheduleOptions& family : test::every_family(run.links()))
                        BOOST_TEST(same_bits(all, run(family)), family.family << " differs");
                    BOOST_TEST(same_bits(all, run.sweep(of("revolve", 2), {}, true)), "audited it differs");
                    auto beside = std::async(std::launch::async, [&] { return run.sweep(of("revolve", 2)); });
                    const Outcome<Real> here = run.sweep(of("periodic", 0, 2));
                    BOOST_TEST(same_bits(all, beside.get()), "a second thread differs");
                    BOOST_TEST(same_bits(all, here), "beside a second thread it differs");
                    const Outcome<Real> evaluated = run(of("forward_only"));
                    BOOST_TEST(same_bits(all.log, evaluated.log));
                    BOOST_TEST(same_bits(all.positions, evaluated.positions));
                    BOOST_TEST(std::memcmp(&all.loss, &evaluated.loss, sizeof all.loss) == 0);
                }
            }
}

}  // namespace

BOOST_AUTO_TEST_CASE(cpu_float) { check<float>(&cpu::build<float>); }
BOOST_AUTO_TEST_CASE(cpu_double) { check<double>(&cpu::build<double>); }
BOOST_AUTO_TEST_CASE(reference_float) { check<float>(&reference::build<float>); }
BOOST_AUTO_TEST_CASE(reference_double) { check<double>(&reference::build<double>); }

// The carry is shared by all chunkings, so that their results differ in rounding only.
BOOST_AUTO_TEST_CASE(chunkings_agree_to_rounding) {
    const Case<double> a(cpu::build<double>(text_model(2)), 37, 5, 1), b(cpu::build<double>(text_model(2)), 37, 5, 32);
    const Outcome<double> x = a(of("store_all")), y = b(of("store_all"));
    double worst = 0.0, largest = 0.0;
    for (std::size_t k = 0; k < x.gradients.size(); ++k) {
        worst = std::max(worst, std::abs(x.gradients[k] - y.gradients[k]));
        largest = std::max(largest, std::abs(x.gradients[k]));
    }
    BOOST_TEST(worst <= 1e-13 * largest);
    BOOST_TEST(std::abs(x.loss - y.loss) <= 1e-13 * std::abs(x.loss));
}

// Mutant: the loss is added up instead of assigned. Two sweeps of one chain, the second recording other links in
// another order, must still read the same loss.
BOOST_AUTO_TEST_CASE(loss_is_assigned_not_counted_twice) {
    const Network<double> network = cpu::build<double>(text_model(1));
    std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size())), gradients(parameters.size());
    network.start(5, parameters);
    const std::vector<std::int32_t> tokens{1, 3, 0, 8, 2, 5, 7}, classes{0, 10, 3, 3, 1, 9, 6};
    TimeChain<double> chain(network, 1, 2);
    Window<double> window;
    window.steps = 7;
    window.tokens = tokens.data();
    window.classes = classes.data();
    chain.show(window);
    chain.use(parameters.data());
    chain.add_to(gradients.data());
    Execution<TimeChain<double>> run(chain, make_schedule([] {
                                         ScheduleOptions o = of("forward_only");
                                         o.steps = 4;
                                         return o;
                                     }()));
    run.forward();
    const double evaluated = chain.loss();
    ScheduleOptions o = of("revolve", 1);
    o.steps = 4;
    run.follow(make_schedule(o));
    run.forward();
    run.backward();
    BOOST_TEST(evaluated > 1.0);
    const double trained = chain.loss();
    BOOST_TEST(std::memcmp(&evaluated, &trained, sizeof evaluated) == 0);
}

// A loss that is not finite stops the run at its link, before that link is reversed.
BOOST_AUTO_TEST_CASE(non_finite_loss_names_step_and_layer) {
    const Network<double> network = cpu::build<double>(real_model(1));
    std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size())), gradients(parameters.size(), 0.0);
    network.start(5, parameters);
    std::vector<double> inputs(11 * 3, 0.25), values(11 * 2, 0.5);
    values[2 * 7] = std::numeric_limits<double>::infinity();
    TimeChain<double> chain(network, 1, 3);
    Window<double> window;
    window.first = 1000;
    window.steps = 11;
    window.inputs = inputs.data();
    window.values = values.data();
    chain.show(window);
    chain.use(parameters.data());
    chain.add_to(gradients.data());
    ScheduleOptions o = of("revolve", 2);
    o.steps = 4;
    Counting<TimeChain<double>> counting{&chain};
    Execution run(counting, make_schedule(o));
    BOOST_CHECK_EXCEPTION(
        {
            run.forward();
            run.backward();
        },
        NumericError, [](const NumericError& e) {
            const std::string text = e.what();
            return text.find("steps 1006 to 1008 (link 2) is inf") != std::string::npos &&
                   text.find("at step 1007 in layer 'mean_squared_error'") != std::string::npos;
        });
    BOOST_TEST(counting.reversed == 1);  // link 3, behind it
    values[2 * 7] = 0.5;
    inputs[3 * 4 + 1] = std::numeric_limits<double>::quiet_NaN();  // the state carries it on to the end
    BOOST_CHECK_EXCEPTION(
        {
            run.forward();
            run.backward();
        },
        NumericError, [](const NumericError& e) {
            return std::string(e.what()).find("in the state before it") != std::string::npos;
        });
    const Network<double> wide = cpu::build<double>(real_model(2));
    const std::vector<double> of_wide(static_cast<std::size_t>(wide.parameters().size()), 0.25);
    std::vector<double> gradients_of_wide(of_wide.size(), 0.0);
    TimeChain<double> deep(wide, 1, 32);
    deep.show(window);
    deep.use(of_wide.data());
    deep.add_to(gradients_of_wide.data());
    Execution<TimeChain<double>> whole(deep, make_schedule([] {
                                           ScheduleOptions all = of("store_all");
                                           all.steps = 1;
                                           return all;
                                       }()));
    BOOST_CHECK_EXCEPTION(whole.forward(), NumericError, [](const NumericError& e) {
        return std::string(e.what()).find("at step 1004 in layer 'rnn") != std::string::npos;
    });
    inputs[3 * 4 + 1] = 0.25;
    chain.show(window);
    run.forward();
    run.backward();
    BOOST_TEST(std::isfinite(chain.loss()));
}
