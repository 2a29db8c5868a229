// The work of open-ended schedules over the offline optimum, for every length up to 50,000 (or the one given).
// The rows of docs/online.md.
// SPDX-License-Identifier: MIT
#include "backsweep/schedule/complete.hpp"
#include "backsweep/schedule/online.hpp"
#include "backsweep/schedule/revolve.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

using namespace backsweep;

namespace {

struct Excess {
    double worst = 0.0;
    Index where = 0;
    double sum = 0.0;
    Index lengths = 0;

    void note(Index steps, Index total, Index optimum) {
        const double excess = 100.0 * (static_cast<double>(total) / static_cast<double>(optimum) - 1.0);
        if (excess > worst) worst = excess, where = steps;
        sum += excess;
        ++lengths;
    }
    void print() const {
        const double mean = sum / static_cast<double>(std::max<Index>(lengths, 1));
        std::printf(" %6.2f /%5.2f (%6lld) |", worst, mean, static_cast<long long>(where));
    }
};

/// Plays the open sweep and keeps what the slots hold in rising order of steps.
class Sweep {
public:
    Sweep(Index slots, OnlinePolicy policy) : slots_(slots), schedule_(online({.slots = slots, .policy = policy})) {}

    void step() {
        Action action;
        do {
            action = schedule_->next();
            if (action.verb == Verb::drop)
                std::erase_if(states_, [&](const Stored& s) { return s.slot == action.from; });
            if (action.verb == Verb::save) states_.push_back({action.steps.first, action.to});
        } while (action.verb != Verb::advance);
    }

    /// Advances of the reverse of `steps` links that keeps every state below x_steps.
    Index keeping_all(Index steps) const {
        Index sum = 0;
        Index room = slots_;
        for (std::size_t i = 0; i < states_.size() && states_[i].step < steps; ++i) {
            const Index end = i + 1 < states_.size() ? std::min(states_[i + 1].step, steps) : steps;
            sum += revolve_advances(end - states_[i].step, room--);
        }
        return sum;
    }
    Index completed(Index steps) const { return completion(states_, slots_, steps).advances; }

private:
    Index slots_;
    std::unique_ptr<Schedule> schedule_;
    std::vector<Stored> states_;
};

void rows(Index slots, OnlinePolicy policy, Index longest) {
    // A completion is planned in O(slots^3): beyond 20 slots not at every length.
    const Index stride = slots <= 20 ? 1 : slots <= 50 ? 23 : 101;
    Sweep sweep(slots, policy);
    Excess met, ahead, completed, revoked;
    for (Index n = 0; n <= longest; ++n) {
        // The chain stands at n, and nothing is decided there yet.
        const Index optimum = n + revolve_advances(n + 1, slots);
        if (n >= 19) {
            const Index reverse = sweep.keeping_all(n);
            if (n >= 20) met.note(n, 2 * n + reverse, optimum);
            if (n < longest) ahead.note(n + 1, 2 * n + 1 + reverse, optimum + 1);
            if (n >= 20 && n % stride == 0) completed.note(n, 2 * n + sweep.completed(n), optimum);
        }
        sweep.step();
        if (n >= 20) revoked.note(n, 2 * n + sweep.keeping_all(n), optimum);
    }
    std::printf("| %3lld |", static_cast<long long>(slots));
    for (const Excess& excess : {met, ahead, revoked, completed}) excess.print();
    std::printf(" %lld |\n", static_cast<long long>(completed.lengths));
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
    const Index longest = count > 1 ? std::atoll(words[1]) : 50000;
    for (const OnlinePolicy policy : {OnlinePolicy::greedy, OnlinePolicy::wang_moin}) {
        std::printf("%s, n = 20 ... %lld: worst / mean excess in %% (worst length)\n",
                    policy == OnlinePolicy::greedy ? "greedy" : "wang_moin", static_cast<long long>(longest));
        std::puts("| slots | told where met | told ahead | advance revoked | told where met, completed | lengths |");
        for (const Index slots : {2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50, 100}) rows(slots, policy, longest);
    }
}
