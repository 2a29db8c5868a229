// Training on sequences of unequal length: a state is its sequence's own, a mean is over valid steps, a resumed run is
// the same run.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE lengths
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/data/sequences.hpp"
#include "backsweep/data/text.hpp"
#include "backsweep/train/snapshot.hpp"
#include "backsweep/train/trainer.hpp"
#include "support/scratch.hpp"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

/// Sequences of random inputs (3 features) and targets (2).
Sequences<double> made(const std::vector<Index>& lengths, std::uint32_t stream = 1) {
    const Random random(31, stream);
    Sequences<double> set;
    set.features = 3;
    set.targets = 2;
    std::uint64_t k = 0;
    for (const Index length : lengths) {
        set.append(length);
        for (Index t = 0; t < length; ++t) {
            for (int f = 0; f < 3; ++f) set.inputs.push_back(random.normal(0, k++));
            for (int f = 0; f < 2; ++f) set.values.push_back(random.normal(0, k++));
        }
    }
    return set;
}

/// One of the sequences alone.
Sequences<double> alone(const Sequences<double>& set, Index s) {
    Sequences<double> one;
    one.features = set.features;
    one.targets = set.targets;
    one.append(set.length(s));
    const Index begin = set.begins[static_cast<std::size_t>(s)], end = begin + set.length(s);
    one.inputs.assign(set.inputs.begin() + begin * 3, set.inputs.begin() + end * 3);
    one.values.assign(set.values.begin() + begin * 2, set.values.begin() + end * 2);
    return one;
}

ModelSpec model(RecurrentSpec::Cell cell = RecurrentSpec::Cell::lstm) {
    ModelSpec m;
    RecurrentSpec rnn{"rnn", 3, 5, 2, true};
    rnn.cell = cell;
    m.layers = {rnn, DenseSpec{"head", 5, 2, true}};
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    return m;
}

TrainOptions options() {
    TrainOptions o;
    o.chunk = 2;
    o.schedule = {.family = "revolve", .slots = 2};
    o.rate.peak = 0.02;
    o.seed = 9;
    return o;
}

template <class Real>
bool same_bits(std::span<const Real> a, std::span<const Real> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

double worst(std::span<const double> a, std::span<const double> b) {
    BOOST_TEST_REQUIRE(a.size() == b.size());
    double worst = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k)
        if (const double d = std::abs(a[k] - b[k]); !(d <= worst)) worst = d;
    return worst;
}

const std::vector<Index> lengths{7, 4, 2, 1, 9, 3, 3, 11, 5, 6};

/// Losses of every step of every sequence, run through a source window by window with the state carried.
std::vector<double> step_losses(const Network<double>& network, std::span<const double> parameters,
                                const SequenceSource<double>& source, Index epoch) {
    std::vector<double> losses(static_cast<std::size_t>(source.set().begins.back()),
                               std::numeric_limits<double>::quiet_NaN());
    TimeChain<double> chain(network, source.batch(), 2);
    chain.use(parameters.data());
    TimeChain<double>::State state = chain.zero();
    Batch<double> batch;
    for (Index w = epoch * source.windows(); w < (epoch + 1) * source.windows(); ++w) {
        source.read({w, {0, source.batch()}, 0}, batch);
        std::vector<double> here(static_cast<std::size_t>(batch.steps * batch.batch), -1.0);
        Window<double> window;
        window.steps = batch.steps;
        window.inputs = batch.inputs.data();
        window.values = batch.values.data();
        window.marks = batch.marks.data();
        window.losses = here.data();
        chain.start_from(state);
        chain.show(window);
        ScheduleOptions o;
        o.family = "forward_only";
        o.steps = *chain.length();
        Execution<TimeChain<double>> run(chain, make_schedule(o));
        run.forward();
        TimeChain<double>::State next = run.state();
        swap(state, next);
        for (Index p = 0; p < batch.steps * batch.batch; ++p) {
            const Index s = source.sequence(w, p % batch.batch), at = batch.first + p / batch.batch;
            if (s >= 0 && at < source.set().length(s))
                losses[static_cast<std::size_t>(source.set().begins[static_cast<std::size_t>(s)] + at)] =
                    here[static_cast<std::size_t>(p)];
            else
                BOOST_TEST(here[static_cast<std::size_t>(p)] == 0.0);
        }
    }
    return losses;
}

}  // namespace

