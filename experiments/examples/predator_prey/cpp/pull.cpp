// The adjoint in a loop of its own that asks for the next action. SPDX-License-Identifier: MIT
#include "model.hpp"

#include "backsweep/schedule/revolve.hpp"

#include <vector>

State gradient_pull(State s) {
    using namespace backsweep;
    std::vector<State> slot(slots);
    State tape, a;
    const auto schedule = revolve(steps, slots);
    for (Action now = schedule->next(); now.verb != Verb::done; now = schedule->next()) {
        // clang-format off
        switch (now.verb) {
            case Verb::advance: for (Index i = now.steps.first; i < now.steps.last; ++i) step(s); break;
            case Verb::record: case Verb::tape: tape = s, step(s); break;
            case Verb::reverse: reverse_step(tape, a); break;
            case Verb::save: slot[now.to.index] = s; break;
            case Verb::load: case Verb::take: s = slot[now.from.index]; break;
            case Verb::turn: a = seed(s); break;
            default: break;
        }
        // clang-format on
    }
    return a;
}
