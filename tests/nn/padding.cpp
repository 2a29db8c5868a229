// Sequences of unequal length in one batch, through the time chain: results depend on valid steps only.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE padding
#include "support/unit_test.hpp"

#include "backsweep/nn/time_chain.hpp"
#include "nn/layer_laws.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

using Cell = RecurrentSpec::Cell;

std::vector<Model> padded_models() {
    LossSpec squares;
    squares.kind = LossSpec::Kind::mean_squared_error;
    const DenseSpec head{.name = "head", .inputs = 4, .outputs = 2};
    const auto with_head = [&](RecurrentSpec spec) { return ModelSpec{{std::move(spec), head}, squares}; };
    return {
        {"lstm", with_head({.name = "rnn", .inputs = 3, .hidden = 4, .layers = 2})},
        {"lstm with projection", with_head({.name = "rnn", .inputs = 3, .hidden = 6, .layers = 2, .projection = 4})},
        {"lstm with layer norm and learned state",
         with_head({.name = "rnn", .inputs = 3, .hidden = 4, .layers = 2, .layer_norm = true, .learned_state = true})},
        {"lstm with heads and weight drop",
         with_head({.name = "rnn", .inputs = 3, .hidden = 4, .layers = 2, .heads = 2, .weight_drop = 0.3})},
        {"bidirectional lstm",
         with_head({.name = "rnn", .inputs = 3, .hidden = 2, .layers = 2, .bidirectional = true})},
        {"bidirectional lstm with learned state",
         with_head(
             {.name = "rnn", .inputs = 3, .hidden = 2, .layers = 2, .bidirectional = true, .learned_state = true})},
        {"gru", with_head({.name = "rnn", .inputs = 3, .hidden = 4, .layers = 2, .cell = Cell::gru})},
        {"bidirectional gru with layer norm",
         with_head(
             {.name = "rnn", .inputs = 3, .hidden = 2, .cell = Cell::gru, .layer_norm = true, .bidirectional = true})},
        {"rnn_tanh with dropout",
         with_head({.name = "rnn", .inputs = 3, .hidden = 4, .layers = 2, .cell = Cell::rnn_tanh, .dropout = 0.3})},
        {"lstm among other layers",
         {{DenseSpec{.name = "foot", .inputs = 3, .outputs = 5}, ActivationSpec{"gelu", 5, ActivationSpec::Kind::gelu},
           RecurrentSpec{.name = "rnn", .inputs = 5, .hidden = 4}, NormSpec{.name = "norm", .features = 4},
           DropoutSpec{"dropout", 4, 0.3, true},
           ResidualSpec{"residual", {DenseSpec{.name = "inner", .inputs = 4, .outputs = 4}}}, head},
          squares}},
        {"language model",
         {{EmbeddingSpec{"embedding", 9, 3, 2}, RecurrentSpec{.name = "rnn", .inputs = 3, .hidden = 4},
           DenseSpec{.name = "head", .inputs = 4, .outputs = 9}},
          cross_entropy(9, true, 0.1, 4)}},
    };
}

/// What lies where nothing is to be read.
struct Filler {
    double value;
    std::int32_t token;
};
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr Filler fillers[] = {{0.0, 0}, {1e30, std::numeric_limits<std::int32_t>::max()}, {not_a_number, -1}};

/// Sequences of unequal length: all numbers of sequence s are functions of s and of the step.
struct Batch {
    std::vector<Index> lengths;  ///< of its sequences
    Index first = 0;             ///< number of the first of them
    Index steps = 0;             ///< to which they are padded
    Range inserted{};            ///< steps in which all have fillers, besides those behind their ends
    Filler filler = fillers[0];
};

template <class Real>
struct Result {
    double loss = 0.0;
    std::vector<Real> gradients;
    std::vector<std::vector<Real>> losses, dx, state, dstart;  ///< by sequence, valid steps only
    bool zero = true;                                          ///< what belongs to fillers
};

/// Widths of the blocks [batch][width] of which a state consists.
std::vector<Index> widths_of(const ModelSpec& model) {
    std::vector<Index> widths;
    for (const LayerSpec& layer : model.layers)
        if (const auto* spec = std::get_if<RecurrentSpec>(&layer))
            for (Index part = 0; part < spec->layers * (spec->bidirectional ? 2 : 1); ++part) {
                widths.push_back(spec->state());
                if (spec->cell == Cell::lstm) widths.push_back(spec->hidden);
            }
    return widths;
}

