// Every byte of a network's sweep is counted: what the heap holds beyond the ledger stays below 256 bytes a link, and a
// link is as small as it can be: one step of a small model.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE network_ledger
#include "support/unit_test.hpp"

#include "backsweep/nn/time_chain.hpp"
#include "support/counted_heap.hpp"

#include <cstdint>
#include <vector>

using namespace backsweep;

namespace {

/// Peaks of the heap and of the ledger over one forward and reverse sweep.
struct Peaks {
    std::int64_t heap = 0, ledger = 0;
};

Peaks sweep(const Network<float>& network, ScheduleOptions options, Index links) {
    const std::vector<std::int32_t> tokens(static_cast<std::size_t>(links), 3), classes(tokens.size(), 1);
    std::vector<float> parameters(static_cast<std::size_t>(network.parameters().size())), gradients(parameters.size());
    network.start(1, parameters);
    heap_peak = heap_live.load();
    const std::int64_t before = heap_live;
    Ledger ledger;
    TimeChain<float> chain(network, 1, 1, ledger);
    Window<float> window;
    window.steps = links;
    window.tokens = tokens.data();
    window.classes = classes.data();
    chain.show(window);
    chain.use(parameters.data());
    chain.add_to(gradients.data());
    options.steps = links;
    Execution<TimeChain<float>> run(chain, make_schedule(options));
    for (int k = 0; k < 2; ++k) {
        run.forward();
        run.backward();
    }
    return {heap_peak - before, ledger.peak_total()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_heap_holds_what_the_ledger_says) {
    ModelSpec model;
    model.layers = {EmbeddingSpec{"embedding", 5, 3, std::nullopt}, RecurrentSpec{"rnn", 3, 4, 2, true},
                    DenseSpec{"head", 4, 5, true}};
    for (const bool logits : {true, false})
        for (const char* family : {"store_all", "revolve", "periodic"}) {
            if (!logits) model.loss.save = {};
            const Network<float> network = build<float>(model);
            ScheduleOptions o;
            o.family = family;
            if (o.family == "revolve") o.slots = 100'000;
            if (o.family == "periodic") o.period = 7;
            const Peaks few = sweep(network, o, 100), many = sweep(network, o, 2100);
            const auto beyond = static_cast<double>((many.heap - many.ledger) - (few.heap - few.ledger)) / 2000.0;
            BOOST_TEST(many.ledger > few.ledger);
            BOOST_TEST(beyond < 256.0, family << ": " << beyond << " bytes a link beyond the ledger");
        }
}
