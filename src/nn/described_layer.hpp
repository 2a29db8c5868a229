// What layers of every device share: name and parameters out of a specification, and the errors of bad input.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/layer.hpp"
#include "backsweep/nn/spec.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace backsweep {

template <class Real>
class DescribedLayer : public Layer<Real> {
public:
    DescribedLayer(std::string name, std::vector<ParameterShape> parameters)
        : name_(std::move(name)),
          parameters_(std::move(parameters)) {}

    const std::string& name() const noexcept final { return name_; }
    std::vector<ParameterShape> parameters() const final { return parameters_; }

private:
    std::string name_;
    std::vector<ParameterShape> parameters_;
};

/// One direction of one of the stacked layers of a recurrent specification, which must outlive it.
struct RecurrentPart {
    const RecurrentSpec& spec;
    Index layer = 0;
    bool backward = false;  ///< the direction from the end to the beginning

    /// Features that it reads.
    Index inputs() const noexcept { return layer == 0 ? spec.inputs : spec.outputs(); }
    /// "_l1_reverse".
    std::string suffix() const;
    /// "rnn", or "rnn, layer 1, backward" of several.
    std::string name() const;
};

/// Parameters in canonical order: the names, shapes and starts that the specification's comment states.
std::vector<ParameterShape> parameters_of(const EmbeddingSpec& spec);
std::vector<ParameterShape> parameters_of(const RecurrentPart& part);
std::vector<ParameterShape> parameters_of(const DenseSpec& spec);
std::vector<ParameterShape> parameters_of(const NormSpec& spec);
std::vector<ParameterShape> parameters_of(const AttentionSpec& spec);
/// Name of the table that is the layer's weight; empty: it has its own.
std::string tied_to(const DenseSpec& spec);

/// "cross_entropy".
std::string name_of(const LossSpec& spec);

/// InvalidArgument if the segment lacks an array that the layer reads.
void require_array(const void* array, const std::string& layer, const char* array_name);
/// InvalidArgument for a token or class (`what`) outside [0, count).
[[noreturn]] void out_of_range(const std::string& layer, const char* what, std::int32_t value, Index count, Index step,
                               Index sequence);

}  // namespace backsweep
