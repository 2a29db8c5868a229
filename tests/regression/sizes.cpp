// Field cases of what is larger than 32 bits count.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE regression.sizes
#include "support/unit_test.hpp"

#include "nn/sweep.hpp"
#include "support/repeated.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Index steps = 70'000, batch = 16, width = 2'048;
static_assert(steps * batch * width > std::int64_t{1} << 31);

ModelSpec of(LayerSpec layer, LossSpec::Kind loss = LossSpec::Kind::mean_squared_error) {
    ModelSpec spec{{std::move(layer)}, {}};
    spec.loss.kind = loss;
    return spec;
}

/// Numbers of [step][batch][features] for a call of all steps and one of the last alone: in memory, or, where they are
/// `width` features, repeated.
class Array {
public:
    Array(Index features, Repeated& wide) : row_(batch * features), wide_(features == width ? &wide : nullptr) {
        if (!wide_)
            own_.resize(static_cast<std::size_t>(steps * row_));
        else
            clear();
    }
    float* all() { return wide_ ? wide_->data() : own_.data(); }
    float* last() { return all() + (steps - 1) * row_; }
    std::vector<float> row_of_last() { return {last(), last() + row_}; }
    /// Random numbers, those of the first and the last block where they repeat.
    void fill(std::uint32_t stream) {
        for_each_block([&](float* to, Index count) {
            const auto values = random_values<float>(count, stream++);
            std::copy(values.begin(), values.end(), to);
        });
    }

private:
    void clear() {
        for_each_block([](float* to, Index count) { std::fill_n(to, count, 0.0F); });
    }
    template <class F>
    void for_each_block(F f) {
        if (!wide_) return f(own_.data(), static_cast<Index>(own_.size()));
        f(all(), Repeated::block);
        f(all() + steps * row_ - Repeated::block, Repeated::block);
    }

    Index row_;
    Repeated* wide_;
    std::vector<float> own_;
};

/// Address space for x, y and their adjoints, targets and a tape.
struct Wide {
    Repeated x{steps * batch * width}, y{steps * batch * width}, dy{steps * batch * width}, dx{steps * batch * width},
        values{steps * batch * width}, tape{steps * batch * width};
};

/// A layer over all steps gives at the last one what it gives for that alone, forward and, where nothing comes to the
/// others, in reverse; parameters take the same gradient.
void check_layer(Wide& wide, const std::string& name, const ModelSpec& spec, Index l = 0) {
    const Network<float> network = build<float>(spec);
    const Layer<float>& layer = network.layer(l);
    const Footprint whole = layer.footprint(steps, batch), one = layer.footprint(1, batch);
    BOOST_TEST_CONTEXT(name) {
        BOOST_REQUIRE(whole.carry == 0);
        BOOST_TEST(std::max(whole.inputs, whole.outputs) == width);
        std::vector<float> parameters(static_cast<std::size_t>(network.parameters().size()));
        network.start(3, parameters);
        const float* const own = parameters.data() + network.parameter_offset(l);
        const auto tokens = random_tokens(steps * batch, width, 4), classes = random_tokens(steps * batch, width, 5);
        Array x(whole.inputs, wide.x), y(whole.outputs, wide.y), dy(whole.outputs, wide.dy), dx(whole.inputs, wide.dx),
            values(whole.inputs, wide.values), losses(1, wide.values);
        x.fill(10);
        values.fill(20);
        const auto seeds = random_values<float>(batch * whole.outputs, 30);
        std::copy(seeds.begin(), seeds.end(), dy.last());

        struct Result {
            std::vector<float> y, y_again, dx, losses, gradients;
        };
        const auto run = [&](bool alone) {
            const Index first = alone ? steps - 1 : 0;
            const Footprint& f = alone ? one : whole;
            Segment<float> at;
            at.first = first;
            at.steps = steps - first;
            at.batch = batch;
            at.tokens = tokens.data() + first * batch;
            at.classes = classes.data() + first * batch;
            at.values = alone ? values.last() : values.all();
            at.losses = alone ? losses.last() : losses.all();
            at.loss_from = at.steps - 1;
            double loss = 0.0;
            at.loss = &loss;
            const bool wide_tape = f.tape == steps * batch * width;
            BOOST_REQUIRE((wide_tape || f.tape <= batch * width));
            std::vector<float> own_tape(static_cast<std::size_t>(wide_tape ? 0 : f.tape)),
                workspace(static_cast<std::size_t>(f.workspace));
            float* const tape = wide_tape ? wide.tape.data() : own_tape.data();
            Result r;
            Forward<float> forward{at,
                                   own,
                                   alone ? x.last() : x.all(),
                                   alone ? y.last() : y.all(),
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   workspace.data()};
            layer.advance(forward);
            r.y = y.row_of_last();
            std::fill_n(y.last(), r.y.size(), 0.0F);
            forward.tape = tape;
            layer.record(forward);
            r.y_again = y.row_of_last();
            r.losses = losses.row_of_last();
            r.gradients.resize(parameters.size());
            Backward<float> backward{at,
                                     own,
                                     r.gradients.data() + network.parameter_offset(l),
                                     tape,
                                     nullptr,
                                     whole.outputs > 0 ? (alone ? dy.last() : dy.all()) : nullptr,
                                     whole.inputs > 0 ? (alone ? dx.last() : dx.all()) : nullptr,
                                     nullptr,
                                     workspace.data()};
            backward.x = forward.x;
            backward.y = forward.y;
            layer.reverse(backward);
            r.dx = dx.row_of_last();
            return r;
        };
        const Result all = run(false), last = run(true);
        BOOST_TEST(all.y == last.y);
        BOOST_TEST(all.y_again == last.y_again);
        BOOST_TEST(all.y_again == all.y);
        BOOST_TEST(all.losses == last.losses);
        BOOST_TEST(all.dx == last.dx);
        BOOST_TEST(all.gradients == last.gradients);
        const auto any = [](const std::vector<float>& v) {
            return v.empty() || std::any_of(v.begin(), v.end(), [](float k) { return k != 0.0F; });
        };
        BOOST_TEST(any(last.dx));
        BOOST_TEST((any(last.y) && (any(last.losses) || whole.outputs > 0)));
        if (!layer.parameters().empty()) BOOST_TEST(any(last.gradients));
    }
}