BOOST_AUTO_TEST_CASE(G16_a_state_belongs_to_a_sequence) {
    for (const auto cell : {RecurrentSpec::Cell::lstm, RecurrentSpec::Cell::gru, RecurrentSpec::Cell::rnn_tanh}) {
        const Network<double> network = build<double>(model(cell));
        std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size()));
        network.start(4, parameters);
        const Sequences<double> set = made(lengths);
        std::vector<double> singly;
        for (Index s = 0; s < set.count(); ++s) {
            const SequenceSource<double> source(alone(set, s), {1, 0});
            const auto losses = step_losses(network, parameters, source, 0);
            singly.insert(singly.end(), losses.begin(), losses.end());
        }
        for (const auto groups : {SequenceBatches::Groups::in_order, SequenceBatches::Groups::by_length})
            for (const Index window : {0, 3}) {
                const SequenceSource<double> source(set, {4, window, groups, true, 6});
                for (const Index epoch : {0, 2})
                    BOOST_TEST(worst(step_losses(network, parameters, source, epoch), singly) <= 1e-13);
            }
        // The last group of two trains, in shards and micro-batches too, whichever of them has fillers alone.
        for (const Index micro_batches : {1, 2}) {
            TrainOptions o = options();
            o.micro_batches = micro_batches;
            const SequenceSource<double> source(set, {4, 3, SequenceBatches::Groups::in_order, true, 6});
            Trainer<double> trainer(network, source, o);
            trainer.run(2 * source.windows());
            BOOST_TEST(trainer.epoch() == 2);
            for (const double p : trainer.parameters()) BOOST_TEST_REQUIRE(std::isfinite(p));
        }
    }
}

/// Lengths 2 and 10, losses of 1 and 3 at each of their steps: the mean is 32 / 12.
BOOST_AUTO_TEST_CASE(G15_a_mean_is_over_valid_steps) {
    Sequences<double> set;
    set.features = set.targets = 1;
    for (const auto& [length, loss] : {std::pair<Index, double>{2, 1.0}, {10, 3.0}}) {
        set.append(length);
        for (Index t = 0; t < length; ++t) {
            set.inputs.push_back(0.3 * static_cast<double>(t) - 1.0);
            set.values.push_back(std::sqrt(loss));
        }
    }
    ModelSpec m;
    m.layers = {DenseSpec{"head", 1, 1, true}};
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    const Network<double> network = build<double>(m);
    const std::vector<double> zero(2, 0.0);
    for (const Index window : {0, 5}) {
        const SequenceSource<double> source(set, {2, window});
        const Evaluation e = evaluate<double>(network, zero, source, 3);
        BOOST_TEST(std::abs(e.loss - 32.0 / 12.0) < 1e-14);
        BOOST_TEST(e.positions == 12.0);
    }
    std::vector<std::vector<double>> gradients;
    for (const Index micro_batches : {1, 2}) {
        TrainOptions o = options();
        o.micro_batches = micro_batches;
        const SequenceSource<double> source(set, {2, 0});
        Trainer<double> trainer(network, source, o);
        std::fill(trainer.parameters().begin(), trainer.parameters().end(), 0.0);
        const UpdateReport report = trainer.update();
        BOOST_TEST(std::abs(report.loss - 32.0 / 12.0) < 1e-14);
        BOOST_TEST(report.positions == 12.0);
        gradients.emplace_back(trainer.gradients().begin(), trainer.gradients().end());
    }
    BOOST_TEST(worst(gradients[0], gradients[1]) < 1e-13);
    BOOST_TEST(std::abs(gradients[0][0]) > 0.1);
}

/// One answer a sequence, for its last step: the loss and gradient are those of weights 1 there and 0 elsewhere.
BOOST_AUTO_TEST_CASE(G46_one_answer_per_sequence) {
    Sequences<double> every = made({7, 4, 2, 1, 9}), last = every;
    last.one_target = true;
    last.values.clear();
    every.weights.assign(every.inputs.size() / 3, 0.0);
    for (Index s = 0; s < every.count(); ++s) {
        const Index end = every.begins[static_cast<std::size_t>(s)] + every.length(s) - 1;
        every.weights[static_cast<std::size_t>(end)] = 1.0;
        for (Index k = 0; k < 2; ++k) last.values.push_back(every.values[static_cast<std::size_t>(end * 2 + k)]);
        for (Index t = every.begins[static_cast<std::size_t>(s)]; t < end; ++t)  // never read
            every.values[static_cast<std::size_t>(2 * t)] = std::numeric_limits<double>::quiet_NaN();
    }
    const Network<double> network = build<double>(model());
    std::vector<std::vector<double>> gradients;
    std::vector<double> losses;
    for (const auto& set : {every, last}) {
        const SequenceSource<double> source(set, {5, 0});
        Trainer<double> trainer(network, source, options());
        const UpdateReport report = trainer.update();
        BOOST_TEST(report.positions == 5.0 * 2.0);
        losses.push_back(report.loss);
        gradients.emplace_back(trainer.gradients().begin(), trainer.gradients().end());
    }
    BOOST_TEST(losses[0] == losses[1]);
    BOOST_TEST(same_bits<double>(gradients[0], gradients[1]));
}

