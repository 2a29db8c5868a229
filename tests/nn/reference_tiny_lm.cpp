// Runner of reference files for a whole language model with a tied head, trained for some updates of Adam.
// SPDX-License-Identifier: MIT
#include "backsweep/train/trainer.hpp"
#include "nn/reference_cases.hpp"

#include <algorithm>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// tokens [step][batch]; a step's target is the next step's token.
template <class Real>
class Tokens final : public Source<Real> {
public:
    Tokens(std::vector<std::int32_t> tokens, Index batch, Index window)
        : tokens_(std::move(tokens)),
          batch_(batch),
          window_(window) {}

    const std::string& name() const noexcept override { return name_; }
    Index batch() const noexcept override { return batch_; }
    Index window() const noexcept override { return window_; }
    Index windows() const noexcept override { return (static_cast<Index>(tokens_.size()) / batch_ - 1) / window_; }
    std::int64_t step_bytes() const noexcept override { return 8; }
    Index remainder() const noexcept override { return 0; }
    /// The stream does not end with the file: the state after the last window goes on.
    bool fresh(Index window) const noexcept override { return window == 0; }
    void read(const Cut& cut, Batch<Real>& b) const override {
        b.clear();
        b.first = cut.window * window_;
        b.steps = window_;
        b.batch = cut.sequences.size();
        b.tokens.resize(b.steps * b.batch);
        b.classes.resize(b.steps * b.batch);
        for (Index t = 0; t < b.steps; ++t) {
            const auto from = tokens_.begin() + (b.first + t) * batch_ + cut.sequences.first;
            std::copy_n(from, b.batch, b.tokens.begin() + t * b.batch);
            std::copy_n(from + batch_, b.batch, b.classes.begin() + t * b.batch);
        }
    }

private:
    std::vector<std::int32_t> tokens_;
    Index batch_, window_;
    std::string name_ = "tokens";
};

RecurrentSpec rnn_of(const nlohmann::json& o) {
    RecurrentSpec rnn{
        .name = "rnn", .inputs = o.at("embed_dim"), .hidden = o.at("hidden_size"), .layers = o.at("num_layers")};
    rnn.projection = o.at("proj_size");
    const std::string cell = o.at("cell");
    BOOST_TEST_REQUIRE((cell == "lstm" || cell == "gru"));
    if (cell == "gru") rnn.cell = RecurrentSpec::Cell::gru;
    return rnn;
}

ModelSpec model_of(const nlohmann::json& o) {
    const RecurrentSpec rnn = rnn_of(o);
    const Index vocabulary = o.at("vocab");
    ModelSpec model{{EmbeddingSpec{"embedding", vocabulary, rnn.inputs, std::nullopt}, rnn,
                     NormSpec{.name = "norm", .features = rnn.outputs()}},
                    {}};
    if (rnn.projection == 0) model.layers.push_back(DenseSpec{"proj", rnn.outputs(), rnn.inputs});
    model.layers.push_back(
        DenseSpec{.name = "decoder", .inputs = rnn.inputs, .outputs = vocabulary, .tied = "embedding"});
    return model;
}

template <class Real>
void run(const ReferenceCase& c, Index chunk, Index shards) {
    const nlohmann::json& o = c.options;
    const Index batch = o.at("B"), updates = o.at("updates");
    const RecurrentSpec rnn = rnn_of(o);
    const Network<Real> network = build<Real>(model_of(o));
    const Tokens<Real> source(c.integers_of("tokens"), batch, o.at("k"));
    TrainOptions options;
    options.chunk = chunk;
    options.shards = shards;
    options.optimizer.rule = AdamSpec{};
    options.rate.peak = o.at("adam").at("lr");
    if (!o.at("clip").is_null()) options.clip = {ClipSpec::Kind::norm, o.at("clip")};
    options.schedule.family = "revolve";
    options.schedule.slots = 2;
    Trainer<Real> trainer(network, source, options);
    for (const ParameterView& v : network.parameters().views()) {
        const std::vector<Real> given = c.values_of<Real>(v.name);
        std::copy(given.begin(), given.end(), trainer.parameters().begin() + v.offset);
    }
    std::vector<Real> losses, norms;
    for (Index u = 0; u < updates; ++u) {
        const UpdateReport report = trainer.update();
        losses.push_back(static_cast<Real>(report.loss));
        norms.push_back(static_cast<Real>(report.gradient_norm));
    }
    c.check("losses", losses, Quantity::tiny_lm);
    c.check("grad_norms", norms, Quantity::tiny_lm);
    double sum = 0.0;
    for (const Real l : losses) sum += static_cast<double>(l);
    c.check("loss", std::vector<Real>{static_cast<Real>(sum)}, Quantity::tiny_lm);
    for (const ParameterView& v : network.parameters().views()) {
        const auto from = trainer.parameters().begin() + v.offset;
        c.check("final.param." + v.name, std::vector<Real>(from, from + v.size()), Quantity::tiny_lm);
    }
    // A shard's block is h, c layer by layer; the file has (layer, sequence, hidden).
    const bool lstm = rnn.cell == RecurrentSpec::Cell::lstm;
    const std::vector<Index> sizes = shard_sizes(batch, shards);
    std::vector<Real> h, cells;
    for (Index l = 0; l < rnn.layers; ++l)
        for (std::size_t s = 0; s < sizes.size(); ++s) {
            const Index own = rnn.state() + (lstm ? rnn.hidden : 0);
            const auto from = std::as_const(trainer).carry(0, static_cast<Index>(s)).begin() + l * own * sizes[s];
            h.insert(h.end(), from, from + rnn.state() * sizes[s]);
            if (lstm) cells.insert(cells.end(), from + rnn.state() * sizes[s], from + own * sizes[s]);
        }
    c.check("hn", h, Quantity::tiny_lm);
    if (lstm) c.check("cn", cells, Quantity::tiny_lm);
}

void run_tiny_lm(const ReferenceCase& c) {
    const Index k = c.options.at("k");
    for (const Index chunk : {Index{3}, k})
        for (const Index shards : {1, 2}) {
            run<double>(c, chunk, shards);
            run<float>(c, chunk, shards);
        }
}

const Registration registration{"tiny_lm", run_tiny_lm};

}  // namespace
