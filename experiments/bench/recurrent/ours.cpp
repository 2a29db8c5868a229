// Backsweep's training step. by=chain: a time chain for every thread's part of the batch, or one with a team for a
// single sequence, with the gradient of the inputs; by=layers: the same links with every tape kept, by calls of the
// layers alone; by=trainer: an update of Trainer, data and optimizer included, which has no gradient of the inputs.
// SPDX-License-Identifier: MIT
#include "contestant.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "backsweep/train/manifest.hpp"
#include "backsweep/train/trainer.hpp"
#include "train/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>

namespace {

using namespace backsweep;
using bench::Array;
using bench::Case;

std::size_t size(Index n) {
    return static_cast<std::size_t>(n);
}

ModelSpec model(const Case& c) {
    RecurrentSpec cell{.name = "rnn", .inputs = c.hidden, .hidden = c.hidden, .layers = c.layers};
    if (c.cell == "gru") cell.cell = RecurrentSpec::Cell::gru;
    cell.layer_norm = c.cell == "lstm_norm";
    cell.save.clear();
    if (const std::string save = c.text("save", "gates"); save != "nothing") cell.save.push_back(save);
    ModelSpec m{{cell}, {}};
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    return m;
}

void start(const Case& c, const Network<float>& network, std::span<float> parameters) {
    if (c.cell == "lstm_norm") return network.start(1, parameters);
    const float width = 1.0f / std::sqrt(static_cast<float>(c.hidden));
    for (std::size_t k = 0; k < parameters.size(); ++k) parameters[k] = bench::number(Array::parameters, k, width);
}

/// Columns `sequences` of an array of the case.
void fill(const Case& c, Array array, Range sequences, float* to) {
    const auto row = static_cast<std::uint64_t>(c.batch * c.hidden);
    for (Index t = 0; t < c.steps; ++t)
        for (Index k = sequences.first * c.hidden; k < sequences.last * c.hidden; ++k)
            *to++ = bench::number(array, static_cast<std::uint64_t>(t) * row + static_cast<std::uint64_t>(k), 1.0f);
}

Index chunk(const Case& c) {
    const Index chunk = c.number("chunk", 0);
    return chunk > 0 ? std::min(chunk, c.steps) : c.steps;
}

ScheduleOptions schedule(const Case& c) {
    ScheduleOptions o{.family = c.text("schedule", "store_all")};
    o.slots = c.number("slots", 0);
    o.period = c.number("period", 0);
    return o;
}

/// A part of the batch.
class Part {
public:
    Part(const Case& c, const Network<float>& network, const std::vector<float>& parameters, Range sequences)
        : inputs(size(c.steps * c.hidden * sequences.size())),
          targets(inputs.size()),
          input_gradient(inputs.size()),
          gradient(parameters.size()),
          chain(network, sequences.size(), chunk(c), ledger_) {
        fill(c, Array::inputs, sequences, inputs.data());
        fill(c, Array::targets, sequences, targets.data());
        Window<float> window;
        window.steps = c.steps;
        window.inputs = inputs.data();
        window.values = targets.data();
        window.input_gradient = input_gradient.data();
        window.scale = c.scale;
        chain.show(window);
        chain.use(parameters.data());
        chain.add_to(gradient.data());
        ScheduleOptions o = schedule(c);
        o.steps = *chain.length();
        run = std::make_unique<Execution<TimeChain<float>>>(chain, make_schedule(o));
    }
    void step() {
        std::fill(gradient.begin(), gradient.end(), 0.0f);
        run->forward();
        run->backward();
    }

private:
    Ledger ledger_;

public:
    std::vector<float> inputs, targets, input_gradient, gradient;
    TimeChain<float> chain;
    std::unique_ptr<Execution<TimeChain<float>>> run;
};

class ByChain {
public:
    explicit ByChain(const Case& c)
        : case_(c),
          network_(build<float>(model(c))),
          parameters_(size(network_.parameters().size())),
          workers_(c.threads) {
        start(c, network_, parameters_);
        const Index parts = std::min(c.threads, c.batch);
        for (Index p = 0; p < parts; ++p)
            parts_.push_back(std::make_unique<Part>(c, network_, parameters_,
                                                    Range{p * c.batch / parts, (p + 1) * c.batch / parts}));
    }
    void step() {
        workers_.run(static_cast<Index>(parts_.size()), [&](Index p) { parts_[size(p)]->step(); });
        std::vector<float>& sum = parts_[0]->gradient;
        for (std::size_t p = 1; p < parts_.size(); ++p)
            for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += parts_[p]->gradient[k];
    }
    void gradients(const std::string& path) const {
        if (parts_.size() > 1) throw std::invalid_argument("gradients are written with one thread");
        const Part& part = *parts_[0];
        bench::write(path, case_.scale * part.chain.loss(), part.gradient, part.input_gradient);
    }
    /// Links of a step that were run forward without a tape and with one, and what the layers take of each: nanoseconds
    /// of an advance, a record and a reverse, measured in a step that is not timed.
    std::string facts() {
        Part& part = *parts_[0];
        part.chain.measure(true);
        part.step();
        double advance = 0.0, record = 0.0, reverse = 0.0;
        const std::vector<Work> layers = part.chain.measured();
        part.chain.measure(false);
        for (Index l = 0; l < network_.depth(); ++l) {
            const Work& work = layers[size(l)];
            record += work.forward;
            reverse += work.reverse;
            if (l < network_.carry_depth()) advance += work.forward - work.spared;
        }
        const Counts& counts = part.run->counts();
        return "{\"advances\": " + std::to_string(counts.advances) +
               ", \"recorded\": " + std::to_string(counts.recorded) +
               ", \"advance\": " + std::to_string(1e9 * advance) + ", \"record\": " + std::to_string(1e9 * record) +
               ", \"reverse\": " + std::to_string(1e9 * reverse) + "}";
    }

private:
    Case case_;
    Network<float> network_;
    std::vector<float> parameters_;
    std::vector<std::unique_ptr<Part>> parts_;
    Workers workers_;
};

/// What a chain that stores everything has its layers do, without schedule, Execution, ledger and chain.
class ByLayers {
public:
    explicit ByLayers(const Case& c)
        : case_(c),
          network_(build<float>(model(c))),
          parameters_(size(network_.parameters().size())),
          gradient_(parameters_.size()),
          inputs_(size(c.steps * c.batch * c.hidden)),
          targets_(inputs_.size()),
          input_gradient_(inputs_.size()),
          prepared_(network_.prepared(), Kind::workspace),
          dcarry_(size(network_.carry() * c.batch)) {
        start(c, network_, parameters_);
        fill(c, Array::inputs, {0, c.batch}, inputs_.data());
        fill(c, Array::targets, {0, c.batch}, targets_.data());
        const Index links = (c.steps + chunk(c) - 1) / chunk(c);
        Index workspace = 0;
        for (Index k = 0; k < links; ++k) {
            std::vector<Kept>& link = links_.emplace_back();
            for (Index l = 0; l < network_.depth(); ++l) {
                const Footprint f = network_.layer(l).footprint(length(k), c.batch);
                link.emplace_back(f, length(k), c.batch);
                workspace = std::max(workspace, f.workspace);
            }
        }
        for (std::vector<float>& d : between_) d.resize(size(chunk(c) * c.batch * c.hidden));
        carry_.resize(dcarry_.size());
        workspace_.resize(size(workspace));
    }
    void step() {
        std::fill(gradient_.begin(), gradient_.end(), 0.0f);
        std::fill(dcarry_.begin(), dcarry_.end(), 0.0f);
        network_.prepare(parameters_.data(), prepared_.data());
        loss_ = 0.0;
        const Index links = static_cast<Index>(links_.size());
        for (Index k = 0; k < links; ++k) {
            double loss = 0.0;
            const Segment<float> at = segment(k, &loss);
            for (Index l = 0; l < network_.depth(); ++l) {
                Kept& kept = links_[size(k)][size(l)];
                Forward<float> call{at,           own(parameters_, l), input(k, l),      kept.y.data(),
                                    before(k, l), kept.carry.data(),   kept.tape.data(), workspace_.data()};
                call.prepared = prepared_.data() + network_.prepared_offset(l);
                network_.layer(l).record(call);
            }
            loss_ += loss;
        }
        for (Index k = links; k-- > 0;) {
            const Segment<float> at = segment(k, nullptr);
            const float* dy = nullptr;
            for (Index l = network_.depth(); l-- > 0;) {
                const Kept& kept = links_[size(k)][size(l)];
                float* const dx = l > 0 ? between_[size(l % 2)].data() : input_gradient_.data() + at.first * row();
                Backward<float> call{at,
                                     own(parameters_, l),
                                     own(gradient_, l),
                                     kept.tape.data(),
                                     before(k, l),
                                     dy,
                                     dx,
                                     dcarry_.data() + network_.carry_offset(l, case_.batch),
                                     workspace_.data()};
                call.x = input(k, l);
                call.y = kept.y.data();
                call.prepared = prepared_.data() + network_.prepared_offset(l);
                network_.layer(l).reverse(call);
                dy = dx;
            }
        }
    }
    void gradients(const std::string& path) const {
        bench::write(path, case_.scale * loss_, gradient_, input_gradient_);
    }
    static std::string facts() { return "{}"; }

private:
    /// Of a layer and link.
    struct Kept {
        Kept(const Footprint& f, Index steps, Index batch)
            : y(steps * batch * f.outputs, Kind::tape),
              carry(f.carry * batch, Kind::carry),
              tape(f.tape, Kind::tape) {}
        Buffer<float> y, carry, tape;
    };

