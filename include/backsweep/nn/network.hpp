// A network: layers of one device in depth order, and the canonical layout of their parameters and carry.
// Immutable once built; any number of chains and threads may share one.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/layer.hpp"
#include "backsweep/nn/spec.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace backsweep {

template <class Real>
class Network {
public:
    using Layers = std::vector<std::unique_ptr<const Layer<Real>>>;

    /// `layers` end with the loss; throws InvalidArgument if their widths do not meet.
    Network(ModelSpec spec, Layers layers);

    /// Layers `range` by themselves, on the same flat parameters: carry, memories and states are those of these layers
    /// alone. spec() and parameters() stay the whole network's. It shares the layers, which live as long as either.
    Network part(Range range) const;
    /// The layers of which its layers are made (Layer::opened), each by itself, on the same flat parameters, carry and
    /// memories. What joins them is not in it, so that widths need not meet: see network_graph.hpp.
    Network opened() const;
    /// Whether its first layer is the whole network's.
    bool begins() const noexcept { return first_ == 0; }
    /// Features per position that it reads (0: tokens), and that it gives (0: it ends with the loss).
    Index inputs() const noexcept { return inputs_; }
    Index outputs() const noexcept { return outputs_; }

    const ModelSpec& spec() const noexcept { return *spec_; }
    Index depth() const noexcept { return static_cast<Index>(layers_.size()); }
    /// Links of a schedule over the layers: a loss goes with the layer below it, for it is never run but to be
    /// recorded; one that is a head as well (LossSpec::save) is a link by itself.
    Index links() const noexcept { return links_; }
    const Layer<Real>& layer(Index l) const { return *layers_[static_cast<std::size_t>(l)]; }
    const ParameterLayout& parameters() const noexcept { return *layout_; }
    /// First element of layer l in the flat parameter vector.
    Index parameter_offset(Index l) const { return parameter_offsets_[static_cast<std::size_t>(l)]; }
    /// First element of the parameter that layer l is tied to; -1: none.
    Index tied_offset(Index l) const { return tied_offsets_[static_cast<std::size_t>(l)]; }
    /// Elements of what the layers prepare of their parameters (Layer::prepare), and where layer l's part begins.
    Index prepared() const noexcept { return prepared_; }
    Index prepared_offset(Index l) const { return prepared_offsets_[static_cast<std::size_t>(l)]; }
    /// Assigns it from the flat parameters; on a 64-byte boundary.
    void prepare(const Real* parameters, Real* prepared) const;
    /// Carry of all layers, elements per sequence. The state of B sequences is one block: layer after layer, each
    /// carry x B elements; an LSTM's is h [batch][hidden], then c [batch][hidden].
    Index carry() const noexcept { return carry_; }
    /// The most of one layer.
    Index layer_carry() const noexcept { return layer_carry_; }
    /// First element of layer l's carry in the block of `batch` sequences; of depth(): its end.
    Index carry_offset(Index l, Index batch) const { return carry_offsets_[static_cast<std::size_t>(l)] * batch; }
    /// The memories of all layers, in depth order.
    const std::vector<MemoryShape>& memories() const noexcept { return memories_; }
    /// The first of layer l's.
    Index memory_offset(Index l) const { return memory_offsets_[static_cast<std::size_t>(l)]; }
    /// The most rows of any memory.
    Index remembered() const noexcept { return remembered_; }
    /// Elements per sequence of a state between two windows. The block of B sequences is the carry, then every memory's
    /// [rows][B][features], its last rows those before the next step, then [remembered()][B]: 1 where that row is a key of
    /// the sequence that goes on, else 0.
    Index state() const noexcept { return state_; }
    /// Elements per sequence of its adjoint: the carry's, then those of the memories that have a gradient.
    Index adjoint() const noexcept { return adjoint_; }
    /// One past the highest layer that carries state or a memory: a recompute goes no higher. All, where it gives outputs.
    Index carry_depth() const noexcept { return carry_depth_; }

    /// Assigns the starting values of all parameters: a function of (seed, number of the parameter, element).
    void start(std::uint64_t seed, std::span<Real> parameters) const;

private:
    using Shared = std::vector<std::shared_ptr<const Layer<Real>>>;
    Network() = default;
    void count();  // what carry and memories add up to

    std::shared_ptr<const ModelSpec> spec_;
    Shared layers_;
    Index first_ = 0, inputs_ = 0, outputs_ = 0;
    std::shared_ptr<const ParameterLayout> layout_;
    std::vector<Index> parameter_offsets_;
    std::vector<Index> tied_offsets_;
    std::vector<Index> carry_offsets_;
    std::vector<Index> memory_offsets_;
    std::vector<Index> prepared_offsets_;
    std::vector<MemoryShape> memories_;
    Index remembered_ = 0;
    Index prepared_ = 0;
    Index carry_ = 0;
    Index layer_carry_ = 0;
    Index state_ = 0;
    Index adjoint_ = 0;
    Index carry_depth_ = 0;
    Index links_ = 0;
};

/// Builds a specification for a device ("cpu"; more where their rooms are linked).
/// Throws InvalidArgument: spec.problem(), or an unknown device with the list of known ones.
template <class Real>
Network<Real> build(const ModelSpec& spec, std::string_view device = "cpu");

/// How a room adds its device to the table that `build` reads; throws InvalidArgument if the name is taken.
template <class Real>
using Builder = Network<Real> (*)(const ModelSpec&);
void register_builder(std::string device, Builder<float> single, Builder<double> twice);
/// Names of the known devices, sorted.
std::vector<std::string> devices();

namespace cpu {
template <class Real>
Network<Real> build(const ModelSpec& spec);
}

}  // namespace backsweep
