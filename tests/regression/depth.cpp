// Field cases of the depth axis.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE regression.depth
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/depth_program.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "nn/cases.hpp"
#include "nn/swept_window.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

// G05: recompute takes another path than the forward run. A layer that adds 1e-3 on every second call: verify mode
// names step and layer. A layer that wants another size: an exception in any mode.
BOOST_AUTO_TEST_SUITE(G05)

namespace {

/// Passes its calls on to a sound layer, but for its fault.
class Faulty final : public Layer<double> {
public:
    enum class Fault { none, other_values, other_size };

    Faulty(const Layer<double>& inner, Fault fault) : inner_(inner), fault_(fault) {}

    const std::string& name() const noexcept override { return inner_.name(); }
    Footprint footprint(Index steps, Index batch) const override {
        Footprint f = inner_.footprint(steps, batch);
        if (fault_ == Fault::other_size && calls_ > 2) f.tape += 8;
        return f;
    }
    std::vector<ParameterShape> parameters() const override { return inner_.parameters(); }
    void advance(const Forward<double>& call) const override {
        inner_.advance(call);
        spoil(call);
    }
    void record(const Forward<double>& call) const override {
        inner_.record(call);
        spoil(call);
    }
    void reverse(const Backward<double>& call) const override { inner_.reverse(call); }

private:
    void spoil(const Forward<double>& call) const {
        if (++calls_ % 2 == 0 && fault_ == Fault::other_values && call.y) call.y[1] += 1e-3;
    }

    const Layer<double>& inner_;
    Fault fault_;
    mutable int calls_ = 0;
};

/// A sweep over 11 steps in links of 3, seven inputs kept along the time, groups of two layers along the depth.
void sweep_over(Faulty::Fault fault, bool verify, const DepthOptions& depth, const char* family) {
    ModelSpec spec{{RecurrentSpec{.name = "rnn", .inputs = 2, .hidden = 3, .layers = 3}, DenseSpec{"head", 3, 2}}, {}};
    spec.loss.kind = LossSpec::Kind::mean_squared_error;
    const auto sound = cpu::build<double>(spec);
    Network<double>::Layers layers;
    for (Index l = 0; l < sound.depth(); ++l)
        layers.push_back(std::make_unique<Faulty>(sound.layer(l), l == 1 ? fault : Faulty::Fault::none));
    const Network<double> network(spec, std::move(layers));
    const auto parameters = parameters_for(network);
    std::vector<double> gradients(parameters.size(), 0.0);
    const auto x = random_values(11 * 2, 3), targets = random_values(11 * 2, 4);
    TimeChain<double> chain(network, 1, 3, Ledger::process(), {}, depth);
    chain.verify(verify);
    Window<double> window;
    window.first = 1000;
    window.steps = 11;
    window.inputs = x.data();
    window.values = targets.data();
    chain.show(window);
    chain.use(parameters.data());
    chain.add_to(gradients.data());
    ScheduleOptions time;
    time.family = family;
    time.steps = 4;
    time.slots = time.family == "revolve" ? 1 : 0;
    Execution run(chain, make_schedule(time));
    run.forward();
    run.backward();
}

}  // namespace

BOOST_AUTO_TEST_CASE(values_are_found_in_verify_mode) {
    const auto says = [](const char* at) {
        return [at](const NumericError& e) {
            const std::string text = e.what();
            return text.find(at) != std::string::npos &&
                   text.find("gives other bits than when it first ran there") != std::string::npos;
        };
    };
    // The layer's second run of the last link is its fifth call; along the time alone, of the first link.
    const DepthOptions groups{.family = DepthOptions::Family::sqrt, .period = 2};
    BOOST_CHECK_EXCEPTION(sweep_over(Faulty::Fault::other_values, true, groups, "store_all"), NumericError,
                          says("layer 'rnn, layer 1' at step 1009 (link 3)"));
    BOOST_CHECK_EXCEPTION(sweep_over(Faulty::Fault::other_values, true, {}, "revolve"), NumericError,
                          says("layer 'rnn, layer 1' at step 1000 (link 0)"));
    BOOST_CHECK_NO_THROW(sweep_over(Faulty::Fault::other_values, false, groups, "store_all"));
    BOOST_CHECK_NO_THROW(sweep_over(Faulty::Fault::none, true, groups, "store_all"));
    BOOST_CHECK_NO_THROW(sweep_over(Faulty::Fault::none, true, groups, "revolve"));
}

