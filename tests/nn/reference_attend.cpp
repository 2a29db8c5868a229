// Runners of reference files for attention without a layer around it: scaled dot products and rotary positions, by kernel
// and plain loops.
// SPDX-License-Identifier: MIT
#include "nn/attend_problem.hpp"
#include "nn/cpu/rotary.hpp"
#include "nn/reference_cases.hpp"

#include <cmath>

using namespace backsweep;
using namespace backsweep::test;

namespace {

Rotary rotary_of(const nlohmann::json& options) {
    const std::string style = options.at("style");
    BOOST_TEST_REQUIRE((style == "half" || style == "interleaved"));
    return {options.at("dim"), options.at("base"), style == "half" ? Rotary::Style::half : Rotary::Style::interleaved};
}

/// Rows of one head, at positions from `first` on.
template <class Real>
void rotate(Driver driver, const Rotary& rotary, Turn turn, Index first, Index width, std::vector<Real>& x) {
    const Index steps = static_cast<Index>(x.size()) / width;
    if (driver == Driver::cpu)
        cpu::rotate<Real>(rotary, turn, first, steps, 1, 1, width, {x.data(), width});
    else
        reference::rotate<Real>(rotary, turn, first, steps, 1, 1, width, {x.data(), width});
}

template <class F>
void for_each_driver_and_type(F f) {
    for (const Driver driver : drivers) BOOST_TEST_CONTEXT(to_string(driver)) {
            f(driver, float{});
            f(driver, double{});
        }
}

template <class Real>
void append(std::vector<Real>& to, const std::vector<Real>& rows) {
    to.insert(to.end(), rows.begin(), rows.end());
}

/// Part `which` of `parts` equal ones.
template <class T>
std::vector<T> part(const std::vector<T>& all, Index which, Index parts) {
    const Index size = static_cast<Index>(all.size()) / parts;
    return {all.begin() + which * size, all.begin() + (which + 1) * size};
}

/// What all heads of a file share.
AttendCase case_of(const ReferenceCase& c) {
    AttendCase one{"", {}};
    Attend<double>& a = one.attend;
    a.queries = c.options.at("T");
    a.offset = c.options.at("memory");
    a.keys = c.options.value("S", a.offset + a.queries);
    a.width = c.options.at("head_dim");
    a.value_width = c.options.value("value_dim", a.width);
    const std::string mask = c.options.at("mask");
    BOOST_TEST_REQUIRE((mask == "full" || mask == "causal" || mask == "window"));
    a.causal = mask != "full";
    a.window = mask == "window" ? c.options.at("window").get<Index>() : 0;
    a.scale = c.options.value("scale", 1.0 / std::sqrt(static_cast<double>(a.width)));
    return one;
}

/// The weights of all queries: the output for values that are the rows of the identity.
template <class Real>
std::vector<Real> weights_of(Driver driver, AttendCase one, AttendData<Real> data) {
    one.attend.value_width = one.attend.keys;
    data.v.assign(static_cast<std::size_t>(one.attend.keys * one.attend.keys), Real{0});
    for (Index j = 0; j < one.attend.keys; ++j) data.v[static_cast<std::size_t>(j * one.attend.keys + j)] = Real{1};
    data.d_o.assign(static_cast<std::size_t>(one.attend.queries * one.attend.keys), Real{0});
    return run(driver, one, data).o;
}

/// Elements that are 0 by definition: rows of queries that see nothing, and of keys that are not used.
template <class Real>
void check_zeros(const AttendCase& one, const AttendResult<Real>& got) {
    const auto zero = [](const std::vector<Real>& rows, std::size_t row, Index width) {
        const auto first = rows.begin() + static_cast<Index>(row) * width;
        return std::all_of(first, first + width, [](Real x) { return x == Real{0}; });
    };
    for (std::size_t i = 0; i < got.lse.size(); ++i)
        if (std::isinf(got.lse[i]))
            BOOST_TEST((zero(got.o, i, one.attend.value_width) && zero(got.dq, i, one.attend.width)));
    for (std::size_t j = 0; j < one.hidden.size(); ++j)
        if (one.hidden[j])
            BOOST_TEST((zero(got.dk, j, one.attend.width) && zero(got.dv, j, one.attend.value_width)));
}

void run_sdpa(const ReferenceCase& c) {
    const AttendCase shared = case_of(c);
    const Index batch = c.options.at("B"), heads = c.options.at("heads"), offset = shared.attend.offset;
    const bool large = c.options.value("logit_scale", 1.0) > 10.0, alibi = c.options.value("alibi", false);
    const Quantity values = large ? Quantity::large_values : Quantity::values;
    const Quantity gradients = large ? Quantity::large_gradients : Quantity::gradients;
    const std::vector<double> slopes = c.values_or_zeros("slopes", heads);
    const auto loss_weights = c.values_of<double>("loss_weight.output"), output = c.values_of<double>("output");
    const TensorView* padding = c.file.find("key_padding_mask");
    BOOST_TEST((alibi == (c.file.find("slopes") != nullptr)));
    for_each_driver_and_type([&](Driver driver, auto real) {
        using Real = decltype(real);
        AttendResult<Real> all;
        std::vector<Real> weights;
        for (Index n = 0; n < batch * heads; ++n) {
            AttendCase one = shared;
            one.attend.slope = slopes[static_cast<std::size_t>(n % heads)];
            if (padding)
                for (const std::int64_t used : part(padding->integers(), n / heads, batch))
                    one.hidden.push_back(used != 0);
            const auto of = [&](const char* name) { return part(c.values_of<Real>(name), n, batch * heads); };
            AttendData<Real> data{of("query"), of("key"), of("value"), {}, {}, {}, of("loss_weight.output")};
            const auto turn = [&](Turn way, std::vector<Real>& q, std::vector<Real>& k) {
                if (!c.options.contains("rotary") || c.options.at("rotary").is_null()) return;
                const Rotary rotary = rotary_of(c.options.at("rotary"));
                rotate(driver, rotary, way, offset, one.attend.width, q);
                rotate(driver, rotary, way, Index{0}, one.attend.width, k);
            };
            turn(Turn::forth, data.q, data.k);
            AttendResult<Real> got = run(driver, one, data);
            turn(Turn::back, got.dq, got.dk);
            check_zeros(one, got);
            append(all.o, got.o), append(all.lse, got.lse);
            append(all.dq, got.dq), append(all.dk, got.dk), append(all.dv, got.dv);
            append(weights, weights_of(driver, one, data));
        }
        double loss = 0.0;
        for (std::size_t k = 0; k < all.o.size(); ++k) loss += loss_weights[k] * static_cast<double>(all.o[k]);
        c.check("output", all.o, values);
        c.check("lse", all.lse, values);
        c.check("loss", std::vector<Real>{static_cast<Real>(loss)}, values, weighted_size(loss_weights, output));
        c.check("grad.query", all.dq, gradients);
        c.check("grad.key", all.dk, gradients);
        c.check("grad.value", all.dv, gradients);
        if (c.file.find("attn_weights")) c.check("attn_weights", weights, values);
    });
}

void run_rotary(const ReferenceCase& c) {
    const auto& shape = c.file.at("input").shape;  // (batch, heads, steps, features)
    const Index first = c.options.at("offset"), rows = shape[0] * shape[1], width = shape[3];
    const Rotary rotary = rotary_of(c.options);
    const auto weights = c.values_of<double>("loss_weight.output"), wanted = c.values_of<double>("output");
    for_each_driver_and_type([&](Driver driver, auto real) {
        using Real = decltype(real);
        std::vector<Real> output, gradient;
        for (Index n = 0; n < rows; ++n) {
            auto x = part(c.values_of<Real>("input"), n, rows), dx = part(c.values_of<Real>("loss_weight.output"), n, rows);
            rotate(driver, rotary, Turn::forth, first, width, x);
            rotate(driver, rotary, Turn::back, first, width, dx);
            append(output, x), append(gradient, dx);
        }
        double loss = 0.0;
        for (std::size_t k = 0; k < output.size(); ++k) loss += weights[k] * static_cast<double>(output[k]);
        c.check("output", output, Quantity::values);
        c.check("loss", std::vector<Real>{static_cast<Real>(loss)}, Quantity::values, weighted_size(weights, wanted));
        c.check("grad.input", gradient, Quantity::gradients);
    });
}

const Registration sdpa{"sdpa", run_sdpa};
const Registration rotary{"rotary", run_rotary};

}  // namespace
