// G35: a model that was saved and loaded in another process predicts the same bits, whatever it predicted before, and
// in whatever batch.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE predictions
#include "support/unit_test.hpp"

#include "backsweep/data/sequences.hpp"
#include "backsweep/train/trainer.hpp"
#include "backsweep/train/weights.hpp"
#include "support/scratch.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/data/safetensors.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

constexpr const char* task = "BACKSWEEP_PREDICT";  // "<model> <weights> <answer>": what the other process does

/// Every kind of layer, and every option that has parameters or draws numbers.
std::vector<ModelSpec> models() {
    using Cell = RecurrentSpec::Cell;
    std::vector<ModelSpec> all;
    const auto add = [&](std::vector<LayerSpec> layers) {
        ModelSpec m;
        m.layers = std::move(layers);
        m.loss.kind = LossSpec::Kind::mean_squared_error;
        all.push_back(std::move(m));
    };
    const auto rnn = [](Cell cell, auto&& change) {
        RecurrentSpec spec{"rnn", 3, 6, 2, true};
        spec.cell = cell;
        change(spec);
        return spec;
    };
    for (const Cell cell : {Cell::lstm, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu})
        add({rnn(cell, [](RecurrentSpec& s) { s.learned_state = true; }), DenseSpec{"head", 6, 2, true}});
    add({rnn(Cell::lstm, [](RecurrentSpec& s) { s.projection = 4; }), DenseSpec{"head", 4, 2, false}});
    for (const Cell cell : {Cell::lstm, Cell::gru})
        add({rnn(cell, [](RecurrentSpec& s) { s.layer_norm = true; }), DenseSpec{"head", 6, 2, true}});
    add({rnn(Cell::gru, [](RecurrentSpec& s) { s.bidirectional = true; }), DenseSpec{"head", 12, 2, true}});
    add({rnn(Cell::lstm,
             [](RecurrentSpec& s) {
                 s.heads = 3;
                 s.dropout = 0.3;
                 s.weight_drop = 0.2;
             }),
         DropoutSpec{"dropout", 6, 0.4, true}, NormSpec{"norm", 6, NormSpec::Kind::rms, 1e-5, true},
         ResidualSpec{"block",
                      {NormSpec{"inner", 6}, DenseSpec{"up", 6, 9, true},
                       ActivationSpec{"act", 9, ActivationSpec::Kind::gelu}, DenseSpec{"down", 9, 6, true}}},
         DenseSpec{"head", 6, 2, true}});
    ModelSpec tokens;
    tokens.layers = {EmbeddingSpec{"embedding", 9, 6, 2}, RecurrentSpec{"rnn", 6, 6, 1, true},
                     DenseSpec{"head", 6, 9, true, "embedding"}};
    all.push_back(tokens);
    return all;
}

/// Sequences of lengths 5, 3, 6, 4, ... for a model.
Sequences<double> data(const ModelSpec& model, Index count, std::uint32_t stream) {
    const Random random(8, stream);
    Sequences<double> set;
    const bool tokens = model.inputs() == 0;
    if (!tokens) {
        set.features = 3;
        set.targets = 2;
    }
    std::uint64_t k = 0;
    for (Index s = 0; s < count; ++s) {
        const Index steps = 3 + 7 * s % 4;
        set.append(steps);
        for (Index t = 0; t < steps; ++t) {
            if (tokens) {
                set.tokens.push_back(static_cast<std::int32_t>(random.below(9, 0, k++)));
                set.classes.push_back(static_cast<std::int32_t>(random.below(9, 0, k++)));
                continue;
            }
            for (int f = 0; f < 3; ++f) set.inputs.push_back(random.normal(1, k++));
            for (int f = 0; f < 2; ++f) set.values.push_back(random.normal(1, k++));
        }
    }
    return set;
}

/// The loss of every step of a set, `batch` sequences side by side.
std::vector<double> predict(const Network<double>& network, std::span<const double> parameters,
                            const Sequences<double>& set, Index batch) {
    const SequenceSource<double> source(set, {batch, 0});
    TimeChain<double> chain(network, batch, 6);
    chain.use(parameters.data());
    std::vector<double> losses(static_cast<std::size_t>(set.begins.back()));
    Batch<double> read;
    for (Index w = 0; w < source.windows(); ++w) {
        source.read({w, {0, batch}, 0}, read);
        std::vector<double> here(static_cast<std::size_t>(read.steps * batch));
        Window<double> window;
        window.steps = read.steps;
        window.tokens = read.tokens.empty() ? nullptr : read.tokens.data();
        window.inputs = read.inputs.empty() ? nullptr : read.inputs.data();
        window.classes = read.classes.empty() ? nullptr : read.classes.data();
        window.values = read.values.empty() ? nullptr : read.values.data();
        window.marks = read.marks.data();
        window.training = false;
        window.losses = here.data();
        chain.show(window);
        ScheduleOptions o;
        o.family = "forward_only";
        o.steps = *chain.length();
        Execution<TimeChain<double>>(chain, make_schedule(o)).forward();
        for (Index p = 0; p < read.steps * batch; ++p)
            if (const Index s = source.sequence(w, p % batch); s >= 0 && p / batch < set.length(s))
                losses[static_cast<std::size_t>(set.begins[static_cast<std::size_t>(s)] + p / batch)] =
                    here[static_cast<std::size_t>(p)];
    }
    return losses;
}

