// The C++ example of README.md, word for word; tests/consumer/readme.sh compares.
// SPDX-License-Identifier: MIT
#include "backsweep/chain/callback_chain.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/revolve.hpp"

#include <cmath>
#include <cstdio>

int main() {
    using namespace backsweep;
    constexpr Index steps = 100'000, slots = 20;
    constexpr double h = 1e-5;
    CallbackChain<double> chain(
        steps, 0.5,                                                           // steps, x_0
        [](Index, double& x) { x += h * std::sin(x); },                       // a step: x_i -> x_{i+1}
        [](const double& x, double& a) { a = x; },                            // J = x_N^2 / 2
        [](Index, const double& x, double& a) { a *= 1 + h * std::cos(x); });  // its adjoint: a_{i+1} -> a_i
    Execution sweep(chain, revolve(steps, slots));  // 20 states are kept, not 100,000
    sweep.forward();
    sweep.backward();
    std::printf("dJ/dx0 = %.12g, %.2f extra evaluations a step\n", sweep.adjoint(),
                static_cast<double>(sweep.counts().advances) / steps);
}
