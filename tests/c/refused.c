/* What cannot be worked with is an error in words, and takes nothing away. SPDX-License-Identifier: MIT */
#include "toy.h"

#include <limits.h>

static void says(int status, int wanted, const char* words) {
    check(status == wanted, "the status", words);
    check(strstr(backsweep_error_text(), words) != NULL, backsweep_error_text(), words);
}

static void not_made(backsweep_schedule* schedule, const char* words) {
    check(schedule == NULL, "nothing is made", words);
    says(BACKSWEEP_INVALID_ARGUMENT, BACKSWEEP_INVALID_ARGUMENT, words);
    backsweep_destroy(schedule);
}

static backsweep_options of(const char* family, int64_t steps, int64_t slots) {
    backsweep_options options = BACKSWEEP_OPTIONS_INIT;
    options.family = family;
    options.steps = steps;
    options.slots = slots;
    return options;
}

static backsweep_schedule* made(const char* family, int64_t steps, int64_t slots) {
    const backsweep_options options = of(family, steps, slots);
    backsweep_schedule* schedule = backsweep_create(&options);
    check(schedule != NULL, backsweep_error_text(), family);
    return schedule;
}

static void options(void) {
    backsweep_options o = of("revolve", 5, 0);
    not_made(backsweep_create(NULL), "options is NULL");
    not_made(backsweep_create(&o), "slots must be 1 or more");
    o = of("revolve", -1, 3);
    not_made(backsweep_create(&o), "steps must be 0 or more");
    o = of("revolve", 5, -3);
    not_made(backsweep_create(&o), "came -3");
    o = of("revolve", INT64_MIN, 3);
    not_made(backsweep_create(&o), "steps must be 0 or more, came -9223372036854775808");
    o = of("revolve", INT64_MAX, 3);
    not_made(backsweep_create(&o), "9223372036854775807");
    o = of("revolve", INT64_C(1) << 62, INT64_C(1) << 40);
    not_made(backsweep_create(&o), "2147483647");
    o = of("store_all", INT64_C(1) << 40, 0);
    not_made(backsweep_create(&o), "2147483647");
    o = of("revolver", 5, 3);
    not_made(backsweep_create(&o), "'revolver' is not known");
    o = of("revolve", 5, 3);
    o.period = 2;
    not_made(backsweep_create(&o), "option period is not used");
    o = of("revolve", 5, 3);
    o.rule = "middle";
    not_made(backsweep_create(&o), "rule 'middle' is not known");
    o = of("revolve", 5, 3);
    o.needs_state = 2;
    not_made(backsweep_create(&o), "options.needs_state must be 0 or 1, came 2");
    o = of("forward_only", 5, 0);
    o.no_loss = -1;
    not_made(backsweep_create(&o), "options.no_loss must be 0 or 1, came -1");
}

/* An older caller gives fewer fields, a newer one more. */
static void sizes(void) {
    struct {
        backsweep_options options;
        int64_t newer[3];
    } o = {BACKSWEEP_OPTIONS_INIT, {0, 0, 0}};
    static const size_t wrong[] = {0, 1, sizeof(size_t), sizeof(backsweep_options) + 4, (size_t)-8, (size_t)1 << 40};
    backsweep_schedule* schedule;
    size_t k;
    o.options.steps = 5;
    o.options.slots = 3;
    o.options.period = 77;
    o.options.size = offsetof(backsweep_options, period);
    schedule = backsweep_create(&o.options);
    check(schedule != NULL, "an older, shorter struct is served", backsweep_error_text());
    backsweep_destroy(schedule);
    o.options.period = 0;
    o.options.size = sizeof o;
    schedule = backsweep_create(&o.options);
    check(schedule != NULL, "a newer, longer struct is served if its end is 0", backsweep_error_text());
    backsweep_destroy(schedule);
    o.newer[2] = 1;
    not_made(backsweep_create(&o.options), "is not 0; leave the newer fields out, or take the library");
    for (k = 0; k < sizeof wrong / sizeof wrong[0]; ++k) {
        o.options.size = wrong[k];
        not_made(backsweep_create(&o.options), "begin with the _INIT");
    }
}

