// SPDX-License-Identifier: MIT
#include "schedule/min_plus.hpp"

#include "schedule/clones.hpp"

#include <type_traits>


namespace backsweep::min_plus {
namespace {

// The compiler's own vectors, so that the loops are as fast under -O2 as under -O3; they may lie at any address.
constexpr Index lanes = 4;
typedef double Vector __attribute__((vector_size(8 * lanes), aligned(8), may_alias));
typedef std::int64_t Mask __attribute__((vector_size(8 * lanes)));

/// `b` is a row or one number.
template <class B>
[[gnu::always_inline]] inline void lower_by(double* out, const double* a, B b, double w, Index n) {
    constexpr bool row = std::is_pointer_v<B>;
    Index k = 0;
    for (; k + lanes <= n; k += lanes) {
        Vector sum = *reinterpret_cast<const Vector*>(a + k);
        if constexpr (row) {
            sum += *reinterpret_cast<const Vector*>(b + k);
        } else {
            sum += b;
        }
        sum += w;
        Vector& old = *reinterpret_cast<Vector*>(out + k);
        old = sum < old ? sum : old;
    }
    for (; k < n; ++k) {
        double sum = a[k];
        if constexpr (row) {
            sum += b[k];
        } else {
            sum += b;
        }
        sum += w;
        out[k] = sum < out[k] ? sum : out[k];
    }
}

template <class B>
[[gnu::always_inline]] inline Index below_by(std::int32_t* found, const double* bound, const double* a, B b, double w,
                                             Index n) {
    constexpr bool row = std::is_pointer_v<B>;
    Index count = 0;
    Index k = 0;
    for (; k + lanes <= n; k += lanes) {
        Vector sum = *reinterpret_cast<const Vector*>(a + k);
        if constexpr (row) {
            sum += *reinterpret_cast<const Vector*>(b + k);
        } else {
            sum += b;
        }
        sum += w;
        const Mask less = sum < *reinterpret_cast<const Vector*>(bound + k);
        if ((less[0] | less[1] | less[2] | less[3]) == 0) continue;
        for (Index q = 0; q < lanes; ++q) {
            if (less[q] != 0) found[count++] = static_cast<std::int32_t>(k + q);
        }
    }
    for (; k < n; ++k) {
        double sum = a[k];
        if constexpr (row) {
            sum += b[k];
        } else {
            sum += b;
        }
        if (sum + w < bound[k]) found[count++] = static_cast<std::int32_t>(k);
    }
    return count;
}

// Clones are called from this file only: clang 14 gives the dispatched symbol a name that others do not find.
BACKSWEEP_CLONES void lower_rows(double* out, const double* a, const double* b, double w, Index n) {
    lower_by(out, a, b, w, n);
}
BACKSWEEP_CLONES void lower_row(double* out, const double* a, double b, double w, Index n) {
    lower_by(out, a, b, w, n);
}
BACKSWEEP_CLONES Index below_rows(std::int32_t* found, const double* bound, const double* a, const double* b, double w,
                                  Index n) {
    return below_by(found, bound, a, b, w, n);
}
BACKSWEEP_CLONES Index below_row(std::int32_t* found, const double* bound, const double* a, double b, double w,
                                 Index n) {
    return below_by(found, bound, a, b, w, n);
}

}  // namespace

void lower(double* out, const double* a, const double* b, double w, Index n) {
    lower_rows(out, a, b, w, n);
}

void lower(double* out, const double* a, double b, double w, Index n) {
    lower_row(out, a, b, w, n);
}

Index below(std::int32_t* found, const double* bound, const double* a, const double* b, double w, Index n) {
    return below_rows(found, bound, a, b, w, n);
}

Index below(std::int32_t* found, const double* bound, const double* a, double b, double w, Index n) {
    return below_row(found, bound, a, b, w, n);
}

}  // namespace backsweep::min_plus
