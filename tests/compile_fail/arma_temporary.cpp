// The memory of a matrix that nobody keeps is nobody's.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/arma.hpp"

const double* temporary(const arma::mat& x) {
    return backsweep::array_view(arma::mat(x.t()), 5, 1, 3);
}
