// The adjoint played by the library: three functions make a chain. SPDX-License-Identifier: MIT
#include "model.hpp"

#include "backsweep/chain/callback_chain.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/schedule/revolve.hpp"

State gradient_push(State start) {
    using namespace backsweep;
    CallbackChain<State> chain(
        steps, start, [](Index, State& s) { step(s); }, [](const State& s, State& a) { a = seed(s); },
        [](Index, const State& s, State& a) { reverse_step(s, a); });
    Execution sweep(chain, revolve(steps, slots));
    sweep.forward();
    sweep.backward();
    return sweep.adjoint();
}
