// A sweep allocates when it is made for the first time, and never again: the calls of operator new are counted.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE allocations
#include "support/unit_test.hpp"

#include "backsweep/chain/execution.hpp"
#include "backsweep/nn/models.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "nn/cpu/team.hpp"
#include "support/counted_heap.hpp"

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

using namespace backsweep;

namespace {

struct Case {
    std::string name;
    ModelSpec spec;
};

std::vector<Case> cases() {
    ModelEnds ends;
    ends.vocabulary = ends.outputs = 11;
    std::vector<Case> all;
    for (const auto& [name, cell, norm] : {std::tuple{"lstm", RecurrentSpec::Cell::lstm, false},
                                           std::tuple{"lstm with layer norm", RecurrentSpec::Cell::lstm, true},
                                           std::tuple{"gru", RecurrentSpec::Cell::gru, false},
                                           std::tuple{"rnn", RecurrentSpec::Cell::rnn_tanh, false}}) {
        RecurrentSpec spec{.name = "rnn", .hidden = 20, .layers = 2};
        spec.cell = cell;
        spec.layer_norm = norm;
        all.push_back({name, recurrent_model({ends, 9, spec})});
    }
    all.push_back({"head in blocks", all.front().spec});
    all.back().spec.loss.save = {};
    ShaRnn sha;
    sha.ends = ends;
    sha.features = 12;
    sha.layers = 2;
    sha.heads = 1;
    sha.memory = 7;
    all.push_back({"sha_rnn", sha_rnn(sha)});
    TransformerXl xl;
    xl.ends = ends;
    xl.features = 12;
    xl.layers = 2;
    xl.heads = 3;
    xl.memory = 7;
    all.push_back({"transformer_xl", transformer_xl(xl)});
    return all;
}

constexpr Index steps = 23, chunk = 5;

void check_sweeps(const Case& c, Index batch) {
    const Network<float> network = build<float>(c.spec);
    std::vector<float> parameters(static_cast<std::size_t>(network.parameters().size())), gradients(parameters.size());
    network.start(4, parameters);
    std::vector<std::int32_t> tokens, classes;
    for (Index k = 0; k < steps * batch; ++k) {
        tokens.push_back(static_cast<std::int32_t>(k * 7 % 11));
        classes.push_back(static_cast<std::int32_t>(k * 5 % 11));
    }
    Window<float> window;
    window.steps = steps;
    window.tokens = tokens.data();
    window.classes = classes.data();
    window.scale = 0.01;
    for (const std::string family : {"store_all", "revolve", "periodic"}) {
        TimeChain<float> chain(network, batch, chunk);
        chain.use(parameters.data());
        chain.add_to(gradients.data());
        chain.show(window);
        ScheduleOptions options;
        options.family = family;
        options.steps = *chain.length();
        if (family == "revolve") options.slots = 2;
        if (family == "periodic") options.period = 2;
        Execution<TimeChain<float>> run(chain, make_schedule(options));
        for (int sweep = 0; sweep < 3; ++sweep) {
            const std::int64_t before = heap_calls;
            run.forward();
            run.backward();
            if (sweep == 0)
                BOOST_TEST(heap_calls > before);
            else
                BOOST_TEST(heap_calls == before, c.name << ", " << family << ": " << heap_calls - before
                                                        << " allocations in sweep " << sweep);
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_second_sweep_allocates_nothing) {
    for (const Case& c : cases()) check_sweeps(c, 3);
}

BOOST_AUTO_TEST_CASE(nor_does_that_of_a_team) {
    RecurrentSpec spec{.name = "rnn", .hidden = 400};
    ModelEnds ends;
    ends.vocabulary = ends.outputs = 11;
    cpu::Team team(3);
    const cpu::TeamScope scope(&team);
    check_sweeps({"a wide lstm", recurrent_model({ends, 9, spec})}, 1);
}