/// All steps in one call of a cell give the output and the state of two calls.
void check_cell(Wide& wide, const std::string& name, RecurrentSpec spec) {
    spec.inputs = width;
    spec.hidden = 2;
    const Network<float> network = build<float>(of(spec));
    const Layer<float>& layer = network.layer(0);
    std::vector<float> parameters(static_cast<std::size_t>(network.parameters().size()));
    network.start(3, parameters);
    Array x(width, wide.x);
    x.fill(10);
    const auto carry = static_cast<std::size_t>(layer.footprint(1, batch).carry * batch);
    const auto run = [&](Index cut) {
        std::vector<float> y(static_cast<std::size_t>(2 * steps * batch)), state(carry, 0.25F), next(carry);
        for (const Range part : {Range{0, cut}, Range{cut, steps}}) {
            if (part.size() == 0) continue;
            Segment<float> at;
            at.first = part.first;
            at.steps = part.size();
            at.batch = batch;
            std::vector<float> workspace(static_cast<std::size_t>(layer.footprint(at.steps, batch).workspace));
            layer.advance({at, parameters.data(), x.all() + part.first * batch * width,
                           y.data() + 2 * part.first * batch, state.data(), next.data(), nullptr, workspace.data()});
            state.swap(next);
        }
        return std::pair(y, state);
    };
    const auto whole = run(steps), parts = run(51'235);
    BOOST_TEST_CONTEXT(name) {
        BOOST_TEST((whole.first == parts.first));
        BOOST_TEST(whole.second == parts.second);
        BOOST_TEST(whole.first.back() != whole.first[whole.first.size() - 1 - static_cast<std::size_t>(2 * batch)]);
    }
}

}  // namespace

// G40: offsets of 32 bits overflow on long inputs, in silence. T = 70,000, B = 16, 2,048 features: 2.29e9 numbers.
BOOST_AUTO_TEST_SUITE(G40)

BOOST_AUTO_TEST_CASE(footprints_count_beyond_32_bits) {
    const Network<float> network = build<float>(of(RecurrentSpec{"rnn", width, width, 2}));
    BOOST_TEST(network.layer(0).footprint(steps, batch).tape == 11'468'800'000);  // the gates and c
    BOOST_TEST(network.carry_offset(1, 600'000) == 2'457'600'000);
    const Network<float> table = build<float>(of(EmbeddingSpec{"embedding", 3'000'000, width, std::nullopt}));
    BOOST_TEST(table.parameters().size() == 6'144'000'000);
}

BOOST_AUTO_TEST_CASE(layers_reach_the_last_of_more_numbers_than_32_bits_count) {
    Wide wide;
    check_layer(wide, "embedding", of(EmbeddingSpec{"embedding", width, width, std::nullopt}));
    check_layer(wide, "dense from many", of(DenseSpec{"head", width, 3}));
    check_layer(wide, "dense to many", of(DenseSpec{"head", 3, width}));
    check_layer(wide, "layer norm", of(NormSpec{.name = "norm", .features = width}));
    check_layer(wide, "relu", of(ActivationSpec{.name = "relu", .features = width}));
    check_layer(wide, "dropout", of(DropoutSpec{.name = "dropout", .features = width, .rate = 0.3}));
    using Loss = LossSpec::Kind;
    const LayerSpec to_many = DenseSpec{"head", 1, width};
    check_layer(wide, "cross-entropy", of(to_many, Loss::cross_entropy), 1);
    check_layer(wide, "mean squared error", of(to_many, Loss::mean_squared_error), 1);
}

BOOST_AUTO_TEST_CASE(cells_read_the_last_of_more_numbers_than_32_bits_count) {
    using Cell = RecurrentSpec::Cell;
    Wide wide;
    check_cell(wide, "LSTM", {.name = "rnn"});
    check_cell(wide, "GRU", {.name = "rnn", .cell = Cell::gru});
    check_cell(wide, "RNN", {.name = "rnn", .cell = Cell::rnn_tanh});
    check_cell(wide, "layer-norm LSTM", {.name = "rnn", .layer_norm = true});
}

BOOST_AUTO_TEST_SUITE_END()
