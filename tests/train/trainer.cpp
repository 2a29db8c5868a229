// Training: bytes predicted and measured, bits under every plan, thread count and restart, and the figures of a loss.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE trainer
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/data/text.hpp"
#include "backsweep/train/trainer.hpp"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace backsweep;

namespace {

/// A text without a pattern of `bytes` bytes over 12 symbols, gone with the test.
class Text {
public:
    explicit Text(Index bytes) {
        static int number = 0;
        path_ = std::filesystem::temp_directory_path() / ("backsweep_trainer_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
        std::ofstream out(path_, std::ios::binary);
        const Random random(3, 1);
        char last = 'a';
        for (Index k = 0; k < bytes; ++k) {
            const auto r = random.below(12, 0, static_cast<std::uint64_t>(k));
            last = r < 6 ? static_cast<char>('a' + (last - 'a' + 1) % 12) : static_cast<char>('a' + r);
            out.put(last);
        }
        out.close();
        text_ = std::make_shared<const ByteText>(path_);
    }
    ~Text() { std::filesystem::remove(path_); }
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;

    template <class Real>
    TextSource<Real> source(Index batch, Index window) const {
        return {text_, Range{0, text_->size()}, Vocabulary(text_->bytes()), batch, window};
    }

private:
    std::filesystem::path path_;
    std::shared_ptr<const ByteText> text_;
};

ModelSpec model(Index hidden = 7, Index layers = 2) {
    ModelSpec m;
    m.layers = {EmbeddingSpec{"embedding", 12, 5, std::nullopt}, RecurrentSpec{"rnn", 5, hidden, layers, true}, DenseSpec{"head", hidden, 12, true}};
    return m;
}

TrainOptions options(const char* family = "revolve", Index slots = 2, Index period = 0) {
    TrainOptions o;
    o.chunk = 3;
    o.schedule.family = family;
    o.schedule.slots = slots;
    o.schedule.period = period;
    o.rate.peak = 0.02;
    o.clip = {ClipSpec::Kind::norm, 0.25};
    o.seed = 9;
    return o;
}

template <class Real>
std::vector<Real> parameters_of(const Trainer<Real>& t) {
    return {t.parameters().begin(), t.parameters().end()};
}

template <class Real>
bool same_bits(const std::vector<Real>& a, const std::vector<Real>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0;
}

template <class Real>
std::vector<Real> trained(const Network<Real>& network, const Source<Real>& source, const TrainOptions& o, Index updates) {
    Trainer<Real> t(network, source, o);
    t.run(updates);
    return parameters_of(t);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
    BOOST_TEST_REQUIRE(a.size() == b.size());
    double worst = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k)
        if (const double d = std::abs(a[k] - b[k]); !(d <= worst)) worst = d;
    return worst;
}

bool says(const std::exception& e, std::initializer_list<const char*> words) {
    const std::string text = e.what();
    for (const char* w : words)
        if (text.find(w) == std::string::npos) return false;
    return true;
}

}  // namespace

