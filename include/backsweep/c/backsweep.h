/* Schedules for C: make one, read its actions in a loop of your own or have them called back, destroy it.
 * No exception leaves these functions; what failed says backsweep_error_text(). A handle belongs to one thread at a
 * time, different ones are independent. Plain C99; the actions have the layout of backsweep/schedule/action.hpp.
 * SPDX-License-Identifier: MIT */
#ifndef BACKSWEEP_C_BACKSWEEP_H
#define BACKSWEEP_C_BACKSWEEP_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define BACKSWEEP_C_API __attribute__((visibility("default")))
#else
#define BACKSWEEP_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a call answers. */
enum backsweep_status {
    BACKSWEEP_OK = 0,
    BACKSWEEP_INVALID_ARGUMENT = 1, /* a value that cannot be worked with */
    BACKSWEEP_SCHEDULE_ERROR = 2,   /* a schedule used against its rules */
    BACKSWEEP_FAILURE = 3,          /* anything else, such as no memory */
    BACKSWEEP_STOPPED = 4,          /* a callback stopped the run */
    BACKSWEEP_STORE_ERROR = 5       /* a file that cannot be written or read: the text has path and reason */
};

/* What to do. x is the working state, the tape and the adjoint a are the caller's too. */
enum backsweep_verb {
    BACKSWEEP_ADVANCE = 0, /* run links [first, last) from x at first; x ends at last */
    BACKSWEEP_RECORD = 1,  /* run one link and make its tape; x ends at last */
    BACKSWEEP_TAPE = 2,    /* make the tape of one link whose reverse follows at once; x is unspecified after it */
    BACKSWEEP_REVERSE = 3, /* spend the tape of one link: a from last to first */
    BACKSWEEP_SAVE = 4,    /* copy x into slot `to`, which is empty */
    BACKSWEEP_LOAD = 5,    /* copy slot `from` into x */
    BACKSWEEP_TAKE = 6,    /* the same, and the slot is empty after it */
    BACKSWEEP_RESTART = 7, /* x := the state behind the link whose tape lies in slot `from` */
    BACKSWEEP_STOW = 8,    /* move the working tape into slot `to` */
    BACKSWEEP_FETCH = 9,   /* move the tape in slot `from` to the working tape */
    BACKSWEEP_DROP = 10,   /* empty slot `from`; slot -1 is the working tape */
    BACKSWEEP_MOVE = 11,   /* move slot `from` to slot `to` of another tier */
    BACKSWEEP_TURN = 12,   /* the end of the forward sweep: seed the adjoint from x */
    BACKSWEEP_DONE = 13    /* nothing is left to do */
};

enum backsweep_tier { BACKSWEEP_DEVICE = 0, BACKSWEEP_PINNED = 1, BACKSWEEP_RAM = 2, BACKSWEEP_DISK = 3 };

/* A place to keep a state or a tape; index -1 is "no slot". */
typedef struct backsweep_slot {
    int32_t tier;
    int32_t index;
} backsweep_slot;

/* 40 bytes. `first` and `last` are a half-open range of links; for save, load, take and restart both are the state's
 * number, for turn both are the number of links. */
typedef struct backsweep_action {
    int32_t verb;
    backsweep_slot from;
    backsweep_slot to;
    int32_t reserved;
    int64_t first;
    int64_t last;
} backsweep_action;

/* Every struct with a `size` begins with sizeof of the caller's own: begin with its ..._INIT. In all of them zero
 * (NULL) is the default, so a library that knows more fields serves an older caller; one that knows fewer refuses a
 * newer caller who uses them. */

/* Where states may lie, what a save and a load cost there. */
typedef struct backsweep_level {
    int32_t tier;
    int32_t reserved;
    int64_t slots; /* -1: any number (last level only) */
    double write;
    double read;
} backsweep_level;

/* How a schedule is made; backsweep/schedule/schedule.hpp and the header of each family say what the options mean. An
 * option that the family does not use is left out, or the call is refused. Arrays are read during the call only. */
