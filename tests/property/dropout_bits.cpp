// G01: recomputed dropout must meet the masks of the forward sweep. Random layers under every schedule, over three
// updates.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE dropout_bits
#include "support/unit_test.hpp"

#include "backsweep/base/random.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "backsweep/store/ram_store.hpp"
#include "backsweep/train/optimizer.hpp"
#include "nn/reference/build.hpp"
#include "support/compare.hpp"
#include "support/every_schedule.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace backsweep;
using test::same_bits;

namespace {

constexpr Index steps = 64, batch = 4, inputs = 3, outputs = 2;

/// The LSTM of the case: 2 layers, 3 inputs, hidden 8.
ModelSpec with(RecurrentSpec rnn, std::vector<LayerSpec> above = {}) {
    rnn.name = "rnn";
    rnn.inputs = inputs;
    rnn.hidden = 8;
    rnn.layers = 2;
    ModelSpec m{{rnn}, {}};
    for (LayerSpec& layer : above) m.layers.push_back(std::move(layer));
    m.layers.push_back(DenseSpec{"head", 8, outputs});
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    return m;
}

struct Named {
    std::string name;
    ModelSpec model;
};

std::vector<Named> random_models() {
    return {
        {"dropout between the layers", with({.dropout = 0.3})},
        {"the same, locked", with({.dropout = 0.3, .locked = true})},
        {"weight drop", with({.weight_drop = 0.3})},
        {"all of them, and behind and inside a residual block",
         with({.dropout = 0.3, .locked = true, .weight_drop = 0.3},
              {DropoutSpec{"behind", 8, 0.3}, ResidualSpec{"residual",
                                                           {RecurrentSpec{.name = "inner", .inputs = 8, .hidden = 8},
                                                            DropoutSpec{"inside", 8, 0.3, true}}}})}};
}

/// What the updates leave, one behind the other.
template <class Real>
struct Path {
    std::vector<Real> gradients, parameters, dx;
    std::vector<double> losses;

    friend bool operator==(const Path& a, const Path& b) {
        return same_bits(a.gradients, b.gradients).passed && same_bits(a.parameters, b.parameters).passed &&
               same_bits(a.dx, b.dx).passed && same_bits(a.losses, b.losses).passed;
    }
};

template <class Real>
class Training {
public:
    Training(Network<Real> network, Index chunk) : network_(std::move(network)), chunk_(chunk) {
        const Random random(7, 100);
        for (std::uint64_t k = 0; k < steps * batch * inputs; ++k) x_.push_back(static_cast<Real>(random.normal(0, k)));
        for (std::uint64_t k = 0; k < steps * batch * outputs; ++k)
            targets_.push_back(static_cast<Real>(random.normal(1, k)));
    }

    Index links() const { return (steps + chunk_ - 1) / chunk_; }
    const Network<Real>& network() const noexcept { return network_; }

    /// One window of sequences [first, last), seed `seed`; gradients are added to. Returns the loss, scaled.
    double sweep(const ScheduleOptions& options, std::uint64_t seed, bool training, Range sequences,
                 const std::vector<Real>& parameters, std::vector<Real>& gradients,
                 std::vector<Real>* dx = nullptr) const {
        const Index size = sequences.size();
        std::vector<Real> x, targets, own_dx(static_cast<std::size_t>(steps * size * inputs));
        for (Index t = 0; t < steps; ++t) {
            x.insert(x.end(), x_.begin() + (t * batch + sequences.first) * inputs,
                     x_.begin() + (t * batch + sequences.last) * inputs);
            targets.insert(targets.end(), targets_.begin() + (t * batch + sequences.first) * outputs,
                           targets_.begin() + (t * batch + sequences.last) * outputs);
        }
        Window<Real> window;
        window.first = 640;
        window.steps = steps;
        window.inputs = x.data();
        window.values = targets.data();
        window.training = training;
        window.seed = seed;
        window.sequence = sequences.first;
        window.scale = 1.0 / (steps * batch * outputs);
        window.input_gradient = own_dx.data();
        TimeChain<Real> chain(network_, size, chunk_);
        chain.show(window);
        chain.use(parameters.data());
        chain.add_to(gradients.data());
        const bool open = is_open_ended(options.family);
        Execution run(chain,
                      std::make_unique<Ended>(make_schedule(options), links(), open ? Ending::late : Ending::closed));
        RamStore disk;
        run.use(Tier::disk, disk);
        run.forward();
        run.backward();
        if (dx) dx->insert(dx->end(), own_dx.begin(), own_dx.end());
        return chain.loss() * window.scale;
    }

