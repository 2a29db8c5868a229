// A time chain whose sweep is stopped at any action and goes on with new objects: the gradients, adjoint, loss log and
// losses of every position have the bits of a sweep that was not, wherever the rows of its memory live.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE restart_bits
#include "support/unit_test.hpp"

#include "backsweep/base/random.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "backsweep/store/ram_store.hpp"
#include "support/every_schedule.hpp"
#include "support/scratch.hpp"
#include "support/toy_chains.hpp"

#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Index steps = 41, first = 13, batch = 3, chunk = 3, vocabulary = 7, width = 6;

ModelSpec model() {
    AttentionSpec attention{
        .name = "attention", .features = width, .heads = 2, .position = AttentionSpec::Position::alibi};
    attention.memory = 5;
    ModelSpec m;
    m.layers = {EmbeddingSpec{.name = "embedding", .vocabulary = vocabulary, .features = width, .padding = {}},
                DropoutSpec{"dropout", width, 0.3}, RecurrentSpec{.name = "rnn", .inputs = width, .hidden = width},
                attention, DenseSpec{.name = "out", .inputs = width, .outputs = vocabulary}};
    return m;
}

struct Killed {};

struct Outcome {
    std::vector<float> gradients, adjoint, losses;
    std::vector<double> log;
    Recovery found;
};

/// The second of two windows, which goes on from the first.
struct Trained {
    Trained() : parameters(static_cast<std::size_t>(network.parameters().size())) {
        network.start(5, parameters);
        const Random random(3, 1);
        for (Index p = 0; p < steps * batch; ++p) {
            tokens.push_back(static_cast<std::int32_t>(random.below(vocabulary, 0, static_cast<std::uint64_t>(p))));
            classes.push_back(static_cast<std::int32_t>(random.below(vocabulary, 1, static_cast<std::uint64_t>(p))));
        }
    }
    Window<float> window(Range r) const {
        Window<float> w;
        w.first = r.first, w.steps = r.size(), w.begins = r.first == 0, w.seed = 99, w.scale = 0.01;
        w.tokens = tokens.data() + r.first * batch;
        w.classes = classes.data() + r.first * batch;
        return w;
    }
    /// stop: the action after which it throws Killed; 0: none.
    Outcome sweep(const MemoryPlaces& places, Journal* journal, Store& disk, Index stop) const {
        Outcome out;
        out.gradients.assign(parameters.size(), 0.0f);
        out.losses.assign(static_cast<std::size_t>((steps - first) * batch), -1.0f);
        TimeChain<float> chain(network, batch, chunk, Ledger::process(), places);
        chain.show(window({0, first}));
        chain.use(parameters.data());
        chain.add_to(out.gradients.data());
        auto start = chain.zero();
        {
            Execution before(chain, make_schedule({.family = "forward_only", .steps = *chain.length()}));
            before.forward();
            chain.carry_over(*chain.length(), before.state(), start);
        }
        chain.start_from(start);
        Window<float> w = window({first, steps});
        w.losses = out.losses.data();
        chain.show(w);
        Execution run(chain, std::make_unique<Spilled>(
                                 make_schedule({.family = "revolve", .steps = *chain.length(), .slots = 4}), 2));
        run.use(Tier::disk, disk);
        if (stop > 0)
            run.observe([stop, k = Index{0}](const Action&, double, double) mutable {
                if (++k == stop) throw Killed{};
            });
        if (journal) {
            run.commit_to(*journal, {.links = 2});
            out.found = run.recover(8);
        } else {
            run.forward();
        }
        run.backward();
        out.log.assign(chain.losses().begin(), chain.losses().end());
        const auto& adjoint = run.adjoint().carry;
        out.adjoint.assign(adjoint.begin(), adjoint.end());
        return out;
    }

    Network<float> network = cpu::build<float>(model());
    std::vector<float> parameters;
    std::vector<std::int32_t> tokens, classes;
};

}  // namespace

BOOST_AUTO_TEST_CASE(stopped_at_any_action) {
    const Trained trained;
    for (const MemoryPlace place : {MemoryPlace::state, MemoryPlace::log}) {
        const MemoryPlaces places{.places = {place}};
        const bool alone = place == MemoryPlace::state;
        RamStore none;
        const Outcome wanted = trained.sweep(places, nullptr, none, 0);
        Index forward = 0, reverse = 0, states = 0;
        for (Index stop = 1;; ++stop) {
            const Scratch scratch;
            Journal journal({.path = scratch.path() / "journal", .durable = false});
            // A slot that an Execution emptied as it went is found again, as in a file.
            struct Kept : RamStore {
                void erase(std::int32_t) noexcept override {}
            } disk;
            try {
                trained.sweep(places, &journal, disk, stop);
                break;
            } catch (const Killed&) {}
            const Outcome out = trained.sweep(places, &journal, disk, 0);
            forward += out.found.from == Recovery::From::forward;
            reverse += out.found.from == Recovery::From::reverse;
            states += out.found.states;
            BOOST_TEST_CONTEXT("stopped at " << stop << ", rows " << (alone ? "in the state: " : "in a log: ")
                                             << out.found.text) {
                BOOST_TEST(same_bits<float>(out.gradients, wanted.gradients));
                BOOST_TEST(same_bits<float>(out.adjoint, wanted.adjoint));
                BOOST_TEST(same_bits<float>(out.losses, wanted.losses));
                BOOST_TEST(same_bits(out.log, wanted.log));
            }
        }
        BOOST_TEST(reverse > 10);
        BOOST_TEST((forward > 5) == alone);
        BOOST_TEST((states > 0) == alone);
    }
}
