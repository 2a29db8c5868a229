/* A chain with a closed form, for the tests of the C face: x_{i+1} = x_i / (1 + h p x_i) has x_n = x_0 / (1 + n h p
 * x_0), so the gradient of J = x_n with respect to x_0 and p is known. SPDX-License-Identifier: MIT */
#ifndef BACKSWEEP_TESTS_C_TOY_H
#define BACKSWEEP_TESTS_C_TOY_H

#include "backsweep/c/backsweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static inline void check(int passed, const char* what, const char* where) {
    if (passed) return;
    ++failures;
    fprintf(stderr, "failed: %s (%s)\n", what, where);
}

static inline int verdict(const char* test) {
    if (failures == 0) printf("Backsweep %s: %s passed\n", backsweep_version(), test);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const double h = 0.013, p = 0.71, x0 = 1.37;

/* What a caller owns; the tape of a link is its x_i. With needs_state the working state serves the reverse instead. */
typedef struct toy {
    double x, tape, a;
    double end, p_gradient;
    int64_t advances, recorded;
    int32_t needs_state;
    double slots[4][512];
} toy;

static inline toy toy_at_start(int32_t needs_state) {
    toy t;
    memset(&t, 0, sizeof t);
    t.x = x0;
    t.tape = t.a = NAN;
    t.needs_state = needs_state;
    return t;
}

static inline double toy_link(double x) {
    return x / (1.0 + h * p * x);
}

static inline double* toy_slot(toy* t, backsweep_slot slot) {
    return &t->slots[slot.tier][slot.index];
}

static inline double toy_out(double* place) {
    const double value = *place;
    *place = NAN;
    return value;
}

/* Does one action: the body of a pull loop, and a callback. What becomes unspecified becomes NAN. */
static inline int toy_obey(const backsweep_action* action, void* user) {
    toy* t = (toy*)user;
    double at, stepped;
    int64_t i;
    switch (action->verb) {
        case BACKSWEEP_ADVANCE:
            for (i = action->first; i < action->last; ++i) t->x = toy_link(t->x);
            t->advances += action->last - action->first;
            return 0;
        case BACKSWEEP_RECORD:
            t->tape = t->x;
            t->x = toy_link(t->x);
            ++t->recorded;
            return 0;
        case BACKSWEEP_TAPE:
            t->tape = t->x;
            if (!t->needs_state) t->x = NAN;
            ++t->recorded;
            return 0;
        case BACKSWEEP_REVERSE:
            at = t->needs_state ? t->x : t->tape;
            stepped = 1.0 + h * p * at;
            t->p_gradient -= t->a * h * (at * at) / (stepped * stepped);
            t->a /= stepped * stepped;
            t->tape = t->x = NAN;
            return 0;
        case BACKSWEEP_SAVE:
            *toy_slot(t, action->to) = t->x;
            return 0;
        case BACKSWEEP_LOAD:
            t->x = *toy_slot(t, action->from);
            return 0;
        case BACKSWEEP_TAKE:
            t->x = toy_out(toy_slot(t, action->from));
            return 0;
        case BACKSWEEP_RESTART:
            t->x = toy_link(*toy_slot(t, action->from));
            return 0;
        case BACKSWEEP_STOW:
            *toy_slot(t, action->to) = toy_out(&t->tape);
            return 0;
        case BACKSWEEP_FETCH:
            t->tape = toy_out(toy_slot(t, action->from));
            return 0;
        case BACKSWEEP_DROP:
            *(action->from.index < 0 ? &t->tape : toy_slot(t, action->from)) = NAN;
            return 0;
        case BACKSWEEP_MOVE:
            *toy_slot(t, action->to) = toy_out(toy_slot(t, action->from));
            return 0;
        case BACKSWEEP_TURN:
            t->end = t->x;
            t->a = 1.0;
            return 0;
        default:
            return -1;
    }
}

/* The result by the closed form, to a few roundings a link. */
static inline void check_closed_form(const toy* t, int64_t steps, const char* where) {
    const double grown = 1.0 + (double)steps * h * p * x0;
    check(fabs(t->a - 1.0 / (grown * grown)) <= 1e-13, "dJ/dx_0 is the closed form", where);
    check(fabs(t->p_gradient + (double)steps * h * x0 * x0 / (grown * grown)) <= 1e-12, "dJ/dp is the closed form",
          where);
}

static inline int same_gradient(const toy* s, const toy* t) {
    return memcmp(&s->a, &t->a, sizeof s->a) == 0 && memcmp(&s->p_gradient, &t->p_gradient, sizeof s->p_gradient) == 0;
}

#endif
