// The catalogue of the CPU.
// SPDX-License-Identifier: MIT
#include "nn/cpu/layers.hpp"

namespace backsweep::cpu {

template <class Real>
Catalogue<Real> catalogue() {
    return {embedding<Real>,  lstm<Real>,    gru<Real>,  rnn<Real>,       dense<Real>, norm<Real>,
            activation<Real>, dropout<Real>, fold<Real>, attention<Real>, loss<Real>,  head<Real>};
}

template <class Real>
Network<Real> build(const ModelSpec& spec) {
    return assemble<Real>(spec, catalogue<Real>());
}

template Network<float> build(const ModelSpec&);
template Network<double> build(const ModelSpec&);
template Network<Dual<double>> build(const ModelSpec&);
template Catalogue<Dual<double>> catalogue();

}  // namespace backsweep::cpu
