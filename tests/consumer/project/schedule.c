/* Reverses 100 explicit Euler steps of y' = -y^2 with three slots, in a loop of its own.
 * SPDX-License-Identifier: MIT */
#include "backsweep/c/backsweep.h"

#include <stdio.h>

#define STEPS 100
#define SLOTS 3
#define H 0.01

int main(void) {
    backsweep_options options = BACKSWEEP_OPTIONS_INIT;
    options.steps = STEPS;
    options.slots = SLOTS;
    backsweep_schedule* schedule = backsweep_create(&options);
    if (!schedule) {
        fprintf(stderr, "%s\n", backsweep_error_text());
        return 1;
    }

    double x = 1.5, tape = 0.0, adjoint = 0.0, slot[SLOTS];
    long advances = 0;
    backsweep_action action;
    do {
        if (backsweep_next(schedule, &action) != BACKSWEEP_OK) return 1;
        switch (action.verb) {
        case BACKSWEEP_ADVANCE:
            for (int64_t i = action.first; i < action.last; ++i, ++advances) x -= H * x * x;
            break;
        case BACKSWEEP_RECORD:
        case BACKSWEEP_TAPE:
            tape = x;
            x -= H * x * x;
            break;
        case BACKSWEEP_REVERSE: adjoint *= 1.0 - 2.0 * H * tape; break;
        case BACKSWEEP_SAVE: slot[action.to.index] = x; break;
        case BACKSWEEP_LOAD:
        case BACKSWEEP_TAKE: x = slot[action.from.index]; break;
        case BACKSWEEP_TURN: adjoint = x; break;
        default: break;
        }
    } while (action.verb != BACKSWEEP_DONE);
    backsweep_destroy(schedule);

    double states[STEPS + 1];
    states[0] = 1.5;
    for (int i = 0; i < STEPS; ++i) states[i + 1] = states[i] - H * states[i] * states[i];
    double stored = states[STEPS];
    for (int i = STEPS; i-- > 0;) stored *= 1.0 - 2.0 * H * states[i];

    printf("backsweep %s: dJ/dx0 = %.17g with 3 slots (%ld advances), %.17g stored\n", backsweep_version(), adjoint,
           advances, stored);
    return adjoint == stored ? 0 : 1;
}
