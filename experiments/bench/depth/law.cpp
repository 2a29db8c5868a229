// Bytes and time along the depth: stacks of n equal layers with every tape kept, and by groups; a stack of 100 layers;
// the LSTM of Chen 2016 scaled by 8. Peer in the same run: the same stack with every tape kept.
// SPDX-License-Identifier: MIT
#include "backsweep/base/random.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "backsweep/schedule/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

using namespace backsweep;

namespace {

constexpr int runs = 15;
bool met = true;

double now() {  // of this process's own time, for machines that others use too
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void floor_of(bool holds, const char* what) {
    if (holds) return;
    std::printf("NOT MET: %s\n", what);
    met = false;
}

/// A model with a window of made data, swept in links of `chunk` steps.
class Training {
public:
    Training(const ModelSpec& model, Index steps, Index batch, Index chunk, const DepthOptions& depth,
             ScheduleOptions time)
        : network_(build<float>(model)),
          chain_(network_, batch, chunk, ledger_, {}, depth),
          parameters_(size(network_.parameters().size())),
          gradients_(parameters_.size()),
          data_(size(steps * batch * std::max(model.inputs(), model.outputs()))),
          tokens_(size(steps * batch)) {
        network_.start(1, parameters_);
        const Random random(1, 0);
        for (std::size_t k = 0; k < data_.size(); ++k) data_[k] = static_cast<float>(random.normal(0, k));
        for (std::size_t k = 0; k < tokens_.size(); ++k)
            tokens_[k] = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(model.outputs()), 1, k));
        Window<float> window;
        window.steps = steps;
        window.inputs = window.values = data_.data();
        window.tokens = window.classes = tokens_.data();
        window.scale = 1.0 / static_cast<double>(steps * batch);
        chain_.show(window);
        chain_.use(parameters_.data());
        chain_.add_to(gradients_.data());
        time.steps = *chain_.length();
        run_ = std::make_unique<Execution<TimeChain<float>>>(chain_, make_schedule(time));
        program_ = depth_program(network_, std::min(chunk, steps), batch, depth);
    }

    void forward() { run_->forward(); }
    void backward() { run_->backward(); }
    /// Of the activations and tapes of a link: what rests and what shares scratch.
    double bytes() const { return static_cast<double>(program_.rest + program_.scratch) * sizeof(float); }
    /// Slots, tapes and workspace, as the ledger saw them.
    double measured() const {
        const Bytes peak = ledger_.peak();
        return static_cast<double>(peak[Kind::slots] + peak[Kind::tape] + peak[Kind::workspace]);
    }
    const DepthProgram& program() const { return program_; }
    Index depth() const { return network_.depth(); }

private:
    static std::size_t size(Index n) { return static_cast<std::size_t>(n); }

    Ledger ledger_;
    Network<float> network_;
    TimeChain<float> chain_;
    std::vector<float> parameters_, gradients_, data_;
    std::vector<std::int32_t> tokens_;
    std::unique_ptr<Execution<TimeChain<float>>> run_;
    DepthProgram program_;
};

struct Times {
    double forward = 0.0, both = 0.0;
};

/// Medians, the two in turns.
std::pair<Times, Times> times(Training& a, Training& b) {
    std::vector<double> forward[2], both[2];
    for (int k = -1; k < runs; ++k)
        for (int which = 0; which < 2; ++which) {
            Training& t = which == 0 ? a : b;
            const double start = now();
            t.forward();
            const double middle = now();
            t.backward();
            if (k < 0) continue;  // the first touches its memory
            forward[which].push_back(middle - start);
            both[which].push_back(now() - start);
        }
    const auto median = [](std::vector<double>& v) {
        std::nth_element(v.begin(), v.begin() + runs / 2, v.end());
        return v[runs / 2];
    };
    return {{median(forward[0]), median(both[0])}, {median(forward[1]), median(both[1])}};
}

ModelSpec stack(Index n, Index hidden) {
    ModelSpec m{{RecurrentSpec{.name = "rnn", .inputs = hidden, .hidden = hidden, .layers = n}}, {}};
    m.loss.kind = LossSpec::Kind::mean_squared_error;
    return m;
}

