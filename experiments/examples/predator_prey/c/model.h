/* Prey x and predators y, x' = (p - y) x, y' = (x - 1) y, by the classical Runge-Kutta method, and its adjoint.
 * SPDX-License-Identifier: MIT */
#ifndef MODEL_H
#define MODEL_H

#define STEPS 1000
#define SLOTS 8

/* p is a state that does not change, so its adjoint is the gradient with respect to the parameter. */
typedef struct state {
    double x, y, p;
} state;

void step(state* s);                         /* s: step i -> i + 1 */
void reverse_step(const state* s, state* a); /* s at step i; a: adjoint of step i + 1 -> of step i */
double objective(const state* s);            /* J at the last step */
state seed(const state* s);                  /* its gradient */

void quit(const char* text); /* prints it and ends the program */

state gradient_stored(state s); /* of J with respect to the start s, all states stored */
state gradient_pull(state s);   /* the same with SLOTS states, the schedule's actions pulled */
state gradient_push(state s);   /* the same, the actions pushed */

#endif
