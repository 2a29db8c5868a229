// THE concept: links that can be advanced, recorded and reversed. Everything that Backsweep differentiates is a Chain.
// A link is a pure function of (state, step, parameters, seed): run twice, it gives the same bits.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"
#include "backsweep/store/blob.hpp"

#include <concepts>
#include <optional>
#include <type_traits>
#include <vector>

namespace backsweep {

/// State, Tape and Adjoint are default-constructible and copyable (Tape: movable).
///   length()            number of links; empty: known only when the chain ends
///   initial()           x_0
///   advance(r, x)       x at r.first -> x at r.last, any number of links; answers the link reached
///   record(r, x, tape)  one link: the same next state in bits, and the tape that its reverse needs
///   seed(x, a)          assigns the terminal adjoint from the last state
///   reverse(r, x, tape, a)  one link: a at r.last -> a at r.first; parameter gradients are added to; the tape is
///                       spent. x is read only where the chain declares `needs_state`: then it is the state at r.first.
/// Optional:
///   initial(x)          assigns x_0 to x, which keeps its memory: a second sweep need not allocate
///   again(x)            assigns x_0 in the middle of a sweep that initial() has begun: no slot in RAM keeps a copy of it
///   spend(x, a)         as seed, for a state that is not needed any more: the adjoint may take its memory
///   reuse(a)            the adjoint of the last sweep is not needed any more: the chain may take its memory
///   static constexpr bool needs_state = true
///   keep(r, x, tape)    as record, for a link whose reverse follows at once; need not run it. Required with
///                       needs_state, and then leaves x at r.first
///   restart(tape, x)    assigns the state after the link of the tape
///   loss()              the sum of what the links' records last wrote to a loss log (for check_chain)
///   blobs(State&), blobs(Tape&)  beside the type: its memory, for tiers other than RAM; initial() must have the shape
///                       of every state then, or
///   shape(i, x)         gives x the shape of x_i, whatever it holds
///   shape(tape)         gives a tape the shape of every tape; without it they all have the shape of the first
///   sums()              std::vector<Blob>: all that record, seed and reverse add to or assign and a killed sweep must
///                       find again (parameter gradients, the loss log); {} if there is none. Required for commits, and
///                       so is blobs(Adjoint&). Adjoints then have the shape that seed(initial(), a) gives, or that of
///   shape(i, a)         gives a the shape of the adjoint of x_i
///   self_contained()    false: a state alone is not enough to go on from; a killed sweep goes on from x_0 only
///   x.rebook(kind)      State: books its memory as that kind; an Execution's slots are booked as `slots`
///   values(State&)      beside the type: its numbers, for the checkers
template <class C>
concept Chain = std::default_initializable<typename C::State> && std::copyable<typename C::State> &&
                std::default_initializable<typename C::Tape> && std::movable<typename C::Tape> &&
                std::default_initializable<typename C::Adjoint> && std::copyable<typename C::Adjoint> &&
                requires(C c, const C k, Range r, typename C::State x, typename C::Tape tape, typename C::Adjoint a) {
                    { k.length() } -> std::same_as<std::optional<Index>>;
                    { k.initial() } -> std::same_as<typename C::State>;
                    { c.advance(r, x) } -> std::same_as<Index>;
                    { c.record(r, x, tape) } -> std::same_as<Index>;
                    { c.seed(x, a) };
                    { c.reverse(r, x, tape, a) };
                };

/// Whether the chain's reverse reads the state at r.first.
template <class C>
inline constexpr bool needs_state = [] {
    if constexpr (requires { C::needs_state; }) return static_cast<bool>(C::needs_state);
    return false;
}();

/// The chain can make a tape without running the link.
template <class C>
concept Keeps = Chain<C> && requires(C c, Range r, typename C::State x, typename C::Tape tape) { c.keep(r, x, tape); };

/// The chain makes x_0 again at any time.
template <class C>
concept Remakes = Chain<C> && requires(C c, typename C::State x) { c.again(x); };

/// The chain says what its sweeps sum up: they may commit.
template <class C>
concept Sums = Chain<C> && requires(C c) {
    { c.sums() } -> std::same_as<std::vector<Blob>>;
};

/// Whether a state of the chain is enough to go on from.
template <Chain C>
bool self_contained(const C& chain) {
    if constexpr (requires { chain.self_contained(); })
        return chain.self_contained();
    else
        return true;
}

/// The chain can take the next state out of a tape.
template <class C>
concept Restarts = Chain<C> && requires(C c, typename C::Tape tape, typename C::State x) { c.restart(tape, x); };

}  // namespace backsweep