template <class Real>
Result<Real> run(const Network<Real>& network, const Batch& batch, Index chunk) {
    const ModelSpec& model = network.spec();
    const Index B = static_cast<Index>(batch.lengths.size()), T = batch.steps, inputs = model.inputs(),
                targets = model.targets();
    const std::vector<Real> parameters = untamed_parameters(network);
    const auto size = [&](Index width) { return static_cast<std::size_t>(T * B * width); };
    std::vector<Mark> marks(size(1), Mark::filler);
    std::vector<Real> x(size(inputs), static_cast<Real>(batch.filler.value)),
        values(size(targets), x.empty() ? Real{0} : x[0]), weights(size(1), static_cast<Real>(batch.filler.value)),
        losses(size(1), Real{-1}), dx(size(inputs), Real{-1});
    std::vector<std::int32_t> tokens(size(1), batch.filler.token), classes = tokens;

    TimeChain<Real> chain(network, B, chunk);
    auto start = chain.zero(), end = chain.zero();
    std::vector<std::vector<std::size_t>> places;  // of each sequence's steps
    for (Index b = 0; b < B; ++b) {
        const Index length = batch.lengths[static_cast<std::size_t>(b)];
        const auto stream = static_cast<std::uint32_t>(1000 + 10 * (batch.first + b));
        const auto own_x = random_values<Real>(length * inputs, stream),
                   own_values = random_values<Real>(length * targets, stream + 1),
                   own_weights = random_values<Real>(length, stream + 2);
        const auto own_tokens = random_tokens(length, 9, stream + 3),
                   own_classes = random_tokens(length, 9, stream + 4);
        places.emplace_back();
        Index step = 0;
        for (Index t = 0; t < T && step < length; ++t) {
            if (t >= batch.inserted.first && t < batch.inserted.last) continue;
            const Index p = t * B + b;
            const auto place = static_cast<std::size_t>(p), from = static_cast<std::size_t>(step);
            places.back().push_back(place);
            marks[place] = Mark::step;
            std::copy_n(own_x.begin() + step * inputs, inputs, x.begin() + p * inputs);
            std::copy_n(own_values.begin() + step * targets, targets, values.begin() + p * targets);
            weights[place] = own_weights[from];
            tokens[place] = own_tokens[from];
            classes[place] = own_classes[from];
            ++step;
        }
        BOOST_TEST_REQUIRE(step == length);
        Index block = 0;
        for (const Index width : widths_of(model)) {
            const auto from = random_values<Real>(2 * width, stream + static_cast<std::uint32_t>(5000 * (block + 1)));
            std::copy_n(from.begin(), width, start.carry.data() + block * B + b * width);
            std::copy_n(from.begin() + width, width, end.carry.data() + block * B + b * width);
            block += width;
        }
    }

    Window<Real> window;
    window.first = 300;
    window.steps = T;
    window.tokens = inputs > 0 ? nullptr : tokens.data();
    window.inputs = inputs > 0 ? x.data() : nullptr;
    window.input_gradient = inputs > 0 ? dx.data() : nullptr;
    window.classes = classes.data();
    window.values = values.data();
    window.weights = weights.data();
    window.marks = marks.data();
    window.begins = model.learned_state();
    window.seed = 6;
    window.sequence = batch.first;
    window.losses = losses.data();
    window.scale = 0.3;
    Result<Real> r;
    r.gradients.assign(parameters.size(), Real{0});
    chain.show(window);
    chain.use(parameters.data());
    chain.add_to(r.gradients.data());
    auto state = start;
    std::vector<typename TimeChain<Real>::Tape> tapes(static_cast<std::size_t>(*chain.length()));
    for (Index link = 0; link < *chain.length(); ++link)
        chain.record({link, link + 1}, state, tapes[static_cast<std::size_t>(link)]);
    auto adjoint = end;
    for (Index link = *chain.length(); link-- > 0;) {
        auto any = state;
        chain.reverse({link, link + 1}, any, tapes[static_cast<std::size_t>(link)], adjoint);
    }

    r.loss = chain.loss();
    const auto column = [&](const Buffer<Real>& block_of_all, Index b) {
        std::vector<Real> own;
        Index block = 0;
        for (const Index width : widths_of(model)) {
            const Real* const from = block_of_all.data() + block * B + b * width;
            own.insert(own.end(), from, from + width);
            block += width;
        }
        return own;
    };
    for (Index b = 0; b < B; ++b) {
        r.state.push_back(column(state.carry, b));
        r.dstart.push_back(column(adjoint.carry, b));
        r.losses.emplace_back();
        r.dx.emplace_back();
        for (const std::size_t p : places[static_cast<std::size_t>(b)]) {
            r.losses.back().push_back(losses[p]);
            const auto from = dx.begin() + static_cast<Index>(p) * inputs;
            r.dx.back().insert(r.dx.back().end(), from, from + inputs);
        }
    }
    for (std::size_t p = 0; p < marks.size(); ++p)
        if (marks[p] == Mark::filler) {
            r.zero = r.zero && losses[p] == Real{0};
            for (Index k = 0; k < inputs; ++k)
                r.zero = r.zero && dx[p * static_cast<std::size_t>(inputs) + static_cast<std::size_t>(k)] == Real{0};
        }
    return r;
}