/// Predicted bytes are measured bytes, marks included.
BOOST_AUTO_TEST_CASE(predicted_bytes_count_the_marks) {
    const Network<double> network = build<double>(model());
    const SequenceSource<double> source(made({12, 12, 12, 12, 12}), {5, 6});
    for (const bool carry : {true, false}) {
        TrainOptions o = options();
        o.carry = carry;
        Trainer<double> trainer(network, source, o);
        trainer.run(3);
        for (std::size_t k = 0; k < kind_count; ++k)
            BOOST_TEST(trainer.measured().by_kind[k] == trainer.plan().predicted.by_kind[k]);
    }
}

/// Six Adam updates with dropout, shuffled sequences and windows of 5 of up to 23 steps, against a stop after 2 or 3, a
/// file, and the rest.
BOOST_AUTO_TEST_CASE(G02_a_resumed_run_is_the_same_run) {
    ModelSpec m = model();
    auto& rnn = std::get<RecurrentSpec>(m.layers.front());
    rnn.dropout = 0.3;
    rnn.weight_drop = 0.2;
    const Network<double> network = build<double>(m);
    const SequenceSource<double> source(made({23, 17, 4, 23, 9, 12}),
                                        {4, 5, SequenceBatches::Groups::in_order, true, 3});
    Trainer<double> whole(network, source, options());
    std::vector<double> losses;
    for (int k = 0; k < 6; ++k) losses.push_back(whole.update().loss);
    for (const int stop : {2, 3}) {
        const test::Scratch scratch;
        {
            Trainer<double> first(network, source, options());
            for (int k = 0; k < stop; ++k) BOOST_TEST(first.update().loss == losses[static_cast<std::size_t>(k)]);
            Snapshot s = first.snapshot();
            save_snapshot(scratch.path(), s);
        }
        Trainer<double> second(network, source, options());
        second.restore(read_newest(scratch.path()).snapshot);
        for (int k = stop; k < 6; ++k) BOOST_TEST(second.update().loss == losses[static_cast<std::size_t>(k)]);
        BOOST_TEST(same_bits<double>(second.parameters(), whole.parameters()));
    }
}

/// Gradients and weights after each of three Adam updates with dropout are those of store_all, in bits, under every
/// schedule and thread count: a recompute draws the same masks, the next window others.
BOOST_AUTO_TEST_CASE(G01_recomputed_dropout_draws_the_same_masks) {
    ModelSpec m;
    RecurrentSpec rnn{"rnn", 3, 8, 2, true};
    for (const bool locked : {false, true}) {
        rnn.dropout = 0.3;
        rnn.locked = locked;
        rnn.weight_drop = locked ? 0.4 : 0.0;
        m.layers = {DropoutSpec{"input_dropout", 3, 0.2, locked}, rnn, DropoutSpec{"output_dropout", 8, 0.3, locked},
                    DenseSpec{"head", 8, 2, true}};
        m.loss.kind = LossSpec::Kind::mean_squared_error;
        const Network<double> network = build<double>(m);
        const SequenceSource<double> source(made({64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64}), {4, 0});
        TrainOptions o = options();
        o.seed = 7;
        o.carry = false;
        o.chunk = 1;
        const auto run = [&](const ScheduleOptions& schedule, Index threads) {
            o.schedule = schedule;
            o.threads = threads;
            Trainer<double> trainer(network, source, o);
            std::vector<std::vector<double>> seen;
            for (int update = 0; update < 3; ++update) {
                trainer.update();
                seen.emplace_back(trainer.gradients().begin(), trainer.gradients().end());
                seen.emplace_back(trainer.parameters().begin(), trainer.parameters().end());
            }
            return seen;
        };
        const auto wanted = run({.family = "store_all"}, 1);
        BOOST_TEST(worst(wanted[0], wanted[2]) > 1e-6);
        for (const Index threads : {1, 2}) {
            for (const Index slots : {1, 2, 3, 5, 64})
                BOOST_TEST((run({.family = "revolve", .slots = slots}, threads) == wanted));
            for (const Index period : {1, 7, 8, 64})
                BOOST_TEST((run({.family = "periodic", .period = period}, threads) == wanted));
        }
    }
}

