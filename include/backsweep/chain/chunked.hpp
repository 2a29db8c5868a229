// Several links of a chain as one: fewer slots and actions, larger tapes. The last chunk may be short.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/chain/chain.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace backsweep {

/// A chain whose link i is links [i * chunk, min((i+1) * chunk, n)) of the inner chain, n known.
/// Its tape is the tapes of these links. The inner chain must outlive it and must not need the state in its reverse.
template <Chain C>
    requires(!needs_state<C>)
class Chunked {
public:
    using State = typename C::State;
    using Tape = std::vector<typename C::Tape>;
    using Adjoint = typename C::Adjoint;

    /// Throws InvalidArgument if chunk < 1 or the inner chain does not know its length.
    Chunked(C& inner, Index chunk)
        : inner_(&inner),
          links_(inner.length().value_or(-1)),
          chunk_(std::min(chunk, std::max<Index>(links_, 1))) {
        if (chunk < 1) throw InvalidArgument("chunk must be at least 1, came " + std::to_string(chunk));
        if (links_ < 0) {
            throw InvalidArgument("Chunked wants a chain that knows its length, but this one does not; chunk inside "
                                  "the chain instead");
        }
    }

    std::optional<Index> length() const { return links_ / chunk_ + (links_ % chunk_ != 0); }
    State initial() const { return inner_->initial(); }
    Index advance(Range r, State& x) {
        const Range in = inside(r);
        reached(inner_->advance(in, x), in);
        return r.last;
    }
    Index record(Range r, State& x, Tape& tape) {
        const Range in = inside(r);
        tape.resize(static_cast<std::size_t>(in.size()));
        for (Index i = in.first; i < in.last; ++i)
            reached(inner_->record({i, i + 1}, x, tape[static_cast<std::size_t>(i - in.first)]), {i, i + 1});
        return r.last;
    }
    void seed(const State& x, Adjoint& a) { inner_->seed(x, a); }
    std::vector<Blob> sums()
        requires Sums<C>
    {
        return inner_->sums();
    }
    bool self_contained() const { return backsweep::self_contained(*inner_); }
    void reverse(Range r, State& x, Tape& tape, Adjoint& a) {
        const Range in = inside(r);
        for (Index i = in.last; i-- > in.first;)
            inner_->reverse({i, i + 1}, x, tape[static_cast<std::size_t>(i - in.first)], a);
    }

private:
    Range inside(Range r) const { return {r.first * chunk_, std::min(r.last * chunk_, links_)}; }

    static void reached(Index link, Range r) {
        if (link != r.last)
            throw InvalidArgument("Chunked: the inner chain was sent to link " + std::to_string(r.last) +
                                  " and says it reached " + std::to_string(link) +
                                  "; a chain of known length must reach it");
    }

    C* inner_;
    Index links_;
    Index chunk_;
};

}  // namespace backsweep