    /// Three Adam steps.
    Path<Real> operator()(const ScheduleOptions& options) const {
        std::vector<Real> parameters(static_cast<std::size_t>(network_.parameters().size()));
        network_.start(7, parameters);
        OptimizerSpec adam;
        adam.rule = AdamSpec{};
        Optimizer<Real> optimizer(adam, network_.parameters());
        Path<Real> path;
        for (std::uint64_t update = 0; update < 3; ++update) {
            std::vector<Real> gradients(parameters.size());
            path.losses.push_back(sweep(options, 7 + update, true, {0, batch}, parameters, gradients, &path.dx));
            optimizer.step(parameters, gradients, 0.01);
            path.gradients.insert(path.gradients.end(), gradients.begin(), gradients.end());
            path.parameters.insert(path.parameters.end(), parameters.begin(), parameters.end());
        }
        return path;
    }

private:
    Network<Real> network_;
    Index chunk_;
    std::vector<Real> x_, targets_;
};

ScheduleOptions of(const char* family, Index links, Index slots = 0, Index period = 0) {
    ScheduleOptions o;
    o.family = family;
    o.steps = links;
    o.slots = slots;
    o.period = period;
    return o;
}

template <class Real>
void check(Network<Real> (*build)(const ModelSpec&)) {
    for (const Named& named : random_models())
        for (const Index chunk : {1, 3, 32}) BOOST_TEST_CONTEXT(named.name << ", chunk " << chunk) {
                const Training<Real> train(build(named.model), chunk);
                const Index n = train.links();
                const Path<Real> all = train(of("store_all", n));
                for (const double loss : all.losses) BOOST_TEST(std::isfinite(loss));
                for (const Index slots : {Index{1}, Index{2}, Index{3}, Index{5}, n})
                    BOOST_TEST((train(of("revolve", n, slots)) == all), "revolve with " << slots << " slots differs");
                for (const Index period : {Index{1}, Index{3}, n})
                    BOOST_TEST((train(of("periodic", n, 0, period)) == all),
                               "periodic with period " << period << " differs");
                if (chunk > 1)
                    for (const ScheduleOptions& family : test::every_family(n))
                        BOOST_TEST((train(family) == all), family.family << " differs");
            }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(G01)

BOOST_AUTO_TEST_CASE(cpu_float) {
    check<float>(&cpu::build<float>);
}
BOOST_AUTO_TEST_CASE(cpu_double) {
    check<double>(&cpu::build<double>);
}
BOOST_AUTO_TEST_CASE(reference_double) {
    check<double>(&reference::build<double>);
}

// The masks are those of the step, the sequence and the window, not of the chunk, the shard or the sweep.
BOOST_AUTO_TEST_CASE(chunks_and_shards_meet_the_same_masks) {
    for (const Named& named : random_models()) BOOST_TEST_CONTEXT(named.name) {
            const Training<double> whole(cpu::build<double>(named.model), 32);
            std::vector<double> parameters(static_cast<std::size_t>(whole.network().parameters().size()));
            whole.network().start(7, parameters);
            std::vector<double> wanted(parameters.size());
            const double loss = whole.sweep(of("store_all", whole.links()), 7, true, {0, batch}, parameters, wanted);
            for (const Index chunk : {1, 3, 64}) {
                const Training<double> cut(cpu::build<double>(named.model), chunk);
                std::vector<double> got(parameters.size());
                const double other = cut.sweep(of("revolve", cut.links(), 2), 7, true, {0, batch}, parameters, got);
                BOOST_TEST(test::compare(got, wanted, {1e-13, 0.0}), "chunk " << chunk);
                BOOST_TEST(std::abs(other - loss) <= 1e-14 * loss);
            }
            for (const std::vector<Range>& shards :
                 {std::vector<Range>{{0, 2}, {2, 4}}, std::vector<Range>{{0, 1}, {1, 4}}}) {
                std::vector<double> got(parameters.size());
                double other = 0.0;
                for (const Range shard : shards)
                    other += whole.sweep(of("revolve", whole.links(), 1), 7, true, shard, parameters, got);
                BOOST_TEST(test::compare(got, wanted, {1e-13, 0.0}), "shards cut at " << shards[0].last);
                BOOST_TEST(std::abs(other - loss) <= 1e-14 * loss);
            }
        }
}

// The tests above would pass without a mask at all.
BOOST_AUTO_TEST_CASE(every_window_has_masks_of_its_own_and_evaluation_none) {
    for (const Named& named : random_models()) BOOST_TEST_CONTEXT(named.name) {
            const Training<double> train(cpu::build<double>(named.model), 3);
            std::vector<double> parameters(static_cast<std::size_t>(train.network().parameters().size()));
            train.network().start(7, parameters);
            const auto loss = [&](std::uint64_t seed, bool training) {
                std::vector<double> gradients(parameters.size());
                return train.sweep(of("revolve", train.links(), 3), seed, training, {0, batch}, parameters, gradients);
            };
            BOOST_TEST(loss(7, true) != loss(8, true));
            BOOST_TEST(loss(7, true) != loss(7, false));
            BOOST_TEST(loss(7, false) == loss(8, false));
        }
}

BOOST_AUTO_TEST_SUITE_END()