/// The forward losses do not depend on how far the gradient looks back, also where a window begins at the beginning again
/// and the sequences start from learned states; and their gradient is then not 0.
BOOST_AUTO_TEST_CASE(learned_states_begin_again_where_a_window_looks_back_to_the_beginning) {
    const test::Scratch scratch;
    const auto path = scratch.path() / "text";
    {
        std::ofstream out(path, std::ios::binary);
        const Random random(3, 2);
        for (std::uint64_t k = 0; k < 200; ++k) out.put(static_cast<char>('a' + random.below(5, 0, k)));
    }
    const auto text = std::make_shared<const ByteText>(path);
    const TextSource<double> source(text, Range{0, text->size()}, Vocabulary(text->bytes()), 2, 8);
    ModelSpec m;
    RecurrentSpec rnn{"rnn", 4, 6, 1, true};
    rnn.learned_state = true;
    m.layers = {EmbeddingSpec{"embedding", 5, 4, std::nullopt}, rnn, DenseSpec{"head", 6, 5, true}};
    const Network<double> network = build<double>(m);
    std::vector<std::vector<double>> losses;
    for (const Index look_back : {0, 4, 8, 16}) {
        TrainOptions o = options();
        o.look_back = look_back;
        o.rate.peak = 1e-300;
        Trainer<double> trainer(network, source, o);
        const ParameterView& h0 = network.parameters().find("rnn.h0_l0");
        for (Index k = 0; k < h0.size(); ++k) trainer.parameters()[static_cast<std::size_t>(h0.offset + k)] = 0.7 - 0.3 * static_cast<double>(k);
        losses.emplace_back();
        for (int update = 0; update < 5; ++update) {
            losses.back().push_back(trainer.update().loss);
            const bool reaches = update * 8 - look_back <= 0;
            BOOST_TEST((trainer.gradients()[static_cast<std::size_t>(h0.offset)] != 0.0) == reaches);
        }
    }
    for (const auto& each : losses) BOOST_TEST(worst(each, losses.front()) < 1e-14);
}

/// Windows in which everything is ignored carry the state on and change nothing else; an epoch of them ends the run.
BOOST_AUTO_TEST_CASE(windows_without_a_loss_change_no_parameter) {
    Sequences<double> set = made({4, 4, 4, 4});
    set.weights.assign(16, 1.0);
    std::fill_n(set.weights.begin() + 4, 8, 0.0);  // the sequences 1 and 2
    const Network<double> network = build<double>(model());
    const SequenceSource<double> source(set, {1, 0});
    Trainer<double> trainer(network, source, options());
    trainer.update();
    const std::vector<double> before(trainer.parameters().begin(), trainer.parameters().end());
    for (int k = 0; k < 2; ++k) {
        const UpdateReport report = trainer.update();
        BOOST_TEST(report.positions == 0.0);
        BOOST_TEST(report.loss == 0.0);
        BOOST_TEST(same_bits<double>(trainer.parameters(), before));
    }
    BOOST_TEST(trainer.update().positions == 8.0);
    BOOST_TEST(!same_bits<double>(trainer.parameters(), before));
    set.weights.assign(16, 0.0);
    const SequenceSource<double> silent(set, {1, 0});
    Trainer<double> nothing(network, silent, options());
    for (int k = 0; k < 3; ++k) nothing.update();
    BOOST_CHECK_THROW(nothing.update(), NumericError);
    BOOST_CHECK_THROW(evaluate<double>(network, before, silent, 4), NumericError);
    set.weights[3] = std::numeric_limits<double>::quiet_NaN();
    const SequenceSource<double> poisoned(set, {1, 0});
    BOOST_CHECK_THROW(evaluate<double>(network, before, poisoned, 4), NumericError);
    Trainer<double> bad(network, poisoned, options());
    BOOST_CHECK_THROW(bad.update(), InvalidArgument);
}

