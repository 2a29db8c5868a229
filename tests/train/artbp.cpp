// Randomly truncated back-propagation is unbiased [TO17, section 5]: the influence-balancing system, 40 steps, through
// the time chain. Fixed truncation of the same mean length is not.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE artbp
#include "support/unit_test.hpp"

#include "backsweep/nn/time_chain.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "backsweep/train/windows.hpp"

#include <cmath>
#include <memory>
#include <vector>

using namespace backsweep;

namespace {

constexpr Index units = 23, steps = 40, mean = 10;
constexpr double theta = 0.5, shift = 100.0;

/// s' = A s + theta sign with A = 1/2 on the diagonal and above it, signs 10 x +1, 13 x -1; loss (s_0 - 1)^2 / 2 in the
/// end. As a ReLU network of h = s + shift, which never leaves the positive side.
class System {
public:
    System() {
        parameters_.assign(static_cast<std::size_t>(network_.parameters().size()), 0.0);
        gradients_ = parameters_;
        const auto at = [&](const char* name) { return parameters_.data() + network_.parameters().find(name).offset; };
        for (Index i = 0; i < units; ++i) {
            at("rnn.weight_hh_l0")[i * units + i] = 0.5;
            if (i + 1 < units) at("rnn.weight_hh_l0")[i * units + i + 1] = 0.5;
            const double row = i + 1 < units ? 1.0 : 0.5;
            at("rnn.bias_ih_l0")[i] = theta * sign(i) + (1.0 - row) * shift;
        }
        at("head.weight")[0] = 1.0;
        at("head.bias")[0] = -shift;
        chain_.use(parameters_.data());
        chain_.add_to(gradients_.data());
        weights_.back() = 0.5;
        TimeChain<double>::State state = chain_.zero();
        for (double& v : state.carry.span()) v = 1.0 + shift;
        chain_.show(last(0, {steps, {}}));
        for (Index t = 0; t < steps; ++t) {
            states_.push_back(state);
            chain_.advance({t, t + 1}, state);
        }
    }

    /// d loss / d theta of one run in windows; `cut(left, number)` makes the next one. The loss is that of the last
    /// step, so only the last window is reversed; the state that it begins with is the same however the run is cut.
    template <class Cut>
    double gradient(const Cut& cut) {
        std::fill(gradients_.begin(), gradients_.end(), 0.0);
        WindowCut window;
        Index at = 0;
        for (Index number = 0; at + window.steps < steps; ++number) {
            at += window.steps;
            window = cut(steps - at, number);
        }
        const Window<double> w = last(at, window);
        chain_.start_from(states_[static_cast<std::size_t>(at)]);
        chain_.show(w);
        ScheduleOptions all;
        all.family = "store_all";
        all.steps = window.steps;
        Execution<TimeChain<double>> run(chain_, make_schedule(all));
        run.forward();
        run.backward();
        double sum = 0.0;
        const double* const db = gradients_.data() + network_.parameters().find("rnn.bias_ih_l0").offset;
        for (Index i = 0; i < units; ++i) sum += sign(i) * db[i];
        return sum;
    }

private:
    /// The steps from `at` on; of their losses only the last counts.
    Window<double> last(Index at, const WindowCut& cut) const {
        Window<double> w;
        w.steps = cut.steps;
        w.inputs = nothing_.data() + at;
        w.values = target_.data() + at;
        w.weights = weights_.data() + at;
        w.factors = cut.factors;
        return w;
    }

    static double sign(Index i) { return i < 10 ? 1.0 : -1.0; }

    static ModelSpec model() {
        ModelSpec m;
        RecurrentSpec rnn{"rnn", 1, units, 1, true};
        rnn.cell = RecurrentSpec::Cell::rnn_relu;
        m.layers = {rnn, DenseSpec{"head", units, 1, true}};
        m.loss.kind = LossSpec::Kind::mean_squared_error;
        return m;
    }

    Network<double> network_ = build<double>(model());
    std::vector<double> parameters_, gradients_;
    const std::vector<double> nothing_ = std::vector<double>(steps, 0.0), target_ = std::vector<double>(steps, 1.0);
    std::vector<double> weights_ = std::vector<double>(steps, 0.0);
    std::vector<TimeChain<double>::State> states_;  // before each step
    TimeChain<double> chain_{network_, 1, 1};
};

/// d s_0 / d theta over the last K steps: the influence that truncation to K steps sees.
double influence(Index K) {
    std::vector<double> ds(units, 0.0);
    for (Index t = 0; t < K; ++t) {
        std::vector<double> next(units);
        for (std::size_t i = 0; i < units; ++i)
            next[i] = 0.5 * ds[i] + (i + 1 < units ? 0.5 * ds[i + 1] : 0.0) + (i < 10 ? 1.0 : -1.0);
        ds = next;
    }
    return ds[0];
}

double end_state() {
    std::vector<double> s(units, 1.0);
    for (Index t = 0; t < steps; ++t) {
        std::vector<double> next(units);
        for (std::size_t i = 0; i < units; ++i)
            next[i] = 0.5 * s[i] + (i + 1 < units ? 0.5 * s[i + 1] : 0.0) + theta * (i < 10 ? 1.0 : -1.0);
        s = next;
    }
    return s[0];
}

bool within(double value, double expected, double error) {
    return std::abs(value - expected) <= error;
}

}  // namespace

BOOST_AUTO_TEST_CASE(mean_over_100000_draws_is_the_full_gradient) {
    System system;
    const double error = end_state() - 1.0;
    // The published influences [TO17]: 10 after 10 steps, 16.476 after 20, 0.566 after 40.
    BOOST_TEST(within(influence(10), 10.0, 1e-12));
    BOOST_TEST(within(influence(20), 16.476, 5e-4));
    BOOST_TEST(within(influence(40), 0.566, 5e-4));
    const double full = system.gradient([](Index left, Index) { return WindowCut{left, {}}; });
    BOOST_TEST(within(full, error * influence(steps), 1e-9 * std::abs(error)));

    for (const double tail : {4.0, 0.0}) {
        WindowSpec spec;
        spec.law = WindowSpec::Law::artbp;
        spec.tail = tail;
        const Index draws = 100000;
        double sum = 0.0, squares = 0.0;
        for (Index draw = 0; draw < draws; ++draw) {
            const double g = system.gradient([&](Index left, Index number) {
                return cut_window(spec, mean, 1, left, static_cast<std::uint64_t>(draw), number);
            });
            sum += g;
            squares += g * g;
        }
        const auto n = static_cast<double>(draws);
        const double average = sum / n, standard_error = std::sqrt((squares / n - average * average) / n);
        BOOST_TEST_MESSAGE("tail " << tail << ": full gradient " << full << ", mean " << average << " +- "
                                   << standard_error);
        BOOST_TEST(standard_error > 0.0);
        BOOST_TEST(within(average, full, 3.0 * standard_error));
        // The same question to truncation after 10 steps: it sees 10 where the truth is 0.566.
        const double truncated = system.gradient([](Index left, Index) { return WindowCut{std::min(left, mean), {}}; });
        BOOST_TEST(within(truncated, error * influence(mean), 1e-9 * std::abs(error)));
        BOOST_TEST(!within(truncated, full, 3.0 * standard_error));
    }
}
