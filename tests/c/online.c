/* A chain whose length the schedule does not know: the caller tells it where the chain ends, or one link ahead.
 * SPDX-License-Identifier: MIT */
#include "toy.h"

typedef struct sweep {
    toy t; /* the first member, so that toy_obey takes a sweep too */
    backsweep_schedule* schedule;
    int64_t length; /* known to the chain alone */
    int ahead;
    int told;
    int32_t needs_state;
} sweep;

static void tell(sweep* s) {
    check(!s->told && backsweep_finish(s->schedule, s->length) == BACKSWEEP_OK, "finish", backsweep_error_text());
    s->told = 1;
}

/* Late: a link that does not exist is asked for, and revoked. Ahead: told where one link is left. */
static int obey(const backsweep_action* action, void* user) {
    sweep* s = (sweep*)user;
    if (action->verb == BACKSWEEP_ADVANCE && !s->told && action->first == s->length) {
        tell(s);
        return 0;
    }
    if (toy_obey(action, &s->t) != 0) return -1;
    if (s->ahead && !s->told && action->verb == BACKSWEEP_ADVANCE && action->last == s->length - 1) tell(s);
    return 0;
}

static void begin(sweep* s) {
    s->t = toy_at_start(s->needs_state);
    s->told = 0;
    if (s->ahead && s->length <= 1) tell(s);
}

static void by_next(sweep* s) {
    backsweep_action action;
    for (begin(s); backsweep_next(s->schedule, &action) == BACKSWEEP_OK && action.verb != BACKSWEEP_DONE;)
        obey(&action, s);
}

static void by_fill(sweep* s) {
    backsweep_action actions[50];
    size_t count, k;
    begin(s);
    while (backsweep_fill(s->schedule, actions, 50, &count) == BACKSWEEP_OK && actions[0].verb != BACKSWEEP_DONE) {
        for (k = 0; k < count; ++k) obey(&actions[k], s);
    }
}

static void by_run(sweep* s) {
    backsweep_callbacks callbacks = BACKSWEEP_CALLBACKS_INIT;
    callbacks.otherwise = obey;
    begin(s);
    check(backsweep_run(s->schedule, &callbacks, s) == BACKSWEEP_OK, "run", backsweep_error_text());
}

static backsweep_schedule* online(int64_t slots, int32_t needs_state) {
    backsweep_options options = BACKSWEEP_OPTIONS_INIT;
    backsweep_schedule* schedule;
    options.family = "online";
    options.slots = slots;
    options.needs_state = needs_state;
    schedule = backsweep_create(&options);
    check(schedule != NULL, "online", backsweep_error_text());
    return schedule;
}

static void gradients(int64_t slots, int64_t length, int ahead, int32_t needs_state, const toy* stored) {
    static void (*const ways[])(sweep*) = {by_next, by_fill, by_run};
    sweep s;
    size_t way;
    backsweep_machine machine = BACKSWEEP_MACHINE_INIT;
    backsweep_prediction counted = BACKSWEEP_PREDICTION_INIT;
    char where[64];
    snprintf(where, sizeof where, "%d links, %d slots, %s", (int)length, (int)slots, ahead ? "ahead" : "late");
    s.schedule = online(slots, needs_state);
    s.needs_state = needs_state;
    s.length = length;
    s.ahead = ahead;
    for (way = 0; way < sizeof ways / sizeof ways[0]; ++way) {
        ways[way](&s);
        check(s.told, "the chain ends", where);
        check_closed_form(&s.t, length, where);
        check(same_gradient(&s.t, stored), "the bits of storing everything", where);
        check(backsweep_rewind(s.schedule) == BACKSWEEP_OK, "rewind", where);
    }
    machine.ending = ahead ? BACKSWEEP_AHEAD : BACKSWEEP_LATE;
    machine.steps = length;
    check(backsweep_predict(s.schedule, &machine, &counted) == BACKSWEEP_OK, "predict", backsweep_error_text());
    check(counted.advances == s.t.advances && counted.recorded == length && counted.recorded == s.t.recorded,
          "counted as predicted", where);
    check(counted.peak_slots[BACKSWEEP_RAM] <= slots, "no more slots than offered", where);
    by_next(&s);
    check(same_gradient(&s.t, stored), "open again after a prediction", where);
    backsweep_destroy(s.schedule);
}

