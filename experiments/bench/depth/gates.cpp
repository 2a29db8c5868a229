// Cells that keep h and c alone against the same cells with all gates: time and tape of a window, forward and back.
// SPDX-License-Identifier: MIT
#include "backsweep/base/random.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "backsweep/schedule/store_all.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

using namespace backsweep;

namespace {

constexpr Index steps = 128, chunk = 32, layers = 2;
constexpr int runs = 15;

double now() {  // of this process's own time, for machines that others use too
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Two layers that read as many features as they have units, a window of random numbers, every tape of a link kept.
class Training {
public:
    Training(RecurrentSpec cells, Index batch)
        : network_(build<float>(model_of(cells))),
          chain_(network_, batch, chunk, ledger_),
          parameters_(size(network_.parameters().size())),
          gradients_(parameters_.size()),
          data_(size(steps * batch * cells.hidden)) {
        network_.start(1, parameters_);
        const Random random(1, 0);
        for (std::size_t k = 0; k < data_.size(); ++k) data_[k] = static_cast<float>(random.normal(0, k));
        Window<float> window;
        window.steps = steps;
        window.inputs = window.values = data_.data();
        chain_.show(window);
        chain_.use(parameters_.data());
        chain_.add_to(gradients_.data());
        run_ = std::make_unique<Execution<TimeChain<float>>>(chain_, store_all(steps / chunk));
        const Index loss = network_.layer(layers).footprint(chunk, batch).tape;
        const Index rest = depth_program(network_, chunk, batch, {}).rest - chunk * batch * cells.hidden - loss;
        tape_ = static_cast<double>(rest) / static_cast<double>(chunk * batch * layers * cells.hidden);
    }

    double seconds() {
        const double start = now();
        run_->forward();
        run_->backward();
        return now() - start;
    }
    /// Numbers in units of hidden a step, sequence and layer.
    double tape() const { return tape_; }

private:
    static std::size_t size(Index n) { return static_cast<std::size_t>(n); }
    static ModelSpec model_of(const RecurrentSpec& cells) {
        ModelSpec model{{cells}, {}};
        model.loss.kind = LossSpec::Kind::inner_product;
        return model;
    }

    Ledger ledger_;
    Network<float> network_;
    TimeChain<float> chain_;
    std::vector<float> parameters_, gradients_, data_;
    std::unique_ptr<Execution<TimeChain<float>>> run_;
    double tape_ = 0.0;
};

double median(std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + runs / 2, values.end());
    return values[runs / 2];
}

/// Whether both floors hold.
bool compare(RecurrentSpec::Cell cell, Index hidden, Index batch) {
    RecurrentSpec cells{.name = "rnn", .inputs = hidden, .hidden = hidden, .layers = layers, .cell = cell};
    Training all(cells, batch);
    cells.save = {};
    Training again(cells, batch);
    std::vector<double> kept, made;
    for (int k = -1; k < runs; ++k) {  // the first is not counted
        const double a = all.seconds(), b = again.seconds();
        if (k < 0) continue;
        kept.push_back(a);
        made.push_back(b);
    }
    const double ratio = median(made) / median(kept);
    const bool met = ratio <= 1.40 && again.tape() <= 2.0;
    std::printf("%s  H %3d  batch %2d   %8.2f ms   %8.2f ms   time %.2f   tape %.2f / %.2f%s\n",
                cell == RecurrentSpec::Cell::lstm ? "lstm" : "gru ", static_cast<int>(hidden), static_cast<int>(batch),
                1e3 * median(kept), 1e3 * median(made), ratio, again.tape(), all.tape(), met ? "" : "   NOT MET");
    return met;
}

}  // namespace

int main(int, char** arguments) {
    if (!std::getenv("OPENBLAS_NUM_THREADS")) {  // read when the library is loaded: begin anew
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
        execv("/proc/self/exe", arguments);
        return 1;
    }
    std::printf("                      gates kept    made again\n");
    bool met = true;
    for (const auto cell : {RecurrentSpec::Cell::lstm, RecurrentSpec::Cell::gru})
        for (const Index hidden : {128, 256, 512})
            for (const Index batch : {8, 32}) met = compare(cell, hidden, batch) && met;
    return met ? 0 : 1;
}
