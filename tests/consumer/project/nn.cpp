// Builds a small network from a specification.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/network.hpp"

#include <cstdio>

int main() {
    backsweep::ModelSpec spec;
    spec.layers = {backsweep::EmbeddingSpec{"embedding", 7, 3, {}}, backsweep::RecurrentSpec{"rnn", 3, 5, 1, true},
                   backsweep::DenseSpec{"head", 5, 7, true}};
    const backsweep::Network<float> network = backsweep::build<float>(spec);
    std::printf("%lld layers, carry %lld\n", static_cast<long long>(network.depth()),
                static_cast<long long>(network.carry()));
    return network.carry() == 2 * 5 ? 0 : 1;
}