/// Under artbp all windows are divided by the same number, also where a mean counts few of their positions: the gradient
/// of the head's bias, which no truncation touches, adds up over an epoch to that of the whole stream.
BOOST_AUTO_TEST_CASE(artbp_divides_all_windows_by_the_same_number) {
    const test::Scratch scratch;
    const auto path = scratch.path() / "text";
    {
        std::ofstream out(path, std::ios::binary);
        const Random random(3, 3);
        for (std::uint64_t k = 0; k < 401; ++k) out.put(static_cast<char>('a' + (k < 150 ? random.below(2, 0, k) : random.below(5, 0, k))));
    }
    const auto text = std::make_shared<const ByteText>(path);
    const TextSource<double> source(text, Range{0, text->size()}, Vocabulary(text->bytes()), 2, 10);
    const TextSource<double> at_once(text, Range{0, text->size()}, Vocabulary(text->bytes()), 2, 200);
    ModelSpec m;
    m.layers = {EmbeddingSpec{"embedding", 5, 4, std::nullopt}, RecurrentSpec{"rnn", 4, 6, 1, true}, DenseSpec{"head", 6, 5, true}};
    m.loss.ignore_index = 0;
    m.loss.class_weights = {1.0, 0.5, 2.0, 1.5, 0.25};
    const Network<double> network = build<double>(m);
    TrainOptions o = options();
    o.chunk = 1;
    o.rate.peak = 1e-300;
    const ParameterView& bias = network.parameters().find("head.bias");
    const auto of = [&](const Trainer<double>& trainer, double factor) {
        std::vector<double> part;
        for (Index k = 0; k < bias.size(); ++k) part.push_back(factor * trainer.gradients()[static_cast<std::size_t>(bias.offset + k)]);
        return part;
    };
    Trainer<double> whole(network, at_once, o);
    const double counted = whole.update().positions;
    const std::vector<double> wanted = of(whole, counted);
    o.windows.law = WindowSpec::Law::artbp;
    Trainer<double> parts(network, source, o);
    std::vector<double> sum(5, 0.0);
    while (parts.epoch() < 1) {
        parts.update();
        const std::vector<double> part = of(parts, 10.0 * 2.0);
        for (std::size_t k = 0; k < 5; ++k) sum[k] += part[k];
    }
    BOOST_TEST(worst(sum, wanted) < 1e-11);
    BOOST_TEST(std::abs(wanted[0]) > 1.0);
}