template <class Real>
void check_same_bits(const Result<Real>& a, const Result<Real>& b) {
    BOOST_TEST(a.zero);
    BOOST_TEST(same_bits(std::vector{a.loss}, std::vector{b.loss}));
    BOOST_TEST(same_bits(a.gradients, b.gradients));
    for (std::size_t s = 0; s < b.state.size(); ++s) BOOST_TEST_CONTEXT("sequence " << s) {
            BOOST_TEST(same_bits(a.losses[s], b.losses[s]));
            BOOST_TEST(same_bits(a.dx[s], b.dx[s]));
            BOOST_TEST(same_bits(a.state[s], b.state[s]));
            BOOST_TEST(same_bits(a.dstart[s], b.dstart[s]));
        }
}

/// Each sequence of a against that of b which has its number, whatever the batches; not the gradients.
template <class Real>
void check_sequences(const Result<Real>& a, std::size_t first, const Result<Real>& b, double tolerance) {
    const auto near = [tolerance](const std::vector<Real>& got, const std::vector<Real>& wanted) {
        if (wanted.empty()) return got.empty();
        return compare(got, wanted, {tolerance, 0.0}).passed;
    };
    for (std::size_t s = 0; s < b.state.size(); ++s) BOOST_TEST_CONTEXT("sequence " << first + s) {
            BOOST_TEST(near(a.losses[first + s], b.losses[s]));
            BOOST_TEST(near(a.dx[first + s], b.dx[s]));
            BOOST_TEST(near(a.state[first + s], b.state[s]));
            BOOST_TEST(near(a.dstart[first + s], b.dstart[s]));
        }
}

const std::vector<Index> lengths{7, 4, 2, 1};

/// Calls f(network, chunk) for every model, driver and chunk.
template <class Real, class F>
void for_each_network(F f) {
    for (const Model& model : padded_models())
        for (const Driver driver : drivers) {
            const auto network = build<Real>(driver, model.spec);
            for (const Index chunk : chunks_of(model.spec, 64, {1, 3, 32}))
                BOOST_TEST_CONTEXT(model.name << ", " << to_string(driver) << ", chunk " << chunk) f(network, chunk);
        }
}

}  // namespace

// G14: padding changes results. Lengths {7, 4, 2, 1}, padded to 7, 16 and 64 with 0, 1e30 and NaN: the same bits within
// one padding, valid outputs, final states and gradients within 1e-13 from one padding to the other, and the sum of
// the four sequences each alone within 1e-12.
BOOST_AUTO_TEST_SUITE(G14)

BOOST_AUTO_TEST_CASE(what_lies_in_a_filler_changes_no_bit) {
    const auto body = [](auto real) {
        using Real = decltype(real);
        for_each_network<Real>([](const Network<Real>& network, Index chunk) {
            for (const Index steps : {7, 16})
                for (const Range inserted : {Range{0, 0}, Range{2, 5}}) {
                    Batch batch{lengths, 0, steps + inserted.size(), inserted};
                    const auto zeros = run(network, batch, chunk);
                    BOOST_TEST(std::isfinite(zeros.loss));
                    BOOST_TEST(all_assigned(zeros.gradients));
                    for (const Filler& filler : fillers) {
                        batch.filler = filler;
                        check_same_bits(run(network, batch, chunk), zeros);
                    }
                }
        });
    };
    body(float{});
    body(double{});
}

// Steps behind the end of all sequences change nothing at all; some in the middle, in chunks of one step, do not
// either.
BOOST_AUTO_TEST_CASE(more_fillers_change_no_bit_of_loss_or_state) {
    const auto body = [](auto real) {
        using Real = decltype(real);
        for_each_network<Real>([](const Network<Real>& network, Index chunk) {
            const auto bare = run(network, {lengths, 0, 7}, chunk);
            for (const Index steps : {10, 16, 57, 64}) check_same_bits(run(network, {lengths, 0, steps}, chunk), bare);
            if (network.spec().random()) return;  // numbers of steps move, and so do random numbers
            for (const Index more : {3, 50}) {
                const auto padded = run(network, {lengths, 0, 7 + more, {3, 3 + more}}, chunk);
                if (chunk == 1) check_same_bits(padded, bare);
                if constexpr (std::is_same_v<Real, double>) {
                    check_sequences(padded, 0, bare, 1e-13);
                    BOOST_TEST(compare(padded.gradients, bare.gradients, {1e-13, 0.0}));
                }
            }
        });
    };
    body(float{});
    body(double{});
}

