// Products of the Hessian and of the Gauss-Newton matrix of a network's loss with vectors, in bounded memory: the
// gradient in dual numbers, under the schedules and with the bits of every other sweep [Pearlmutter94, Schraudolph02].
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/ledger.hpp"
#include "backsweep/chain/execution_base.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "backsweep/store/store.hpp"

#include <memory>
#include <span>

namespace backsweep {

struct CurvatureOptions {
    enum class Matrix {
        /// H = d g / d theta, g being the gradient that a sweep of the window gives. Where a detached memory cuts it, g
        /// is the gradient of no function, and H need not be symmetric.
        hessian,
        /// G = J' H_L J, J being the derivative of the last layer's outputs and H_L the Hessian of the loss in them:
        /// positive semi-definite where the loss is convex in the outputs, as all but gaussian_nll are.
        gauss_newton
    };

    Matrix matrix = Matrix::hessian;
    Index chunk = 64;                                 ///< steps a link
    ScheduleOptions schedule{.family = "store_all"};  ///< over the links; its `steps` are set; not "auto", which plans
    DepthOptions depth{};                             ///< over the layers of a link
    MemoryPlaces memories{};                          ///< where the rows that attention remembers live
};

/// Where the matrix is taken; arrays are the caller's. The window's losses, input_gradient, outputs and output_gradient
/// and its context's dkeys and dvalues must be null: nothing is assigned there.
struct CurvaturePoint {
    Window<double> window;
    std::span<const double> parameters;
    std::span<const double> state{};  ///< a state between windows to start from, a constant; empty: zero
};

/// For windows of `batch` sequences of one model on the CPU. With parameters theta + v e, e^2 = 0, the gradient is
///     g(theta + v e) = g(theta) + (H v) e                                                   [Pearlmutter94]
/// and where the adjoint d of the outputs becomes (d + (H_L J v) e) - d before it goes down, it is (G v) e
/// [Schraudolph02]. Takes the memory of two gradients and about the time of four. One thread at a time.
class Curvature {
public:
    /// Everything is booked in `ledger`. Throws InvalidArgument: spec.problem(), or batch or options that a time chain
    /// refuses.
    Curvature(const ModelSpec& spec, Index batch, CurvatureOptions options = {}, Ledger& ledger = Ledger::process());
    ~Curvature();
    Curvature(Curvature&&) noexcept;

    /// Where slots of tier disk and activations of DepthOptions::place lie; they must outlive it.
    void use(Store& slots, Store& activations);

    /// Elements of the flat vectors: parameters, directions, products and gradients.
    Index size() const noexcept;

    /// product := matrix * direction, gradient := g, of scale times the sum of the window's losses; returns that sum
    /// before scale. `gradient` may be empty, and must be for gauss_newton, whose sweep has none. Throws
    /// InvalidArgument for sizes, window or schedule that do not fit, NumericError for a loss or product that is not
    /// finite.
    double multiply(const CurvaturePoint& at, std::span<const double> direction, std::span<double> product,
                    std::span<double> gradient = {});

    /// Of the last product.
    Counts counts() const noexcept;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace backsweep
