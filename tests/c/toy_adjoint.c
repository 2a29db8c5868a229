/* A C program that drives a reverse sweep by the stream of actions alone.
 * The chain x_{i+1} = x_i / (1 + h p x_i) has x_n = x_0 / (1 + n h p x_0), so the gradient of J = x_n with respect to
 * x_0 and p is known in closed form. SPDX-License-Identifier: MIT */
#include "backsweep/c/backsweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void check(int passed, const char* what, const char* where) {
    if (passed) return;
    ++failures;
    fprintf(stderr, "failed: %s (%s)\n", what, where);
}

typedef struct gradient {
    double x0, p, end;
    int64_t advances, recorded;
} gradient;

static const double h = 0.013, p = 0.71, x0 = 1.37;

static double run_link(double x) {
    return x / (1.0 + h * p * x);
}

/* The tape of a link is its x_i; with needs_state the working state serves instead, and the tape stays unread. */
static gradient play(backsweep_schedule* schedule, int32_t needs_state) {
    gradient g = {0.0, 0.0, 0.0, 0, 0};
    double slots[512] = {0.0};
    double x = x0, tape = NAN, a = NAN, stepped;
    backsweep_action block[7];
    size_t count = 0, k = 0;
    int64_t i;
    for (;;) {
        if (k == count) {
            if (backsweep_schedule_fill(schedule, block, 7, &count) != BACKSWEEP_OK || count == 0) break;
            k = 0;
        }
        const backsweep_action action = block[k++];
        switch (action.verb) {
            case BACKSWEEP_ADVANCE:
                for (i = action.first; i < action.last; ++i) x = run_link(x);
                g.advances += action.last - action.first;
                break;
            case BACKSWEEP_RECORD:
                tape = x;
                x = run_link(x);
                ++g.recorded;
                break;
            case BACKSWEEP_TAPE:
                tape = x;
                if (!needs_state) x = NAN;
                ++g.recorded;
                break;
            case BACKSWEEP_REVERSE:
                stepped = 1.0 + h * p * (needs_state ? x : tape);
                g.p -= a * h * (needs_state ? x * x : tape * tape) / (stepped * stepped);
                a /= stepped * stepped;
                tape = x = NAN;
                break;
            case BACKSWEEP_SAVE:
                slots[action.to.index] = x;
                break;
            case BACKSWEEP_LOAD:
                x = slots[action.from.index];
                break;
            case BACKSWEEP_TAKE:
                x = slots[action.from.index];
                slots[action.from.index] = NAN;
                break;
            case BACKSWEEP_STOW:
                slots[action.to.index] = tape;
                tape = NAN;
                break;
            case BACKSWEEP_FETCH:
                tape = slots[action.from.index];
                slots[action.from.index] = NAN;
                break;
            case BACKSWEEP_DROP:
                tape = NAN;
                break;
            case BACKSWEEP_TURN:
                g.end = x;
                a = 1.0;
                break;
            case BACKSWEEP_DONE:
                g.x0 = a;
                return g;
            default:
                check(0, backsweep_verb_name(action.verb), "unexpected verb");
                return g;
        }
    }
    check(0, backsweep_error_text(), "fill");
    return g;
}

static void gradient_of(const char* family, int64_t slots, int64_t period, int32_t needs_state, int64_t steps,
                        gradient* first) {
    backsweep_schedule_options options = BACKSWEEP_SCHEDULE_OPTIONS_INIT;
    const double grown = 1.0 + (double)steps * h * p * x0;
    backsweep_schedule* schedule;
    gradient g, again;
    options.family = family;
    options.steps = steps;
    options.slots = slots;
    options.period = period;
    options.needs_state = needs_state;
    schedule = backsweep_schedule_create(&options);
    check(schedule != NULL, backsweep_error_text(), family);
    if (schedule == NULL) return;
    g = play(schedule, needs_state);
    check(fabs(g.end - x0 / grown) <= 1e-13 * x0, "x_n is the closed form", family);
    check(fabs(g.x0 - 1.0 / (grown * grown)) <= 1e-13, "dJ/dx_0 is the closed form", family);
    check(fabs(g.p + (double)steps * h * x0 * x0 / (grown * grown)) <= 1e-12, "dJ/dp is the closed form", family);
    check(g.recorded == steps, "every link is recorded once", family);
    if (first->recorded < 0) *first = g;
    check(memcmp(&g.x0, &first->x0, sizeof g.x0) == 0 && memcmp(&g.p, &first->p, sizeof g.p) == 0,
          "the gradient has the same bits under every schedule", family);
    check(backsweep_schedule_rewind(schedule) == BACKSWEEP_OK, "rewind", family);
    again = play(schedule, needs_state);
    check(memcmp(&g, &again, sizeof g) == 0, "a rewound schedule plays the same", family);
    check(backsweep_schedule_finish(schedule, steps) == BACKSWEEP_SCHEDULE_ERROR, "finish is refused", family);
    check(strstr(backsweep_error_text(), "finish") != NULL, "and says so", family);
    backsweep_schedule_destroy(schedule);
}