/// Windows of random length go on where they stopped; another law of them is refused.
BOOST_AUTO_TEST_CASE(random_windows_resume_with_the_same_bits) {
    const test::Scratch scratch;
    const auto path = scratch.path() / "text";
    {
        std::ofstream out(path, std::ios::binary);
        const Random random(3, 1);
        for (std::uint64_t k = 0; k < 1500; ++k) out.put(static_cast<char>('a' + random.below(5, 0, k)));
    }
    const auto text = std::make_shared<const ByteText>(path);
    const TextSource<double> source(text, Range{0, text->size()}, Vocabulary(text->bytes()), 3, 12);
    ModelSpec m;
    m.layers = {EmbeddingSpec{"embedding", 5, 4, std::nullopt}, RecurrentSpec{"rnn", 4, 6, 1, true},
                DenseSpec{"head", 6, 5, true}};
    const Network<double> network = build<double>(m);
    for (const auto law : {WindowSpec::Law::normal, WindowSpec::Law::artbp}) {
        TrainOptions o = options();
        o.windows.law = law;
        o.windows.deviation = 3.0;
        Trainer<double> whole(network, source, o);
        std::vector<double> losses;
        Index at = 0, epoch = 0;
        while (whole.epoch() < 2) {
            const UpdateReport r = whole.update();
            BOOST_TEST(r.first == at);
            BOOST_TEST(r.positions == static_cast<double>(3 * r.steps));
            at += r.steps;
            if (law == WindowSpec::Law::normal)
                BOOST_TEST(std::abs(r.rate - 0.02 * static_cast<double>(r.steps) / 12.0) < 1e-17);
            if (at == source.length()) {
                at = 0;
                ++epoch;
            }
            BOOST_TEST(whole.epoch() == epoch);
            losses.push_back(r.loss);
        }
        Trainer<double> first(network, source, o), second(network, source, o);
        first.run(5);
        second.restore(first.snapshot());
        for (std::size_t k = 5; k < losses.size(); ++k) BOOST_TEST_REQUIRE(second.update().loss == losses[k]);
        BOOST_TEST(same_bits<double>(second.parameters(), whole.parameters()));
        o.windows.deviation = 2.0;
        o.windows.tail = 5.0;
        Trainer<double> other(network, source, o);
        BOOST_CHECK_THROW(other.restore(first.snapshot()), InvalidArgument);
    }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_refused_in_words) {
    const auto refused = [](const ModelSpec& m, const SequenceBatches& batches, auto&& change, const char* word) {
        const Network<double> network = build<double>(m);
        const SequenceSource<double> source(made(lengths), batches);
        TrainOptions o = options();
        change(o);
        try {
            Trainer<double>(network, source, o).update();
        } catch (const InvalidArgument& e) {
            return std::string(e.what()).find(word) != std::string::npos;
        }
        return false;
    };
    ModelSpec both = model();
    std::get<RecurrentSpec>(both.layers[0]).bidirectional = true;
    std::get<DenseSpec>(both.layers[1]).inputs = 10;
    BOOST_TEST(refused(
        both, {4, 3}, [](TrainOptions&) {}, "set carry to false"));
    BOOST_TEST(refused(
        both, {4, 3}, [](TrainOptions& o) { o.carry = false; }, "chunk"));
    BOOST_TEST(refused(
        model(), {4, 3}, [](TrainOptions& o) { o.windows.law = WindowSpec::Law::normal; }, "cut anywhere"));
    {
        const Network<double> network = build<double>(both);
        const std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size()), 0.1);
        const SequenceSource<double> source(made(lengths), {4, 0});
        BOOST_CHECK_THROW(evaluate<double>(network, parameters, source, 11), InvalidArgument);               // carry
        BOOST_CHECK_THROW(evaluate<double>(network, parameters, source, 3, 0, 1, false), InvalidArgument);  // cut
        BOOST_TEST(std::isfinite(evaluate<double>(network, parameters, source, 11, 0, 1, false).loss));
        const SequenceSource<double> cut(made(lengths), {4, 5});
        BOOST_CHECK_THROW(evaluate<double>(network, parameters, cut, 11, 0, 1, false), InvalidArgument);
    }
    // Windows that cut sequences: a loss of last steps and both directions want whole ones, `once` one run of them.
    ModelSpec last = model();
    last.loss.at = LossSpec::At::last;
    const auto alone_each = [](TrainOptions& o) {
        o.carry = false;
        o.chunk = 4;
    };
    BOOST_TEST(refused(last, {4, 4}, alone_each, "goes on with those of the one before"));
    BOOST_TEST(refused(both, {4, 4}, alone_each, "goes on with those of the one before"));
    BOOST_TEST(refused(
        model(), {4, 4},
        [](TrainOptions& o) {
            o.look_back = 4;
            o.chunk = 4;
            o.form = TrainOptions::LookBack::once;
        },
        "begins others"));
    ModelSpec dropping = model();
    std::get<RecurrentSpec>(dropping.layers[0]).dropout = 0.5;
    BOOST_TEST(refused(
        dropping, {10, 4},
        [](TrainOptions& o) {
            o.look_back = 4;
            o.form = TrainOptions::LookBack::once;
        },
        "dropout"));
}

/// A bidirectional model reads whole sequences, whatever their lengths: each as if it were alone.
BOOST_AUTO_TEST_CASE(bidirectional_models_train_on_whole_sequences) {
    ModelSpec both = model();
    std::get<RecurrentSpec>(both.layers[0]).bidirectional = true;
    std::get<DenseSpec>(both.layers[1]).inputs = 10;
    const Network<double> network = build<double>(both);
    const Sequences<double> set = made({7, 4, 2, 1, 9});
    TrainOptions o = options();
    o.carry = false;
    o.chunk = 9;
    o.schedule = {.family = "store_all"};
    double sum = 0.0;
    std::vector<double> gradient(static_cast<std::size_t>(network.parameters().size()), 0.0);
    for (Index s = 0; s < set.count(); ++s) {
        const SequenceSource<double> source(alone(set, s), {1, 0});
        Trainer<double> trainer(network, source, o);
        const UpdateReport report = trainer.update();
        sum += report.loss * report.positions;
        for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] += trainer.gradients()[k] * report.positions;
    }
    const SequenceSource<double> source(set, {5, 0});
    Trainer<double> trainer(network, source, o);
    const UpdateReport report = trainer.update();
    BOOST_TEST(report.positions == 46.0);
    BOOST_TEST(std::abs(report.loss * 46.0 - sum) < 1e-12);
    for (double& g : gradient) g /= 46.0;
    BOOST_TEST(worst(trainer.gradients(), gradient) < 1e-13);
}