BOOST_AUTO_TEST_CASE(predicted_bytes_are_measured_bytes) {
    const Text text(1 + 6 * 53);
    const Network<float> network = build<float>(model());
    const auto source = text.source<float>(6, 20);  // 53 = 20 + 20 + 13
    struct Setting {
        const char* family;
        Index slots, period;
    };
    for (const Setting& s : {Setting{"store_all", 0, 0}, Setting{"revolve", 1, 0}, Setting{"revolve", 3, 0}, Setting{"revolve", 50, 0},
                             Setting{"periodic", 0, 2}, Setting{"periodic", 0, 4}, Setting{"periodic", 0, 50}})
        for (const bool carry : {true, false})
            for (const Index micro_batches : {1, 3})
                for (const bool adam : {true, false}) {
                    TrainOptions o = options(s.family, s.slots, s.period);
                    o.carry = carry;
                    o.micro_batches = micro_batches;
                    if (!adam) o.optimizer.rule = SgdSpec{};
                    Trainer<float> t(network, source, o);
                    t.run(7);
                    BOOST_TEST_CONTEXT(s.family << " " << s.slots << " " << s.period << ", carry " << carry << ", micro-batches " << micro_batches)
                    for (std::size_t k = 0; k < kind_count; ++k) {
                        const Kind kind = static_cast<Kind>(k);
                        BOOST_TEST(t.measured()[kind] == t.plan().predicted[kind], to_string(kind) << ": measured " << t.measured()[kind]
                                                                                                   << ", predicted " << t.plan().predicted[kind]);
                    }
                }
    TrainOptions o = options();
    o.look_back = 30;  // k1 = 10, k2 = 40
    o.chunk = 5;
    for (const auto form : {TrainOptions::LookBack::recompute, TrainOptions::LookBack::once}) {
        o.form = form;
        const auto short_windows = text.source<float>(3, 10);
        Trainer<float> t(network, short_windows, o);
        t.run(12);
        // What is prepared of them is shared by the shards, but where every link has a version.
        const bool once = form == TrainOptions::LookBack::once;
        BOOST_TEST(network.prepared() > 0);
        BOOST_TEST(t.measured()[Kind::parameters] == 4 * (network.parameters().size() * (once ? 4 : 1) + network.prepared() * (once ? 3 : 1)));
        BOOST_TEST(t.measured().total() == t.plan().predicted.total());
    }
}

BOOST_AUTO_TEST_CASE(the_planner_keeps_the_limit) {
    const Text text(1 + 5 * 70);
    const Network<double> network = build<double>(model());
    const auto source = text.source<double>(5, 70);
    TrainOptions o = options("store_all", 0);
    const Plan all = Trainer<double>(network, source, o).plan();
    o = options("auto", 0);
    for (const double share : {1.0, 0.8, 0.5, 0.3, 0.2, 0.17}) {
        o.budget.time_axis = static_cast<std::int64_t>(share * static_cast<double>(all.predicted.time_axis()));
        Trainer<double> t(network, source, o);
        t.run(2);
        BOOST_TEST(t.plan().predicted.time_axis() <= o.budget.time_axis);
        BOOST_TEST(t.measured().time_axis() == t.plan().predicted.time_axis());
        BOOST_TEST((t.plan().schedule.family == "store_all") == (share == 1.0));
        const TrainOptions unlimited = options("store_all", 0);
        BOOST_TEST(same_bits(parameters_of(t), trained(network, source, unlimited, 2)));
    }
    o.budget.time_axis = 1500;
    std::string least;
    BOOST_CHECK_EXCEPTION(Trainer<double>(network, source, o), NoPlan, [&](const NoPlan& e) {
        least = e.what();
        return says(e, {"time axis: needs", "offered 1.46 KiB (1500 bytes)"});
    });
    // What the message names does work, one byte less does not.
    const std::size_t at = least.find('(') + 1;
    o.budget.time_axis = std::stoll(least.substr(at));
    BOOST_CHECK_NO_THROW(Trainer<double>(network, source, o));
    --o.budget.time_axis;
    BOOST_CHECK_THROW(Trainer<double>(network, source, o), NoPlan);
    o = options("store_all", 0);
    o.plan_depth = false;
    o.budget.time_axis = all.predicted.time_axis() - 1;
    BOOST_CHECK_EXCEPTION(Trainer<double>(network, source, o), NoPlan, [](const NoPlan& e) { return says(e, {"store_all", "does not fit", "time axis", "the schedule left to the planner", "the depth left to the planner"}); });
}

BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_schedule_or_threads) {
    const Text text(1 + 7 * 47);
    const Network<float> network = build<float>(model());
    const auto source = text.source<float>(7, 20);
    const std::vector<float> all = trained(network, source, options("store_all", 0), 8);
    for (const Index slots : {1, 2, 3, 5, 7}) BOOST_TEST(same_bits(all, trained(network, source, options("revolve", slots), 8)));
    for (const Index period : {1, 2, 3}) BOOST_TEST(same_bits(all, trained(network, source, options("periodic", 0, period), 8)));
    for (const Index threads : {2, 3, 9}) {
        TrainOptions o = options();
        o.threads = threads;
        BOOST_TEST(same_bits(all, trained(network, source, o, 8)));
    }
    TrainOptions o = options();
    o.shards = 2;  // another cut: other bits, and the same numbers
    BOOST_TEST(!same_bits(all, trained(network, source, o, 8)));
}

// Fewer shards than threads: products are large enough to be split.
BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_the_threads_of_a_shard) {
    for (const auto& [cell, hidden, batch] : {std::tuple{RecurrentSpec::Cell::lstm, Index{256}, Index{1}}, {RecurrentSpec::Cell::gru, Index{301}, Index{1}},
                                              {RecurrentSpec::Cell::gru, Index{301}, Index{2}}}) {
        const Text text(1 + batch * 85);
        ModelSpec m = model(hidden);
        std::get<RecurrentSpec>(m.layers[1]).cell = cell;
        const Network<float> network = build<float>(m);
        const auto source = text.source<float>(batch, 40);
        TrainOptions o = options();
        o.chunk = 32;
        const std::vector<float> one = trained(network, source, o, 3);
        const double loss = evaluate<float>(network, one, source, o.chunk).loss;
        for (const Index threads : {2, 3, 4}) {
            o.threads = threads;
            BOOST_TEST(same_bits(one, trained(network, source, o, 3)), "hidden " << hidden << ", batch " << batch << ", " << threads << " threads");
            const double again = evaluate<float>(network, one, source, o.chunk, 0, threads).loss;
            BOOST_TEST(std::memcmp(&again, &loss, sizeof loss) == 0);
        }
    }
}

BOOST_AUTO_TEST_CASE(cuts_of_a_batch_change_rounding_only) {
    const Text text(1 + 6 * 47);
    const Network<double> network = build<double>(model());
    const auto source = text.source<double>(6, 20);
    TrainOptions o = options();
    o.shards = 1;
    o.optimizer.rule = SgdSpec{.momentum = 0.5};
    const std::vector<double> whole = trained(network, source, o, 5);
    for (const Index micro_batches : {2, 3, 6})
        for (const Index shards : {1, 2}) {
            o.micro_batches = micro_batches;
            o.shards = shards;
            BOOST_TEST(largest_difference(whole, trained(network, source, o, 5)) <= 1e-13);
        }
}

BOOST_AUTO_TEST_CASE(a_restored_run_goes_on_with_the_same_bits) {
    const Text text(1 + 5 * 64);
    const Network<float> network = build<float>(model());
    for (const Index look_back : {0, 15})
        for (const auto form : {TrainOptions::LookBack::recompute, TrainOptions::LookBack::once}) {
            if (look_back == 0 && form == TrainOptions::LookBack::once) continue;
            const auto source = text.source<float>(5, 5);
            TrainOptions o = options();
            o.chunk = 5;
            o.look_back = look_back;
            o.form = form;
            o.micro_batches = 5;
            Trainer<float> straight(network, source, o);
            for (const Index stop : {1, 2, 5, 13, 17}) {  // 13 windows an epoch
                straight.run(stop - straight.updates());
                const auto folder = std::filesystem::temp_directory_path() / ("backsweep_resume_" + std::to_string(::getpid()));
                std::filesystem::create_directories(folder);
                Snapshot saved = straight.snapshot();
                save_snapshot(folder, saved);
                Trainer<float> resumed(network, source, o);
                resumed.restore(read_newest(folder).snapshot);
                std::filesystem::remove_all(folder);
                Trainer<float> reference(network, source, o);
                reference.run(stop + 6);
                resumed.run(6);
                BOOST_TEST_CONTEXT("stopped after " << stop << ", look back " << look_back)
                BOOST_TEST(same_bits(parameters_of(reference), parameters_of(resumed)));
                BOOST_TEST(resumed.updates() == stop + 6);
            }
        }
}

