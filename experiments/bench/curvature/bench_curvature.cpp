// What a product with the Hessian, or with the Gauss-Newton matrix, costs in gradients of the same model in double:
// process time, medians, and live bytes at their peak.
// SPDX-License-Identifier: MIT
#include "backsweep/base/random.hpp"
#include "backsweep/nn/curvature.hpp"
#include "backsweep/nn/models.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace backsweep;

constexpr Index steps = 64, batch = 16, vocabulary = 64;
constexpr int runs = 9;

/// Of f(), after one run that counts for nothing.
template <class F>
double median_seconds(F f) {
    std::array<double, runs> times;
    f();
    for (double& t : times) {
        const std::clock_t start = std::clock();
        f();
        t = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    }
    std::sort(times.begin(), times.end());
    return times[runs / 2];
}

ModelEnds ends() {
    ModelEnds e;
    e.vocabulary = e.outputs = vocabulary;
    return e;
}

ModelSpec cells(RecurrentSpec::Cell cell) {
    RecurrentModel m;
    m.ends = ends();
    m.embedding = 64;
    m.rnn.cell = cell;
    m.rnn.hidden = 128;
    m.rnn.layers = 2;
    return recurrent_model(m);
}

ModelSpec xl() {
    TransformerXl m;
    m.ends = ends();
    m.features = 64;
    m.layers = 2;
    m.heads = 4;
    m.memory = 64;
    return transformer_xl(m);
}

ModelSpec sha() {
    ShaRnn m;
    m.ends = ends();
    m.features = 64;
    m.layers = 2;
    m.memory = 64;
    return sha_rnn(m);
}

void measure(const std::string& name, const ModelSpec& spec) {
    const Network<double> network = cpu::build<double>(spec);
    const Index size = network.parameters().size();
    std::vector<double> parameters(static_cast<std::size_t>(size)), direction(parameters.size(), 1.0),
        product(parameters.size());
    network.start(7, parameters);
    std::vector<std::int32_t> tokens, classes;
    for (std::uint64_t p = 0; p < steps * batch; ++p) {
        tokens.push_back(static_cast<std::int32_t>(Random(1, 0).below(vocabulary, 0, p)));
        classes.push_back(static_cast<std::int32_t>(Random(1, 0).below(vocabulary, 1, p)));
    }
    Window<double> window;
    window.steps = steps;
    window.tokens = tokens.data();
    window.classes = classes.data();
    window.scale = 1.0 / static_cast<double>(steps * batch);
    CurvatureOptions options;
    options.chunk = 16;

    Ledger of_gradient;
    TimeChain<double> chain(network, batch, options.chunk, of_gradient);
    chain.show(window);
    chain.use(parameters.data());
    chain.add_to(product.data());
    ScheduleOptions all = options.schedule;
    all.steps = *chain.length();
    Execution<TimeChain<double>> run(chain, make_schedule(all));
    const double gradient = median_seconds([&] {
        run.forward();
        run.backward();
    });
    const auto bytes = [](const Ledger& ledger) {
        return static_cast<double>(ledger.peak().time_axis() + ledger.peak()[Kind::workspace]);
    };

    std::printf("%-16s %7lld %10.1f", name.c_str(), static_cast<long long>(size), 1e3 * gradient);
    for (const auto matrix : {CurvatureOptions::Matrix::hessian, CurvatureOptions::Matrix::gauss_newton}) {
        options.matrix = matrix;
        Ledger of_product;
        Curvature curvature(spec, batch, options, of_product);
        const double seconds = median_seconds([&] { curvature.multiply({window, parameters}, direction, product); });
        std::printf(" %8.2f %6.2f", seconds / gradient, bytes(of_product) / bytes(of_gradient));
    }
    std::printf("\n");
}

}  // namespace

int main() {
    std::printf("%-16s %7s %10s %8s %6s %8s %6s\n", "", "size", "gradient", "H v", "bytes", "G v", "bytes");
    measure("lstm", cells(RecurrentSpec::Cell::lstm));
    measure("gru", cells(RecurrentSpec::Cell::gru));
    measure("transformer_xl", xl());
    measure("sha_rnn", sha());
}
