// Models whose attention remembers earlier steps: equal bits wherever the rows live and whatever the schedule; windows
// that carry their rows equal one long window exactly; gradients do not depend on where chunks are cut.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE memory_bits
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "support/compare.hpp"
#include "support/every_schedule.hpp"
#include "support/scratch.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Index vocabulary = 7, width = 6, batch = 3;

/// An LSTM between attention layers whose memories differ in length, kind and gradient. `limited`: every step sees as
/// many steps as a memory holds, wherever chunks are cut.
ModelSpec model(bool detached, Index longest = 9, bool limited = false) {
    AttentionSpec first{.name = "first", .features = width, .heads = 3, .position = AttentionSpec::Position::alibi};
    first.memory = 5;
    first.detached = detached;
    first.dropout = 0.2;
    AttentionSpec head{.name = "head", .features = width, .projection = AttentionSpec::Projection::gated};
    head.memory = longest;
    AttentionSpec far{.name = "far", .features = width, .heads = 2, .position = AttentionSpec::Position::relative};
    far.memory = 4;
    far.window = 6;
    if (limited)
        for (AttentionSpec* a : {&first, &head, &far}) a->window = a->memory + 1;
    ModelSpec m;
    m.layers = {EmbeddingSpec{.name = "embedding", .vocabulary = vocabulary, .features = width, .padding = {}}, first,
                RecurrentSpec{.name = "rnn", .inputs = width, .hidden = width},
                ResidualSpec{"block", {NormSpec{"norm", width}, head, far}},
                DenseSpec{.name = "out", .inputs = width, .outputs = vocabulary}};
    return m;
}

template <class Real>
struct Data {
    explicit Data(Index steps_) : steps(steps_) {
        const Random random(77, 1);
        for (Index p = 0; p < steps * batch; ++p) {
            const auto e = static_cast<std::uint64_t>(p);
            tokens.push_back(static_cast<std::int32_t>(random.below(vocabulary, 0, e)));
            classes.push_back(static_cast<std::int32_t>(random.below(vocabulary, 1, e)));
            marks.push_back(Mark::step);
            hidden.push_back(random.below(6, 2, e) == 0);
        }
        // Sequences one behind the other, and fillers.
        const auto mark = [&](Index t, Index b, Mark m) {
            if (t < steps) marks[static_cast<std::size_t>(t * batch + b)] = m;
        };
        mark(0, 0, Mark::first), mark(11, 0, Mark::first), mark(0, 1, Mark::filler), mark(1, 1, Mark::first);
        mark(16, 1, Mark::filler), mark(17, 1, Mark::filler), mark(18, 1, Mark::first), mark(0, 2, Mark::first);
    }
    Window<Real> window(Range r) const {
        Window<Real> w;
        const Index at = r.first * batch;
        w.first = r.first;
        w.steps = r.size();
        w.tokens = tokens.data() + at;
        w.classes = classes.data() + at;
        w.marks = marks.data() + at;
        w.key_padding = hidden.data() + at;
        w.seed = 5;
        return w;
    }
    Index steps;
    std::vector<std::int32_t> tokens, classes;
    std::vector<Mark> marks;
    std::vector<std::uint8_t> hidden;
};

template <class Real>
struct Result {
    double loss = 0.0;
    std::vector<Real> gradients, end, dstart;
};

template <class Real>
std::vector<Real> parameters_of(const Network<Real>& network) {
    std::vector<Real> p(static_cast<std::size_t>(network.parameters().size()));
    const Random random(3, 9);
    for (std::size_t k = 0; k < p.size(); ++k) p[k] = static_cast<Real>(0.7 * (2.0 * random.uniform(0, k) - 1.0));
    return p;
}

/// One window under a schedule; `start` and `dend` may be empty.
template <class Real>
Result<Real> sweep(const Network<Real>& network, const Window<Real>& window, Index chunk,
                   std::unique_ptr<Schedule> schedule, const std::vector<Real>& start = {},
                   const MemoryPlaces& places = {}, const std::vector<Real>& dend = {}) {
    Ledger ledger;
    Result<Real> r;
    const std::vector<Real> parameters = parameters_of(network);
    r.gradients.assign(parameters.size(), Real{0});
    TimeChain<Real> chain(network, batch, chunk, ledger, places);
    auto from = chain.zero();
    if (!start.empty()) {
        std::copy(start.begin(), start.end(), from.carry.begin());
        chain.start_from(from);
    }
    chain.use(parameters.data());
    chain.add_to(r.gradients.data());
    chain.show(window);
    if (!dend.empty()) {
        auto end = chain.zero_adjoint();
        std::copy(dend.begin(), dend.end(), end.carry.begin());
        chain.end_with(std::move(end));
    }
    RamStore disk;
    Execution<TimeChain<Real>> run(chain, std::move(schedule));
    run.use(Tier::disk, disk);
    run.forward();
    auto end = chain.zero();
    chain.carry_over(*chain.length(), run.state(), end);
    r.end.assign(end.carry.begin(), end.carry.end());
    run.backward();
    r.loss = chain.loss();
    r.dstart.assign(run.adjoint().carry.begin(), run.adjoint().carry.end());
    return r;
}

