// The adjoint with every state stored. SPDX-License-Identifier: MIT
#include "model.hpp"

#include <vector>

State gradient_stored(State s) {
    std::vector<State> states;
    for (int i = 0; i < steps; ++i) {
        states.push_back(s);
        step(s);
    }
    State a = seed(s);
    for (int i = steps; i-- > 0;) reverse_step(states[i], a);
    return a;
}
