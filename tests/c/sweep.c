/* Sweeps of the C face that are killed at every action, and in the middle of each, go on in another process and give
 * the bits of one that was not; and what cannot be is refused in words. SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "backsweep/c/backsweep_sweep.h"
#include "toy.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINKS = 13, KILLED = 86 };

/* Of two pieces; the tape of a link is the state before it. */
typedef struct state {
    double q, v;
} state;

static void step(state* s, int64_t i) {
    const double q = s->q;
    s->q += 0.1 * s->v;
    s->v += 0.1 * (sin(q) - 0.05 * s->v + 0.01 * (double)i);
}

static void reverse_step(const state* s, state* a, double* sum) {
    const double dv = a->v;
    *sum += s->q * dv;
    a->v = 0.1 * a->q + (1.0 - 0.005) * dv;
    a->q += 0.1 * cos(s->q) * dv;
}

typedef struct result {
    state a;
    double gradient, objective;
    int32_t from;
    int64_t at, states, links, reversed;
} result;

static result* shared; /* [2], seen by all processes */

static long events, dies_at;

static void event(void) {
    if (++events == dies_at) _exit(KILLED);
}

typedef struct how {
    backsweep_options schedule;
    backsweep_sweep_options sweep;
    int32_t tells; /* where an open-ended chain ends: 1 one link ahead, 2 when it is asked beyond it */
} how;

/* One program, whether it begins or goes on. */
static void program(const how* given, const char* folder, result* out) {
    state s = {0.7, -0.3}, a = {0, 0}, tape = s;
    double sums[2] = {0, 0};
    backsweep_memory x[2] = {{&s.q, sizeof s.q, BACKSWEEP_DOUBLES, 0}, {&s.v, sizeof s.v, BACKSWEEP_DOUBLES, 0}};
    backsweep_memory adjoint = {&a, sizeof a, BACKSWEEP_DOUBLES, 0}, sum = {sums, sizeof sums, BACKSWEEP_DOUBLES, 0};
    backsweep_memory tapes = {&tape, sizeof tape, BACKSWEEP_DOUBLES, 0};
    backsweep_sweep_options options = given->sweep;
    backsweep_recovery recovery = BACKSWEEP_RECOVERY_INIT;
    backsweep_action now = {0};
    backsweep_sweep* sweep;
    options.schedule = &given->schedule;
    options.state = x, options.state_count = 2;
    options.adjoint = &adjoint;
    options.sums = &sum;
    options.tape = &tapes;
    options.folder = folder;
    sweep = backsweep_sweep_open(&options);
    if (sweep == NULL) {
        fprintf(stderr, "%s\n", backsweep_error_text());
        _exit(1);
    }
    backsweep_sweep_recovery(sweep, &recovery);
    out->from = recovery.from, out->at = recovery.at, out->states = recovery.states;
    while (backsweep_sweep_next(sweep, &now) == BACKSWEEP_OK && now.verb != BACKSWEEP_DONE) {
        int64_t i;
        event();
        switch (now.verb) {
            case BACKSWEEP_ADVANCE:
                for (i = now.first; i < now.last && i < LINKS; ++i) step(&s, i), ++out->links, event();
                if (given->tells == 1 && now.last == LINKS - 1) backsweep_sweep_finish(sweep, LINKS);
                if (given->tells != 0 && now.last > LINKS) backsweep_sweep_finish(sweep, LINKS);
                break;
            case BACKSWEEP_RECORD:
            case BACKSWEEP_TAPE:
                tape = s, step(&s, now.first);
                break;
            case BACKSWEEP_REVERSE:
                reverse_step(&tape, &a, &sums[0]), ++out->reversed;
                break;
            case BACKSWEEP_TURN:
                sums[1] = s.q * s.v, a.q = s.v, a.v = s.q;
                break;
            default:
                fprintf(stderr, "%s came\n", backsweep_verb_name(now.verb)), _exit(1);
        }
        event();
    }
    if (now.verb != BACKSWEEP_DONE) fprintf(stderr, "%s\n", backsweep_error_text()), _exit(1);
    event();
    out->a = a, out->gradient = sums[0], out->objective = sums[1];
    backsweep_sweep_close(sweep, 1);
}

