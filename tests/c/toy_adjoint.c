/* C programs that drive a reverse sweep by the stream of actions alone: pulled one by one, pulled in bulk, pushed
 * through one callback and through one for each verb. SPDX-License-Identifier: MIT */
#include "toy.h"

static toy by_next(backsweep_schedule* schedule, int32_t needs_state) {
    toy t = toy_at_start(needs_state);
    backsweep_action action;
    while (backsweep_next(schedule, &action) == BACKSWEEP_OK && action.verb != BACKSWEEP_DONE) {
        check(toy_obey(&action, &t) == 0, "a known verb", backsweep_verb_name(action.verb));
    }
    return t;
}

static toy by_fill(backsweep_schedule* schedule, int32_t needs_state) {
    toy t = toy_at_start(needs_state);
    backsweep_action block[67];
    size_t count = 0, k;
    do {
        if (backsweep_fill(schedule, block, sizeof block / sizeof block[0], &count) != BACKSWEEP_OK || count == 0)
            break;
        for (k = 0; k < count && block[k].verb != BACKSWEEP_DONE; ++k) toy_obey(&block[k], &t);
    } while (block[count - 1].verb != BACKSWEEP_DONE);
    return t;
}

static toy by_run(backsweep_schedule* schedule, int32_t needs_state) {
    toy t = toy_at_start(needs_state);
    backsweep_callbacks callbacks = BACKSWEEP_CALLBACKS_INIT;
    callbacks.otherwise = toy_obey;
    check(backsweep_run(schedule, &callbacks, &t) == BACKSWEEP_OK, "a run ends", backsweep_error_text());
    return t;
}

/* A callback that does its own verb only. */
#define ONLY(name, VERB)                                                 \
    static int only_##name(const backsweep_action* action, void* user) { \
        return action->verb == VERB ? toy_obey(action, user) : 99;       \
    }
ONLY(advance, BACKSWEEP_ADVANCE)
ONLY(record, BACKSWEEP_RECORD)
ONLY(tape, BACKSWEEP_TAPE)
ONLY(reverse, BACKSWEEP_REVERSE)
ONLY(save, BACKSWEEP_SAVE)
ONLY(load, BACKSWEEP_LOAD)
ONLY(take, BACKSWEEP_TAKE)
ONLY(restart, BACKSWEEP_RESTART)
ONLY(stow, BACKSWEEP_STOW)
ONLY(fetch, BACKSWEEP_FETCH)
ONLY(drop, BACKSWEEP_DROP)
ONLY(move, BACKSWEEP_MOVE)
ONLY(turn, BACKSWEEP_TURN)

static const backsweep_callbacks each_verb = {sizeof(backsweep_callbacks),
                                              only_advance,
                                              only_record,
                                              only_tape,
                                              only_reverse,
                                              only_save,
                                              only_load,
                                              only_take,
                                              only_restart,
                                              only_stow,
                                              only_fetch,
                                              only_drop,
                                              only_move,
                                              only_turn,
                                              NULL};

static toy by_verbs(backsweep_schedule* schedule, int32_t needs_state) {
    toy t = toy_at_start(needs_state);
    check(backsweep_run(schedule, &each_verb, &t) == BACKSWEEP_OK, "a run ends", backsweep_error_text());
    return t;
}