    Index row() const { return case_.batch * case_.hidden; }
    Index length(Index k) const { return std::min(chunk(case_), case_.steps - k * chunk(case_)); }
    float* own(std::vector<float>& all, Index l) const { return all.data() + network_.parameter_offset(l); }
    Segment<float> segment(Index k, double* loss) const {
        Segment<float> at;
        at.first = k * chunk(case_);
        at.steps = length(k);
        at.batch = case_.batch;
        at.begins = k == 0;
        at.values = targets_.data() + at.first * row();
        at.scale = case_.scale;
        at.loss = loss;
        return at;
    }
    const float* input(Index k, Index l) const {
        return l > 0 ? links_[size(k)][size(l - 1)].y.data() : inputs_.data() + k * chunk(case_) * row();
    }
    const float* before(Index k, Index l) const {
        return k > 0 ? links_[size(k - 1)][size(l)].carry.data()
                     : carry_.data() + network_.carry_offset(l, case_.batch);
    }

    Case case_;
    Network<float> network_;
    std::vector<float> parameters_, gradient_, inputs_, targets_, input_gradient_;
    Buffer<float> prepared_;
    std::vector<float> dcarry_, carry_, workspace_, between_[2];
    std::vector<std::vector<Kept>> links_;
    double loss_ = 0.0;
};

/// Windows of the case's numbers, every one a sequence of its own.
class Numbers final : public Source<float> {
public:
    explicit Numbers(const Case& c) : case_(c), inputs_(size(c.steps * c.batch * c.hidden)), targets_(inputs_.size()) {
        fill(c, Array::inputs, {0, c.batch}, inputs_.data());
        fill(c, Array::targets, {0, c.batch}, targets_.data());
    }
    const std::string& name() const noexcept override { return name_; }
    Index batch() const noexcept override { return case_.batch; }
    Index window() const noexcept override { return case_.steps; }
    Index windows() const noexcept override { return 1; }
    std::int64_t step_bytes() const noexcept override { return 2 * case_.hidden * Index{sizeof(float)}; }
    Index remainder() const noexcept override { return 0; }
    bool fresh(Index) const noexcept override { return true; }
    void read(const Cut& cut, Batch<float>& b) const override {
        b.clear();
        b.steps = case_.steps;
        b.batch = cut.sequences.size();
        const Index row = b.batch * case_.hidden, all = case_.batch * case_.hidden;
        b.inputs.resize(b.steps * row);
        b.values.resize(b.steps * row);
        for (Index t = 0; t < b.steps; ++t) {
            const Index from = t * all + cut.sequences.first * case_.hidden;
            std::copy_n(inputs_.data() + from, row, b.inputs.data() + t * row);
            std::copy_n(targets_.data() + from, row, b.values.data() + t * row);
        }
    }

private:
    Case case_;
    std::string name_ = "numbers";
    std::vector<float> inputs_, targets_;
};

class ByTrainer {
public:
    explicit ByTrainer(const Case& c) : network_(build<float>(model(c))), source_(c) {
        TrainOptions o;
        o.chunk = chunk(c);
        o.shards = std::min(c.number("shards", c.threads), c.batch);
        o.threads = c.threads;
        o.carry = false;
        o.schedule = schedule(c);
        o.plan_depth = false;
        o.optimizer.rule = SgdSpec{};
        trainer_ = std::make_unique<Trainer<float>>(network_, source_, o);
        start(c, network_, trainer_->parameters());
    }
    void step() { trainer_->update(); }
    void gradients(const std::string&) const {
        throw std::invalid_argument("a trainer has no gradient of the inputs: by=chain");
    }
    std::string facts() const { return "{\"advances\": " + std::to_string(trainer_->counts().advances) + "}"; }

private:
    Network<float> network_;
    Numbers source_;
    std::unique_ptr<Trainer<float>> trainer_;
};

/// One of the three.
class Ours {
public:
    explicit Ours(const Case& c) {
        const std::string by = c.text("by", "chain");
        if (by == "trainer")
            by_ = std::make_unique<ByTrainer>(c);
        else if (by == "layers")
            by_ = std::make_unique<ByLayers>(c);
        else if (by == "chain")
            by_ = std::make_unique<ByChain>(c);
        else
            throw std::invalid_argument("by is chain, layers or trainer, got '" + by + "'");
    }
    static std::string version() { return this_program().version; }
    void step() {
        std::visit([](auto& by) { by->step(); }, by_);
    }
    void gradients(const std::string& path) const {
        std::visit([&](auto& by) { by->gradients(path); }, by_);
    }
    std::string facts() {
        return std::visit([](auto& by) { return by->facts(); }, by_);
    }

private:
    std::variant<std::unique_ptr<ByChain>, std::unique_ptr<ByLayers>, std::unique_ptr<ByTrainer>> by_;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::serve<Ours>(argc, argv);
}