static void null_pointers(void) {
    backsweep_schedule* schedule = made("revolve", 5, 3);
    backsweep_callbacks callbacks = BACKSWEEP_CALLBACKS_INIT;
    backsweep_prediction prediction = BACKSWEEP_PREDICTION_INIT;
    backsweep_action action;
    size_t written = 9;
    int bad = BACKSWEEP_INVALID_ARGUMENT;
    says(backsweep_next(NULL, &action), bad, "schedule is NULL");
    says(backsweep_next(schedule, NULL), bad, "action is NULL");
    says(backsweep_fill(NULL, &action, 1, &written), bad, "schedule is NULL");
    says(backsweep_fill(schedule, NULL, 3, &written), bad, "actions is NULL");
    says(backsweep_fill(schedule, &action, 1, NULL), bad, "written is NULL");
    says(backsweep_fill(schedule, &action, (size_t)-1, &written), bad, "more actions than memory can hold");
    says(backsweep_fill(schedule, &action, PTRDIFF_MAX / sizeof action + 1, &written), bad, "more actions than memory");
    says(backsweep_run(NULL, &callbacks, NULL), bad, "schedule is NULL");
    says(backsweep_run(schedule, NULL, NULL), bad, "callbacks is NULL");
    says(backsweep_finish(NULL, 3), bad, "schedule is NULL");
    says(backsweep_rewind(NULL), bad, "schedule is NULL");
    says(backsweep_predict(NULL, NULL, &prediction), bad, "schedule is NULL");
    says(backsweep_predict(schedule, NULL, NULL), bad, "prediction is NULL");
    not_made(backsweep_complete(NULL, 2, 3, 5), "stored is NULL");
    check(backsweep_next(schedule, &action) == BACKSWEEP_OK && action.verb == BACKSWEEP_SAVE &&
              action.to.tier == BACKSWEEP_RAM && action.to.index == 0 && action.from.index == -1 && action.first == 0,
          "a refused call takes no action away", "next");
    backsweep_destroy(schedule);
    backsweep_destroy(NULL);
}

static void stored_states(void) {
    backsweep_stored stored[2] = {{0, {BACKSWEEP_RAM, 0}}, {7, {BACKSWEEP_RAM, 1}}};
    not_made(backsweep_complete(stored, 0, 3, 16), "x_0");
    not_made(backsweep_complete(stored + 1, 1, 3, 16), "x_0");
    not_made(backsweep_complete(stored, 2, 1, 16), "slots");
    not_made(backsweep_complete(stored, 2, 3, 6), "7");
    not_made(backsweep_complete(stored, 2, -3, 16), "-3");
    not_made(backsweep_complete(stored, 2, 3, -16), "-16");
    not_made(backsweep_complete(stored, (size_t)1 << 40, 3, 16), "2147483647");
    stored[1].slot.index = 0;
    not_made(backsweep_complete(stored, 2, 3, 16), "slot");
    stored[1].slot.index = -1;
    not_made(backsweep_complete(stored, 2, 3, 16), "x_7 is said to be in slot -1");
    stored[1].slot.index = 1;
    stored[1].slot.tier = 4;
    not_made(backsweep_complete(stored, 2, 3, 16), "x_7 is on tier 4");
}

static void a_caller_that_ignores_done(void) {
    backsweep_schedule* schedule = made("revolve", 5, 3);
    backsweep_callbacks callbacks = BACKSWEEP_CALLBACKS_INIT;
    backsweep_action actions[100];
    size_t written = 0;
    toy t = toy_at_start(0);
    int i, dones = 0;
    for (i = 0; i < 1000; ++i) {
        check(backsweep_next(schedule, actions) == BACKSWEEP_OK, "next", "done");
        dones += actions[0].verb == BACKSWEEP_DONE;
    }
    check(dones > 900 && actions[0].verb == BACKSWEEP_DONE, "done is repeated for ever", "done");
    check(backsweep_fill(schedule, actions, 100, &written) == BACKSWEEP_OK && written == 1, "fill stops after it",
          "done");
    check(actions[0].verb == BACKSWEEP_DONE && actions[0].to.index == -1 && actions[0].from.index == -1, "done",
          "fill");
    check(backsweep_fill(schedule, NULL, 0, &written) == BACKSWEEP_OK && written == 0, "no room, no action", "fill");
    callbacks.otherwise = toy_obey;
    check(backsweep_run(schedule, &callbacks, &t) == BACKSWEEP_OK && t.advances == 0, "a run ends at once", "done");
    backsweep_destroy(schedule);
}

