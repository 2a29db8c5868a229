// Rotary positions, a step and a pair at a time: one angle turns that pair of all heads of all sequences.
// SPDX-License-Identifier: MIT
#include "nn/cpu/rotary.hpp"

#include <cmath>

namespace backsweep::cpu {

template <class Real>
void rotate(const Rotary& rotary, Turn turn, Index first, Index steps, Index sequences, Index heads, Index width,
            Rows<Real> x) {
    const Index pairs = rotary.dim / 2;
    const bool half = rotary.style == Rotary::Style::half;
    const Index to_next = half ? 1 : 2, to_partner = half ? pairs : 1;
    for (Index k = 0; k < pairs; ++k) {
        const double frequency =
            std::pow(rotary.base, -2.0 * static_cast<double>(k) / static_cast<double>(rotary.dim));
        for (Index t = 0; t < steps; ++t) {
            const double angle = static_cast<double>(first + t) * frequency;
            const Real c = static_cast<Real>(std::cos(angle));
            const Real s = static_cast<Real>(turn == Turn::forth ? std::sin(angle) : -std::sin(angle));
            for (Index b = 0; b < sequences; ++b) {
                Real* pair = x[t * sequences + b] + k * to_next;
                for (Index h = 0; h < heads; ++h, pair += width) {
                    const Real one = pair[0], other = pair[to_partner];
                    pair[0] = one * c - other * s;
                    pair[to_partner] = other * c + one * s;
                }
            }
        }
    }
}

template void rotate(const Rotary&, Turn, Index, Index, Index, Index, Index, Rows<float>);
template void rotate(const Rotary&, Turn, Index, Index, Index, Index, Index, Rows<double>);
template void rotate(const Rotary&, Turn, Index, Index, Index, Index, Index, Rows<Dual<double>>);

}  // namespace backsweep::cpu
