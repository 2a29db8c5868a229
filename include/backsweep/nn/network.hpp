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

    const ModelSpec& spec() const noexcept { return spec_; }
    Index depth() const noexcept { return static_cast<Index>(layers_.size()); }
    const Layer<Real>& layer(Index l) const { return *layers_[static_cast<std::size_t>(l)]; }
    const ParameterLayout& parameters() const noexcept { return layout_; }
    /// First element of layer l in the flat parameter vector.
    Index parameter_offset(Index l) const { return parameter_offsets_[static_cast<std::size_t>(l)]; }
    /// First element of the parameter that layer l is tied to; -1: none.
    Index tied_offset(Index l) const { return tied_offsets_[static_cast<std::size_t>(l)]; }
    /// Carry of all layers, elements per sequence. The state of B sequences is one block: layer after layer, each
    /// carry x B elements; an LSTM's is h [batch][hidden], then c [batch][hidden].
    Index carry() const noexcept { return carry_; }
    /// First element of layer l's carry in the block of `batch` sequences.
    Index carry_offset(Index l, Index batch) const { return carry_offsets_[static_cast<std::size_t>(l)] * batch; }
    /// One past the highest layer that carries state: a recompute goes no higher.
    Index carry_depth() const noexcept { return carry_depth_; }

    /// Assigns the starting values of all parameters: a function of (seed, number of the parameter, element).
    void start(std::uint64_t seed, std::span<Real> parameters) const;

private:
    ModelSpec spec_;
    Layers layers_;
    ParameterLayout layout_;
    std::vector<Index> parameter_offsets_;
    std::vector<Index> tied_offsets_;
    std::vector<Index> carry_offsets_;
    Index carry_ = 0;
    Index carry_depth_ = 0;
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
