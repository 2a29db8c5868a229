// Attention of one head of one sequence, as a question: which queries see which keys, and what their logits are.
// Asked by the CPU's tiles (nn/cpu/attend.hpp) and by the plain loops (nn/reference/attend.hpp) alike.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <algorithm>
#include <cstdint>

namespace backsweep {

/// Rows of numbers in memory that another owns: row i begins at data + i * stride.
template <class T>
struct Rows {
    T* data = nullptr;
    Index stride = 0;

    T* operator[](Index i) const noexcept { return data + i * stride; }
};

/// Dropout of the probabilities. Query i has step t = step + i, key j step s = step - offset + j, both modulo 2^32; their
/// factor is that of Random(seed, stream).word(t, column 2^32 + s): neither tiles nor the rows before the segment change
/// it.
struct AttendDropout {
    double rate = 0.0;  ///< in [0, 1); 0: none
    std::uint64_t seed = 0;
    std::uint32_t stream = 0;
    Index step = 0;    ///< of query 0, in the stream
    Index column = 0;  ///< sequence in the whole batch * heads + head, below 2^32
};

/// Query i (0 .. queries - 1) stands at position offset + i, key j (0 .. keys - 1) at position j;
///
///     logit = scale q.k - slope |d|,  d = offset + i - j,                                ALiBi [Press22] where slope > 0
///     logit = scale ((q + u).k + (q + w).r_d) - slope d,  d >= 0                         Transformer-XL [Dai19] where r
///     o = sum over the keys seen of softmax(logit) v
///
/// With dropout, v's factors are the softmax's (of all keys seen) times 0 or 1 / (1 - rate). A query that sees no key
/// has o = 0, lse = -inf, and no gradient flows through it. Pointers are borrowed.
template <class Real>
struct Attend {
    Index queries = 0;
    Index keys = 0;
    Index offset = 0;       ///< position of query 0: keys before it are the memory
    Index width = 0;        ///< features of q and k
    Index value_width = 0;  ///< features of v and o
    bool causal = true;     ///< key j is seen where j <= offset + i
    Index window = 0;       ///< > 0: ... and j > offset + i - window; causal only
    Real scale = 1;
    Real slope = 0;                        ///< >= 0
    const std::uint8_t* hidden = nullptr;  ///< [keys], 1: no query sees this key; its k and v are not read; null: none is
    const Real* r = nullptr;  ///< row d for the distance d, causal only; rows below min(offset + queries, window) exist
    Index r_stride = 0;
    const Real* u = nullptr;  ///< [width], with r: bias of the content (r_w_bias)
    const Real* w = nullptr;  ///< [width], with r: bias of the distance (r_r_bias)
    AttendDropout dropout{};

    /// Keys between first and last are seen by query i, but for the hidden ones; may be empty.
    Range seen(Index i) const noexcept {
        if (!causal) return {0, keys};
        const Index last = std::clamp<Index>(offset + i + 1, 0, keys);
        return {window > 0 ? std::clamp<Index>(offset + i + 1 - window, 0, last) : 0, last};
    }
};

/// What the reverse of one head reads and writes. Nothing aliases.
template <class Real>
struct AttendReverse {
    Rows<const Real> q, k, v;
    Rows<const Real> o;  ///< as `attend` made it
    const Real* lse = nullptr;
    Rows<const Real> d_o;
    Rows<Real> dq;        ///< assigned
    Rows<Real> dk, dv;    ///< added to, from row first_key on; the rows before it need no memory
    Index first_key = 0;  ///< keys before it are constants: a detached memory
    Rows<Real> dr{};      ///< with r: added to, as many rows as r has
    Real* du = nullptr;   ///< with r: [width], added to
    Real* dw = nullptr;   ///< with r: [width], added to
};

}  // namespace backsweep
