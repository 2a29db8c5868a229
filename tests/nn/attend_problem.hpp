// One head of one sequence for tests of attention: its data, and what kernel and plain loops make of them.
// SPDX-License-Identifier: MIT
#pragma once

#include "nn/cpu/attend.hpp"
#include "nn/reference/attend.hpp"
#include "nn/sweep.hpp"

#include <limits>
#include <string>
#include <vector>

namespace backsweep::test {

/// Which rows see what, and how; pointers of `attend` stay null.
struct AttendCase {
    std::string name;
    Attend<double> attend;
    bool relative = false;
    std::vector<std::uint8_t> hidden{};
    double size = 1.0;  // of q and k
};

/// Data of a case, rows without gaps.
template <class Real>
struct AttendData {
    std::vector<Real> q, k, v, r, u, w, d_o;
};

template <class To, class From>
AttendData<To> cast(const AttendData<From>& d) {
    return {cast<To>(d.q), cast<To>(d.k), cast<To>(d.v), cast<To>(d.r), cast<To>(d.u), cast<To>(d.w), cast<To>(d.d_o)};
}

inline AttendData<double> data_for(const AttendCase& c, std::uint32_t stream = 0) {
    const Attend<double>& a = c.attend;
    AttendData<double> d;
    d.q = random_values(a.queries * a.width, stream + 1, c.size);
    d.k = random_values(a.keys * a.width, stream + 2, c.size);
    d.v = random_values(a.keys * a.value_width, stream + 3);
    d.d_o = random_values(a.queries * a.value_width, stream + 4);
    if (!c.relative) return d;
    const Index rows = a.offset + a.queries;
    d.r = random_values((a.window > 0 ? std::min(rows, a.window) : rows) * a.width, stream + 5, c.size);
    d.u = random_values(a.width, stream + 6);
    d.w = random_values(a.width, stream + 7);
    return d;
}

template <class Real>
struct AttendResult {
    std::vector<Real> o, lse, dq, dk, dv, dr, du, dw;

    /// f(name, member) for all of them.
    template <class F>
    void for_each(F f) const {
        f("o", o), f("lse", lse), f("dq", dq), f("dk", dk), f("dv", dv), f("dr", dr), f("du", du), f("dw", dw);
    }
};

/// Rows with gaps between them, as those of one of several heads; the gaps hold NaN.
template <class Real>
class Gapped {
public:
    static constexpr Index gap = 3;
    Gapped(const std::vector<Real>& rows, Index width)
        : width_(width),
          data_(rows.size() / static_cast<std::size_t>(width) * static_cast<std::size_t>(width + gap),
                std::numeric_limits<Real>::quiet_NaN()) {
        for (Index i = 0; i < static_cast<Index>(rows.size()) / width; ++i)
            std::copy_n(rows.begin() + i * width, width, data_.begin() + i * (width + gap));
    }
    Rows<Real> rows() { return {data_.data(), width_ + gap}; }
    operator Rows<const Real>() const { return {data_.data(), width_ + gap}; }
    /// Without the gaps; fails if one was written.
    std::vector<Real> taken() const {
        std::vector<Real> rows;
        for (std::size_t i = 0; i < data_.size(); ++i) {
            if (static_cast<Index>(i) % (width_ + gap) < width_)
                rows.push_back(data_[i]);
            else if (!std::isnan(data_[i]))
                BOOST_ERROR("a gap between rows was written");
        }
        return rows;
    }

private:
    Index width_;
    std::vector<Real> data_;
};

/// Forward and reverse. What is added to starts at `start`.
template <class Real>
AttendResult<Real> run(Driver driver, const AttendCase& c, const AttendData<Real>& d, Index first_key = 0,
                       Real start = 0) {
    const Attend<double>& from = c.attend;
    Attend<Real> a;
    a.queries = from.queries, a.keys = from.keys, a.offset = from.offset;
    a.width = from.width, a.value_width = from.value_width;
    a.causal = from.causal, a.window = from.window;
    a.scale = static_cast<Real>(from.scale), a.slope = static_cast<Real>(from.slope);
    a.dropout = from.dropout;
    a.hidden = c.hidden.empty() ? nullptr : c.hidden.data();
    const Gapped<Real> r(d.r, a.width);
    if (c.relative) {
        a.r = static_cast<Rows<const Real>>(r).data, a.r_stride = static_cast<Rows<const Real>>(r).stride;
        a.u = d.u.data(), a.w = d.w.data();
    }
    const auto filled = [](std::size_t size, Real with) { return std::vector<Real>(size, with); };
    constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();
    const Gapped<Real> q(d.q, a.width), k(d.k, a.width), v(d.v, a.value_width), d_o(d.d_o, a.value_width);
    Gapped<Real> o(filled(d.d_o.size(), nan), a.value_width), dq(filled(d.q.size(), nan), a.width);
    Gapped<Real> dk(filled(d.k.size(), start), a.width), dv(filled(d.v.size(), start), a.value_width);
    Gapped<Real> dr(filled(d.r.size(), start), a.width);
    std::vector<Real> lse = filled(static_cast<std::size_t>(a.queries), nan);
    std::vector<Real> du = filled(d.u.size(), start), dw = filled(d.w.size(), start);
    const auto size = static_cast<std::size_t>(cpu::attend_workspace(a));
    std::vector<Real> workspace = filled(size + 1, nan);
    if (driver == Driver::cpu)
        cpu::attend<Real>(a, q, k, v, o.rows(), lse.data(), workspace.data());
    else
        reference::attend<Real>(a, q, k, v, o.rows(), lse.data());
    std::fill(workspace.begin(), workspace.end(), nan);
    AttendReverse<Real> call{q, k, v, o, lse.data(), d_o, dq.rows(), dk.rows(), dv.rows(), first_key};
    call.dr = dr.rows(), call.du = du.data(), call.dw = dw.data();
    if (driver == Driver::cpu)
        cpu::attend_reverse(a, call, workspace.data());
    else
        reference::attend_reverse(a, call);
    BOOST_TEST(std::isnan(workspace[size]));
    return {o.taken(), lse, dq.taken(), dk.taken(), dv.taken(), dr.taken(), du, dw};
}

}  // namespace backsweep::test
