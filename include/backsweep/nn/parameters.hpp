// The canonical flat vector of a network's parameters: named, shaped views of one contiguous block.
// Gradients and optimizer moments have the same layout.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/base/range.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace backsweep {

/// How a parameter starts; numbers come from Random(seed, index of the parameter).
struct Start {
    enum class Law {
        zero,
        constant,
        uniform,
        normal,
        orthogonal,  ///< the blocks of `block` rows: as many orthonormal rows, of the normal's QR [SMG14]
        identity     ///< the blocks of `block` rows and columns: the identity
    } law = Law::zero;
    double scale = 0.0;   ///< the constant; uniform in [-scale, scale); the standard deviation; times the block
    Index zero_row = -1;  ///< a row that starts at zero: the padding index of an embedding
    Index block = 0;      ///< orthogonal, identity: rows of a block; divides the rows
    /// Elements [first, last) of a vector that start at a value of their own.
    struct Fixed {
        Range elements{};
        double value = 0.0;
    } fixed{};
};

/// What a layer asks for: PyTorch's state_dict name, row-major shape (cols = 0 for a vector), start.
struct ParameterShape {
    std::string name;
    Index rows = 0;
    Index cols = 0;
    Start start{};

    Index size() const noexcept { return cols == 0 ? rows : rows * cols; }
};

/// A parameter's place in the flat vector, in elements.
struct ParameterView : ParameterShape {
    Index offset = 0;
};

/// All parameters of a network in canonical order: layer by layer, without gaps.
class ParameterLayout {
public:
    ParameterLayout() = default;

    /// Appends; throws InvalidArgument if the name is taken.
    void append(ParameterShape shape) {
        for (const ParameterView& v : views_)
            if (v.name == shape.name)
                throw InvalidArgument("parameter names must differ, but '" + shape.name +
                                      "' stands twice; give the layers different names");
        const Index offset = size_;
        size_ += shape.size();
        views_.push_back(ParameterView{std::move(shape), offset});
    }

    /// Elements of the flat vector.
    Index size() const noexcept { return size_; }
    const std::vector<ParameterView>& views() const noexcept { return views_; }

    /// The view of that name; throws InvalidArgument if there is none.
    const ParameterView& find(std::string_view name) const {
        for (const ParameterView& v : views_)
            if (v.name == name) return v;
        std::string known;
        for (const ParameterView& v : views_) known += (known.empty() ? "" : ", ") + v.name;
        throw InvalidArgument("no parameter '" + std::string(name) + "'; there are: " + known);
    }

private:
    std::vector<ParameterView> views_;
    Index size_ = 0;
};

}  // namespace backsweep
