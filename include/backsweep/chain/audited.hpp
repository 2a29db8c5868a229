// Verify mode: a chain that watches another one for purity. Each link that is run again must give the same bits, and
// `record` must reach the same state as `advance`.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/chain/chain.hpp"
#include "backsweep/chain/values.hpp"
#include "backsweep/store/blob.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace backsweep {

/// Wraps a chain, which must outlive it. Costs an entry of a hash map per link, a link-by-link advance, and an extra
/// advance for every record. Throws NumericError that names the first link that differs.
template <Chain C>
    requires HasValues<typename C::State>
class Audited {
public:
    using State = typename C::State;
    using Tape = typename C::Tape;
    using Adjoint = typename C::Adjoint;
    static constexpr bool needs_state = backsweep::needs_state<C>;

    explicit Audited(C& inner) : inner_(&inner) {}

    std::optional<Index> length() const { return inner_->length(); }
    State initial() const { return inner_->initial(); }

    Index advance(Range r, State& x) {
        for (Index i = r.first; i < r.last; ++i) {
            const Index reached = inner_->advance({i, i + 1}, x);
            if (reached != i + 1) return reached;
            compare(i, x);
        }
        return r.last;
    }

    Index record(Range r, State& x, Tape& tape) {
        State advanced = x;
        inner_->advance(r, advanced);
        const Index reached = inner_->record(r, x, tape);
        const auto a = values(advanced), b = values(x);
        if (a.size() != b.size())
            throw NumericError("link " + std::to_string(r.first) + ": record leaves " + std::to_string(b.size()) +
                               " values, advance " + std::to_string(a.size()) +
                               "; both must compute the same next state");
        for (std::size_t k = 0; k < a.size(); ++k) {
            if (std::memcmp(&a[k], &b[k], sizeof a[k]) == 0) continue;
            throw NumericError("link " + std::to_string(r.first) + ": record and advance differ: value " +
                               std::to_string(k) + " of the next state is " + std::to_string(b[k]) + " after record, " +
                               std::to_string(a[k]) +
                               " after advance; both must compute the same bits, and from the state alone");
        }
        if (reached == r.last) compare(r.first, x);
        return reached;
    }

    void keep(Range r, State& x, Tape& tape)
        requires Keeps<C>
    {
        inner_->keep(r, x, tape);
    }
    void restart(Tape& tape, State& x)
        requires Restarts<C>
    {
        inner_->restart(tape, x);
    }
    void seed(const State& x, Adjoint& a) { inner_->seed(x, a); }
    void reverse(Range r, State& x, Tape& tape, Adjoint& a) { inner_->reverse(r, x, tape, a); }

    std::vector<Blob> sums()
        requires Sums<C>
    {
        return inner_->sums();
    }
    bool self_contained() const { return backsweep::self_contained(*inner_); }

    /// Forgets what was seen: call it where the start, parameters or data change.
    void forget() { seen_.clear(); }

private:
    /// The state after `link` against the one of the link's first run.
    void compare(Index link, State& x) {
        const auto v = values(x);
        const Blob bytes{reinterpret_cast<std::byte*>(v.data()), v.size_bytes()};
        const std::uint64_t now = fingerprint({&bytes, 1});
        const auto [it, first] = seen_.try_emplace(link, now);
        if (!first && it->second != now)
            throw NumericError("link " + std::to_string(link) +
                               " is not pure: run again, the state after it differs in bits; whatever the chain "
                               "remembers between calls belongs into the state (and forget() where the start, "
                               "parameters or data change)");
    }

    C* inner_;
    std::unordered_map<Index, std::uint64_t> seen_;
};

}  // namespace backsweep