BOOST_AUTO_TEST_CASE(a_snapshot_of_another_run_is_refused) {
    const Text text(1 + 4 * 30);
    const Network<float> network = build<float>(model()), other = build<float>(model(8));
    const auto source = text.source<float>(4, 10);
    Trainer<float> t(network, source, options());
    t.run(2);
    const std::vector<float> before = parameters_of(t);
    const Snapshot s = t.snapshot();
    Trainer<float> u(other, source, options());
    BOOST_CHECK_EXCEPTION(u.restore(s), InvalidArgument, [](const Error& e) { return says(e, {"lstm 5 -> 7", "lstm 5 -> 8"}); });
    Trainer<float> v(network, source, options("revolve", 3));
    BOOST_CHECK_EXCEPTION(v.restore(s), InvalidArgument, [](const Error& e) { return says(e, {"another plan"}); });
    TrainOptions o = options();
    o.seed = 10;
    Trainer<float> w(network, source, o);
    BOOST_CHECK_EXCEPTION(w.restore(s), InvalidArgument, [](const Error& e) { return says(e, {"seed 9", "10"}); });
    o = options();
    o.rate.peak = 0.03;
    Trainer<float> x(network, source, o);
    BOOST_CHECK_EXCEPTION(x.restore(s), InvalidArgument, [](const Error& e) { return says(e, {"another rate"}); });
    o = options();
    o.optimizer.rule = AdamSpec{.beta1 = 0.8};
    Trainer<float> y(network, source, o);
    BOOST_CHECK_THROW(y.restore(s), InvalidArgument);
    BOOST_TEST(same_bits(before, parameters_of(t)));
}

BOOST_AUTO_TEST_CASE(evaluation_has_the_bits_of_training) {
    const Text text(1 + 6 * 31);
    const Network<float> network = build<float>(model());
    const auto source = text.source<float>(6, 31);
    for (const Index threads : {1, 2}) {
        Trainer<float> t(network, source, options());
        t.run(3);
        const std::vector<float> p = parameters_of(t);
        const Evaluation e = evaluate<float>(network, p, source, 3, 0, threads);
        const double trained_loss = t.update().loss;
        BOOST_TEST(std::memcmp(&e.loss, &trained_loss, sizeof e.loss) == 0);
        BOOST_TEST(e.positions == 6.0 * 31.0);
    }
}

BOOST_AUTO_TEST_CASE(options_that_cannot_be_met_are_refused_by_name) {
    const Text text(1 + 4 * 30);
    const Network<float> network = build<float>(model());
    const auto source = text.source<float>(4, 10);
    const auto refused = [&](TrainOptions o, std::initializer_list<const char*> words) {
        BOOST_CHECK_EXCEPTION(Trainer<float>(network, source, o), InvalidArgument, [&](const Error& e) { return says(e, words); });
    };
    TrainOptions o = options();
    o.look_back = 10;
    refused(o, {"chunk must divide", "chunk = 3", "steps = 10"});
    o.chunk = 5;
    o.carry = false;
    refused(o, {"look_back = 10", "carry"});
    o = options();
    o.form = TrainOptions::LookBack::once;
    refused(o, {"once", "look_back"});
    o = options();
    o.micro_batches = 3;
    refused(o, {"micro_batches must divide", "3", "4 sequences"});
    o = options("revolve", 0);
    refused(o, {"slots"});
    o = options("auto", 3);
    refused(o, {"auto", "slots"});
    o = options("forward_only", 0);
    refused(o, {"forward_only", "store_all, periodic, revolve"});
    o = options();
    o.threads = 0;
    refused(o, {"threads", "at least 1", "0"});
    o = options();
    o.budget.ram = 0;
    refused(o, {"ram", "at least 1 byte"});
    o = options();
    o.carry = false;
    const Trainer<float> t(network, source, o);
    BOOST_CHECK_EXCEPTION(t.carry(0, 0), InvalidArgument, [](const Error& e) { return says(e, {"no carry", "keeps 0 x 4"}); });
}

