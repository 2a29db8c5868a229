// Views between the library's arrays and Armadillo's matrices: the only public header that includes <armadillo>.
// An array [column][row] in C order is a column-major matrix (rows, columns); W [out][in] is seen as its transpose.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <armadillo>

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

}  // namespace backsweep
