/* Whole sweeps for C: the library keeps the states, in RAM and on disk, and writes down where the sweep stands, so that
 * it goes on in another process after a kill. Your loop has what is yours: run links, record, reverse, seed.
 * Link backsweep_chain. Errors and structs are as in backsweep.h; docs/restart.md says what a commit costs.
 * SPDX-License-Identifier: MIT */
#ifndef BACKSWEEP_C_BACKSWEEP_SWEEP_H
#define BACKSWEEP_C_BACKSWEEP_SWEEP_H

#include "backsweep/c/backsweep.h"

#ifdef __cplusplus
extern "C" {
#endif

enum backsweep_holds { BACKSWEEP_BYTES = 0, BACKSWEEP_FLOATS = 1, BACKSWEEP_DOUBLES = 2 };
enum backsweep_compression { BACKSWEEP_UNCOMPRESSED = 0, BACKSWEEP_ZSTD = 1 };
enum backsweep_precision { BACKSWEEP_EXACT = 0, BACKSWEEP_FLOAT32 = 1, BACKSWEEP_BFLOAT16 = 2 };

/* A piece of the caller's memory. It must stay where it is for as long as the sweep is open. */
typedef struct backsweep_memory {
    void* data;
    size_t bytes;
    int32_t holds; /* enum backsweep_holds: what a precision rounds; BACKSWEEP_BYTES is never rounded */
    int32_t reserved;
} backsweep_memory;

/* Each of state, adjoint, sums and tape is an array of pieces; a count of 0 stands for 1. */
typedef struct backsweep_sweep_options {
    size_t size;
    const backsweep_options* schedule; /* how it is made; no option `restart`, tiers RAM and disk only */
    const backsweep_memory* state;     /* x, which is x_0 when the sweep is opened */
    size_t state_count;
    const backsweep_memory* adjoint;
    size_t adjoint_count;
    const backsweep_memory* sums; /* all else that the loop's record, reverse and turn add to or assign and that must
                                     survive: parameter gradients, the objective, a log. Say no_sums if there is none */
    size_t sums_count;
    const backsweep_memory* tape; /* for schedules that keep tapes (store_all, periodic, mixed); else NULL */
    size_t tape_count;
    const char* folder; /* for slots on disk and the journal, made if absent; NULL: RAM only, a kill loses the sweep */
    const char* name;   /* of the files there, NULL: "sweep"; sweeps that are open at once need different ones */
    uint64_t run;       /* fingerprint of the program and its data: what another run left is not taken */
    uint64_t number;    /* of the sweep within the run, such as the iteration */
    int64_t commit_links;  /* a commit after so many links were first reached, or reversed; 0: not by links */
    double commit_seconds; /* a commit after so many seconds; 0: not by time */
    int64_t ram_slots;     /* RAM slots after a kill; 0: as many as the schedule has in use at most */
    int64_t disk_slots;    /* 0: as many as the schedule has in use at most; open-ended schedules must say it */
    int64_t buffers;       /* states that writes and look-ahead reads may hold in RAM; 0 stands for 2, -1 for none */
    int32_t compression;   /* of slots on disk: enum backsweep_compression */
    int32_t precision;     /* the same: enum backsweep_precision; rounded states change the gradient's bits */
    int32_t not_durable;   /* 1: commits survive a kill of the process, not a power cut */
    int32_t no_sums;       /* 1: the loop adds to nothing but the adjoint */
} backsweep_sweep_options;

#define BACKSWEEP_SWEEP_OPTIONS_INIT                                                                                   \
    {                                                                                                                  \
        sizeof(backsweep_sweep_options), NULL, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, \
            0, 0, 0                                                                                                    \
    }

typedef struct backsweep_sweep backsweep_sweep;

/* Opens a sweep; NULL if that fails. Where a killed process of the same run and number has committed, x, the adjoint
 * and the sums become what they were at the commit, and the actions go on from there: the loop is the same. */
BACKSWEEP_C_API backsweep_sweep* backsweep_sweep_open(const backsweep_sweep_options* options);

/* The next action of the caller; the one before is done, and a commit is made if it is time for one. Only advance,
 * record, tape, reverse, turn and done come: states and tapes are saved and loaded by the library. An advance may come
 * in pieces. */
BACKSWEEP_C_API int backsweep_sweep_next(backsweep_sweep* sweep, backsweep_action* action);

/* As backsweep_finish, for open-ended schedules. */
BACKSWEEP_C_API int backsweep_sweep_finish(backsweep_sweep* sweep, int64_t steps);

/* A commit now, whatever the intervals: before a signal ends the process, say. The last action given out must have been
 * done. In the reverse sweep, or where a state is at hand; else nothing is written, and that is no error. */
BACKSWEEP_C_API int backsweep_sweep_commit(backsweep_sweep* sweep);

enum backsweep_recovery_from { BACKSWEEP_FROM_START = 0, BACKSWEEP_FROM_FORWARD = 1, BACKSWEEP_FROM_REVERSE = 2 };

/* Where a sweep began when it was opened. */
typedef struct backsweep_recovery {
    size_t size;
    int64_t at;     /* in the forward sweep: x_at; behind the turn: links [0, at) are left */
    int64_t states; /* found whole on disk */
    int32_t from;   /* enum backsweep_recovery_from */
    int32_t reserved;
} backsweep_recovery;

#define BACKSWEEP_RECOVERY_INIT \
    { sizeof(backsweep_recovery), 0, 0, 0, 0 }

BACKSWEEP_C_API int backsweep_sweep_recovery(const backsweep_sweep* sweep, backsweep_recovery* recovery);
/* The same in words, and why a record was not used; the sweep's, until it is closed. "" for NULL. */
BACKSWEEP_C_API const char* backsweep_sweep_recovery_text(const backsweep_sweep* sweep);

/* Closes it; NULL is allowed. finished: 1 if what the sweep gave has been used: its files go, and nothing that the
 * sweep did not make. 0: they stay, and the sweep can be opened again where it stood at its last commit. */
BACKSWEEP_C_API int backsweep_sweep_close(backsweep_sweep* sweep, int32_t finished);

#ifdef __cplusplus
}
#endif

#endif
