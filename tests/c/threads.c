/* Any number of schedules on any number of threads: no state is shared, and every thread has its own error text.
 * SPDX-License-Identifier: MIT */
#include "toy.h"

#include <pthread.h>

#define THREADS 8
#define PLANS 300

typedef struct worker {
    int number;
    int failures;
    toy result;
} worker;

static backsweep_schedule* plan(int64_t steps, int64_t slots) {
    backsweep_options options = BACKSWEEP_OPTIONS_INIT;
    options.steps = steps;
    options.slots = slots;
    return backsweep_create(&options);
}

/* PLANS schedules side by side, one action of each in turn; an error of the thread's own now and then. */
static void* work(void* argument) {
    worker* w = (worker*)argument;
    static const int64_t steps = 61;
    backsweep_schedule* schedules[PLANS];
    toy* toys = (toy*)malloc(PLANS * sizeof(toy));
    char own[64];
    int left = PLANS, k;
    snprintf(own, sizeof own, "came -%d", w->number + 1);
    for (k = 0; k < PLANS; ++k) {
        schedules[k] = plan(steps, 1 + (k + w->number) % 9);
        toys[k] = toy_at_start(0);
        w->failures += schedules[k] == NULL;
        w->failures += plan(-(w->number + 1), 1) != NULL;
        w->failures += strstr(backsweep_error_text(), own) == NULL;
    }
    while (left > 0) {
        left = PLANS;
        for (k = 0; k < PLANS; ++k) {
            backsweep_action action;
            w->failures += backsweep_next(schedules[k], &action) != BACKSWEEP_OK;
            if (action.verb == BACKSWEEP_DONE)
                --left;
            else
                w->failures += toy_obey(&action, &toys[k]) != 0;
        }
    }
    for (k = 0; k < PLANS; ++k) {
        w->failures += !same_gradient(&toys[k], &toys[0]);
        backsweep_destroy(schedules[k]);
    }
    w->failures += strstr(backsweep_error_text(), own) == NULL;
    w->result = toys[0];
    free(toys);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    static worker workers[THREADS];
    int k;
    for (k = 0; k < THREADS; ++k) {
        workers[k].number = k;
        check(pthread_create(&threads[k], NULL, work, &workers[k]) == 0, "a thread starts", "threads");
    }
    for (k = 0; k < THREADS; ++k) {
        check(pthread_join(threads[k], NULL) == 0, "a thread ends", "threads");
        check(workers[k].failures == 0, "a thread is not disturbed", "threads");
        check(same_gradient(&workers[k].result, &workers[0].result), "the same bits on every thread", "threads");
    }
    check_closed_form(&workers[0].result, 61, "threads");
    check(strcmp(backsweep_error_text(), "") == 0, "another thread's error is not this one's", backsweep_error_text());
    return verdict("threads");
}