static int run(const how* given, const char* folder, long dies, result* out) {
    int status = 0;
    pid_t child;
    memset(out, 0, sizeof *out);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        events = 0, dies_at = dies;
        program(given, folder, out);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int same(const result* one, const result* two) {
    return memcmp(&one->a, &two->a, sizeof one->a) == 0 &&
           memcmp(&one->gradient, &two->gradient, sizeof(double)) == 0 &&
           memcmp(&one->objective, &two->objective, sizeof(double)) == 0;
}

/* By a plain loop. */
static result by_hand(void) {
    state x[LINKS + 1] = {{0.7, -0.3}};
    result r;
    int64_t i;
    memset(&r, 0, sizeof r);
    for (i = 0; i < LINKS; ++i) x[i + 1] = x[i], step(&x[i + 1], i);
    r.objective = x[LINKS].q * x[LINKS].v;
    r.a.q = x[LINKS].v, r.a.v = x[LINKS].q;
    for (i = LINKS; i-- > 0;) reverse_step(&x[i], &r.a, &r.gradient);
    return r;
}

static long files(const char* folder) {
    DIR* const listing = opendir(folder);
    long count = 0;
    struct dirent* entry;
    while ((entry = readdir(listing)) != NULL) count += entry->d_name[0] != '.';
    closedir(listing);
    return count;
}

static void killed_everywhere(const char* name, const how* given, const char* folder) {
    const result wanted = by_hand();
    long event_, forward = 0, reverse = 0, states = 0;
    for (event_ = 1;; ++event_) {
        const int end = run(given, folder, event_, &shared[0]);
        if (end == 0) break;
        check(end == KILLED, "the process dies where it was told to", name);
        check(run(given, folder, 0, &shared[1]) == 0, "another goes on", name);
        check(same(&shared[1], &wanted), "with the same bits", name);
        check(files(folder) == 0, "nothing is left", name);
        forward += shared[1].from == BACKSWEEP_FROM_FORWARD;
        reverse += shared[1].from == BACKSWEEP_FROM_REVERSE;
        states += shared[1].states;
        if (failures > 0) exit(1);
    }
    check(same(&shared[0], &wanted), "the bits of a sweep that is not killed", name);
    check(forward > 3 && reverse > 10, "sweeps have gone on", name);
    printf("%s: %ld kills, %ld went on forward, %ld in reverse, %ld states on disk\n", name, event_ - 1, forward,
           reverse, states);
}

static how plain(const char* family, int64_t slots) {
    how h;
    const backsweep_options schedule = BACKSWEEP_OPTIONS_INIT;
    const backsweep_sweep_options sweep = BACKSWEEP_SWEEP_OPTIONS_INIT;
    h.schedule = schedule, h.sweep = sweep, h.tells = 0;
    h.schedule.family = family;
    h.schedule.steps = LINKS;
    h.schedule.slots = slots;
    h.sweep.run = 5, h.sweep.number = 2;
    h.sweep.commit_links = 2;
    h.sweep.not_durable = 1;
    return h;
}

static void not_opened(const how* given, const char* folder, const char* words) {
    static double x, a;
    static const backsweep_memory xs = {&x, sizeof x, 0, 0}, as = {&a, sizeof a, 0, 0};
    backsweep_sweep_options options = given->sweep;
    options.schedule = &given->schedule;
    options.state = &xs, options.adjoint = &as;
    options.folder = folder;
    check(backsweep_sweep_open(&options) == NULL, "it is refused", words);
    check(strstr(backsweep_error_text(), words) != NULL, backsweep_error_text(), words);
}

static void refusals(const char* folder) {
    static const backsweep_level device = {BACKSWEEP_DEVICE, 0, 3, 0, 0},
                                 disk[2] = {{BACKSWEEP_RAM, 0, 1, 0, 0}, {BACKSWEEP_DISK, 0, 3, 0, 0}};
    backsweep_action now;
    how h = plain("revolve", 3);
    not_opened(&h, folder, "give options.sums, or no_sums = 1");
    h.sweep.no_sums = 2;
    not_opened(&h, folder, "options.no_sums must be 0 or 1, came 2");
    h.sweep.no_sums = 1;
    not_opened(&h, NULL, "no folder for the journal");
    h.sweep.commit_seconds = -1.0;
    not_opened(&h, folder, "seconds is -1");
    h = plain("store_all", 0), h.sweep.no_sums = 1;
    not_opened(&h, folder, "give options.tape");
    h = plain("tiered_revolve", 0), h.sweep.no_sums = 1;
    h.schedule.levels = disk, h.schedule.level_count = 2, h.sweep.commit_links = 0;
    not_opened(&h, NULL, "give options.folder");
    h.sweep.disk_slots = 1;
    not_opened(&h, folder, "options.disk_slots is 1, but the schedule has 3");
    h.sweep.disk_slots = 0;
    not_opened(&h, "/proc/no/such/folder", "/proc/no/such/folder");
    h.schedule.family = "multistage", h.schedule.levels = &device, h.schedule.level_count = 1;
    not_opened(&h, folder, "keeps states in RAM and on disk");
    h = plain("revolve", 0), h.sweep.no_sums = 1;
    not_opened(&h, folder, "slots must be 1 or more");
    h = plain("revolve", 3), h.sweep.no_sums = 1, h.sweep.compression = 7;
    not_opened(&h, folder, "options.compression is 7");
    check(backsweep_sweep_open(NULL) == NULL, "no options", "NULL");
    check(backsweep_sweep_next(NULL, &now) == BACKSWEEP_INVALID_ARGUMENT, "no sweep", "NULL");
    check(backsweep_sweep_close(NULL, 0) == BACKSWEEP_OK, "no sweep is closed", "NULL");
    check(files(folder) == 0, "nothing is left", "refusals");
}

/* A commit on demand, sweeps closed on the way and opened again, a number that is another. */
static void closed_and_opened(const char* folder) {
    state s = {0.7, -0.3}, a = {0, 0}, tape = s;
    double sum = 0;
    backsweep_memory x = {&s, sizeof s, 0, 0}, adjoint = {&a, sizeof a, 0, 0}, sums = {&sum, sizeof sum, 0, 0};
    const backsweep_options schedule = {.size = sizeof schedule, .steps = LINKS, .slots = 3};
    backsweep_sweep_options options = {.size = sizeof options,
                                       .schedule = &schedule,
                                       .state = &x,
                                       .adjoint = &adjoint,
                                       .sums = &sums,
                                       .folder = folder,
                                       .number = 1,
                                       .commit_seconds = 1e9};
    backsweep_recovery recovery = BACKSWEEP_RECOVERY_INIT;
    const result wanted = by_hand();
    backsweep_action now = {0};
    int opened = 0;
    long done = 0;
    while (now.verb != BACKSWEEP_DONE || opened == 0) {
        backsweep_sweep* const sweep = backsweep_sweep_open(&options);
        int actions = 0;
        check(sweep != NULL, backsweep_error_text(), "opened again");
        if (sweep == NULL) return;
        ++opened;
        while (actions++ < 12 && backsweep_sweep_next(sweep, &now) == BACKSWEEP_OK && now.verb != BACKSWEEP_DONE) {
            int64_t i;
            switch (now.verb) {
                case BACKSWEEP_ADVANCE:
                    for (i = now.first; i < now.last; ++i) step(&s, i);
                    break;
                case BACKSWEEP_RECORD:
                case BACKSWEEP_TAPE:
                    tape = s, step(&s, now.first);
                    break;
                case BACKSWEEP_REVERSE:
                    reverse_step(&tape, &a, &sum), ++done;
                    break;
                case BACKSWEEP_TURN:
                    a.q = s.v, a.v = s.q;
                    break;
            }
        }
        check(backsweep_sweep_commit(sweep) == BACKSWEEP_OK, backsweep_error_text(), "commit");
        check(backsweep_sweep_close(sweep, now.verb == BACKSWEEP_DONE) == BACKSWEEP_OK, backsweep_error_text(),
              "close");
        if (now.verb != BACKSWEEP_DONE) s.q = s.v = a.q = a.v = sum = NAN, s.q = 0.7, s.v = -0.3;
    }
    check(opened > 3 && done == LINKS, "every link was reversed once", "closed and opened");
    check(memcmp(&a, &wanted.a, sizeof a) == 0 && memcmp(&sum, &wanted.gradient, sizeof sum) == 0, "the same bits",
          "closed and opened");
    check(files(folder) == 0, "nothing is left", "closed and opened");
    {
        backsweep_sweep* sweep;
        s.q = 0.7, s.v = -0.3, sum = 0;
        sweep = backsweep_sweep_open(&options);
        while (backsweep_sweep_next(sweep, &now) == BACKSWEEP_OK && now.verb != BACKSWEEP_TURN) {}
        check(backsweep_sweep_commit(sweep) == BACKSWEEP_OK, backsweep_error_text(), "commit");
        backsweep_sweep_close(sweep, 0);
        s.q = 0.7, s.v = -0.3;
        options.number = 2;
        sweep = backsweep_sweep_open(&options);
        backsweep_sweep_recovery(sweep, &recovery);
        check(recovery.from == BACKSWEEP_FROM_START, "the record of another sweep is not taken", "number");
        check(strstr(backsweep_sweep_recovery_text(sweep), "is of sweep 1, not 2") != NULL,
              backsweep_sweep_recovery_text(sweep), "number");
        backsweep_sweep_close(sweep, 1);
    }
}

int main(void) {
    static const backsweep_level free_[2] = {{BACKSWEEP_RAM, 0, 2, 0, 0}, {BACKSWEEP_DISK, 0, 3, 0, 0}};
    static const backsweep_level levels[2] = {{BACKSWEEP_RAM, 0, 2, 0, 0}, {BACKSWEEP_DISK, 0, 3, 1.5, 1.0}};
    char folder[] = "/tmp/backsweep-XXXXXX";
    how h;
    if (mkdtemp(folder) == NULL) return 1;
    shared = mmap(NULL, 2 * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    h = plain("revolve", 3);
    killed_everywhere("revolve", &h, folder);
    h.schedule.needs_state = 0, h.sweep.commit_links = 0, h.sweep.commit_seconds = 1e-9;
    killed_everywhere("revolve, by time", &h, folder);
    h = plain("tiered_revolve", 0), h.schedule.levels = free_, h.schedule.level_count = 2;
    killed_everywhere("tiered_revolve", &h, folder);
    h.sweep.compression = BACKSWEEP_ZSTD, h.sweep.buffers = -1, h.sweep.buffers = 3;
    killed_everywhere("tiered_revolve, compressed", &h, folder);
    h = plain("multistage", 0), h.schedule.levels = levels, h.schedule.level_count = 2;
    killed_everywhere("multistage", &h, folder);
    h = plain("store_all", 0);
    killed_everywhere("store_all", &h, folder);
    h = plain("periodic", 0), h.schedule.period = 4;
    killed_everywhere("periodic", &h, folder);
    h = plain("online", 4), h.schedule.steps = 0, h.tells = 2;
    killed_everywhere("online, the end met late", &h, folder);
    h.tells = 1;
    killed_everywhere("online, the end seen ahead", &h, folder);
    h = plain("two_level", 1), h.schedule.steps = 0, h.schedule.period = 5, h.tells = 2, h.sweep.disk_slots = 8;
    killed_everywhere("two_level", &h, folder);
    refusals(folder);
    closed_and_opened(folder);
    rmdir(folder);
    return verdict("sweep");
}