static int calls;
static int count_call(const backsweep_action* action, void* user) {
    (void)action, (void)user;
    ++calls;
    return 0;
}

static int stop_at_turn(const backsweep_action* action, void* user) {
    (void)user;
    return action->verb == BACKSWEEP_TURN ? -17 : 0;
}

static int meddle(const backsweep_action* action, void* user) {
    backsweep_schedule* schedule = *(backsweep_schedule**)user;
    backsweep_callbacks callbacks = BACKSWEEP_CALLBACKS_INIT;
    backsweep_prediction prediction = BACKSWEEP_PREDICTION_INIT;
    backsweep_action next;
    size_t written;
    (void)action;
    says(backsweep_next(schedule, &next), BACKSWEEP_SCHEDULE_ERROR, "backsweep_run plays this schedule");
    says(backsweep_fill(schedule, &next, 1, &written), BACKSWEEP_SCHEDULE_ERROR, "backsweep_run plays");
    says(backsweep_rewind(schedule), BACKSWEEP_SCHEDULE_ERROR, "backsweep_run plays");
    says(backsweep_run(schedule, &callbacks, NULL), BACKSWEEP_SCHEDULE_ERROR, "backsweep_run plays");
    says(backsweep_predict(schedule, NULL, &prediction), BACKSWEEP_SCHEDULE_ERROR, "backsweep_run plays");
    backsweep_destroy(schedule);
    says(BACKSWEEP_OK, BACKSWEEP_OK, "backsweep_run plays");
    return 0;
}

static void callbacks(void) {
    backsweep_schedule* schedule = made("revolve", 5, 2);
    backsweep_callbacks given = BACKSWEEP_CALLBACKS_INIT;
    backsweep_action action;
    given.advance = given.record = given.tape = given.reverse = given.save = given.turn = count_call;
    says(backsweep_run(schedule, &given, NULL), BACKSWEEP_INVALID_ARGUMENT,
         "callbacks.load is NULL, and the schedule has 'load x_");
    check(calls == 0, "refused before anything is called", "a missing callback");
    given.load = count_call;
    says(backsweep_run(schedule, &given, NULL), BACKSWEEP_INVALID_ARGUMENT, "callbacks.take is NULL");
    check(calls == 0, "refused before anything is called", "a missing callback");
    check(backsweep_next(schedule, &action) == BACKSWEEP_OK && action.verb == BACKSWEEP_SAVE, "still at its beginning",
          "");
    says(backsweep_run(schedule, &given, NULL), BACKSWEEP_INVALID_ARGUMENT, "callbacks.take is NULL");
    check(calls > 0, "in the middle the verb has to come up", "a missing callback");
    backsweep_rewind(schedule);
    given.take = count_call;
    calls = 0;
    check(backsweep_run(schedule, &given, NULL) == BACKSWEEP_OK && calls > 10, "all that come up are enough", "run");

    given.otherwise = stop_at_turn;
    given.turn = NULL;
    backsweep_rewind(schedule);
    says(backsweep_run(schedule, &given, NULL), BACKSWEEP_STOPPED, "the callback for 'turn");
    says(BACKSWEEP_OK, BACKSWEEP_OK, "answered -17");
    check(backsweep_next(schedule, &action) == BACKSWEEP_OK && action.verb == BACKSWEEP_REVERSE,
          "and goes on behind it", backsweep_verb_name(action.verb));
    backsweep_rewind(schedule);
    given.otherwise = given.advance = meddle;
    check(backsweep_run(schedule, &given, &schedule) == BACKSWEEP_OK, "a meddler is kept out", backsweep_error_text());
    given.size = 3;
    says(backsweep_run(schedule, &given, NULL), BACKSWEEP_INVALID_ARGUMENT, "callbacks.size is 3");
    backsweep_destroy(schedule);
}