static void check_prediction(backsweep_schedule* schedule, const toy* t, int64_t steps, const char* family) {
    backsweep_machine machine = BACKSWEEP_MACHINE_INIT;
    backsweep_prediction counted = BACKSWEEP_PREDICTION_INIT, priced = BACKSWEEP_PREDICTION_INIT;
    double time;
    machine.advance = 2.0;
    machine.record = 3.0;
    machine.reverse = 5.0;
    machine.write[BACKSWEEP_RAM] = 0.25;
    machine.read[BACKSWEEP_RAM] = 0.125;
    machine.write[BACKSWEEP_DISK] = 4.0;
    machine.read[BACKSWEEP_DISK] = 8.0;
    machine.state_bytes = machine.tape_bytes = 24;
    check(backsweep_predict(schedule, NULL, &counted) == BACKSWEEP_OK, "predict", backsweep_error_text());
    check(backsweep_predict(schedule, &machine, &priced) == BACKSWEEP_OK, "predict", backsweep_error_text());
    check(counted.advances == t->advances && counted.recorded == t->recorded && counted.reversed == steps,
          "counted as predicted", family);
    time = 2.0 * (double)t->advances + 3.0 * (double)t->recorded + 5.0 * (double)steps +
           0.25 * (double)counted.writes[BACKSWEEP_RAM] + 0.125 * (double)counted.reads[BACKSWEEP_RAM];
    time += 4.0 * (double)counted.writes[BACKSWEEP_DISK] + 8.0 * (double)counted.reads[BACKSWEEP_DISK];
    check(counted.time == 0.0 && priced.time == time, "priced as counted", family);
    check(priced.peak_bytes[BACKSWEEP_RAM] == 24 * counted.peak_slots[BACKSWEEP_RAM], "bytes of the slots", family);
    check(counted.peak_bytes[BACKSWEEP_RAM] == 0 && counted.peak_slots[BACKSWEEP_DEVICE] == 0, "nothing else", family);
}

static void gradient_under(backsweep_options options, toy* first) {
    static toy (*const ways[])(backsweep_schedule*, int32_t) = {by_next, by_fill, by_run, by_verbs};
    const char* family = options.family;
    const int64_t steps = options.steps;
    const int32_t needs_state = options.needs_state;
    backsweep_schedule* schedule = backsweep_create(&options);
    size_t way;
    toy t;
    check(schedule != NULL, backsweep_error_text(), family);
    if (schedule == NULL) return;
    for (way = 0; way < sizeof ways / sizeof ways[0]; ++way) {
        t = ways[way](schedule, needs_state);
        check(fabs(t.end - x0 / (1.0 + (double)steps * h * p * x0)) <= 1e-13 * x0, "x_n is the closed form", family);
        check_closed_form(&t, steps, family);
        check(t.recorded >= steps, "every link is recorded", family);
        if (first->recorded < 0) *first = t;
        check(same_gradient(&t, first), "the gradient has the same bits under every schedule", family);
        check(backsweep_rewind(schedule) == BACKSWEEP_OK, "rewind", family);
    }
    check_prediction(schedule, &t, steps, family);
    t = by_verbs(schedule, needs_state);
    check(same_gradient(&t, first), "a prediction leaves the schedule at its beginning", family);
    check(backsweep_finish(schedule, steps) == BACKSWEEP_SCHEDULE_ERROR, "finish is refused", family);
    check(strstr(backsweep_error_text(), "finish") != NULL, "and says so", family);
    backsweep_destroy(schedule);
}

static void gradient_of(const char* family, int64_t slots, int64_t period, int32_t needs_state, int64_t steps,
                        toy* first) {
    backsweep_options options = BACKSWEEP_OPTIONS_INIT;
    options.family = family;
    options.steps = steps;
    options.slots = slots;
    options.period = period;
    options.needs_state = needs_state;
    gradient_under(options, first);
}