template <class Real>
bool same(const Result<Real>& a, const Result<Real>& b) {
    return a.loss == b.loss && same_bits(a.gradients, b.gradients) && same_bits(a.end, b.end) &&
           same_bits(a.dstart, b.dstart);
}

std::vector<MemoryPlaces> all_places(const std::string& folder) {
    using enum MemoryPlace;
    return {
        {}, {{state, state, state}}, {{log, state, log}}, {{file, file, file}, folder}, {{state, file, log}, folder}};
}

template <class Real>
void every_schedule_and_place() {
    const Scratch scratch;
    const Data<Real> data(23);
    for (const bool detached : {false, true}) {
        const Network<Real> network = build<Real>(model(detached));
        const std::vector<Real> start = sweep<Real>(network, data.window({0, 9}), 4, store_all(3)).end;
        std::vector<Real> dend;
        for (Index k = 0; k < network.adjoint() * batch; ++k)
            dend.push_back(static_cast<Real>(std::sin(static_cast<double>(1 + k))));
        for (const Index chunk : {Index{1}, Index{3}, Index{32}}) {
            const Window<Real> window = data.window({9, 23});
            const Index links = (14 + chunk - 1) / chunk;
            const Result<Real> wanted = sweep<Real>(network, window, chunk, store_all(links), start, {}, dend);
            BOOST_TEST(std::isfinite(wanted.loss));
            for (const MemoryPlaces& places : all_places(scratch.path().string()))
                BOOST_TEST(same(sweep<Real>(network, window, chunk, store_all(links), start, places, dend), wanted));
            for (auto& named : every_schedule(links)) BOOST_TEST_CONTEXT(named.name << ", chunk " << chunk) {
                    const MemoryPlaces places =
                        links % 2 == 0 ? MemoryPlaces{}
                                       : MemoryPlaces{{MemoryPlace::state, MemoryPlace::log, MemoryPlace::state}, {}};
                    BOOST_TEST(same(sweep<Real>(network, window, chunk, std::move(named.schedule), start, places, dend),
                                    wanted));
                }
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_bits)

BOOST_AUTO_TEST_CASE(every_schedule_and_place_has_the_same_bits) {
    every_schedule_and_place<double>();
    every_schedule_and_place<float>();
}

// Windows that carry their memory compute what one long window computes, in bits: loss, and the state behind the last.
BOOST_AUTO_TEST_CASE(carried_windows_equal_one_long_window) {
    const Data<double> data(24);
    for (const Index longest : {Index{2}, Index{9}, Index{40}}) {
        const Network<double> network = build<double>(model(false, longest));
        for (const Index chunk : {Index{1}, Index{3}, Index{4}}) {
            const Result<double> whole = sweep<double>(network, data.window({0, 24}), chunk, store_all(24 / chunk));
            double loss = 0.0;
            std::vector<double> state;
            for (Index first = 0; first < 24; first += 12) {
                const Result<double> part =
                    sweep<double>(network, data.window({first, first + 12}), chunk, revolve(12 / chunk, 2), state);
                loss += part.loss;
                state = part.end;
            }
            BOOST_TEST(std::abs(loss - whole.loss) <= 1e-14 * std::abs(whole.loss));
            BOOST_TEST(same_bits(state, whole.end));
        }
    }
}

// Where every step sees as many steps as its memory holds, the gradient through it depends neither on the chunks nor on
// windows, chained by their adjoints.
BOOST_AUTO_TEST_CASE(full_gradients_do_not_depend_on_chunks) {
    const Data<double> data(24);
    const Network<double> network = build<double>(model(false, 9, true));
    const Result<double> whole = sweep<double>(network, data.window({0, 24}), 24, store_all(1));
    for (const Index chunk : {Index{1}, Index{5}, Index{7}}) {
        const Result<double> cut =
            sweep<double>(network, data.window({0, 24}), chunk, store_all((24 + chunk - 1) / chunk));
        BOOST_TEST(compare(cut.gradients, whole.gradients, {1e-12, 1e-14}));
    }
    const Result<double> first = sweep<double>(network, data.window({0, 12}), 4, store_all(3));
    const Result<double> second = sweep<double>(network, data.window({12, 24}), 4, store_all(3), first.end);
    const Result<double> again = sweep<double>(network, data.window({0, 12}), 4, store_all(3), {}, {}, second.dstart);
    std::vector<double> sum = second.gradients;
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += again.gradients[k];
    BOOST_TEST(compare(sum, whole.gradients, {1e-12, 1e-14}));
}

// A detached memory gives nothing to the steps before the segment: one segment as long as the window has none to cut.
BOOST_AUTO_TEST_CASE(detached_memory_cuts_gradients_at_segments) {
    const Data<double> data(24);
    const Network<double> free = build<double>(model(false)), cut = build<double>(model(true));
    const auto gradients = [&](const Network<double>& network, Index chunk) {
        return sweep<double>(network, data.window({0, 24}), chunk, store_all((24 + chunk - 1) / chunk)).gradients;
    };
    BOOST_TEST(same_bits(gradients(free, 24), gradients(cut, 24)));
    BOOST_TEST(!compare(gradients(cut, 4), gradients(free, 4), {1e-3, 0.0}));
}

// Bytes as predicted, by kind.
BOOST_AUTO_TEST_CASE(bytes_are_those_predicted) {
    const Scratch scratch;
    const Data<float> data(23);
    const Network<float> network = build<float>(model(false));
    const std::vector<float> start = sweep<float>(network, data.window({0, 9}), 4, store_all(3)).end;
    const std::vector<float> parameters = parameters_of(network);
    for (const bool carried : {false, true})
        for (const MemoryPlaces& places : all_places(scratch.path().string())) {
            Ledger ledger;
            {
                std::vector<float> gradients(parameters.size());
                TimeChain<float> chain(network, batch, 4, ledger, places);
                TimeChain<float>::State from;
                if (carried) {
                    from = chain.zero();
                    std::copy(start.begin(), start.end(), from.carry.begin());
                    chain.start_from(from);
                }
                chain.use(parameters.data());
                chain.add_to(gradients.data());
                chain.show(data.window({9, 23}));
                Execution<TimeChain<float>> run(chain, revolve(4, 2));
                run.forward();
                run.backward();
            }
            const TimeChainSizes s = time_chain_sizes(network, 14, batch, 4, carried, places);
            const Bytes peak = ledger.peak();
            BOOST_TEST(peak[Kind::log] == s.log);
            BOOST_TEST(peak[Kind::workspace] == s.workspace);
            BOOST_TEST(peak[Kind::tape] == s.tape);
            BOOST_TEST(peak[Kind::slots] == s.state);  // of two, but x_0 takes none
            BOOST_TEST(peak[Kind::carry] == s.working + s.tape_carry + (carried ? s.between : 0));
        }
}

BOOST_AUTO_TEST_CASE(wrong_uses_are_refused) {
    const Network<double> network = build<double>(model(false));
    Ledger ledger;
    const auto says = [](const char* what) {
        return [what](const Error& e) { return std::string(e.what()).find(what) != std::string::npos; };
    };
    const auto with = [&](MemoryPlaces places) { TimeChain<double>(network, batch, 4, ledger, std::move(places)); };
    BOOST_CHECK_EXCEPTION(with({{MemoryPlace::log}, {}}), InvalidArgument, says("one place for each of the 3"));
    BOOST_CHECK_EXCEPTION(with({{MemoryPlace::log, MemoryPlace::file, MemoryPlace::log}, {}}), InvalidArgument,
                          says("folder"));
    BOOST_CHECK_EXCEPTION(with({{}, "/tmp"}), InvalidArgument, says("no effect"));
    const Data<double> data(8);
    TimeChain<double> chain(network, batch, 4, ledger);
    const std::vector<double> parameters = parameters_of(network);
    chain.use(parameters.data());
    chain.show(data.window({0, 8}));
    auto x = chain.initial();
    chain.start_from(x);  // a sweep's state, without the rows of its memories
    BOOST_CHECK_EXCEPTION(chain.initial(), InvalidArgument, says("carry_over"));
    TimeChain<double> filed(network, batch, 4, ledger,
                            {{MemoryPlace::file, MemoryPlace::file, MemoryPlace::file}, "/nonexistent-folder"});
    filed.use(parameters.data());
    filed.show(data.window({0, 8}));
    BOOST_CHECK_EXCEPTION(filed.initial(), StoreError, says("/nonexistent-folder"));
}

BOOST_AUTO_TEST_SUITE_END()
