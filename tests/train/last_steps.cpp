// Losses of last steps in training: the same as weights that are 0 elsewhere, and refused where a window does not hold
// its sequences; targets of another shape are refused with the shape wanted.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE last_steps
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/data/sequences.hpp"
#include "backsweep/train/trainer.hpp"

#include <cstring>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

ModelSpec model(LossSpec::At at) {
    ModelSpec m{{RecurrentSpec{"rnn", 3, 5, 1, true}, DenseSpec{"head", 5, 4, true}}, {}};
    m.loss.kind = LossSpec::Kind::gaussian_nll;
    m.loss.at = at;
    return m;
}

/// Sequences of random inputs; targets at every step, or those of the last steps alone.
Sequences<double> made(const std::vector<Index>& lengths, bool one_target) {
    const Random random(17, 1);
    Sequences<double> set;
    set.features = 3;
    set.targets = 2;
    set.one_target = one_target;
    std::uint64_t k = 0;
    for (const Index length : lengths) {
        set.append(length);
        for (Index t = 0; t < length; ++t) {
            for (int f = 0; f < 3; ++f) set.inputs.push_back(random.normal(0, k++));
            for (int f = 0; f < 2; ++f, ++k)
                if (!one_target || t + 1 == length) set.values.push_back(random.normal(1, k));
        }
    }
    return set;
}

TrainOptions options() {
    TrainOptions o;
    o.chunk = 3;
    o.shards = 2;
    o.seed = 4;
    return o;
}

/// A source whose values have one answer a sequence, not one a step.
class Answers final : public Source<double> {
public:
    const std::string& name() const noexcept override { return name_; }
    Index batch() const noexcept override { return 3; }
    Index window() const noexcept override { return 4; }
    Index windows() const noexcept override { return 1; }
    std::int64_t step_bytes() const noexcept override { return 5 * sizeof(double); }
    Index remainder() const noexcept override { return 0; }
    bool fresh(Index) const noexcept override { return true; }
    void read(const Cut& cut, Batch<double>& b) const override {
        b.clear();
        b.steps = 4;
        b.batch = cut.sequences.size();
        b.inputs.assign(4 * b.batch * 3, 0.5);
        b.values.assign(b.batch * 2, 0.5);
    }

private:
    std::string name_ = "answers";
};

template <class F>
void refused(F call, const std::string& words) {
    BOOST_CHECK_EXCEPTION(call(), InvalidArgument, [&](const InvalidArgument& e) {
        return std::string(e.what()).find(words) != std::string::npos;
    });
}

}  // namespace

BOOST_AUTO_TEST_CASE(g46_last_steps_are_weights_of_0_elsewhere) {
    const std::vector<Index> lengths{4, 1, 7, 2, 7};
    SequenceBatches batches;
    batches.batch = 3;  // the second group has a column of fillers
    const SequenceSource<double> every_step(made(lengths, false), batches), last_step(made(lengths, true), batches);
    const Network<double> last = build<double>(model(LossSpec::At::last)),
                          every = build<double>(model(LossSpec::At::every));
    Trainer<double> a(last, every_step, options()), b(every, last_step, options());
    for (int k = 0; k < 4; ++k) {
        const UpdateReport x = a.update(), y = b.update();
        BOOST_TEST(x.loss == y.loss);
        BOOST_TEST(x.positions == (k % 2 == 0 ? 6.0 : 4.0));
        BOOST_TEST(y.positions == x.positions);
        BOOST_TEST(std::memcmp(a.gradients().data(), b.gradients().data(), a.gradients().size_bytes()) == 0);
        BOOST_TEST(std::memcmp(a.parameters().data(), b.parameters().data(), a.parameters().size_bytes()) == 0);
    }
    const Evaluation x = evaluate<double>(last, a.parameters(), every_step, 3),
                     y = evaluate<double>(every, a.parameters(), last_step, 3);
    BOOST_TEST(x.loss == y.loss);
    BOOST_TEST(x.positions == 10.0);
}

BOOST_AUTO_TEST_CASE(windows_that_go_on_have_no_last_steps) {
    SequenceBatches batches;
    batches.batch = 2;
    batches.window = 3;
    const SequenceSource<double> source(made({7, 5}, false), batches);
    const Network<double> network = build<double>(model(LossSpec::At::last));
    const std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size()), 0.1);
    const std::string words = "a loss of last steps reads whole sequences, but window 1 of sequences goes on";
    for (const bool carry : {true, false}) {
        TrainOptions o = options();
        o.carry = carry;
        refused([&] { Trainer<double>(network, source, o); }, words);
        refused([&] { evaluate<double>(network, parameters, source, 3, 0, 1, carry); }, words);
    }
}

BOOST_AUTO_TEST_CASE(g46_targets_of_another_shape_are_refused) {
    const Answers source;
    const Network<double> network = build<double>(model(LossSpec::At::last));
    TrainOptions o = options();
    o.shards = 1;
    Trainer<double> t(network, source, o);
    const std::string words =
        "answers gives 6 values, but this model wants the shape [step][batch][feature] = [4][3][2]; one "
        "answer a sequence is brought into it by at_last_steps";
    refused([&] { t.update(); }, words);
    refused([&] { evaluate<double>(network, t.parameters(), source, 3, 1); }, words);
}