namespace {

/// Sequences of unequal lengths, padded: weights are 0 there. Loss of a position: its value times the output.
class Padded final : public Source<double> {
public:
    Padded(std::vector<Index> lengths, std::vector<double> losses, Index window) : lengths_(std::move(lengths)), losses_(std::move(losses)), window_(window) {
        for (const Index l : lengths_) longest_ = std::max(longest_, l);
    }
    const std::string& name() const noexcept override { return name_; }
    Index batch() const noexcept override { return static_cast<Index>(lengths_.size()); }
    Index window() const noexcept override { return window_; }
    Index windows() const noexcept override { return (longest_ + window_ - 1) / window_; }
    std::int64_t step_bytes() const noexcept override { return 3 * sizeof(double); }
    Index remainder() const noexcept override { return 0; }
    bool fresh(Index window) const noexcept override { return window % windows() == 0; }
    void read(const Cut& cut, Batch<double>& b) const override {
        const Index first = cut.window % windows() * window_;
        b.clear();
        b.first = first;
        b.steps = std::min(window_, longest_ - first);
        b.batch = cut.sequences.size();
        for (auto* array : {&b.inputs, &b.values, &b.weights}) array->resize(b.steps * b.batch);
        Index place = 0;
        for (Index t = first; t < first + b.steps; ++t)
            for (Index s = cut.sequences.first; s < cut.sequences.last; ++s, ++place) {
                const auto at = static_cast<std::size_t>(s);
                b.inputs[place] = 0.5 + 0.1 * static_cast<double>(t) - 0.3 * static_cast<double>(s);
                b.values[place] = losses_[at];
                b.weights[place] = t < lengths_[at] ? 1.0 : 0.0;
            }
    }

private:
    std::vector<Index> lengths_;
    std::vector<double> losses_;
    Index window_, longest_ = 0;
    std::string name_ = "padded";
};

ModelSpec constant_output() {
    ModelSpec m;
    m.layers = {RecurrentSpec{"rnn", 1, 3, 1, true}, DenseSpec{"head", 3, 1, true}};
    m.loss.kind = LossSpec::Kind::inner_product;
    return m;
}

/// The head gives 1 at every step, whatever the state.
void make_constant(const Network<double>& network, std::span<double> parameters) {
    const ParameterView& w = network.parameters().find("head.weight");
    const ParameterView& b = network.parameters().find("head.bias");
    std::fill_n(parameters.begin() + w.offset, w.size(), 0.0);
    parameters[static_cast<std::size_t>(b.offset)] = 1.0;
}

}  // namespace

// A mean divides once, by all that count: (2 * 1 + 10 * 3) / 12, not the mean of means 2.
BOOST_AUTO_TEST_CASE(G15_mean_of_means) {
    const Network<double> network = build<double>(constant_output());
    const auto first_update = [&](Index micro_batches, Index shards) {
        const Padded source({2, 10}, {1.0, 3.0}, 10);
        TrainOptions o;
        o.chunk = 3;
        o.schedule.family = "revolve";
        o.schedule.slots = 2;
        o.micro_batches = micro_batches;
        o.shards = shards;
        Trainer<double> t(network, source, o);
        make_constant(network, t.parameters());
        const UpdateReport r = t.update();
        BOOST_TEST(std::abs(r.loss - 32.0 / 12.0) <= 1e-15 * 3.0);
        BOOST_TEST(r.positions == 12.0);
        return std::vector<double>(t.gradients().begin(), t.gradients().end());
    };
    const std::vector<double> whole = first_update(1, 1);
    BOOST_TEST(largest_difference(whole, first_update(2, 1)) <= 1e-13);
    BOOST_TEST(largest_difference(whole, first_update(1, 2)) <= 1e-13);
    std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size()));
    network.start(1, parameters);
    make_constant(network, parameters);
    for (const Index window : {5, 3, 10}) {
        const Evaluation e = evaluate<double>(network, parameters, Padded({2, 10}, {1.0, 3.0}, window), 2);
        BOOST_TEST(std::abs(e.loss - 32.0 / 12.0) <= 1e-15 * 3.0);
    }
}

