/* Options with random bytes: a schedule that is made keeps the rules (the referee plays it, a caller plays it to the
 * same gradient); everything else is refused in words. fuzz [DRAWS]. SPDX-License-Identifier: MIT */
#include "toy.h"

/* xorshift64*, so that every platform draws the same. */
static uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
static uint64_t draw(void) {
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * UINT64_C(2685821657736338717);
}
static uint64_t below(uint64_t bound) {
    return (draw() >> 32) % bound;
}

/* Mostly a small number; else one at an edge, or any bits at all. */
static int64_t number(uint64_t small) {
    static const int64_t edges[] = {-1,
                                    INT64_C(1) << 31,
                                    (INT64_C(1) << 31) - 1,
                                    (INT64_C(1) << 32) + 1,
                                    INT64_C(1) << 62,
                                    (INT64_C(1) << 62) + 1,
                                    INT64_MAX,
                                    INT64_MAX - 1,
                                    INT64_MIN};
    switch (below(8)) {
        case 0:
            return edges[below(sizeof edges / sizeof edges[0])];
        case 1:
            return (int64_t)draw();
        default:
            return (int64_t)below(small);
    }
}

static double price(void) {
    const uint64_t bits = draw();
    double value;
    if (below(8) != 0) return (double)below(100);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A name of the library's, or letters at random. */
static const char* word(const char* const* known, size_t count, char* room, size_t size) {
    size_t k, length;
    if (below(10) != 0) return known[below(count)];
    length = (size_t)below(size);
    for (k = 0; k < length; ++k) room[k] = (char)(1 + below(255));
    room[length] = '\0';
    return room;
}

static const char* const families[] = {
    NULL,       "",      "store_all",  "revolve",       "periodic",       "forward_only",
    "segments", "mixed", "nonuniform", "multistage",    "tiered_revolve", "periodic_disk",
    "revolve",  "mixed", "multistage", "optimal_chain", "revolve"};
static const char* const rules[] = {
    NULL,      NULL,       NULL,      NULL,          NULL,  NULL,     "",        "fewest_writes",
    "longest", "shortest", "aligned", "fewest_disk", "one", "hidden", "maddison"};

/* So many slots are served or refused as there is memory; a sanitizer's allocator ends the program instead. */
static int wants_much_memory(int64_t slots, int64_t steps) {
    return slots > INT64_C(1) << 20 && steps > INT64_C(1) << 20;
}

/* Arrays of the length that was drawn, where it is small enough to have them. */
static void give_arrays(backsweep_options* options) {
    static double times[66], more_times[66];
    static int64_t bytes[66], more_bytes[66];
    static backsweep_level levels[3];
    size_t k;
    options->first = options->rule == NULL && below(10) == 0 ? "live" : NULL;
    options->levels = NULL;
    options->costs = options->forward_time = options->backward_time = NULL;
    options->sizes = options->state_bytes = options->tape_bytes = NULL;
    options->forward_overhead = options->backward_overhead = NULL;
    if (options->level_count > 3 && below(100) != 0) options->level_count = (size_t)below(4);
    if (options->level_count > 0 && options->level_count <= 3) options->levels = levels;
    for (k = 0; k < 3; ++k) {
        levels[k].tier = (int32_t)(below(10) == 0 ? draw() : k == 0 ? 2 : 3);
        levels[k].slots = below(4) == 0 ? -1 : number(9);
        if (options->steps > INT64_C(1) << 20 &&
            (levels[k].slots <= INT64_C(1) << 31 || options->steps <= INT64_C(1) << 32))
            levels[k].slots = 9;
        levels[k].write = k == 0 ? 0.0 : price();
        levels[k].read = k == 0 ? 0.0 : price();
    }
    if (options->steps < 0 || options->steps > 64) return;
    for (k = 0; k < 66; ++k) {
        times[k] = price();
        more_times[k] = price();
        bytes[k] = below(50) == 0 ? number(20) : (int64_t)(1 + below(8));
        more_bytes[k] = below(50) == 0 ? number(20) : (int64_t)(9 + below(8));
    }
    if (below(2) == 0) options->costs = times;
    if (below(2) == 0) options->sizes = bytes;
    if (below(4) != 0) options->forward_time = times;
    if (below(4) != 0) options->backward_time = more_times;
    if (below(4) != 0) options->state_bytes = bytes;
    if (below(4) != 0) options->tape_bytes = more_bytes;
    if (below(4) == 0) options->forward_overhead = bytes;
    if (below(4) == 0) options->backward_overhead = more_bytes;
}

static int is(const char* family, const char* among) {
    return strstr(among, family) != NULL;
}

static void leave_out_what_is_not_used(backsweep_options* o) {
    const char* family = o->family == NULL ? "revolve" : o->family;
    if (!is(family, "revolve, mixed, nonuniform")) o->slots = 0;
    if (!is(family, "revolve, mixed, multistage")) o->rule = NULL;
    if (!is(family, "periodic, segments, periodic_disk")) o->period = 0;
    if (!is(family, "forward_only")) o->no_loss = 0;
    if (!is(family, "revolve")) o->first = NULL, o->align = o->ram_slots = 0;
    if (!is(family, "segments")) o->segments = o->depth = 0;
    if (!is(family, "mixed")) o->tape_units = o->restart = 0;
    if (!is(family, "multistage, tiered_revolve, periodic_disk")) o->levels = NULL, o->level_count = 0;
    if (!is(family, "multistage, periodic_disk")) o->advance_cost = o->reverse_cost = 0.0;
    if (!is(family, "nonuniform")) o->costs = NULL, o->sizes = NULL;
    if (!is(family, "optimal_chain")) {
        o->forward_time = o->backward_time = NULL;
        o->state_bytes = o->tape_bytes = o->forward_overhead = o->backward_overhead = NULL;
        o->budget = 0;
    }
}

static int count_call(const backsweep_action* action, void* user) {
    (void)action;
    ++*(int64_t*)user;
    return 0;
}

static long made, refused, played, predicted;

static void try_options(void) {
    struct {
        backsweep_options options;
        unsigned char newer[4096];
    } o;
    char family[300], rule[300];
    unsigned char* bytes = (unsigned char*)&o.options;
    backsweep_schedule* schedule;
    backsweep_prediction prediction = BACKSWEEP_PREDICTION_INIT;
    backsweep_machine machine = BACKSWEEP_MACHINE_INIT;
    backsweep_action actions[16];
    size_t k, written;
    int status;

    memset(&o, 0, sizeof o);
    if (below(50) == 0) {
        for (k = 0; k < sizeof o.options; ++k) bytes[k] = (unsigned char)draw();
    } else {
        o.options.steps = number(65);
        o.options.slots = number(17);
        o.options.period = number(17);
        o.options.no_loss = (int32_t)(below(20) == 0 ? draw() : below(2));
        o.options.needs_state = (int32_t)(below(20) == 0 ? draw() : below(2));
        if (below(4) == 0) o.options.align = number(9);
        if (below(4) == 0) o.options.ram_slots = number(9);
        if (below(2) == 0) o.options.segments = number(9);
        if (below(2) == 0) o.options.depth = number(4);
        o.options.tape_units = number(5);
        o.options.restart = (int32_t)(below(20) == 0 ? draw() : below(2));
        o.options.level_count = (size_t)below(4);
        if (below(2) == 0) o.options.advance_cost = price();
        if (below(2) == 0) o.options.reverse_cost = price();
        o.options.budget = number(500);
    }
    o.options.family = word(families, sizeof families / sizeof families[0], family, sizeof family);
    o.options.rule = word(rules, sizeof rules / sizeof rules[0], rule, sizeof rule);
    give_arrays(&o.options);
    if (below(8) != 0) leave_out_what_is_not_used(&o.options);
    if (wants_much_memory(o.options.slots, o.options.steps)) return;
    o.options.size = sizeof o.options;
    if (below(20) == 0) o.options.size = (size_t)below(sizeof o) / 8 * 8;
    if (below(40) == 0) o.newer[below(sizeof o.newer)] = 1;
    if (below(40) == 0) o.options.size = (size_t)1 << 40 | (size_t)draw();

    schedule = backsweep_create(&o.options);
    if (schedule == NULL) {
        ++refused;
        check(strlen(backsweep_error_text()) > 20, "refused in words", backsweep_error_text());
        return;
    }
    ++made;
    check(backsweep_fill(schedule, actions, (size_t)below(17), &written) == BACKSWEEP_OK, "fill",
          backsweep_error_text());
    for (k = 0; k < 3; ++k) check(backsweep_next(schedule, actions) == BACKSWEEP_OK, "next", backsweep_error_text());
    status = backsweep_finish(schedule, number(65));
    check(status == BACKSWEEP_SCHEDULE_ERROR, "finish of a closed schedule", backsweep_error_text());
    if (o.options.steps <= 64) {
        int64_t calls = 0;
        backsweep_callbacks callbacks = BACKSWEEP_CALLBACKS_INIT;
        callbacks.otherwise = count_call;
        backsweep_rewind(schedule);
        check(backsweep_run(schedule, &callbacks, &calls) == BACKSWEEP_OK, "run", backsweep_error_text());
        status = backsweep_predict(schedule, NULL, &prediction);
        if (status != BACKSWEEP_OK || prediction.actions != calls) {
            fprintf(stderr, "%s: steps %d, slots %d, period %d, rule %s, needs_state %d\n",
                    o.options.family != NULL ? o.options.family : "revolve", (int)o.options.steps, (int)o.options.slots,
                    (int)o.options.period, o.options.rule != NULL ? o.options.rule : "", (int)o.options.needs_state);
            check(0, "the referee finds it legal", status == BACKSWEEP_OK ? "other counts" : backsweep_error_text());
        }
        ++played;
        machine.advance = price();
        machine.record = price();
        machine.write[below(4)] = price();
        machine.read[below(4)] = price();
        machine.state_bytes = number(1000);
        machine.tape_bytes = number(1000);
        if (below(10) == 0) machine.steps = number(65);
        if (below(10) == 0) machine.ending = (int32_t)number(3);
        status = backsweep_predict(schedule, &machine, &prediction);
        check(status == BACKSWEEP_OK || strlen(backsweep_error_text()) > 20, "predict", backsweep_error_text());
        predicted += status == BACKSWEEP_OK;
    }
    backsweep_destroy(schedule);
}

/* Surviving states at random: mostly legal ones. */
static void try_stored(void) {
    backsweep_stored stored[6];
    backsweep_schedule* schedule;
    backsweep_prediction prediction = BACKSWEEP_PREDICTION_INIT;
    const size_t count = (size_t)below(7);
    const int64_t steps = number(40), slots = below(4) == 0 ? number(10) : 8;
    size_t k;
    if (wants_much_memory(slots, steps)) return;
    for (k = 0; k < count; ++k) {
        stored[k].step = k == 0 ? 0 : number(40);
        stored[k].slot.tier = (int32_t)(below(10) == 0 ? draw() : 2);
        stored[k].slot.index = (int32_t)(below(20) == 0 ? draw() : k);
    }
    schedule = backsweep_complete(stored, count, slots, steps);
    if (schedule == NULL) {
        ++refused;
        check(strlen(backsweep_error_text()) > 20, "refused in words", backsweep_error_text());
        return;
    }
    ++made;
    if (steps <= 64) {
        check(backsweep_predict(schedule, NULL, &prediction) == BACKSWEEP_OK, "complete", backsweep_error_text());
        check(prediction.reversed == steps, "every link is reversed", "complete");
        ++played;
    }
    backsweep_destroy(schedule);
}

int main(int count, char** words) {
    const long draws = count > 1 ? atol(words[1]) : 300000;
    long k;
    for (k = 0; k < draws && failures < 10; ++k) {
        if (k % 8 == 0)
            try_stored();
        else
            try_options();
    }
    check(made > draws / 20 && refused > draws / 20 && played > draws / 20 && predicted > draws / 40,
          "the draws reach all parts", "fuzz");
    printf("%ld draws: %ld made, %ld refused, %ld played, %ld priced\n", draws, made, refused, played, predicted);
    return verdict("fuzzed options");
}