static void refused(backsweep_schedule_options options, const char* word) {
    check(backsweep_schedule_create(&options) == NULL, "options are refused", word);
    check(strstr(backsweep_error_text(), word) != NULL, backsweep_error_text(), word);
}

int main(void) {
    static const int64_t lengths[] = {0, 1, 2, 97};
    backsweep_schedule_options options = BACKSWEEP_SCHEDULE_OPTIONS_INIT;
    backsweep_schedule* schedule;
    backsweep_action action;
    size_t written = 9;
    size_t k;
    int32_t needs_state;
    for (k = 0; k < sizeof lengths / sizeof lengths[0]; ++k) {
        for (needs_state = 0; needs_state < 2; ++needs_state) {
            gradient first = {0.0, 0.0, 0.0, 0, -1};
            gradient_of("store_all", 0, 0, needs_state, lengths[k], &first);
            gradient_of("revolve", 1, 0, needs_state, lengths[k], &first);
            gradient_of("revolve", 3, 0, needs_state, lengths[k], &first);
            gradient_of("revolve", 200, 0, needs_state, lengths[k], &first);
            gradient_of("periodic", 0, 10, needs_state, lengths[k], &first);
        }
    }

    check(backsweep_schedule_create(NULL) == NULL, "no options", "create");
    check(strstr(backsweep_error_text(), "options is NULL") != NULL, backsweep_error_text(), "create");
    options.slots = 0;
    refused(options, "slots must be 1 or more");
    options.slots = 3;
    options.steps = -1;
    refused(options, "steps must be 0 or more");
    options.steps = 5;
    options.period = 2;
    refused(options, "option period is not used");
    options.period = 0;
    options.family = "revolver";
    refused(options, "'revolver' is not known");
    options.family = NULL;
    options.size = 1000;
    refused(options, "options.size is 1000");
    options.size = offsetof(backsweep_schedule_options, period);
    options.period = 77;
    schedule = backsweep_schedule_create(&options);
    check(schedule != NULL, "an older, shorter options struct is served", backsweep_error_text());

    check(backsweep_schedule_next(NULL, &action) == BACKSWEEP_INVALID_ARGUMENT, "no schedule", "next");
    check(backsweep_schedule_next(schedule, NULL) == BACKSWEEP_INVALID_ARGUMENT, "no action", "next");
    check(backsweep_schedule_fill(schedule, NULL, 3, &written) == BACKSWEEP_INVALID_ARGUMENT, "no room", "fill");
    check(backsweep_schedule_fill(schedule, &action, 1, NULL) == BACKSWEEP_INVALID_ARGUMENT, "no number", "fill");
    check(backsweep_schedule_next(schedule, &action) == BACKSWEEP_OK && action.verb == BACKSWEEP_SAVE &&
              action.to.tier == BACKSWEEP_RAM && action.to.index == 0 && action.from.index == -1 && action.first == 0,
          "a refused call takes no action away", "next");
    while (action.verb != BACKSWEEP_DONE) check(backsweep_schedule_next(schedule, &action) == BACKSWEEP_OK, "next", "");
    check(backsweep_schedule_fill(schedule, &action, 1, &written) == BACKSWEEP_OK && written == 1 &&
              action.verb == BACKSWEEP_DONE,
          "done is repeated", "fill");
    backsweep_schedule_destroy(schedule);
    backsweep_schedule_destroy(NULL);
    check(strcmp(backsweep_verb_name(BACKSWEEP_TURN), "turn") == 0, "names of verbs", "verb_name");
    check(strlen(backsweep_version()) >= 5, "a version", backsweep_version());

    if (failures == 0) printf("Backsweep %s: C face passed\n", backsweep_version());
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
