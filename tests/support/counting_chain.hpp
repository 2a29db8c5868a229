// The counting link: it, not the Execution, says what was run and how many states lived at once.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/chain/chain.hpp"
#include "backsweep/chain/values.hpp"
#include "backsweep/store/blob.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace backsweep::test {

/// What all states of one kind have done.
struct StateCounts {
    Index live = 0;    ///< objects, whatever they hold
    Index peak = 0;    ///< of live
    Index copies = 0;  ///< copy constructions and copy assignments: saves and loads
};

/// A state that counts its objects and copies; moves and swaps are free.
template <class Inner>
class CountedState {
public:
    static inline StateCounts counts;

    CountedState() { born(); }
    explicit CountedState(Inner x) : inner(std::move(x)) { born(); }
    CountedState(const CountedState& other) : inner(other.inner) { born(), ++counts.copies; }
    CountedState(CountedState&& other) noexcept : inner(std::move(other.inner)) { born(); }
    CountedState& operator=(const CountedState& other) {
        inner = other.inner;
        ++counts.copies;
        return *this;
    }
    CountedState& operator=(CountedState&& other) noexcept {
        inner = std::move(other.inner);
        return *this;
    }
    ~CountedState() { --counts.live; }

    friend void swap(CountedState& a, CountedState& b) noexcept {
        using std::swap;
        swap(a.inner, b.inner);
    }
    friend auto values(CountedState& x) { return values(x.inner); }
    friend std::vector<Blob> blobs(CountedState& x) { return blobs(x.inner); }

    Inner inner{};

private:
    static void born() { counts.peak = std::max(counts.peak, ++counts.live); }
};

/// Wraps a chain, which must outlive it. Every optional function of the inner chain is passed on.
template <Chain C>
class Counting {
public:
    using State = CountedState<typename C::State>;
    using Tape = typename C::Tape;
    using Adjoint = typename C::Adjoint;
    static constexpr bool needs_state = backsweep::needs_state<C>;

    explicit Counting(C& inner) : inner_(&inner) {}

    Index advances = 0;  ///< links
    Index records = 0;   ///< and keeps
    Index reverses = 0;

    /// Forgets the counts; the peak starts at what lives now.
    void restart() {
        advances = records = reverses = 0;
        State::counts.peak = State::counts.live;
        State::counts.copies = 0;
    }

    std::optional<Index> length() const { return inner_->length(); }
    State initial() const { return State(inner_->initial()); }
    Index advance(Range r, State& x) {
        advances += r.size();
        return inner_->advance(r, x.inner);
    }
    Index record(Range r, State& x, Tape& tape) {
        ++records;
        return inner_->record(r, x.inner, tape);
    }
    void keep(Range r, State& x, Tape& tape) requires Keeps<C> {
        ++records;
        inner_->keep(r, x.inner, tape);
    }
    void seed(const State& x, Adjoint& a) { inner_->seed(x.inner, a); }
    std::vector<Blob> sums()
        requires Sums<C>
    {
        return inner_->sums();
    }
    void reverse(Range r, State& x, Tape& tape, Adjoint& a) {
        ++reverses;
        inner_->reverse(r, x.inner, tape, a);
    }

private:
    C* inner_;
};

}  // namespace backsweep::test