/* Families with more options; 97 links of cost 1, but every seventh costs 3. */
static void other_families(toy* first) {
    const backsweep_options none = BACKSWEEP_OPTIONS_INIT;
    const backsweep_level levels[] = {{BACKSWEEP_RAM, 0, 3, 0.0, 0.0}, {BACKSWEEP_DISK, 0, 4, 2.0, 1.5}};
    const backsweep_level open[] = {{BACKSWEEP_RAM, 0, 3, 0.0, 0.0}, {BACKSWEEP_DISK, 0, -1, 2.0, 1.5}};
    const backsweep_level free_levels[] = {{BACKSWEEP_RAM, 0, 3, 0.0, 0.0}, {BACKSWEEP_DISK, 0, 4, 0.0, 0.0}};
    double costs[97];
    int64_t bytes[98], more_bytes[97];
    backsweep_options o;
    int k;
    for (k = 0; k < 98; ++k) bytes[k] = 8 + k % 3;
    for (k = 0; k < 97; ++k) costs[k] = k % 7 == 0 ? 3.0 : 1.0;
    for (k = 0; k < 97; ++k) more_bytes[k] = 20 + k % 5;
    o = none, o.family = "revolve", o.steps = 97, o.slots = 5, o.rule = "fewest_disk", o.ram_slots = 2;
    gradient_under(o, first);
    o = none, o.family = "revolve", o.steps = 97, o.slots = 5, o.rule = "aligned", o.align = 4;
    gradient_under(o, first);
    o = none, o.family = "segments", o.steps = 97, o.segments = 4, o.depth = 2;
    gradient_under(o, first);
    o = none, o.family = "mixed", o.steps = 97, o.slots = 9, o.tape_units = 2;
    gradient_under(o, first);
    o = none, o.family = "mixed", o.steps = 97, o.slots = 9, o.restart = 1;
    gradient_under(o, first);
    o = none, o.family = "nonuniform", o.steps = 97, o.slots = 5, o.costs = costs;
    gradient_under(o, first);
    o = none, o.family = "multistage", o.steps = 97, o.levels = levels, o.level_count = 2, o.advance_cost = 2.0;
    gradient_under(o, first);
    o = none, o.family = "multistage", o.steps = 97, o.levels = open, o.level_count = 2;
    gradient_under(o, first);
    o = none, o.family = "tiered_revolve", o.steps = 97, o.levels = free_levels, o.level_count = 2;
    gradient_under(o, first);
    o = none, o.family = "periodic_disk", o.steps = 97, o.levels = open, o.level_count = 2;
    gradient_under(o, first);
    o = none, o.family = "optimal_chain", o.steps = 97, o.forward_time = costs, o.backward_time = costs;
    o.state_bytes = bytes, o.tape_bytes = more_bytes, o.budget = 200;
    gradient_under(o, first);
}

/* A sweep that kept x_0 and x_7 of 16 links, and was killed at the turn. */
static void complete_of_survivors(void) {
    const backsweep_stored stored[] = {{7, {BACKSWEEP_RAM, 2}}, {0, {BACKSWEEP_RAM, 0}}};
    backsweep_schedule* schedule = backsweep_complete(stored, 2, 3, 16);
    toy t = toy_at_start(0);
    backsweep_callbacks callbacks = BACKSWEEP_CALLBACKS_INIT;
    backsweep_prediction counted = BACKSWEEP_PREDICTION_INIT;
    int i;
    check(schedule != NULL, "complete", backsweep_error_text());
    t.slots[BACKSWEEP_RAM][0] = t.slots[BACKSWEEP_RAM][2] = x0;
    for (i = 0; i < 7; ++i) t.slots[BACKSWEEP_RAM][2] = toy_link(t.slots[BACKSWEEP_RAM][2]);
    t.x = NAN;
    callbacks.otherwise = toy_obey;
    check(backsweep_run(schedule, &callbacks, &t) == BACKSWEEP_OK, "complete runs", backsweep_error_text());
    check_closed_form(&t, 16, "complete");
    check(backsweep_predict(schedule, NULL, &counted) == BACKSWEEP_OK, "predict", backsweep_error_text());
    check(counted.advances == t.advances && counted.recorded == 16, "counted as predicted", "complete");
    backsweep_destroy(schedule);
}

int main(void) {
    static const int64_t lengths[] = {0, 1, 2, 97};
    size_t k;
    int32_t needs_state;
    for (k = 0; k < sizeof lengths / sizeof lengths[0]; ++k) {
        for (needs_state = 0; needs_state < 2; ++needs_state) {
            toy first = toy_at_start(needs_state);
            first.recorded = -1;
            gradient_of("store_all", 0, 0, needs_state, lengths[k], &first);
            gradient_of("revolve", 1, 0, needs_state, lengths[k], &first);
            gradient_of("revolve", 3, 0, needs_state, lengths[k], &first);
            gradient_of("revolve", 200, 0, needs_state, lengths[k], &first);
            gradient_of("periodic", 0, 10, needs_state, lengths[k], &first);
            if (lengths[k] == 97 && !needs_state) other_families(&first);
        }
    }
    complete_of_survivors();
    return verdict("toy adjoint");
}
