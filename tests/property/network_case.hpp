// A network with data, swept under a schedule along time and another along depth: what the bit laws on networks
// compare.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/random.hpp"
#include "backsweep/chain/audited.hpp"
#include "backsweep/nn/depth_outer_chain.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/store/ram_store.hpp"
#include "support/every_schedule.hpp"
#include "support/unit_test.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace backsweep::test {

/// Counts what really runs: the judge of the Execution.
template <class C>
struct Counting {
    using State = typename C::State;
    using Tape = typename C::Tape;
    using Adjoint = typename C::Adjoint;
    C* inner;
    Index advances = 0, recorded = 0, reversed = 0, last_reversed = -1;
    bool falling = true;

    std::optional<Index> length() const { return inner->length(); }
    State initial() const { return inner->initial(); }
    Index advance(Range r, State& x) {
        advances += r.size();
        return inner->advance(r, x);
    }
    Index record(Range r, State& x, Tape& tape) {
        ++recorded;
        return inner->record(r, x, tape);
    }
    void seed(const State& x, Adjoint& a) {
        last_reversed = *length();
        inner->seed(x, a);
    }
    void reverse(Range r, State& x, Tape& tape, Adjoint& a) {
        ++reversed;
        falling = falling && r.first == last_reversed - 1;
        last_reversed = r.first;
        inner->reverse(r, x, tape, a);
    }
};

/// Everything that one forward and reverse sweep gives.
template <class Real>
struct Outcome {
    std::vector<Real> gradients, input_gradient, first_adjoint, positions;
    std::vector<double> log;
    double loss = 0.0;
    Index advances = 0, recorded = 0, reversed = 0;
    bool falling = true, reverses = true;
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class Real>
bool same_bits(const Outcome<Real>& a, const Outcome<Real>& b) {
    return same_bits(a.gradients, b.gradients) && same_bits(a.input_gradient, b.input_gradient) &&
           same_bits(a.first_adjoint, b.first_adjoint) && same_bits(a.positions, b.positions) &&
           same_bits(a.log, b.log) && std::memcmp(&a.loss, &b.loss, sizeof a.loss) == 0;
}

template <class Real>
class Case {
public:
    /// marked: sequences begin and rest in the middle.
    Case(Network<Real> network, Index steps, Index batch, Index chunk, bool marked = false)
        : network_(std::move(network)),
          steps_(steps),
          batch_(batch),
          chunk_(chunk),
          parameters_(static_cast<std::size_t>(network_.parameters().size())) {
        network_.start(7, parameters_);
        const Random random(11, 3);
        // No tame values: biases too are not zero, the carry comes from somewhere, the end is pulled at.
        for (std::size_t k = 0; k < parameters_.size(); ++k)
            parameters_[k] += static_cast<Real>(0.1 * (random.uniform(0, k) - 0.5));
        const auto positions = static_cast<std::size_t>(steps * batch);
        const Index inputs = network_.spec().inputs(), outputs = network_.spec().outputs();
        for (std::size_t p = 0; p < positions; ++p) {
            tokens_.push_back(static_cast<std::int32_t>(random.below(9, 1, p)));
            classes_.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(outputs), 2, p)));
            const Index place = static_cast<Index>(p) / batch + 2 * (static_cast<Index>(p) % batch);
            if (marked) marks_.push_back(place % 5 == 4 ? Mark::filler : place % 5 == 2 ? Mark::first : Mark::step);
        }
        for (std::size_t k = 0; k < positions * static_cast<std::size_t>(inputs); ++k)
            inputs_.push_back(static_cast<Real>(random.normal(3, k)));
        for (std::size_t k = 0; k < positions * static_cast<std::size_t>(outputs); ++k)
            values_.push_back(static_cast<Real>(random.normal(4, k)));
        for (Index k = 0; k < network_.carry() * batch; ++k) {
            start_.push_back(static_cast<Real>(0.5 * random.normal(5, static_cast<std::uint64_t>(k))));
            end_.push_back(static_cast<Real>(0.5 * random.normal(6, static_cast<std::uint64_t>(k))));
        }
    }

    Index links() const { return (steps_ + chunk_ - 1) / chunk_; }

    const Network<Real>& network() const { return network_; }

    Outcome<Real> operator()(const ScheduleOptions& options, const DepthOptions& depth = {}) const {
        const Outcome<Real> o = sweep(options, depth);
        const Play play = referee(*schedule(options), links(), {}, {.reverses = o.reverses});
        BOOST_TEST(o.advances == play.advances);
        BOOST_TEST(o.recorded == play.recorded);
        BOOST_TEST(o.reversed == (o.reverses ? links() : 0));
        BOOST_TEST(o.falling);
        return o;
    }

    /// The same, judging nothing: for threads, in which Boost.Test may not be called. `audited` throws at a link or
    /// layer that is not pure.
    Outcome<Real> sweep(const ScheduleOptions& options, const DepthOptions& depth = {}, bool audited = false) const {
        Outcome<Real> o;
        o.gradients.assign(parameters_.size(), Real{0});
        o.positions.assign(static_cast<std::size_t>(steps_ * batch_), Real{-1});
        RamStore store;
        TimeChain<Real> chain(network_, batch_, chunk_, Ledger::process(), {}, depth);
        chain.use(store);
        chain.verify(audited);
        chain.show(window(o));
        chain.use(parameters_.data());
        chain.add_to(o.gradients.data());
        auto start = chain.zero(), end = chain.zero_adjoint();
        std::copy(start_.begin(), start_.end(), start.carry.begin());
        chain.start_from(start);
        std::copy(end_.begin(), end_.end(), end.carry.begin());
        chain.end_with(end);

        if (audited) {
            Audited<TimeChain<Real>> watched(chain);
            play(watched, options, o);
        } else {
            play(chain, options, o);
        }
        o.loss = chain.loss();
        o.log.assign(chain.losses().begin(), chain.losses().end());
        return o;
    }

    /// Depth-outer: layers under a schedule along the depth, each under `time` along the window.
    Outcome<Real> layerwise(const ScheduleOptions& time, const ScheduleOptions& depth) const {
        Outcome<Real> o;
        o.gradients.assign(parameters_.size(), Real{0});
        o.positions.assign(static_cast<std::size_t>(steps_ * batch_), Real{-1});
        DepthOuterChain<Real> chain(network_, batch_, chunk_, time);
        std::vector<Real> start(static_cast<std::size_t>(network_.state() * batch_)),
            end(static_cast<std::size_t>(network_.adjoint() * batch_));
        std::copy(start_.begin(), start_.end(), start.begin());
        std::copy(end_.begin(), end_.end(), end.begin());
        chain.start_from(start.data());
        chain.end_with(end.data());
        chain.keep_outputs(depth.family == "optimal_chain");
        chain.show(window(o));
        chain.use(parameters_.data());
        chain.add_to(o.gradients.data());
        ScheduleOptions layers = depth;
        layers.steps = network_.depth();
        Execution<DepthOuterChain<Real>> run(chain, make_schedule(layers));
        RamStore disk;
        run.use(Tier::disk, disk);
        run.forward();
        run.backward();
        o.first_adjoint.assign(chain.first_adjoint().begin(), chain.first_adjoint().end());
        o.loss = chain.loss();
        o.log = {chain.losses().begin(), chain.losses().end()};
        const Play of_layers = referee(*make_schedule(layers), network_.depth());
        ScheduleOptions links = time;
        links.steps = this->links();
        const Play of_links = referee(*make_schedule(links), this->links());
        BOOST_TEST(run.counts().advances == of_layers.advances);
        BOOST_TEST(run.counts().recorded == of_layers.recorded);
        BOOST_TEST(chain.counts().recorded == of_layers.recorded * of_links.recorded);
        BOOST_TEST(chain.counts().advances ==
                   of_layers.advances * this->links() + of_layers.recorded * of_links.advances);
        BOOST_TEST(chain.counts().reversed == network_.depth() * this->links());
        return o;
    }

