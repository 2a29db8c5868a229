// The numbers of a state or adjoint, for the checkers. Users write one `values` beside their own types.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

namespace backsweep {

template <class T>
    requires std::is_floating_point_v<T>
std::span<T> values(T& x) {
    return {&x, 1};
}

template <class T>
    requires std::is_floating_point_v<T>
std::span<T> values(std::vector<T>& x) {
    return x;
}

template <class T, std::size_t N>
    requires std::is_floating_point_v<T>
std::span<T> values(std::array<T, N>& x) {
    return x;
}

template <class T>
std::span<T> values(Buffer<T>& x) {
    return x.span();
}

/// A type whose numbers the checkers can reach.
template <class T>
concept HasValues = requires(T& x) { std::span{values(x)}; };

}  // namespace backsweep
