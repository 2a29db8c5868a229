// Runner of reference files for truncated back-propagation through time: the trainer itself, both forms of look-back.
// SPDX-License-Identifier: MIT
#include "backsweep/train/trainer.hpp"
#include "nn/reference_cases.hpp"

#include <algorithm>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// Sequences given as arrays [step][batch][feature], classes [step][batch].
template <class Real>
class Arrays final : public Source<Real> {
public:
    Arrays(std::vector<Real> inputs, std::vector<std::int32_t> classes, Index batch, Index window)
        : inputs_(std::move(inputs)), classes_(std::move(classes)), batch_(batch), window_(window),
          steps_(static_cast<Index>(classes_.size()) / batch), features_(static_cast<Index>(inputs_.size()) / (steps_ * batch)) {}

    const std::string& name() const noexcept override { return name_; }
    Index batch() const noexcept override { return batch_; }
    Index window() const noexcept override { return window_; }
    Index windows() const noexcept override { return (steps_ + window_ - 1) / window_; }
    std::int64_t step_bytes() const noexcept override { return 4 + features_ * static_cast<Index>(sizeof(Real)); }
    Index remainder() const noexcept override { return 0; }
    bool fresh(Index window) const noexcept override { return window % windows() == 0; }
    void read(const Cut& cut, Batch<Real>& b) const override {
        const Index own = cut.window % windows() * window_;
        b.clear();
        b.first = std::max<Index>(0, own - cut.look_back);
        b.loss_from = own - b.first;
        b.steps = std::min(own + window_, steps_) - b.first;
        b.batch = cut.sequences.size();
        b.classes.resize(b.steps * b.batch);
        b.inputs.resize(b.steps * b.batch * features_);
        for (Index t = 0; t < b.steps; ++t)
            for (Index s = 0; s < b.batch; ++s) {
                const Index from = (b.first + t) * batch_ + cut.sequences.first + s, to = t * b.batch + s;
                b.classes[to] = classes_[static_cast<std::size_t>(from)];
                std::copy_n(inputs_.begin() + from * features_, features_, b.inputs.begin() + to * features_);
            }
    }

private:
    std::vector<Real> inputs_;
    std::vector<std::int32_t> classes_;
    Index batch_, window_, steps_, features_;
    std::string name_ = "arrays";
};

template <class Real, class Span>
std::vector<Real> part(const Span& flat, const ParameterView& v) {
    return {flat.begin() + v.offset, flat.begin() + v.offset + v.size()};
}

template <class Real>
void run(const ReferenceCase& c, Index chunk, Index shards, Index slots) {
    const nlohmann::json& o = c.options;
    const Index hidden = o.at("hidden_size"), layers = o.at("num_layers"), batch = o.at("B"), k1 = o.at("k1"), k2 = o.at("k2");
    ModelSpec model;
    const bool gru = o.at("cell") == "gru";
    model.layers = {RecurrentSpec{.name = "rnn", .inputs = o.at("input_size"), .hidden = hidden, .layers = layers,
                                  .cell = gru ? RecurrentSpec::Cell::gru : RecurrentSpec::Cell::lstm},
                    DenseSpec{"decoder", hidden, o.at("classes"), true}};
    const Network<Real> network = build<Real>(model);
    const Arrays<Real> source(c.values_of<Real>("input"), c.integers_of("target"), batch, k1);
    TrainOptions options;
    options.look_back = k2 - k1;
    if (o.at("forward") == "once") options.form = TrainOptions::LookBack::once;
    options.chunk = chunk;
    options.shards = shards;
    options.optimizer.rule = SgdSpec{};
    options.rate.peak = o.at("lr");
    options.schedule.family = "revolve";
    options.schedule.slots = slots;
    Trainer<Real> t(network, source, options);
    for (const ParameterView& v : network.parameters().views()) {
        const std::vector<Real> given = c.values_of<Real>(v.name);
        std::copy(given.begin(), given.end(), t.parameters().begin() + v.offset);
    }
    std::vector<std::vector<Real>> states{c.values_of<Real>("h0")};
    if (!gru) states.push_back(c.values_of<Real>("c0"));
    const std::vector<Index> sizes = shard_sizes(batch, shards);
    Index first = 0;
    for (std::size_t s = 0; s < sizes.size(); ++s) {
        auto to = t.carry(0, static_cast<Index>(s)).begin();
        for (Index l = 0; l < layers; ++l)
            for (const auto& from : states) to = std::copy_n(from.begin() + (l * batch + first) * hidden, sizes[s] * hidden, to);
        first += sizes[s];
    }

    std::vector<Real> losses;
    for (Index u = 1; u <= source.windows(); ++u) {
        losses.push_back(static_cast<Real>(t.update().loss));
        const std::string prefix = "update" + std::to_string(u);
        if (!c.file.find(prefix + ".grad.decoder.bias")) continue;
        for (const ParameterView& v : network.parameters().views()) {
            c.check(prefix + ".grad." + v.name, part<Real>(t.gradients(), v), Quantity::updates);
            c.check(prefix + ".param." + v.name, part<Real>(t.parameters(), v), Quantity::updates);
        }
    }
    for (const ParameterView& v : network.parameters().views())
        c.check("final.param." + v.name, part<Real>(t.parameters(), v), Quantity::updates);
    c.check("losses", losses, Quantity::updates);
    double sum = 0.0;
    for (const Real l : losses) sum += static_cast<double>(l);
    c.check("loss", std::vector<Real>{static_cast<Real>(sum)}, Quantity::updates);
}

void run_tbptt(const ReferenceCase& c) {
    const Index k1 = c.options.at("k1");
    for (const Index chunk : {Index{1}, k1})
        for (const Index shards : {1, 2}) {
            run<double>(c, chunk, shards, 2);
            run<float>(c, chunk, shards, 3);
        }
}

const Registration registration{"tbptt", run_tbptt};

}  // namespace