BOOST_AUTO_TEST_CASE(a_batch_is_the_sum_of_its_sequences) {
    for_each_network<double>([](const Network<double>& network, Index chunk) {
        const auto all = run(network, {lengths, 0, 16}, chunk);
        double loss = 0.0, size = 0.0;  // weights have both signs
        std::vector<double> gradients(all.gradients.size());
        for (std::size_t s = 0; s < lengths.size(); ++s) {
            const auto one = run(network, {{lengths[s]}, static_cast<Index>(s), lengths[s]}, chunk);
            check_sequences(all, s, one, 1e-12);
            loss += one.loss;
            for (const double each : one.losses.front()) size += std::abs(each);
            for (std::size_t k = 0; k < gradients.size(); ++k) gradients[k] += one.gradients[k];
        }
        BOOST_TEST(std::abs(all.loss - loss) <= 1e-12 * size);
        BOOST_TEST(compare(all.gradients, gradients, {1e-12, 0.0}));
    });
}

// A row of the batch without any step: its state and adjoint pass, the others do not see it.
BOOST_AUTO_TEST_CASE(an_empty_sequence_is_nothing) {
    for_each_network<double>([](const Network<double>& network, Index chunk) {
        std::vector<Index> with_empty = lengths;
        with_empty.push_back(0);
        const auto all = run(network, {with_empty, 0, 9}, chunk), bare = run(network, {lengths, 0, 9}, chunk);
        check_sequences(all, 0, bare, 1e-13);
        BOOST_TEST(compare(all.gradients, bare.gradients, {1e-13, 0.0}));
        const auto other = run(network, {with_empty, 0, 30}, chunk);
        BOOST_TEST(same_bits(all.state.back(), other.state.back()));
        BOOST_TEST(same_bits(all.dstart.back(), other.dstart.back()));
        BOOST_TEST(all.losses.back().empty());
    });
}

// What a layer above says of a filler's output is not read either.
BOOST_AUTO_TEST_CASE(adjoints_of_fillers_outputs_are_not_read) {
    constexpr Index T = 5, B = 3;
    for (const Model& model : padded_models()) {
        if (!std::holds_alternative<RecurrentSpec>(model.spec.layers.front())) continue;
        for (const Driver driver : drivers) BOOST_TEST_CONTEXT(model.name << ", " << to_string(driver)) {
                const auto network = build<double>(driver, model.spec);
                const auto parameters = untamed_parameters(network);
                const Layer<double>& layer = network.layer(0);
                const Footprint f = layer.footprint(T, B);
                Problem<double> problem;
                problem.steps = T;
                problem.batch = B;
                mark(problem, Marking::packed);
                Segment<double> at;
                at.steps = T;
                at.batch = B;
                at.marks = problem.marks.data();
                const auto x = random_values(T * B * f.inputs, 1), carry = random_values(B * f.carry, 2);
                auto y = unassigned<double>(T * B * f.outputs), after = unassigned<double>(B * f.carry),
                     tape = unassigned<double>(f.tape), workspace = unassigned<double>(f.workspace);
                layer.record({at, parameters.data(), x.data(), y.data(), carry.data(), after.data(), tape.data(),
                              workspace.data()});
                std::vector<std::vector<double>> results;
                for (const Filler& filler : fillers) {
                    auto dy = random_values(T * B * f.outputs, 3), dcarry = random_values(B * f.carry, 4),
                         dx = unassigned<double>(T * B * f.inputs);
                    for (Index p = 0; p < T * B; ++p)
                        if (at.filler(p / B, p % B)) std::fill_n(dy.begin() + p * f.outputs, f.outputs, filler.value);
                    std::vector<double> gradients(parameters.size());
                    layer.reverse({at, parameters.data(), gradients.data(), tape.data(), carry.data(), dy.data(),
                                   dx.data(), dcarry.data(), workspace.data(), nullptr, nullptr, nullptr, nullptr,
                                   f.reads_x ? x.data() : nullptr, f.reads_y ? y.data() : nullptr});
                    gradients.insert(gradients.end(), dx.begin(), dx.end());
                    gradients.insert(gradients.end(), dcarry.begin(), dcarry.end());
                    results.push_back(std::move(gradients));
                }
                BOOST_TEST(all_assigned(results[0]));
                BOOST_TEST(same_bits(results[1], results[0]));
                BOOST_TEST(same_bits(results[2], results[0]));
            }
    }
}

BOOST_AUTO_TEST_SUITE_END()
