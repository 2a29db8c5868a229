/* Schedules for C and Fortran: make one, read its actions in a loop of your own, destroy it.
 * No exception leaves these functions; what failed says backsweep_error_text(). A handle belongs to one thread at a
 * time. Plain C99; the actions have the layout of backsweep/schedule/action.hpp.
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
    BACKSWEEP_FAILURE = 3           /* anything else, such as no memory */
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

/* How a schedule is made. Begin with BACKSWEEP_SCHEDULE_OPTIONS_INIT; an option that the family does not use keeps its
 * default, or the call is refused. */
typedef struct backsweep_schedule_options {
    size_t size;         /* sizeof(backsweep_schedule_options) of the caller */
    const char* family;  /* "store_all", "revolve", "periodic", "forward_only" */
    int64_t steps;       /* links of the chain, >= 0 */
    int64_t slots;       /* revolve: states that may be kept, the one of x_0 included */
    int64_t period;      /* periodic: links between kept states */
    const char* rule;    /* revolve: "" or "fewest_writes", "longest", "shortest" */
    int32_t loss;        /* forward_only: 1 records and drops every link, 0 only advances */
    int32_t needs_state; /* 1: x is brought to first before every reverse */
} backsweep_schedule_options;

#define BACKSWEEP_SCHEDULE_OPTIONS_INIT \
    { sizeof(backsweep_schedule_options), "revolve", 0, 0, 0, "", 1, 0 }

typedef struct backsweep_schedule backsweep_schedule;

/* A new schedule, to be destroyed by the caller; NULL if it cannot be made. */
BACKSWEEP_C_API backsweep_schedule* backsweep_schedule_create(const backsweep_schedule_options* options);

/* The next action into *action; BACKSWEEP_DONE for ever after the last one. */
BACKSWEEP_C_API int backsweep_schedule_next(backsweep_schedule* schedule, backsweep_action* action);

/* Up to `capacity` next actions into actions[0 ...], their number into *written; stops after the first done. */
BACKSWEEP_C_API int backsweep_schedule_fill(backsweep_schedule* schedule, backsweep_action* actions, size_t capacity,
                                            size_t* written);

/* The same stream from its beginning. */
BACKSWEEP_C_API int backsweep_schedule_rewind(backsweep_schedule* schedule);

/* Tells an open-ended schedule that the chain ends after `steps` links; others answer BACKSWEEP_SCHEDULE_ERROR. */
BACKSWEEP_C_API int backsweep_schedule_finish(backsweep_schedule* schedule, int64_t steps);

/* NULL is allowed. */
BACKSWEEP_C_API void backsweep_schedule_destroy(backsweep_schedule* schedule);

/* What the last failed call of this thread wanted, what came and what to do; "" if none failed. The text is the
 * library's and lasts until the thread's next failing call. */
BACKSWEEP_C_API const char* backsweep_error_text(void);

/* "advance" and so on. */
BACKSWEEP_C_API const char* backsweep_verb_name(int32_t verb);

/* The library's version, "major.minor.patch". */
BACKSWEEP_C_API const char* backsweep_version(void);

#ifdef __cplusplus
}
static_assert(sizeof(backsweep_action) == 40 && offsetof(backsweep_action, first) == 24, "the layout is promised");
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(backsweep_action) == 40 && offsetof(backsweep_action, first) == 24, "the layout is promised");
#endif

#endif