std::vector<double> loaded(const Network<double>& network, const std::string& file) {
    std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size()), -77.0);
    load_weights<double>(file, network, parameters);
    return parameters;
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// Runs this test in another process that only predicts.
std::vector<double> predicted_elsewhere(std::size_t model, const std::string& weights, const std::string& answer) {
    const std::string command = "BACKSWEEP_PREDICT='" + std::to_string(model) + ' ' + weights + ' ' + answer + "' '" +
                                std::filesystem::read_symlink("/proc/self/exe").string() +
                                "' --log_level=error > /dev/null";
    BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
    std::ifstream in(answer, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    std::vector<double> losses(bytes.size() / sizeof(double));
    std::memcpy(losses.data(), bytes.data(), losses.size() * sizeof(double));
    return losses;
}

}  // namespace

BOOST_AUTO_TEST_CASE(G35_a_loaded_model_predicts_the_same) {
    if (const char* given = std::getenv(task)) {
        std::size_t model = 0;
        char weights[4096], answer[4096];
        BOOST_TEST_REQUIRE(std::sscanf(given, "%zu %4095s %4095s", &model, weights, answer) == 3);
        const Network<double> network = build<double>(models()[model]);
        const auto losses = predict(network, loaded(network, weights), data(network.spec(), 5, 2), 3);
        std::ofstream(answer, std::ios::binary)
            .write(reinterpret_cast<const char*>(losses.data()),
                   static_cast<std::streamsize>(losses.size() * sizeof(double)));
        return;
    }
    const test::Scratch scratch;
    for (std::size_t m = 0; m < models().size(); ++m) BOOST_TEST_CONTEXT("model " << m) {
            const Network<double> network = build<double>(models()[m]);
            const SequenceSource<double> source(data(network.spec(), 8, 1), {4, 0});
            TrainOptions o;
            o.chunk = 6;
            o.carry = false;
            o.schedule = {.family = "store_all"};
            o.rate.peak = 0.05;
            Trainer<double> trainer(network, source, o);
            const std::vector<double> before(trainer.parameters().begin(), trainer.parameters().end());
            trainer.run(5);
            for (const ParameterView& v : network.parameters().views()) {
                bool moved = false;
                for (Index k = v.offset; k < v.offset + v.size(); ++k)
                    moved = moved ||
                            trainer.parameters()[static_cast<std::size_t>(k)] != before[static_cast<std::size_t>(k)];
                BOOST_TEST(moved, v.name);
            }
            const auto set = data(network.spec(), 5, 2);
            const std::vector<double> here = predict(network, trainer.parameters(), set, 3);
            const std::string file = (scratch.path() / "weights.safetensors").string();
            save_weights<double>(file, network, trainer.parameters());
            BOOST_TEST(same(here, predicted_elsewhere(m, file, (scratch.path() / "answer").string())));
            // Another prediction before, another batch, and the same again: a model keeps nothing.
            const auto parameters = loaded(network, file);
            static_cast<void>(predict(network, parameters, data(network.spec(), 7, 3), 2));
            BOOST_TEST(same(predict(network, parameters, set, 3), here));
            double worst = 0.0;
            const auto singly = predict(network, parameters, set, 1);
            for (std::size_t k = 0; k < here.size(); ++k) worst = std::max(worst, std::abs(singly[k] - here[k]));
            BOOST_TEST(worst <= 1e-13);
        }
}

BOOST_AUTO_TEST_CASE(files_that_are_not_this_models_are_refused_in_words) {
    const test::Scratch scratch;
    const auto path = scratch.path() / "w.safetensors";
    const Network<double> network = build<double>(models().back());
    std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size()));
    network.start(3, parameters);
    const std::vector<double> untouched = parameters;
    const auto written = [&](auto&& change) {
        save_weights<double>(path, network, parameters);
        Safetensors file = Safetensors::read(path);
        std::vector<TensorView> tensors = file.tensors();
        change(tensors);
        const auto bytes = safetensors_bytes(tensors);
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    };
    const auto refused = [&](auto&& change, const char* word) {
        written(change);
        std::vector<double> to = untouched;
        try {
            load_weights<double>(path, network, to);
        } catch (const InvalidArgument& e) {
            return std::string(e.what()).find(word) != std::string::npos && same(to, untouched);
        }
        return false;
    };
    const std::vector<double> table(54, 0.5), short_one(3, 1.0);
    const std::vector<std::int64_t> whole(9, 1);
    BOOST_TEST(refused([](auto& t) { t.pop_back(); }, "it has no tensor"));
    BOOST_TEST(refused([&](auto& t) { t.back() = tensor_view<double>(t.back().name, {3}, short_one); },
                       "must have the shape (9), but has (3)"));
    BOOST_TEST(refused([&](auto& t) { t.back() = tensor_view<std::int64_t>(t.back().name, {9}, whole); },
                       "must be F32 or F64"));
    BOOST_TEST(refused([&](auto& t) { t.push_back(tensor_view<double>("other.bias", {3}, short_one)); },
                       "no parameter 'other.bias'"));
    BOOST_TEST(refused(
        [&](auto& t) {
            t.push_back(tensor_view<double>("head.weight", {9, 6}, table));
        },
        "tied to 'embedding.weight'"));
    // What PyTorch writes of a tied layer, and single precision, are read.
    written([&](auto& t) {
        for (std::size_t k = 0; k < t.size(); ++k)
            if (t[k].name == "embedding.weight") t.push_back({"head.weight", t[k].dtype, t[k].shape, t[k].data});
    });
    std::vector<double> to(untouched.size());
    load_weights<double>(path, network, to);
    BOOST_TEST(same(to, untouched));
    const Network<float> single = build<float>(models().back());
    std::vector<float> floats(untouched.size(), 0.25f);
    BOOST_CHECK_THROW(load_weights<float>(path, single, floats), InvalidArgument);  // F64 would be rounded
    save_weights<float>(path, single, floats);
    load_weights<double>(path, network, to);
    BOOST_TEST(to[5] == 0.25);
    BOOST_CHECK_THROW(load_weights<double>(scratch.path() / "none", network, to), StoreError);
}