BOOST_AUTO_TEST_CASE(G33_window_longer_than_the_sequence) {
    const Text text(1 + 2 * 7);
    const Network<double> network = build<double>(model());
    const auto longer = text.source<double>(2, 50), equal = text.source<double>(2, 7);
    BOOST_TEST(same_bits(trained<double>(network, longer, options(), 4), trained<double>(network, equal, options(), 4)));
    Trainer<double> t(network, longer, options("revolve", 1));  // the plan is for the window that comes
    t.run(1);
    BOOST_TEST(t.measured().total() == t.plan().predicted.total());
    TrainOptions all = options("store_all", 0);
    all.chunk = 1000;
    BOOST_TEST(Trainer<double>(network, longer, all).plan().predicted.time_axis() ==
               Trainer<double>(network, equal, all).plan().predicted.time_axis());
    TimeChain<double> chain(network, 1, 3);
    BOOST_CHECK_EXCEPTION(chain.show(Window<double>{}), InvalidArgument, [](const Error& e) { return says(e, {"at least 1 step", "got 0"}); });
}

BOOST_AUTO_TEST_CASE(G11_constant_memory_over_400_windows) {
    const Text text(1 + 3 * 25 * 100);
    const Network<float> network = build<float>(model());
    const auto source = text.source<float>(3, 25);
    Trainer<float> t(network, source, options("revolve", 3));
    t.run(2);
    const std::int64_t live = t.live().total(), process = Ledger::process().live_total();
    const Bytes peak = t.measured();
    t.run(398);
    BOOST_TEST(t.live().total() == live);
    BOOST_TEST(Ledger::process().live_total() == process);
    BOOST_TEST(t.measured().total() == peak.total());
    BOOST_TEST(t.epoch() == 4);
}

BOOST_AUTO_TEST_CASE(G45_epoch_by_epoch) {
    const Text text(1 + 3 * 40);
    const Network<float> network = build<float>(model());
    const auto source = text.source<float>(3, 15);
    Trainer<float> once(network, source, options()), twice(network, source, options());
    once.run(2 * source.windows());
    twice.run(source.windows());
    twice.run(source.windows());
    BOOST_TEST(same_bits(parameters_of(once), parameters_of(twice)));
    Trainer<float> fresh(network, source, options());
    fresh.run(source.windows());
    BOOST_TEST(!same_bits(parameters_of(once), parameters_of(fresh)));
}

