/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

static const double h = 0.01;

static state plus(state s, double c, state k) {
    const state sum = {s.x + c * k.x, s.y + c * k.y, s.p + c * k.p};
    return sum;
}

static state rate(state s) {
    const state k = {(s.p - s.y) * s.x, (s.x - 1.0) * s.y, 0.0};
    return k;
}

/* The transposed Jacobian of rate at s, times w. */
static state back(state s, state w) {
    const state b = {(s.p - s.y) * w.x + s.y * w.y, (s.x - 1.0) * w.y - s.x * w.x, s.x * w.x};
    return b;
}

static const state none = {0.0, 0.0, 0.0};

void step(state* s) {
    const state k1 = rate(*s);
    const state k2 = rate(plus(*s, h / 2, k1));
    const state k3 = rate(plus(*s, h / 2, k2));
    const state k4 = rate(plus(*s, h, k3));
    *s = plus(plus(plus(plus(*s, h / 6, k1), h / 3, k2), h / 3, k3), h / 6, k4);
}

void reverse_step(const state* s, state* a) {
    const state s2 = plus(*s, h / 2, rate(*s));
    const state s3 = plus(*s, h / 2, rate(s2));
    const state s4 = plus(*s, h, rate(s3));
    const state b4 = back(s4, plus(none, h / 6, *a));
    const state b3 = back(s3, plus(plus(none, h / 3, *a), h, b4));
    const state b2 = back(s2, plus(plus(none, h / 3, *a), h / 2, b3));
    const state b1 = back(*s, plus(plus(none, h / 6, *a), h / 2, b2));
    *a = plus(plus(plus(plus(*a, 1.0, b4), 1.0, b3), 1.0, b2), 1.0, b1);
}

double objective(const state* s) {
    return 0.5 * ((s->x - 2.0) * (s->x - 2.0) + (s->y - 1.0) * (s->y - 1.0));
}

state seed(const state* s) {
    const state a = {s->x - 2.0, s->y - 1.0, 0.0};
    return a;
}

void quit(const char* text) {
    fprintf(stderr, "%s\n", text);
    exit(EXIT_FAILURE);
}
