// The catalogue of plain-loop layers.
// SPDX-License-Identifier: MIT
#include "nn/reference/build.hpp"

#include "nn/reference/layers.hpp"

namespace backsweep::reference {

template <class Real>
LayerPointer<Real> recurrent(const RecurrentPart& part) {
    switch (part.spec.cell) {
        case RecurrentSpec::Cell::lstm:
            return lstm<Real>(part);
        case RecurrentSpec::Cell::gru:
            return gru<Real>(part);
        case RecurrentSpec::Cell::rnn_tanh:
        case RecurrentSpec::Cell::rnn_relu:
            break;
    }
    return rnn<Real>(part);
}

template <class Real>
Network<Real> build(const ModelSpec& spec) {
    return assemble<Real>(spec, {embedding<Real>, recurrent<Real>, dense<Real>, norm<Real>, activation<Real>, dropout<Real>, loss<Real>});
}

template Network<float> build(const ModelSpec&);
template Network<double> build(const ModelSpec&);

}  // namespace backsweep::reference