// Checkpoints keep what they promise, and never cost more than storing all.
BOOST_AUTO_TEST_CASE(G04_memory_follows_the_schedule) {
    constexpr Index steps = 1024, batch = 8, hidden = 64;
    const Text text(1 + batch * steps);
    const Network<float> network = build<float>(model(hidden, 1));
    const auto source = text.source<float>(batch, steps);
    TrainOptions o = options("store_all", 0);
    o.chunk = 1;
    o.carry = false;
    const auto time_axis = [&](const TrainOptions& with) {
        Trainer<float> t(network, source, with);
        t.run(1);
        BOOST_TEST(t.measured().total() == t.plan().predicted.total());
        return t.measured().time_axis();
    };
    const std::int64_t all = time_axis(o);
    std::int64_t state = 0, tape = 0;
    for (const Index size : shard_sizes(batch, 0)) {
        const TimeChainSizes s = time_chain_sizes(network, steps, size, 1);
        state += s.state;
        tape += s.tape;
    }
    for (const Index slots : {2, 4, 8, 16, 32, 64, 1024}) {
        o.schedule.family = "revolve";
        o.schedule.slots = slots;
        const std::int64_t bytes = time_axis(o);
        BOOST_TEST(bytes <= all);
        if (slots != 8) continue;
        const std::int64_t log = 8 * steps * 4, data = steps * batch * source.step_bytes();  // 8 bytes a link and shard; the window
        BOOST_TEST(bytes - log - data <= (slots + 2) * state + 2 * tape);
        BOOST_TEST(static_cast<double>(bytes) < 0.05 * static_cast<double>(all));
    }
}

// Parameter gradients do not depend on whether anything asks for the gradient of the inputs.
BOOST_AUTO_TEST_CASE(G08_gradients_of_the_first_layer) {
    ModelSpec m;
    m.layers = {RecurrentSpec{"first", 2, 4, 1, true}, RecurrentSpec{"second", 4, 3, 1, true}, DenseSpec{"third", 3, 5, true}, DenseSpec{"fourth", 5, 2, true}};
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    const Network<double> network = build<double>(m);
    std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size()));
    network.start(4, parameters);
    const Random random(8, 0);
    std::vector<double> inputs, values;
    for (std::uint64_t k = 0; k < 13 * 3 * 2; ++k) {
        inputs.push_back(random.normal(0, k));
        values.push_back(random.normal(1, k));
    }
    const auto gradient = [&](bool of_inputs, const char* family, Index slots) {
        std::vector<double> g(parameters.size(), 0.0), dx(inputs.size(), 0.0);
        TimeChain<double> chain(network, 3, 4);
        Window<double> w;
        w.steps = 13;
        w.inputs = inputs.data();
        w.values = values.data();
        if (of_inputs) w.input_gradient = dx.data();
        chain.show(w);
        chain.use(parameters.data());
        chain.add_to(g.data());
        ScheduleOptions s;
        s.family = family;
        s.slots = slots;
        s.steps = 4;
        Execution<TimeChain<double>> run(chain, make_schedule(s));
        run.forward();
        run.backward();
        return g;
    };
    const std::vector<double> with = gradient(true, "store_all", 0);
    for (const ParameterView& v : network.parameters().views()) {
        double largest = 0.0;
        for (Index k = 0; k < v.size(); ++k) largest = std::max(largest, std::abs(with[static_cast<std::size_t>(v.offset + k)]));
        BOOST_TEST(largest > 0.0, v.name << " has no gradient");
    }
    BOOST_TEST(same_bits(with, gradient(false, "store_all", 0)));
    BOOST_TEST(same_bits(with, gradient(false, "revolve", 2)));
}

// A frozen layer keeps its bits; what the others learn does not depend on the schedule.
BOOST_AUTO_TEST_CASE(G08_trainable_sets) {
    const Text text(1 + 3 * 40);
    ModelSpec m;
    m.layers = {EmbeddingSpec{"first", 12, 4, std::nullopt}, RecurrentSpec{"second", 4, 6, 1, true}, RecurrentSpec{"third", 6, 5, 1, true},
                DenseSpec{"fourth", 5, 12, true}};
    const Network<float> network = build<float>(m);
    const auto source = text.source<float>(3, 20);
    std::vector<float> start(static_cast<std::size_t>(network.parameters().size()));
    network.start(9, start);
    for (const std::vector<std::string>& frozen :
         {std::vector<std::string>{}, {"second.*", "third.*", "fourth.*"}, {"first.*", "second.*", "third.*"}, {"first.*", "fourth.*"}}) {
        TrainOptions o = options("store_all", 0);
        if (!frozen.empty()) o.optimizer.groups = {ParameterGroup{.patterns = frozen, .rate_factor = 0.0}};
        const std::vector<float> all = trained<float>(network, source, o, 3);
        o.schedule.family = "revolve";
        o.schedule.slots = 2;
        BOOST_TEST(same_bits(all, trained<float>(network, source, o, 3)));
        for (const ParameterView& v : network.parameters().views()) {
            const std::string layer = v.name.substr(0, v.name.find('.')) + ".*";
            const bool kept = std::find(frozen.begin(), frozen.end(), layer) != frozen.end();
            const auto at = static_cast<std::size_t>(v.offset);
            const bool same = std::memcmp(&start[at], &all[at], static_cast<std::size_t>(v.size()) * sizeof(float)) == 0;
            BOOST_TEST(same == kept, v.name << (kept ? " moved though it is frozen" : " did not move"));
        }
    }
}

