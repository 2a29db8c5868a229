// Prey x and predators y, x' = (p - y) x, y' = (x - 1) y, by the classical Runge-Kutta method, and its adjoint.
// SPDX-License-Identifier: MIT
#pragma once

constexpr int steps = 1000;
constexpr int slots = 8;

/// p is a state that does not change, so its adjoint is the gradient with respect to the parameter.
struct State {
    double x = 0.0, y = 0.0, p = 0.0;
};

void step(State& s);                          ///< s: step i -> i + 1
void reverse_step(const State& s, State& a);  ///< s at step i; a: adjoint of step i + 1 -> of step i
double objective(const State& s);             ///< J at the last step
State seed(const State& s);                   ///< its gradient

State gradient_stored(State s);  ///< of J with respect to the start s, all states stored
State gradient_pull(State s);    ///< the same with `slots` states, the schedule's actions pulled
State gradient_push(State s);    ///< the same, an Execution plays them
