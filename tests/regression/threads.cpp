// Field cases of threads: those of the training, of BLAS, and of the program that all of it is part of.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE regression.threads
#include "support/unit_test.hpp"

#include "backsweep/train/trainer.hpp"
#include "nn/cases.hpp"
#include "nn/swept_window.hpp"
#include "train/made_text.hpp"

#include <armadillo>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

extern "C" void openblas_set_num_threads(int);
extern "C" int openblas_get_num_threads();

namespace {

ModelSpec wide() {
    RecurrentSpec cell{.name = "rnn", .inputs = 37, .hidden = 300, .layers = 2};
    cell.start = RecurrentSpec::Start::orthogonal;
    ModelSpec spec{{cell, DenseSpec{"head", 300, 5}}, {}};
    spec.loss.kind = LossSpec::Kind::mean_squared_error;
    return spec;
}

struct Result {
    std::vector<double> parameters, gradients, dx;
    double objective;
    friend bool operator==(const Result&, const Result&) = default;
};

/// A window by revolve, or with everything stored where the chunk is all of it, from the model's own starting values.
Result swept_window(Index chunk) {
    const ModelSpec spec = wide();
    const auto network = build<double>(spec);
    const auto parameters = parameters_for(network, 9);
    auto problem = data_for(spec, network.carry(), 13, 3);
    const auto got = swept(network, parameters, problem, {}, chunk);
    return {parameters, got.gradients, got.dx, got.objective};
}

/// Parameters after three updates.
std::vector<float> trained(const Text& text, Index threads) {
    ModelSpec spec{
        {EmbeddingSpec{"embedding", 12, 24, std::nullopt}, RecurrentSpec{"rnn", 24, 96}, DenseSpec{"head", 96, 12}},
        {}};
    const auto source = text.source<float>(6, 20);
    TrainOptions o;
    o.chunk = 7;
    o.shards = 3;
    o.threads = threads;
    const auto network = build<float>(spec);
    Trainer<float> trainer(network, source, o);
    for (int k = 0; k < 3; ++k) trainer.update();
    return {trainer.parameters().begin(), trainer.parameters().end()};
}

Index threads_of_process() {
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return std::distance(begin(threads), end(threads));
}

/// BLAS has so many threads as long as it lives.
class BlasThreads {
public:
    explicit BlasThreads(int threads) { openblas_set_num_threads(threads); }
    ~BlasThreads() { openblas_set_num_threads(before_); }
    BlasThreads(BlasThreads&&) = delete;
    BlasThreads& operator=(BlasThreads&&) = delete;

private:
    int before_ = openblas_get_num_threads();
};

}  // namespace

// G42: bits that change with the number of threads. With 1 and 8 threads of BLAS, hidden 300, 20 repeats, and two runs
// in threads of one process: all have the same bits.
BOOST_AUTO_TEST_SUITE(G42)

BOOST_AUTO_TEST_CASE(threads_of_BLAS_change_no_bit) {
    const Result once = [] {
        const BlasThreads one(1);
        return swept_window(4);
    }();
    for (const int threads : {1, 8}) {
        const BlasThreads blas(threads);
        BOOST_REQUIRE(openblas_get_num_threads() == threads);
        const Result stored = swept_window(13);
        for (int repeat = 0; repeat < 20; ++repeat) {
            BOOST_TEST_CONTEXT(threads << " threads of BLAS, repeat " << repeat) {
                BOOST_TEST((swept_window(4) == once));
                BOOST_TEST((swept_window(13) == stored));
            }
        }
        BOOST_TEST(stored.parameters == once.parameters);
        BOOST_TEST(compare(stored.gradients, once.gradients, Tolerance{1e-10, 1e-12}));
    }
}

BOOST_AUTO_TEST_CASE(runs_in_two_threads_of_a_process_have_the_bits_of_either_alone) {
    const Result first = swept_window(4), second = swept_window(5);
    std::vector<Result> firsts(5), seconds(5);
    {
        const std::jthread other([&] {
            for (Result& r : seconds) r = swept_window(5);
        });
        for (Result& r : firsts) r = swept_window(4);
    }
    for (std::size_t k = 0; k < firsts.size(); ++k) {
        BOOST_TEST((firsts[k] == first));
        BOOST_TEST((seconds[k] == second));
    }
}

// A host that has four threads of BLAS at work keeps them; training adds its own to those and no more.
BOOST_AUTO_TEST_CASE(a_host_keeps_its_threads_of_BLAS) {
    const Text text(3000);
    const auto alone = trained(text, 1);
    const BlasThreads four(4);
    std::atomic<bool> done{false};
    std::atomic<int> products{0};
    std::jthread host([&] {
        const arma::fmat a(256, 256, arma::fill::randn);
        while (!done) {
            const arma::fmat b = a * a;
            products += b.is_finite() ? 1 : 0;
        }
    });
    while (products < 2) std::this_thread::yield();  // BLAS has begun its threads
    const Index before = threads_of_process();
    for (const Index threads : {1, 2, 3}) {
        std::vector<float> got;
        std::atomic<Index> most{0};
        {
            std::atomic<bool> ended{false};
            const std::jthread watch([&] {
                while (!ended) {
                    most = std::max<Index>(most, threads_of_process());
                    std::this_thread::yield();
                }
            });
            got = trained(text, threads);
            ended = true;
        }
        BOOST_TEST((got == alone));
        BOOST_TEST(most <= before + threads);  // the caller's is one of them; the watch is another
        BOOST_TEST(openblas_get_num_threads() == 4);
    }
    done = true;
}

BOOST_AUTO_TEST_SUITE_END()
