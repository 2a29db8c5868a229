/* The adjoint with every state stored. SPDX-License-Identifier: MIT */
#include "model.h"

state gradient_stored(state s) {
    static state states[STEPS];
    state a;
    for (int i = 0; i < STEPS; ++i) {
        states[i] = s;
        step(&s);
    }
    a = seed(&s);
    for (int i = STEPS; i-- > 0;) reverse_step(&states[i], &a);
    return a;
}
