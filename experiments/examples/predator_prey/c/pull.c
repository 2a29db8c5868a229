/* The adjoint in a loop of its own that asks for the next action. SPDX-License-Identifier: MIT */
#include "model.h"

#include "backsweep/c/backsweep.h"

state gradient_pull(state s) {
    state slot[SLOTS], tape = s, a = s;
    backsweep_options options = {.size = sizeof options, .steps = STEPS, .slots = SLOTS};
    backsweep_schedule* schedule = backsweep_create(&options);
    if (schedule == NULL) quit(backsweep_error_text());
    backsweep_action now = {0};
    while (backsweep_next(schedule, &now) == BACKSWEEP_OK && now.verb != BACKSWEEP_DONE) {
        /* clang-format off */
        switch (now.verb) {
            case BACKSWEEP_ADVANCE: for (int64_t i = now.first; i < now.last; ++i) step(&s); break;
            case BACKSWEEP_RECORD: case BACKSWEEP_TAPE: tape = s, step(&s); break;
            case BACKSWEEP_REVERSE: reverse_step(&tape, &a); break;
            case BACKSWEEP_SAVE: slot[now.to.index] = s; break;
            case BACKSWEEP_LOAD: case BACKSWEEP_TAKE: s = slot[now.from.index]; break;
            case BACKSWEEP_TURN: a = seed(&s); break;
        }
        /* clang-format on */
    }
    backsweep_destroy(schedule);
    return a;
}
