// Dual numbers: a value and its derivative along one direction. What computes a gradient with them computes, beside the
// gradient, the gradient's derivative along the direction in which the parameters' tangents point: the Hessian times
// that direction, as if every equation had been differentiated by hand [Pearlmutter94].
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

namespace backsweep {

/// value + tangent e with e^2 = 0. Numbers convert to it as constants, whose tangent is 0. Comparisons look at values
/// alone, as a program that branches does; where functions have a kink, the tangent is that of the branch taken.
template <class Real>
struct Dual {
    static_assert(std::is_floating_point_v<Real>);

    Real value;
    Real tangent;

    Dual() = default;
    constexpr Dual(Real v, Real t) noexcept : value(v), tangent(t) {}
    template <class Number>
        requires std::is_arithmetic_v<Number>
    constexpr Dual(Number constant) noexcept : value(static_cast<Real>(constant)), tangent(0) {}
    /// The value: the tangent is dropped.
    template <class Number>
        requires std::is_floating_point_v<Number>
    explicit constexpr operator Number() const noexcept { return static_cast<Number>(value); }

    constexpr Dual& operator+=(Dual b) noexcept { return *this = *this + b; }
    constexpr Dual& operator-=(Dual b) noexcept { return *this = *this - b; }
    constexpr Dual& operator*=(Dual b) noexcept { return *this = *this * b; }
    constexpr Dual& operator/=(Dual b) noexcept { return *this = *this / b; }

    friend constexpr Dual operator+(Dual a) noexcept { return a; }
    friend constexpr Dual operator-(Dual a) noexcept { return {-a.value, -a.tangent}; }
    friend constexpr Dual operator+(Dual a, Dual b) noexcept { return {a.value + b.value, a.tangent + b.tangent}; }
    friend constexpr Dual operator-(Dual a, Dual b) noexcept { return {a.value - b.value, a.tangent - b.tangent}; }
    friend constexpr Dual operator*(Dual a, Dual b) noexcept {
        return {a.value * b.value, a.tangent * b.value + a.value * b.tangent};
    }
    friend constexpr Dual operator/(Dual a, Dual b) noexcept {
        const Real quotient = a.value / b.value;
        return {quotient, (a.tangent - quotient * b.tangent) / b.value};
    }

    friend constexpr bool operator==(Dual a, Dual b) noexcept { return a.value == b.value; }
    friend constexpr bool operator!=(Dual a, Dual b) noexcept { return a.value != b.value; }
    friend constexpr bool operator<(Dual a, Dual b) noexcept { return a.value < b.value; }
    friend constexpr bool operator>(Dual a, Dual b) noexcept { return a.value > b.value; }
    friend constexpr bool operator<=(Dual a, Dual b) noexcept { return a.value <= b.value; }
    friend constexpr bool operator>=(Dual a, Dual b) noexcept { return a.value >= b.value; }

    friend Dual exp(Dual x) noexcept {
        const Real e = std::exp(x.value);
        return {e, e * x.tangent};
    }
    friend Dual expm1(Dual x) noexcept { return {std::expm1(x.value), std::exp(x.value) * x.tangent}; }
    friend Dual log(Dual x) noexcept { return {std::log(x.value), x.tangent / x.value}; }
    friend Dual log1p(Dual x) noexcept { return {std::log1p(x.value), x.tangent / (1 + x.value)}; }
    friend Dual sqrt(Dual x) noexcept {
        const Real root = std::sqrt(x.value);
        return {root, x.tangent / (2 * root)};
    }
    friend Dual tanh(Dual x) noexcept {
        const Real t = std::tanh(x.value);
        return {t, (1 - t * t) * x.tangent};
    }
    friend Dual erf(Dual x) noexcept { return {std::erf(x.value), bell(x.value) * x.tangent}; }
    friend Dual erfc(Dual x) noexcept { return {std::erfc(x.value), -bell(x.value) * x.tangent}; }
    /// The derivative at 0 is 0.
    friend Dual abs(Dual x) noexcept {
        return {std::fabs(x.value), x.value > 0 ? x.tangent : x.value < 0 ? -x.tangent : Real{0}};
    }
    friend Dual fabs(Dual x) noexcept { return abs(x); }
    /// Of equal values the first.
    friend Dual fmax(Dual a, Dual b) noexcept { return std::isnan(a.value) || a.value < b.value ? b : a; }
    friend Dual fmin(Dual a, Dual b) noexcept { return std::isnan(a.value) || b.value < a.value ? b : a; }
    friend bool isfinite(Dual x) noexcept { return std::isfinite(x.value) && std::isfinite(x.tangent); }
    friend bool isnan(Dual x) noexcept { return std::isnan(x.value) || std::isnan(x.tangent); }

private:
    /// The derivative of erf.
    static Real bell(Real x) noexcept { return 2 * std::numbers::inv_sqrtpi_v<Real> * std::exp(-x * x); }
};

template <class T>
inline constexpr bool is_dual = false;
template <class Real>
inline constexpr bool is_dual<Dual<Real>> = true;

}  // namespace backsweep

/// Those of the value, as constants.
template <class Real>
class std::numeric_limits<backsweep::Dual<Real>> : public std::numeric_limits<Real> {};
