// Reverses y' = -y^2 by explicit Euler with three slots and compares with the same sweep that stores everything.
// SPDX-License-Identifier: MIT
#include "backsweep/chain/callback_chain.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"

#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

namespace {

constexpr backsweep::Index links = 100;
constexpr double step_size = 0.01;

double gradient(std::unique_ptr<backsweep::Schedule> schedule) {
    backsweep::CallbackChain<double> chain(
        links, 1.5, [](backsweep::Index, double& x) { x -= step_size * x * x; },
        [](const double& x, double& a) { a = x; },
        [](backsweep::Index, const double& x, double& a) { a *= 1.0 - 2.0 * step_size * x; });
    backsweep::Execution execution(chain, std::move(schedule));
    execution.forward();
    execution.backward();
    return execution.adjoint();
}

}  // namespace

int main() {
    const double stored = gradient(backsweep::store_all(links));
    const double checkpointed = gradient(backsweep::revolve(links, 3));
    std::printf("dJ/dx0 = %.17g stored, %.17g with 3 slots\n", stored, checkpointed);
    return stored == checkpointed && std::isfinite(stored) && stored > 0.0 && stored < 1.5 ? 0 : 1;
}
