// Runs cut in two by a snapshot end with the bits of whole ones: under every optimizer and every rate law, the plateau
// and the moved momentum included.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE resume
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/data/generators.hpp"
#include "backsweep/train/trainer.hpp"
#include "support/scratch.hpp"

#include <string>
#include <vector>

using namespace backsweep;
using Law = RateSpec::Law;

namespace {

ModelSpec model() {
    ModelSpec m;
    m.layers = {RecurrentSpec{"rnn", 2, 5}, DenseSpec{"head", 5, 1}};
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    return m;
}

constexpr Index updates = 12, feed_every = 2;

/// Trains until `until` updates are done, a validation loss after every second one where the rate wants it.
template <class Real>
void go(Trainer<Real>& trainer, const Network<Real>& network, Index until) {
    const AddingSource<Real> valid(AddingSpec{7, 3, 2, 99});
    while (trainer.updates() < until) {
        trainer.update();
        if (trainer.options().rate.law == Law::plateau && trainer.updates() % feed_every == 0)
            trainer.observe(evaluate<Real>(network, trainer.parameters(), valid, 4).loss);
    }
}

template <class Real>
void check_resumes(const OptimizerSpec& optimizer, const RateSpec& rate) {
    const Network<Real> network = build<Real>(model());
    const AddingSource<Real> source(AddingSpec{7, 3, 5, 1});
    TrainOptions o;
    o.carry = false;
    o.chunk = 4;
    o.optimizer = optimizer;
    o.rate = rate;
    o.clip = {ClipSpec::Kind::norm, 0.5};
    o.seed = 3;
    Trainer<Real> whole(network, source, o);
    go(whole, network, updates);
    if (rate.law == Law::plateau) {
        BOOST_TEST(whole.plateau().seen == updates / feed_every);
        BOOST_TEST(whole.plateau().factor < 1.0);
    }
    for (const Index cut : {1, 4, 7}) {
        const test::Scratch scratch;
        {
            Trainer<Real> first(network, source, o);
            go(first, network, cut);
            Snapshot s = first.snapshot();
            save_snapshot(scratch.path(), s);
        }
        const Snapshot s = read_newest(scratch.path()).snapshot;
        Trainer<Real> second(network, source, o, whole.plan());
        second.restore(s);
        BOOST_TEST(second.updates() == cut);
        go(second, network, updates);
        BOOST_TEST_CONTEXT("cut after " << cut)
        BOOST_TEST((std::vector<Real>(second.parameters().begin(), second.parameters().end()) ==
                    std::vector<Real>(whole.parameters().begin(), whole.parameters().end())));
        BOOST_TEST((second.plateau() == whole.plateau()));
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(under_every_optimizer) {
    const RateSpec rate{.law = Law::exponential, .peak = 0.02, .warm_up = 3, .factor = 0.9};
    for (const OptimizerSpec& optimizer :
         {OptimizerSpec{.rule = SgdSpec{.momentum = 0.9, .nesterov = true}},
          OptimizerSpec{.rule = AdamSpec{.amsgrad = true}}, OptimizerSpec{.rule = AdamWSpec{}},
          OptimizerSpec{.rule = RmspropSpec{}}, OptimizerSpec{.rule = RmspropSpec{.centered = true, .momentum = 0.5}},
          OptimizerSpec{.rule = AdagradSpec{.rate_decay = 0.1, .initial_accumulator = 0.2}},
          OptimizerSpec{.rule = LambSpec{.weight_decay = 0.1},
          .groups = {{.patterns = {"*bias*"}, .weight_decay = 0.0}}}}) {
        BOOST_TEST_CONTEXT(optimizer.name()) {
            check_resumes<float>(optimizer, rate);
            check_resumes<double>(optimizer, rate);
        }
    }
}

BOOST_AUTO_TEST_CASE(under_every_rate) {
    for (const RateSpec& rate : {RateSpec{.law = Law::step, .peak = 0.02, .factor = 0.5, .period = 3},
                                 RateSpec{.law = Law::cosine, .peak = 0.02, .length = 10, .warm_up = 2},
                                 RateSpec{.law = Law::one_cycle, .peak = 0.02, .length = 12},
                                 RateSpec{.law = Law::plateau,
                                 .peak = 0.02,
                                 .warm_up = 3,
                                 .factor = 0.5,
                                 .plateau = {.threshold = 0.5, .patience = 1}},
                                 RateSpec{.law = Law::plateau,
                                 .peak = 0.02,
                                 .factor = 0.5,
                                 .plateau = {.threshold = 0.5, .patience = 0, .cooldown = 1}}}) {
        BOOST_TEST_CONTEXT("law " << static_cast<int>(rate.law)) {
            check_resumes<float>({.rule = AdamSpec{}}, rate);
            check_resumes<double>({.rule = SgdSpec{.momentum = 0.9}}, rate);
        }
    }
}

BOOST_AUTO_TEST_CASE(what_the_rate_prescribes_reaches_the_update) {
    const Network<double> network = build<double>(model());
    const AddingSource<double> source(AddingSpec{7, 3, 5, 1});
    TrainOptions o;
    o.carry = false;
    o.optimizer.rule = SgdSpec{.momentum = 0.5};
    o.rate = {.law = Law::one_cycle, .peak = 0.1, .length = 12};
    Trainer<double> trainer(network, source, o);
    const auto now = [&] { return std::vector<double>(trainer.parameters().begin(), trainer.parameters().end()); };
    std::vector<double> p = now(), m(p.size());
    for (Index u = 0; u < 12; ++u) {
        const UpdateReport report = trainer.update();
        BOOST_TEST(report.rate == o.rate.at(u));
        for (std::size_t i = 0; i < p.size(); ++i) {
            const double g = trainer.gradients()[i];
            m[i] = u == 0 ? g : *o.rate.momentum_at(u) * m[i] + g;
            p[i] -= report.rate * m[i];
        }
        BOOST_TEST((now() == p));
    }
    const auto refused = [&](const OptimizerSpec& optimizer) {
        o.optimizer = optimizer;
        BOOST_TEST(o.problem() == std::string("the one-cycle rate moves a momentum, but ") + optimizer.name() +
                                      " has none; give it one, or set cycle_momentum to false");
        BOOST_CHECK_THROW(Trainer<double>(network, source, o), InvalidArgument);
    };
    refused({.rule = SgdSpec{}});
    refused({.rule = RmspropSpec{}});
    refused({.rule = AdagradSpec{}});
    o.rate.one_cycle.cycle_momentum = false;
    BOOST_TEST(o.problem() == "");
    BOOST_CHECK_EXCEPTION(trainer.observe(1.0), InvalidArgument, [](const InvalidArgument& e) {
        return std::string(e.what()).find("its law is not plateau") != std::string::npos;
    });
}