typedef struct backsweep_options {
    size_t size;
    const char* family;  /* "revolve" (default), "store_all", "periodic", "segments", "mixed", "nonuniform", "online",
                            "multistage", "tiered_revolve", "periodic_disk", "two_level", "optimal_chain",
                            "forward_only" */
    int64_t steps;       /* links of the chain, >= 0; open-ended families (online, two_level) take none */
    int64_t slots;       /* revolve, nonuniform, online: states that may be kept, the one of x_0 included;
                            mixed: units; two_level: RAM slots beside */
    int64_t period;      /* periodic, periodic_disk (0: the best), two_level: links between kept states;
                            segments: length */
    const char* rule;    /* which of several ways of the family; NULL or "": the first that its header names */
    int32_t no_loss;     /* forward_only: 1 only advances, 0 records and drops every link */
    int32_t needs_state; /* 1: x is brought to first before every reverse */
    const char* first;   /* revolve: where x_0 lies: "in_slot" (default), "external", "live" */
    int64_t align;       /* revolve, rule aligned: kept states lie on multiples of this where an optimum does */
    int64_t ram_slots;   /* revolve, rule fewest_disk: kept states in RAM, the others are on disk; 0: not given */
    int64_t segments;    /* segments: how many */
    int64_t depth;       /* segments: how often segments are cut again; 0 stands for 1 */
    int64_t tape_units;  /* mixed: what a tape takes where a state takes 1; 0 stands for 1 */
    int32_t restart;     /* mixed: 1 if the chain gives the state behind a link out of its tape */
    int32_t reserved;
    const backsweep_level* levels; /* [level_count] multistage, tiered_revolve, periodic_disk: fastest first */
    size_t level_count;
    double advance_cost;              /* multistage, periodic_disk: price of advancing a link; 0 stands for 1 */
    double reverse_cost;              /* the same of recording and reversing one; 0 stands for 1 */
    const double* costs;              /* [steps] nonuniform: of advancing each link */
    const int64_t* sizes;             /* [steps] nonuniform: of x_0 ...; NULL: 1 each */
    const double* forward_time;       /* [steps] optimal_chain */
    const double* backward_time;      /* [steps] optimal_chain */
    const int64_t* state_bytes;       /* [steps + 1] optimal_chain */
    const int64_t* tape_bytes;        /* [steps] optimal_chain: the state behind the link included */
    const int64_t* forward_overhead;  /* [steps] optimal_chain; NULL: none */
    const int64_t* backward_overhead; /* [steps] optimal_chain; NULL: none */
    int64_t budget;                   /* optimal_chain: bytes */
} backsweep_options;

#define BACKSWEEP_OPTIONS_INIT                                                                                      \
    {                                                                                                               \
        sizeof(backsweep_options), NULL, 0, 0, 0, NULL, 0, 0, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, NULL, NULL, \
            NULL, NULL, NULL, NULL, NULL, NULL, 0                                                                   \
    }

typedef struct backsweep_schedule backsweep_schedule;

/* A new schedule, to be destroyed by the caller; NULL if it cannot be made. */
BACKSWEEP_C_API backsweep_schedule* backsweep_create(const backsweep_options* options);

/* A state that a forward sweep, which may have been killed, has left in a slot. */
typedef struct backsweep_stored {
    int64_t step;
    backsweep_slot slot;
} backsweep_stored;

/* The best reverse of [0, steps) from `count` stored states, x_0 among them, with `slots` slots in RAM, theirs
 * included. Its stream begins with drops and `turn`, where the adjoint of x_steps is given; no state is there. */
BACKSWEEP_C_API backsweep_schedule* backsweep_complete(const backsweep_stored* stored, size_t count, int64_t slots,
                                                       int64_t steps);

/* Pull: the next action into *action; BACKSWEEP_DONE for ever after the last one. */
BACKSWEEP_C_API int backsweep_next(backsweep_schedule* schedule, backsweep_action* action);

/* Up to `capacity` next actions into actions[0 ...], their number into *written (at least one if there is room). Stops
 * after the first done, and where the next action depends on backsweep_finish. */
BACKSWEEP_C_API int backsweep_fill(backsweep_schedule* schedule, backsweep_action* actions, size_t capacity,
                                   size_t* written);

/* Does one action; 0 to go on, anything else stops the run. */
typedef int (*backsweep_callback)(const backsweep_action* action, void* user);

/* One callback for each verb; `otherwise` stands in for those that are NULL. */
typedef struct backsweep_callbacks {
    size_t size;
    backsweep_callback advance;
    backsweep_callback record;
    backsweep_callback tape;
    backsweep_callback reverse;
    backsweep_callback save;
    backsweep_callback load;
    backsweep_callback take;
    backsweep_callback restart;
    backsweep_callback stow;
    backsweep_callback fetch;
    backsweep_callback drop;
    backsweep_callback move;
    backsweep_callback turn;
    backsweep_callback otherwise;
} backsweep_callbacks;

