// A part of a matrix has no memory in one piece.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/arma.hpp"

const double* part(const arma::mat& x) {
    return backsweep::array_view(x.rows(0, 2), 5, 1, 3);
}