// Verify mode may be put on late, and begins anew with a sweep: other parameters then are no fault.
BOOST_AUTO_TEST_CASE(verify_mode_begins_with_a_sweep) {
    ModelSpec spec{{RecurrentSpec{.name = "rnn", .inputs = 2, .hidden = 3}, DenseSpec{"head", 3, 2}}, {}};
    spec.loss.kind = LossSpec::Kind::mean_squared_error;
    const auto network = cpu::build<double>(spec);
    auto parameters = parameters_for(network);
    std::vector<double> gradients(parameters.size(), 0.0);
    const auto x = random_values(7 * 2, 3), targets = random_values(7 * 2, 4);
    TimeChain<double> chain(network, 1, 2);
    Window<double> window;
    window.steps = 7;
    window.inputs = x.data();
    window.values = targets.data();
    chain.show(window);
    BOOST_CHECK_THROW(chain.record({0, 1}, *std::make_unique<TimeChain<double>::State>(chain.initial()),
                                   *std::make_unique<TimeChain<double>::Tape>()),
                      InvalidArgument);
    chain.use(parameters.data());
    chain.add_to(gradients.data());
    ScheduleOptions time;
    time.steps = 4;
    time.slots = 1;
    Execution run(chain, make_schedule(time));
    run.forward();
    chain.verify(true);
    BOOST_CHECK_NO_THROW(run.backward());
    for (int sweep = 0; sweep < 2; ++sweep) {
        parameters[0] += 0.1;
        BOOST_CHECK_NO_THROW(run.forward());
        BOOST_CHECK_NO_THROW(run.backward());
    }
}

BOOST_AUTO_TEST_CASE(another_size_is_found_in_any_mode) {
    const auto says = [](const NumericError& e) {
        const std::string text = e.what();
        return text.find("layer 'rnn, layer 1' at step 1009 (link 3) now has") != std::string::npos &&
               text.find("a layer's sizes are a function of steps and batch alone") != std::string::npos;
    };
    for (const bool verify : {false, true})
        BOOST_CHECK_EXCEPTION(sweep_over(Faulty::Fault::other_size, verify, {}, "store_all"), NumericError, says);
}

BOOST_AUTO_TEST_SUITE_END()

// G26: recomputing by groups feeds the wrong input to inner layers: each got the group's. 6 different layers that give
// 4, 7, 5, 9, 6 and 3 features, groups of 3: as checkpoint blocks and as a schedule over the depth, loss and gradients
// have the bits of keeping all.
BOOST_AUTO_TEST_SUITE(G26)

BOOST_AUTO_TEST_CASE(groups_of_three_layers_have_the_bits_of_store_all) {
    using Cell = RecurrentSpec::Cell;
    constexpr Index steps = 11, batch = 3, chunk = 4;
    const std::vector<LayerSpec> layers{
        DenseSpec{"dense", 2, 4},
        RecurrentSpec{.name = "lstm", .inputs = 4, .hidden = 7, .layer_norm = true},
        RecurrentSpec{.name = "gru", .inputs = 7, .hidden = 5, .cell = Cell::gru},
        RecurrentSpec{.name = "heads", .inputs = 5, .hidden = 9, .heads = 3, .weight_drop = 0.3},
        RecurrentSpec{.name = "projected", .inputs = 9, .hidden = 8, .projection = 6},
        RecurrentSpec{.name = "relu", .inputs = 6, .hidden = 3, .cell = Cell::rnn_relu}};
    const std::vector<LayerSpec> grouped{CheckpointSpec{"first", {layers.begin(), layers.begin() + 3}},
                                         CheckpointSpec{"second", {layers.begin() + 3, layers.end()}}};
    LossSpec squares;
    squares.kind = LossSpec::Kind::mean_squared_error;
    for (const Driver driver : drivers) BOOST_TEST_CONTEXT(to_string(driver)) {
            const auto network = build<double>(driver, {layers, squares}),
                       blocks = build<double>(driver, {grouped, squares});
            for (Index l = 0; l < 6; ++l)
                BOOST_TEST(network.layer(l).footprint(1, 1).outputs ==
                           std::vector<Index>({4, 7, 5, 9, 6, 3})[static_cast<std::size_t>(l)]);
            const auto parameters = parameters_for(network);
            const auto problem = data_for(network.spec(), network.carry(), steps, batch);
            const auto start = random_values(network.state() * batch, 7);
            const auto all = swept(network, parameters, problem, start, chunk);
            const auto same = [&](const SweptWindow<double>& got) {
                BOOST_TEST(got.objective == all.objective);
                BOOST_TEST(same_bits(got.gradients, all.gradients));
                BOOST_TEST(same_bits(got.dx, all.dx));
                BOOST_TEST(same_bits(got.dstart, all.dstart));
            };
            same(swept(blocks, parameters, problem, start, chunk));
            const DepthOptions groups{.family = DepthOptions::Family::sqrt, .period = 3};
            BOOST_TEST(depth_program(network, chunk, batch, groups).replays == 3);  // the last group keeps its tapes
            same(swept<double>(network, parameters, problem, start, chunk, nullptr, nullptr, groups));
        }
}

BOOST_AUTO_TEST_SUITE_END()