#define BACKSWEEP_CALLBACKS_INIT \
    { sizeof(backsweep_callbacks), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/* Push: calls back for every action until the first done, `user` handed through. A verb without callback is refused:
 * before anything is called if the schedule is at its beginning and knows its length, else where the verb comes up.
 * BACKSWEEP_STOPPED if a callback does not answer 0; the next action is then the one after that. Within a callback the
 * schedule may be told its length by backsweep_finish; no other function takes it there. */
BACKSWEEP_C_API int backsweep_run(backsweep_schedule* schedule, const backsweep_callbacks* callbacks, void* user);

/* Tells an open-ended schedule that the chain ends after `steps` links: where one link is left, if the caller knows
 * that, which saves work; else where the chain ends, and the advance just issued ends there too, or is revoked. Once.
 * Other schedules answer BACKSWEEP_SCHEDULE_ERROR. */
BACKSWEEP_C_API int backsweep_finish(backsweep_schedule* schedule, int64_t steps);

/* The same stream from its beginning. */
BACKSWEEP_C_API int backsweep_rewind(backsweep_schedule* schedule);

/* NULL is allowed; a schedule that backsweep_run plays is not destroyed, and the error text says so. */
BACKSWEEP_C_API void backsweep_destroy(backsweep_schedule* schedule);

/* When an open-ended schedule is told where the chain ends. */
enum backsweep_ending {
    BACKSWEEP_CLOSED = 0, /* never: the schedule knows its length */
    BACKSWEEP_AHEAD = 1,  /* where one link is left, which is then recorded as it is run */
    BACKSWEEP_MET = 2,    /* where no link is left, before a further advance is asked for */
    BACKSWEEP_LATE = 3    /* when an advance beyond the end was given out already, and is revoked */
};

/* What a prediction is made for: prices in any unit, sizes in bytes, all finite and >= 0. An array has an entry for
 * each link (for each of x_0 ... x_steps where it says so), belongs to the caller and takes the place of the one
 * figure. */
typedef struct backsweep_machine {
    size_t size;
    double advance;                /* of a link */
    double record;                 /* of a link, taped or recorded */
    double reverse;                /* of a link */
    const double* advance_of_link; /* [steps] */
    const double* record_of_link;  /* [steps] */
    const double* reverse_of_link; /* [steps] */
    double write[4];               /* of a save or stow into a tier; a move reads and writes */
    double read[4];                /* of a load, take or fetch out of a tier */
    int64_t state_bytes;           /* of a state */
    int64_t tape_bytes;            /* of the tape of a link */
    const int64_t* bytes_of_state; /* [steps + 1] */
    const int64_t* bytes_of_tape;  /* [steps] */
    int64_t steps;                 /* open-ended: the length that the chain turns out to have */
    int32_t ending;                /* enum backsweep_ending */
    int32_t reserved;
} backsweep_machine;

#define BACKSWEEP_MACHINE_INIT \
    { sizeof(backsweep_machine), 0, 0, 0, NULL, NULL, NULL, {0, 0, 0, 0}, {0, 0, 0, 0}, 0, 0, NULL, NULL, 0, 0, 0 }

/* What a schedule does; tiers in the order of enum backsweep_tier. */
typedef struct backsweep_prediction {
    size_t size;
    int64_t actions;       /* done not counted */
    int64_t advances;      /* links advanced; those recorded or taped are not among them */
    int64_t recorded;      /* links recorded or taped */
    int64_t reversed;      /* links reversed */
    int64_t writes[4];     /* saves and stows */
    int64_t reads[4];      /* loads, takes and fetches */
    int64_t peak_slots[4]; /* most slots in use at once */
    int64_t peak_bytes[4]; /* most bytes in slots at once */
    double time;           /* in the unit of the prices */
} backsweep_prediction;

#define BACKSWEEP_PREDICTION_INIT \
    { sizeof(backsweep_prediction), 0, 0, 0, 0, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, 0 }

/* Plays the schedule from its beginning on an abstract machine that refuses an illegal action, and rewinds it: it is at
 * its beginning afterwards. machine: NULL counts only. */
BACKSWEEP_C_API int backsweep_predict(backsweep_schedule* schedule, const backsweep_machine* machine,
                                      backsweep_prediction* prediction);

/* What the last failed call of this thread wanted, what came and what to do; "" if none failed. The text is the
 * library's and lasts until the thread's next failing call. */
BACKSWEEP_C_API const char* backsweep_error_text(void);

/* "advance" and so on. */
BACKSWEEP_C_API const char* backsweep_verb_name(int32_t verb);

/* The library's version, "major.minor.patch". */
BACKSWEEP_C_API const char* backsweep_version(void);

#ifdef __cplusplus
}
#if __cplusplus >= 201103L
static_assert(sizeof(backsweep_action) == 40 && offsetof(backsweep_action, first) == 24, "the layout is promised");
#endif
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(backsweep_action) == 40 && offsetof(backsweep_action, first) == 24, "the layout is promised");
#endif

#endif
