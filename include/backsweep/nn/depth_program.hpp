// A schedule over the layers of a network, compiled: which layer runs when, and where each array lies. So a time link
// rests between its forward and its reverse run as one block of memory, and nothing is copied or allocated on the way.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/network.hpp"
#include "backsweep/schedule/schedule.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace backsweep {

/// What a user wants of a layer; the loss is not asked.
enum class Checkpoint {
    automatic,  ///< as the schedule says
    always,     ///< its tape is not kept: it is made again, out of its input, right before the layer is reversed
    never       ///< it runs forward once: its tape is kept, and its output where layers above are run again
};

/// How the layers of a link are kept between its forward and its reverse run. Bits never depend on it.
struct DepthOptions {
    /// store_all: every tape. sqrt: inputs of groups of equal length, and the tapes of the last [Chen16], with the
    /// length that takes a link the fewest bytes where `period` is 0. slots: `slots` inputs, least recomputation
    /// [GW00]. optimal: least work within `budget` bytes, which rest and scratch of a link together do not pass, by the
    /// layers' own work: the best of the optimum under the planner's own bytes [BEHJS24] and groups. A loss and the
    /// layer below it count as one layer (Network::links).
    enum class Family { store_all, sqrt, slots, optimal };

    Family family = Family::store_all;
    Index period = 0;         ///< sqrt: layers of a group
    Index slots = 0;          ///< slots: inputs kept besides the first layer's, >= 0
    std::int64_t budget = 0;  ///< optimal: of inputs, tapes and adjoints that are alive at once
    /// optimal: what every layer takes, in any unit, as TimeChain::measured() gives it; empty: their own counted work.
    std::vector<Work> work{};
    /// Names of layers of the network (those within a block have no say); `*` stands for any characters. A name that
    /// fits no layer, or a layer on both lists, is an error.
    std::vector<std::string> always{}, never{};
    std::function<Checkpoint(const std::string& layer)> checkpoint{};  ///< of layers on neither list; empty: automatic
    /// Where the activations lie that go into the layer of that name, if they are kept: ram or disk; empty: ram.
    std::function<Tier(const std::string& layer)> place{};

    /// Empty if valid for a network of these layers, in so many links (Network::links), else what is wrong, what was
    /// given and what to do.
    std::string problem(const std::vector<std::string>& layers, Index links) const;
};

/// One call of a layer, or a transfer of its input to or from a store.
struct DepthCall {
    enum class What : std::uint8_t { advance, record, reverse, write, read };
    /// An array: in the link's block (behind the turn also where something rested before), or in scratch that all links
    /// share; size 0: there is none.
    struct Place {
        bool rests = false;
        Index offset = 0, size = 0;
    };

    What what = What::advance;
    Index layer = 0;  ///< write, read: the layer whose input it is
    Place x{}, y{};   ///< input, output; write, read: x
    Place tape{};
    Place dy{}, dx{};        ///< adjoints of output and input
    std::int32_t slot = -1;  ///< write, read: of the link's slots in the store
};

/// For segments of at most `steps` steps. Elements of Real; offsets are multiples of 64 bytes.
struct DepthProgram {
    std::vector<DepthCall> advance;  ///< a link without tape: the layers below Network::carry_depth()
    std::vector<DepthCall> record;   ///< a link up to its turn: every layer once
    std::vector<DepthCall> reverse;
    DepthCall::Place input{};           ///< of the first layer, where record reads it
    DepthCall::Place advance_input{};   ///< where advance reads it
    DepthCall::Place input_gradient{};  ///< where reverse leaves it
    /// Of a network that gives outputs: where record and advance leave them, and where reverse reads their gradient.
    DepthCall::Place output{}, advance_output{}, output_gradient{};
    Index rest = 0;                ///< elements of the block of a resting link
    Index scratch = 0;             ///< elements of the scratch that all links share
    std::int32_t store_slots = 0;  ///< of a resting link
    Index replays = 0;             ///< calls forward in `reverse`
    Work once{};                   ///< counted operations of every layer's one forward and one reverse run
    double replayed = 0.0;         ///< of the replays
};

/// What a link takes, by what one forward and one reverse run of every layer take.
struct LinkWork {
    double advance = 0.0, record = 0.0, reverse = 0.0;
};
LinkWork link_work(const DepthProgram& program, const std::vector<Work>& layers);

/// Names of the network's layers, in depth order.
template <class Real>
std::vector<std::string> layer_names(const Network<Real>& network);

/// Throws InvalidArgument with options.problem(), NoPlan where `budget` does not suffice.
template <class Real>
DepthProgram depth_program(const Network<Real>& network, Index steps, Index batch, const DepthOptions& options);

/// The same for any stream of actions of a closed family over the network's layers, of which a loss and the layer below
/// it are one link; states in RAM or on disk and tapes in RAM. Throws InvalidArgument for an action that does not fit.
template <class Real>
DepthProgram depth_program(const Network<Real>& network, Index steps, Index batch, Schedule& schedule,
                           const DepthOptions& options = {});

}  // namespace backsweep