namespace {

/// One target of window `bad` is no number; it says that it gives `said` bytes a step.
class Broken final : public Source<double> {
public:
    explicit Broken(Index bad = 2, std::int64_t said = 2 * sizeof(double)) : bad_(bad), said_(said) {}
    const std::string& name() const noexcept override { return name_; }
    Index batch() const noexcept override { return 2; }
    Index window() const noexcept override { return 5; }
    Index windows() const noexcept override { return 3; }
    std::int64_t step_bytes() const noexcept override { return said_; }
    Index remainder() const noexcept override { return 0; }
    bool fresh(Index window) const noexcept override { return window % 3 == 0; }
    void read(const Cut& cut, Batch<double>& b) const override {
        b.clear();
        b.first = cut.window * 5;
        b.steps = 5;
        b.batch = cut.sequences.size();
        b.inputs.assign(b.steps * b.batch, 0.4);
        b.values.assign(b.inputs.size(), 0.7);
        if (cut.window == bad_ && cut.sequences.first <= 1 && 1 < cut.sequences.last) b.values[b.values.size() - 1] = std::numeric_limits<double>::quiet_NaN();
    }

private:
    std::string name_ = "broken";
    Index bad_;
    std::int64_t said_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(more_than_was_planned_is_found) {
    ModelSpec m = constant_output();
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    const Network<double> network = build<double>(m);
    TrainOptions o = options("store_all", 0);
    o.chunk = 2;
    const Broken right(-1), wrong(-1, 2 * sizeof(double) - 1);  // windows of 5 steps of 2 sequences: 10 bytes
    Trainer<double> t(network, right, o);
    t.run(3);
    BOOST_TEST(t.overrun().empty());
    Trainer<double> u(network, wrong, o);
#ifdef NDEBUG
    u.update();
#else
    BOOST_CHECK_EXCEPTION(u.update(), Error, [](const Error& e) { return says(e, {"data by 10 bytes"}); });
#endif
    BOOST_TEST(u.overrun() == "more was held than the plan foretells: data by 10 bytes; does the source give more than its step_bytes()?");
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_not_finite_changes_nothing) {
    ModelSpec m = constant_output();
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    const Network<double> network = build<double>(m);
    const Broken source;
    TrainOptions o = options("revolve", 1);
    o.chunk = 2;
    o.clip = {};
    Trainer<double> t(network, source, o);
    t.run(2);
    const std::vector<double> before = parameters_of(t);
    const std::vector<double> carry(t.carry(0, 1).begin(), t.carry(0, 1).end());
    BOOST_CHECK_EXCEPTION(t.update(), NumericError, [](const Error& e) { return says(e, {"step", "14", "layer", "no parameter changed"}); });
    BOOST_TEST(same_bits(before, parameters_of(t)));
    BOOST_TEST(same_bits(carry, std::vector<double>(t.carry(0, 1).begin(), t.carry(0, 1).end())));
    BOOST_TEST(t.updates() == 2);
}
