// The three ways give the same bits, and a finite difference agrees. SPDX-License-Identifier: MIT
#include "model.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

double run(State s) {
    for (int i = 0; i < steps; ++i) step(s);
    return objective(s);
}

/// The difference errs by about d^2 = 1e-10, and 1e-11 of rounding.
bool agrees(double derivative, State start, double State::*part) {
    constexpr double d = 1e-5;
    State plus = start, minus = start;
    plus.*part += d;
    minus.*part -= d;
    const double difference = (run(plus) - run(minus)) / (plus.*part - minus.*part);
    std::printf("%.17g, by a central difference %.10g\n", derivative, difference);
    return std::abs(derivative - difference) <= 1e-8 * std::abs(derivative);
}

bool same_bits(const State& a, const State& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

int main() {
    const State start{1.3, 0.7, 1.1};
    const State stored = gradient_stored(start), pull = gradient_pull(start), push = gradient_push(start);
    bool right = true;
    right = agrees(pull.x, start, &State::x) && right;
    right = agrees(pull.y, start, &State::y) && right;
    right = agrees(pull.p, start, &State::p) && right;
    const bool bits = same_bits(stored, pull) && same_bits(stored, push);
    std::printf("C++, %d steps with %d states: the gradient %s\n", steps, slots,
                bits ? "has the bits of the stored one" : "differs from the stored one");
    return right && bits ? 0 : 1;
}