private:
    /// The data; what is assigned goes to o.
    Window<Real> window(Outcome<Real>& o) const {
        Window<Real> window;
        window.steps = steps_;
        window.classes = classes_.data();
        window.values = values_.data();
        window.losses = o.positions.data();
        window.marks = marks_.empty() ? nullptr : marks_.data();
        window.scale = 1.0 / static_cast<double>(steps_ * batch_);
        if (network_.spec().inputs() > 0) {
            o.input_gradient.assign(inputs_.size(), Real{0});
            window.inputs = inputs_.data();
            window.input_gradient = o.input_gradient.data();
        } else {
            window.tokens = tokens_.data();
        }
        return window;
    }

    template <class C>
    void play(C& chain, const ScheduleOptions& options, Outcome<Real>& o) const {
        Counting<C> counting{&chain};
        Execution run(counting, schedule(options));
        RamStore disk;
        run.use(Tier::disk, disk);
        run.forward();
        o.reverses = run.resting();
        if (o.reverses) run.backward();
        if (o.reverses) o.first_adjoint.assign(run.adjoint().carry.begin(), run.adjoint().carry.end());
        o.advances = counting.advances;
        o.recorded = counting.recorded;
        o.reversed = counting.reversed;
        o.falling = counting.falling;
    }

    std::unique_ptr<Schedule> schedule(ScheduleOptions options) const {
        const bool open = is_open_ended(options.family);
        if (!open) options.steps = links();
        return std::make_unique<Ended>(make_schedule(options), links(), open ? Ending::late : Ending::closed);
    }

    Network<Real> network_;
    Index steps_, batch_, chunk_;
    std::vector<Real> parameters_, inputs_, values_, start_, end_;
    std::vector<std::int32_t> tokens_, classes_;
    std::vector<Mark> marks_;
};

}  // namespace backsweep::test
