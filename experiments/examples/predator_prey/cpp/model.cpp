// SPDX-License-Identifier: MIT
#include "model.hpp"

namespace {

constexpr double h = 0.01;

State operator+(State s, State k) {
    return {s.x + k.x, s.y + k.y, s.p + k.p};
}
State operator*(double c, State k) {
    return {c * k.x, c * k.y, c * k.p};
}

State rate(State s) {
    return {(s.p - s.y) * s.x, (s.x - 1.0) * s.y, 0.0};
}

/// The transposed Jacobian of rate at s, times w.
State back(State s, State w) {
    return {(s.p - s.y) * w.x + s.y * w.y, (s.x - 1.0) * w.y - s.x * w.x, s.x * w.x};
}

}  // namespace

void step(State& s) {
    const State k1 = rate(s);
    const State k2 = rate(s + h / 2 * k1);
    const State k3 = rate(s + h / 2 * k2);
    const State k4 = rate(s + h * k3);
    s = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
}

void reverse_step(const State& s, State& a) {
    const State s2 = s + h / 2 * rate(s);
    const State s3 = s + h / 2 * rate(s2);
    const State s4 = s + h * rate(s3);
    const State b4 = back(s4, h / 6 * a);
    const State b3 = back(s3, h / 3 * a + h * b4);
    const State b2 = back(s2, h / 3 * a + h / 2 * b3);
    const State b1 = back(s, h / 6 * a + h / 2 * b2);
    a = a + b1 + b2 + b3 + b4;
}

double objective(const State& s) {
    return 0.5 * ((s.x - 2.0) * (s.x - 2.0) + (s.y - 1.0) * (s.y - 1.0));
}

State seed(const State& s) {
    return {s.x - 2.0, s.y - 1.0, 0.0};
}
