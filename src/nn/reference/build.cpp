// The catalogue of plain-loop layers.
// SPDX-License-Identifier: MIT
#include "nn/reference/build.hpp"

#include "nn/cpu/layers.hpp"
#include "nn/reference/layers.hpp"

namespace backsweep::reference {

template <class Real>
Network<Real> build(const ModelSpec& spec) {
    return assemble<Real>(spec,
                          {embedding<Real>, lstm<Real>, gru<Real>, rnn<Real>, dense<Real>, norm<Real>, activation<Real>,
                           dropout<Real>, cpu::fold<Real>, attention<Real>, loss<Real>, head<Real>});
}

template Network<float> build(const ModelSpec&);
template Network<double> build(const ModelSpec&);
template Network<Dual<double>> build(const ModelSpec&);

}  // namespace backsweep::reference
