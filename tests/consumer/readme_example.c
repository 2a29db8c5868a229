/* The C example of README.md, word for word; tests/consumer/readme.sh compares.
 * SPDX-License-Identifier: MIT */
#include "backsweep/c/backsweep.h"
#include <stdio.h>

int main(void) {
    backsweep_options options = BACKSWEEP_OPTIONS_INIT; /* family "revolve" */
    options.steps = 6, options.slots = 2;
    backsweep_schedule* schedule = backsweep_create(&options);
    for (backsweep_action a = {0}; backsweep_next(schedule, &a) == BACKSWEEP_OK && a.verb != BACKSWEEP_DONE;)
        printf("%s %d..%d\n", backsweep_verb_name(a.verb), (int)a.first, (int)a.last); /* yours: a switch (a.verb) */
    backsweep_destroy(schedule);
    return 0;
}
