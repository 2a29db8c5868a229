/* The three ways give the same bits, and a finite difference agrees. SPDX-License-Identifier: MIT */
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double run(state s) {
    for (int i = 0; i < STEPS; ++i) step(&s);
    return objective(&s);
}

/* The difference errs by about d^2 = 1e-10, and 1e-11 of rounding. */
static int differs(double derivative, state plus, state minus, double distance) {
    const double difference = (run(plus) - run(minus)) / distance;
    printf("%.17g, by a central difference %.10g\n", derivative, difference);
    return !(fabs(derivative - difference) <= 1e-8 * fabs(derivative));
}

int main(void) {
    const double d = 1e-5;
    const state s = {1.3, 0.7, 1.1};
    const state stored = gradient_stored(s), pull = gradient_pull(s), push = gradient_push(s);
    const state px = {s.x + d, s.y, s.p}, py = {s.x, s.y + d, s.p}, pp = {s.x, s.y, s.p + d};
    const state mx = {s.x - d, s.y, s.p}, my = {s.x, s.y - d, s.p}, mp = {s.x, s.y, s.p - d};
    const int wrong = differs(pull.x, px, mx, px.x - mx.x) + differs(pull.y, py, my, py.y - my.y) +
                      differs(pull.p, pp, mp, pp.p - mp.p);
    const int bits = memcmp(&stored, &pull, sizeof stored) != 0 || memcmp(&stored, &push, sizeof stored) != 0;
    printf("C, %d steps with %d states: the gradient %s\n", STEPS, SLOTS,
           bits ? "differs from the stored one" : "has the bits of the stored one");
    return wrong != 0 || bits;
}
