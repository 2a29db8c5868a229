// A user's three functions make a chain: step, seed, reverse. The tape of a link is the state before it.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/chain/chain.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace backsweep {

/// For time-steppers whose adjoint step needs the state before the step. S and A: any copyable, default-constructible
/// types. Parameter gradients are the functions' own business: `reverse` adds to them, once a link, in falling order.
template <class S, class A = S>
class CallbackChain {
public:
    using State = S;
    using Tape = S;
    using Adjoint = A;
    using Step = std::function<void(Index i, S& x)>;                 ///< x_i -> x_{i+1}, in place
    using Seed = std::function<void(const S& x, A& a)>;              ///< assigns the adjoint of x_n
    using Reverse = std::function<void(Index i, const S& x, A& a)>;  ///< with x = x_i: a at i+1 -> a at i, in place

    /// Throws InvalidArgument if links < 0 or a function is empty.
    CallbackChain(Index links, S x0, Step step, Seed seed, Reverse reverse)
        : links_(links),
          x0_(std::move(x0)),
          step_(std::move(step)),
          seed_(std::move(seed)),
          reverse_(std::move(reverse)) {
        if (links < 0) throw InvalidArgument("CallbackChain: links must be 0 or more, came " + std::to_string(links));
        if (!step_ || !seed_ || !reverse_)
            throw InvalidArgument("CallbackChain wants three functions (step, seed, reverse), but one is empty");
    }

    std::optional<Index> length() const { return links_; }
    S initial() const { return x0_; }
    Index advance(Range r, S& x) {
        for (Index i = r.first; i < r.last; ++i) step_(i, x);
        return r.last;
    }
    Index record(Range r, S& x, Tape& tape) {
        tape = x;
        step_(r.first, x);
        return r.last;
    }
    void keep(Range, S& x, Tape& tape) {
        using std::swap;
        swap(tape, x);
    }
    void seed(const S& x, A& a) { seed_(x, a); }
    void reverse(Range r, S&, Tape& tape, A& a) { reverse_(r.first, std::as_const(tape), a); }

    /// Commits ask for what the functions sum up, so that a killed sweep finds it again: say where it is, or give a
    /// function that answers {} if there is nothing.
    void sum_in(std::function<std::vector<Blob>()> sums) { sums_ = std::move(sums); }
    /// Throws InvalidArgument if sum_in() was not called.
    std::vector<Blob> sums() const {
        if (!sums_)
            throw InvalidArgument("a CallbackChain cannot know what its functions sum up, and a killed sweep would lose "
                                  "it; call sum_in(), with a function that answers {} if there is nothing");
        return sums_();
    }

private:
    Index links_;
    S x0_;
    Step step_;
    Seed seed_;
    Reverse reverse_;
    std::function<std::vector<Blob>()> sums_;
};

/// Three lambdas: the adjoint is of the state's type.
template <class S, class Step, class Seed, class Reverse>
CallbackChain(Index, S, Step, Seed, Reverse) -> CallbackChain<S>;

}  // namespace backsweep
