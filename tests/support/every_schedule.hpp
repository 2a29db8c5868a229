// The schedules under which a gradient must have the same bits, and the gradient that stores everything by hand.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/chain/chain.hpp"
#include "backsweep/schedule/ended.hpp"
#include "backsweep/schedule/periodic.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "backsweep/schedule/store_all.hpp"
#include "support/every_family.hpp"
#include "support/fault_store.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace backsweep::test {

struct Named {
    std::string name;
    std::unique_ptr<Schedule> schedule;
};

/// store_all; every_family; revolve with 1, 2, 3, 5, n slots by each rule; periodic with period 1, 3, n; some of them
/// partly on disk: an Execution needs a store for Tier::disk.
inline std::vector<Named> every_schedule(Index steps, bool needs_state = false) {
    std::vector<Named> all;
    all.push_back({"store_all", store_all(steps, needs_state)});
    const std::pair<const char*, AdvanceRule> rules[] = {{"fewest_writes", AdvanceRule::fewest_writes},
                                                         {"longest", AdvanceRule::longest},
                                                         {"shortest", AdvanceRule::shortest}};
    for (const Index s : {Index{1}, Index{2}, Index{3}, Index{5}, std::max<Index>(steps, 1)})
        for (const auto& [name, rule] : rules)
            all.push_back({"revolve " + std::to_string(s) + " " + name, revolve(steps, s, rule, needs_state)});
    for (const Index k : {Index{1}, Index{3}, std::max<Index>(steps, 1)})
        all.push_back({"periodic " + std::to_string(k), periodic(steps, k, needs_state)});
    for (ScheduleOptions o : every_family(steps)) {
        if (needs_state && (o.family == "mixed" || o.family == "two_level")) continue;  // refuse it, or serve it anyway
        o.needs_state = needs_state;
        for (const Ending ending : {Ending::late, Ending::met, Ending::ahead}) {
            const bool open = is_open_ended(o.family);
            if (!open && ending != Ending::late) continue;
            if (open && ending == Ending::late && steps == 0)
                continue;  // the first state is saved before the end is met
            all.push_back({o.family, std::make_unique<Ended>(make_schedule(o), steps, open ? ending : Ending::closed)});
        }
    }
    const auto spill = [&](const char* name, std::unique_ptr<Schedule> inner, std::int32_t first) {
        all.push_back({std::string(name) + ", on disk from slot " + std::to_string(first),
                       std::make_unique<Spilled>(std::move(inner), first)});
    };
    spill("store_all", store_all(steps, needs_state), 2);
    for (const std::int32_t first : {0, 1, 3})
        spill("revolve 5", revolve(steps, 5, AdvanceRule::fewest_writes, needs_state), first);
    for (const std::int32_t first : {0, 2}) spill("periodic 3", periodic(steps, 3, needs_state), first);
    return all;
}

/// The adjoint at x_0 by a plain loop: every tape and, where the chain needs it, every state is kept.
template <Chain C>
typename C::Adjoint adjoint_by_hand(C& chain) {
    const Index n = chain.length().value();
    typename C::State x = chain.initial();
    std::vector<typename C::State> states;
    std::vector<typename C::Tape> tapes(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) {
        states.push_back(x);
        chain.record({i, i + 1}, x, tapes[static_cast<std::size_t>(i)]);
    }
    typename C::Adjoint a{};
    chain.seed(std::as_const(x), a);
    for (Index i = n; i-- > 0;)
        chain.reverse({i, i + 1}, states[static_cast<std::size_t>(i)], tapes[static_cast<std::size_t>(i)], a);
    return a;
}

}  // namespace backsweep::test
