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
    /// Rows of its two products.
    Index gates() const noexcept;
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
/// Of one position: its products, and one operation for each number that they or the cell read or write; in reverse twice
/// that, and the gates' products once more where the tape does not keep the gates.
Work work_of(const RecurrentPart& part);
/// Name of the table that is the layer's weight; empty: it has its own.
std::string tied_to(const DenseSpec& spec);

template <class Real>
class RecurrentLayer : public DescribedLayer<Real> {
public:
    explicit RecurrentLayer(const RecurrentPart& part)
        : DescribedLayer<Real>(part.name(), parameters_of(part)), position_(work_of(part)) {}

    Work work(Index steps, Index batch) const final {
        const auto positions = static_cast<double>(steps * batch);
        return {positions * position_.forward, positions * position_.reverse};
    }

private:
    Work position_;
};

/// "cross_entropy".
std::string name_of(const LossSpec& spec);

/// InvalidArgument if the segment lacks an array that the layer reads.
void require_array(const void* array, const std::string& layer, const char* array_name);
/// InvalidArgument for a token or class (`what`) outside [0, count).
[[noreturn]] void out_of_range(const std::string& layer, const char* what, std::int32_t value, Index count, Index step,
                               Index sequence);

}  // namespace backsweep
