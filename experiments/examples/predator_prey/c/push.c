/* The adjoint as callbacks, one for each verb. SPDX-License-Identifier: MIT */
#include "model.h"

#include "backsweep/c/backsweep.h"

/* clang-format off */
typedef struct sweep { state s, tape, a, slot[SLOTS]; } sweep;
typedef const backsweep_action action;
static int advance(action* now, void* user) {
    for (int64_t i = now->first; i < now->last; ++i) step(&((sweep*)user)->s);
    return 0;
}
static int record(action* now, void* user) { sweep* w = user; (void)now; w->tape = w->s; step(&w->s); return 0; }
static int reverse(action* now, void* user) { sweep* w = user; (void)now; reverse_step(&w->tape, &w->a); return 0; }
static int save(action* now, void* user) { sweep* w = user; w->slot[now->to.index] = w->s; return 0; }
static int load(action* now, void* user) { sweep* w = user; w->s = w->slot[now->from.index]; return 0; }
static int turn(action* now, void* user) { sweep* w = user; (void)now; w->a = seed(&w->s); return 0; }
/* clang-format on */

state gradient_push(state s) {
    sweep w = {.s = s};
    backsweep_options options = {.size = sizeof options, .steps = STEPS, .slots = SLOTS};
    backsweep_callbacks calls = {sizeof calls, advance, record, record, reverse, save, load, load, .turn = turn};
    backsweep_schedule* schedule = backsweep_create(&options);
    if (backsweep_run(schedule, &calls, &w) != BACKSWEEP_OK) quit(backsweep_error_text());
    backsweep_destroy(schedule);
    return w.a;
}
