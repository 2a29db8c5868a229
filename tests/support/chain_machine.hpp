// How the referee prices and weighs a chain of unequal links.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/optimal_chain.hpp"
#include "backsweep/schedule/referee.hpp"

#include <cstddef>

namespace backsweep::test {

/// `chain` must outlive it.
inline Machine chain_machine(const ChainCosts& chain) {
    const auto entry = [](const auto& values) {
        return [&values](Index i) { return values.at(static_cast<std::size_t>(i)); };
    };
    Machine machine;
    machine.needs_state = true;
    machine.sizes.state = machine.sizes.adjoint = entry(chain.state_bytes);
    machine.sizes.tape = entry(chain.tape_bytes);
    machine.sizes.tape_holds_state = true;
    machine.sizes.overhead = [&chain](Verb verb, Index link) {
        const auto& bytes = verb == Verb::reverse ? chain.backward_overhead : chain.forward_overhead;
        return bytes.empty() ? 0 : bytes.at(static_cast<std::size_t>(link));
    };
    machine.costs.advance = machine.costs.record = entry(chain.forward_time);
    machine.costs.reverse = entry(chain.backward_time);
    return machine;
}

}  // namespace backsweep::test