static toy store_all(int64_t length) {
    backsweep_options options = BACKSWEEP_OPTIONS_INIT;
    backsweep_callbacks callbacks = BACKSWEEP_CALLBACKS_INIT;
    backsweep_schedule* schedule;
    toy t = toy_at_start(0);
    options.family = "store_all";
    options.steps = length;
    schedule = backsweep_create(&options);
    callbacks.otherwise = toy_obey;
    check(backsweep_run(schedule, &callbacks, &t) == BACKSWEEP_OK, "store_all", backsweep_error_text());
    backsweep_destroy(schedule);
    return t;
}

static int stop_at_link_20(const backsweep_action* action, void* user) {
    (void)user;
    return action->verb == BACKSWEEP_ADVANCE && action->first == 20 ? 33 : 0;
}

static void misuse(void) {
    backsweep_schedule* schedule = online(3, 0);
    backsweep_callbacks callbacks = BACKSWEEP_CALLBACKS_INIT;
    backsweep_prediction counted = BACKSWEEP_PREDICTION_INIT;
    backsweep_action action;
    int i;
    callbacks.advance = callbacks.save = stop_at_link_20;
    check(backsweep_run(schedule, &callbacks, NULL) == BACKSWEEP_INVALID_ARGUMENT, "a drop is not served", "run");
    check(strstr(backsweep_error_text(), "callbacks.drop is NULL") != NULL, "in words", backsweep_error_text());
    check(backsweep_rewind(schedule) == BACKSWEEP_OK, "rewind", backsweep_error_text());
    callbacks.drop = stop_at_link_20;
    check(backsweep_run(schedule, &callbacks, NULL) == BACKSWEEP_STOPPED, "the callback stops", backsweep_error_text());
    check(strstr(backsweep_error_text(), "'advance [20, 21)' answered 33") != NULL, "in words", backsweep_error_text());
    check(backsweep_predict(schedule, NULL, &counted) == BACKSWEEP_INVALID_ARGUMENT, "an open end wants a length",
          backsweep_error_text());
    for (i = 0; i < 30; ++i) check(backsweep_next(schedule, &action) == BACKSWEEP_OK, "next", "open");
    check(backsweep_finish(schedule, 2) == BACKSWEEP_INVALID_ARGUMENT, "an end behind the chain",
          backsweep_error_text());
    check(backsweep_finish(schedule, -1) == BACKSWEEP_INVALID_ARGUMENT, "a negative end", backsweep_error_text());
    check(backsweep_finish(schedule, INT64_MAX) == BACKSWEEP_INVALID_ARGUMENT, "an end too far",
          backsweep_error_text());
    check(backsweep_finish(schedule, 100) == BACKSWEEP_OK, "an end far ahead", backsweep_error_text());
    check(backsweep_finish(schedule, 100) == BACKSWEEP_SCHEDULE_ERROR, "told twice", backsweep_error_text());
    for (i = 0; i < 10000 && action.verb != BACKSWEEP_DONE; ++i) backsweep_next(schedule, &action);
    check(action.verb == BACKSWEEP_DONE, "and there it ends", "finish");
    backsweep_destroy(schedule);
}

static int stop_beyond_link_0(const backsweep_action* action, void* user) {
    (void)user;
    return action->first > 1;
}

/* Looking for a missing callback does not forget a length that was told before the run. */
static void told_before_the_run(void) {
    backsweep_schedule* schedule = online(3, 0);
    backsweep_callbacks callbacks = BACKSWEEP_CALLBACKS_INIT;
    callbacks.advance = callbacks.record = callbacks.tape = callbacks.reverse = stop_beyond_link_0;
    callbacks.save = callbacks.load = callbacks.take = callbacks.drop = callbacks.turn = stop_beyond_link_0;
    check(backsweep_finish(schedule, 1) == BACKSWEEP_OK, "finish", backsweep_error_text());
    check(backsweep_run(schedule, &callbacks, NULL) == BACKSWEEP_OK, "it ends", backsweep_error_text());
    backsweep_destroy(schedule);
}

int main(void) {
    int64_t length, slots;
    for (length = 0; length <= 40; ++length) {
        const toy stored = store_all(length);
        for (slots = 1; slots <= 6; ++slots) {
            gradients(slots, length, 0, 0, &stored);
            gradients(slots, length, 1, 0, &stored);
            gradients(slots, length, 0, 1, &stored);
            gradients(slots, length, 1, 1, &stored);
        }
    }
    misuse();
    told_before_the_run();
    return verdict("open-ended schedules");
}