const ScheduleOptions one_link{.family = "store_all"};

void law() {
    std::printf("n layers, LSTM, 16 hidden, 8 sequences, one link of 8 steps\n");
    std::printf("%6s %12s %12s %7s %10s\n", "n", "all bytes", "sqrt bytes", "extra", "time, of 1 + phi extra / n");
    double x0 = 0, all0 = 0, few0 = 0, x1 = 0, all1 = 0, few1 = 0;
    for (Index n = 16; n <= 1024; n *= 2) {
        Training all(stack(n, 16), 8, 8, 8, {}, one_link),
            few(stack(n, 16), 8, 8, 8, {.family = DepthOptions::Family::sqrt}, one_link);
        const auto [a, f] = times(all, few);
        const double phi = a.forward / a.both, extra = static_cast<double>(few.program().replays);
        const double ratio = f.both / a.both / (1.0 + phi * extra / static_cast<double>(n));
        std::printf("%6ld %12.0f %12.0f %7.0f %10.3f\n", static_cast<long>(n), all.bytes(), few.bytes(), extra, ratio);
        floor_of(ratio <= 1.02, "time <= 1.02 (1 + phi extra / n)");
        if (n == 16) x0 = std::log(16.0), all0 = std::log(all.bytes()), few0 = std::log(few.bytes());
        x1 = std::log(static_cast<double>(n)), all1 = std::log(all.bytes()), few1 = std::log(few.bytes());
    }
    const double slope_all = (all1 - all0) / (x1 - x0), slope_few = (few1 - few0) / (x1 - x0);
    std::printf("slopes of log bytes over log n: every tape %.3f, groups %.3f\n", slope_all, slope_few);
    floor_of(std::fabs(slope_all - 1.0) <= 0.02, "slope 1.00 +- 0.02");
    floor_of(std::fabs(slope_few - 0.5) <= 0.05, "slope 0.50 +- 0.05");
}

void hundred() {
    const Index n = 100, hidden = 64;
    Training all(stack(n, hidden), 16, 16, 16, {}, one_link),
        few(stack(n, hidden), 16, 16, 16, {.family = DepthOptions::Family::sqrt, .period = 4}, one_link);
    const auto [a, f] = times(all, few);
    const double phi = a.forward / a.both, less = all.bytes() / few.bytes();
    std::printf(
        "100 layers, groups of 4: %.1f times less in activations and tapes (%.0f and %.0f bytes), %.1f times with all "
        "workspace; time %.3f, "
        "phi %.3f, of 1 + 0.96 phi %.3f\n",
        less, all.bytes(), few.bytes(), all.measured() / few.measured(), f.both / a.both, phi,
        f.both / a.both / (1.0 + 0.96 * phi));
    floor_of(less >= 10.0, "10 times less memory");
    floor_of(f.both / a.both <= 1.02 * (1.0 + 0.96 * phi), "time <= 1.02 (1 + 0.96 phi)");
}

void chen() {
    ModelSpec m{{EmbeddingSpec{"embedding", 625, 128, std::nullopt},
                 RecurrentSpec{.name = "rnn", .inputs = 128, .hidden = 128, .layers = 4}, DenseSpec{"head", 128, 625}},
                {}};
    ScheduleOptions periodic{.family = "periodic"};
    periodic.period = 8;
    Training all(m, 64, 8, 1, {}, one_link), few(m, 64, 8, 1, {}, periodic);
    const auto [a, f] = times(all, few);
    std::printf(
        "Chen's LSTM / 8 (128 hidden, 4 layers, 64 steps, batch 8, softmax 625), groups of 8 steps: %.1f times less "
        "(%.0f and %.0f bytes of "
        "slots, tapes and workspace), time %.3f\n",
        all.measured() / few.measured(), all.measured(), few.measured(), f.both / a.both);
    floor_of(all.measured() / few.measured() >= 4.0, "4 times less memory");
}

}  // namespace

int main() {
    law();
    hundred();
    chen();
    return met ? EXIT_SUCCESS : EXIT_FAILURE;
}
