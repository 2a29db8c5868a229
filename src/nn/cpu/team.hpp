// Threads that share the work of one: parts of a few microseconds, by which the products of one sequence are split.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace backsweep::cpu {

/// A caller and its helpers. Whoever is free takes the next part, and the caller waits for parts that were begun alone:
/// a helper that sleeps, or that the system has stopped, delays nobody. Helpers stay awake for 50 microseconds after a
/// call. One caller at a time.
class Team {
public:
    static constexpr Index most_parts = 24;

    /// The caller is one of `members`, which are no more than parts; helpers begin with the first call.
    explicit Team(Index members) noexcept;
    Team(Team&&) = delete;
    Team& operator=(Team&&) = delete;
    ~Team();

    Index members() const noexcept { return members_; }

    /// f(part, member) once for every part below `parts`, at most most_parts, in any order, a member's own first: calls
    /// alike keep parts where they were. Allocates in the first call alone, which may throw std::system_error.
    template <class F>
    void run(Index parts, const F& f) {
        static_assert(std::is_nothrow_invocable_v<const F&, Index, Index>, "nobody catches what a part throws");
        call(
            parts,
            [](const void* context, Index part, Index member) noexcept {
                (*static_cast<const F*>(context))(part, member);
            },
            &f);
    }

private:
    using Part = void (*)(const void* context, Index part, Index member) noexcept;

    void call(Index parts, Part part, const void* context);
    void publish(std::uint64_t parts) noexcept;
    int work(Index member) noexcept;
    void serve(Index member) noexcept;
    void await_call(std::uint64_t number) noexcept;
    void await_ends(int begun) noexcept;

    // Number of the call, and a bit for every part that is not begun: who clears a bit has the part, and the call
    // lasts.
    alignas(64) std::atomic<std::uint64_t> call_{0};
    alignas(64) std::atomic<int> ended_{0};  // parts that helpers have ended
    std::atomic<bool> awaited_{false};       // the caller sleeps until they have
    alignas(64) std::atomic<int> asleep_{0};
    std::atomic<std::uint32_t> bell_{0};  // wakes helpers
    std::atomic<bool> over_{false};
    // Of the call; written between calls alone.
    alignas(64) std::atomic<Part> part_{nullptr};
    std::atomic<const void*> context_{nullptr};
    std::atomic<Index> parts_{0};
    Index members_;
    std::vector<std::jthread> helpers_;  // the last member: they end before the rest does
};

/// The team of this thread's products; null: none.
Team*& team_of_thread() noexcept;

/// Lends a thread a team while it lives.
class TeamScope {
public:
    explicit TeamScope(Team* team) noexcept : before_(std::exchange(team_of_thread(), team)) {}
    TeamScope(TeamScope&&) = delete;
    TeamScope& operator=(TeamScope&&) = delete;
    ~TeamScope() { team_of_thread() = before_; }

private:
    Team* before_;
};

}  // namespace backsweep::cpu
