/* The adjoint in a loop that survives kill -9: start the program again and it goes on. SPDX-License-Identifier: MIT */
#include "model.h"

#include "backsweep/c/backsweep_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static state gradient_kept(state s, long dies_at) {
    state tape = s, a = {0};
    backsweep_options schedule = {.size = sizeof schedule, .steps = STEPS, .slots = SLOTS};
    backsweep_memory x = {&s, sizeof s, BACKSWEEP_DOUBLES, 0}, adjoint = {&a, sizeof a, BACKSWEEP_DOUBLES, 0};
    backsweep_sweep_options options = {.size = sizeof options, .schedule = &schedule, .state = &x, .adjoint = &adjoint,
                                       .no_sums = 1, .folder = "survivor_scratch", .commit_links = 50};
    backsweep_sweep* sweep = backsweep_sweep_open(&options);
    if (sweep == NULL) quit(backsweep_error_text());
    puts(backsweep_sweep_recovery_text(sweep));
    backsweep_action now = {0};
    while (backsweep_sweep_next(sweep, &now) == BACKSWEEP_OK && now.verb != BACKSWEEP_DONE) {
        if (dies_at-- == 1) abort();
        /* clang-format off */
        switch (now.verb) {
            case BACKSWEEP_ADVANCE: for (int64_t i = now.first; i < now.last; ++i) step(&s); break;
            case BACKSWEEP_RECORD: case BACKSWEEP_TAPE: tape = s, step(&s); break;
            case BACKSWEEP_REVERSE: reverse_step(&tape, &a); break;
            case BACKSWEEP_TURN: a = seed(&s); break;
        }
        /* clang-format on */
    }
    if (now.verb != BACKSWEEP_DONE) quit(backsweep_error_text());
    backsweep_sweep_close(sweep, 1);
    return a;
}

/* With a number: dies at that action. */
int main(int count, char** words) {
    const state s = {1.3, 0.7, 1.1};
    const state kept = gradient_kept(s, count > 1 ? atol(words[1]) : 0), stored = gradient_stored(s);
    const int bits = memcmp(&stored, &kept, sizeof stored) != 0;
    printf("C, %d steps, killed or not: the gradient %s\n", STEPS, bits ? "differs from the stored one" : "has the bits of the stored one");
    return bits;
}