static void prices(void) {
    static const double wrong[] = {-1.0, NAN, INFINITY, -INFINITY};
    backsweep_schedule* schedule = made("revolve", 5, 2);
    backsweep_prediction prediction = BACKSWEEP_PREDICTION_INIT;
    backsweep_machine m = BACKSWEEP_MACHINE_INIT;
    const backsweep_machine none = BACKSWEEP_MACHINE_INIT;
    double each[5] = {1.0, 2.0, 3.0, 4.0, 5.0};
    int64_t bytes[6] = {1, 2, 3, 4, 5, -6};
    const int bad = BACKSWEEP_INVALID_ARGUMENT;
    size_t k;
    for (k = 0; k < sizeof wrong / sizeof wrong[0]; ++k) {
        m = none, m.advance = wrong[k];
        says(backsweep_predict(schedule, &m, &prediction), bad, "machine.advance must be finite and 0 or more");
        m = none, m.reverse = wrong[k];
        says(backsweep_predict(schedule, &m, &prediction), bad, "machine.reverse must be finite and 0 or more");
        m = none, m.write[3] = wrong[k];
        says(backsweep_predict(schedule, &m, &prediction), bad, "machine.write must be finite and 0 or more");
        m = none, m.read[0] = wrong[k];
        says(backsweep_predict(schedule, &m, &prediction), bad, "machine.read must be finite and 0 or more");
        m = none, m.record_of_link = each, each[3] = wrong[k];
        says(backsweep_predict(schedule, &m, &prediction), bad, "machine.record of 3 must be finite");
    }
    m = none, m.state_bytes = -8;
    says(backsweep_predict(schedule, &m, &prediction), bad, "machine.state_bytes must be from 0 to");
    m = none, m.tape_bytes = INT64_MAX;
    says(backsweep_predict(schedule, &m, &prediction), bad, "came 9223372036854775807");
    m = none, m.bytes_of_state = bytes;
    says(backsweep_predict(schedule, &m, &prediction), bad, "machine.state_bytes of 5 must be from 0 to");
    m = none, m.steps = 5;
    says(backsweep_predict(schedule, &m, &prediction), bad, "machine.steps is 5");
    m = none, m.ending = 4;
    says(backsweep_predict(schedule, &m, &prediction), bad, "machine.ending is 4");
    m = none, m.ending = BACKSWEEP_AHEAD, m.steps = 5;
    says(backsweep_predict(schedule, &m, &prediction), BACKSWEEP_SCHEDULE_ERROR, "finish(5)");
    m = none, m.size = 12345;
    says(backsweep_predict(schedule, &m, &prediction), bad, "machine.size is 12345");
    prediction.size = 0;
    says(backsweep_predict(schedule, NULL, &prediction), bad, "prediction.size is 0");

    prediction.size = offsetof(backsweep_prediction, reads);
    prediction.reads[0] = 4711;
    check(backsweep_predict(schedule, NULL, &prediction) == BACKSWEEP_OK && prediction.recorded == 5 &&
              prediction.size == offsetof(backsweep_prediction, reads) && prediction.reads[0] == 4711,
          "an older caller's shorter struct is not overrun", "prediction");
    backsweep_destroy(schedule);
}

/* Lengths that 32 bits do not hold. */
static void far(void) {
    backsweep_schedule* schedule = made("revolve", INT64_C(1) << 62, 3);
    backsweep_action action;
    int i;
    for (i = 0; i < 2; ++i) check(backsweep_next(schedule, &action) == BACKSWEEP_OK, "next", "far");
    check(action.verb == BACKSWEEP_ADVANCE && action.last > INT64_C(1) << 61, "an advance beyond 2^61", "far");
    backsweep_destroy(schedule);
    schedule = made("revolve", 5, INT64_C(3) << 31);
    check(backsweep_next(schedule, &action) == BACKSWEEP_OK, "more slots than there are links", "far");
    backsweep_destroy(schedule);
}

int main(void) {
    check(strcmp(backsweep_error_text(), "") == 0, "no error yet", backsweep_error_text());
    options();
    sizes();
    null_pointers();
    stored_states();
    a_caller_that_ignores_done();
    callbacks();
    prices();
    far();
    check(strcmp(backsweep_verb_name(BACKSWEEP_TURN), "turn") == 0, "names of verbs", "verb_name");
    check(strcmp(backsweep_verb_name(14), "unknown verb") == 0, "names of verbs", "verb_name");
    check(strcmp(backsweep_verb_name(INT32_MIN), "unknown verb") == 0, "names of verbs", "verb_name");
    check(strlen(backsweep_version()) >= 5, "a version", backsweep_version());
    return verdict("bad input");
}
