// Views between the library's arrays and Armadillo's matrices: the only public header that includes <armadillo>.
// An array [column][row] in C order is a column-major matrix (rows, columns); W [out][in] is seen as its transpose.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/base/range.hpp"

#include <armadillo>

#include <string>
#include <type_traits>

namespace backsweep {

/// Matrix over memory that another owns; nothing is copied or allocated, and its size is fixed. Bind it to a variable
/// or use it in place: a copy of the matrix owns memory of its own.
template <class Real>
arma::Mat<Real> matrix_view(Real* data, Index rows, Index columns) {
    return {data, static_cast<arma::uword>(rows), static_cast<arma::uword>(columns), false, true};
}

/// The same for reading.
template <class Real>
const arma::Mat<Real> matrix_view(const Real* data, Index rows, Index columns) {
    // Armadillo's constructor from const memory copies it.
    return {const_cast<Real*>(data), static_cast<arma::uword>(rows), static_cast<arma::uword>(columns), false, true};
}

/// The way back: the memory of a matrix (features, steps x batch) or a cube (features, batch, steps), which is an array
/// [step][batch][feature] such as a Window reads or, where X may be changed, assigns; nothing is copied, and X must
/// outlive its use. Throws InvalidArgument for another shape. Expressions and views of parts have no memory in one piece
/// and do not compile: copy them first, `const arma::mat copy = X.t();`.
template <class X>
auto array_view(X&& x, Index steps, Index batch, Index features) {
    using Array = std::remove_cvref_t<X>;
    constexpr bool matrix = arma::is_Mat<Array>::value, cube = arma::is_Cube<Array>::value;
    static_assert(matrix || cube,
                  "array_view wants a matrix or a cube, which has its numbers in one piece of memory; a part of one or an "
                  "expression has not. Copy it first and keep the copy: const arma::mat copy = X.t();");
    static_assert(std::is_lvalue_reference_v<X> || !(matrix || cube),
                  "array_view gives the memory of a matrix or a cube that lives on, but this one is gone at the end of the "
                  "line. Keep it first: const arma::mat copy = X.t();");
    if constexpr (matrix || cube) {
        const auto shape = [](auto... extents) {
            std::string all;
            ((all += (all.empty() ? "" : " x ") + std::to_string(extents)), ...);
            return all;
        };
        const std::string as_matrix = shape(features, steps * batch), as_cube = shape(features, batch, steps);
        std::string came = shape(x.n_rows, x.n_cols);
        if constexpr (cube) came = shape(x.n_rows, x.n_cols, x.n_slices);
        if (came != (cube ? as_cube : as_matrix))
            throw InvalidArgument("an array of " + std::to_string(steps) + " steps, " + std::to_string(batch) +
                                  " sequences and " + std::to_string(features) + " features is a matrix of " + as_matrix +
                                  " or a cube of " + as_cube + ", but this one is " + came +
                                  "; copy it into that shape first, for instance const arma::mat copy = X.t();");
        return x.memptr();
    }
}

}  // namespace backsweep
