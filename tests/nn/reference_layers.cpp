// Runners of reference files for recurrent layers: plain-loop and CPU layers, float and double, in one segment and in
// segments of three steps.
// SPDX-License-Identifier: MIT
#include "nn/reference_drivers.hpp"

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// h and c of a file are (layer and direction, batch, features) each; the network's block is h, c of one after the other.
/// Cells without c have an empty one.
std::vector<double> interleave(const std::vector<double>& h, const std::vector<double>& c, Index parts) {
    std::vector<double> block;
    for (Index part = 0; part < parts; ++part)
        for (const auto* from : {&h, &c}) {
            const auto size = static_cast<std::ptrdiff_t>(from->size()) / parts;
            block.insert(block.end(), from->begin() + part * size, from->begin() + (part + 1) * size);
        }
    return block;
}

/// The inverse: h with `c` false.
template <class Real>
std::vector<Real> apart(const std::vector<Real>& block, Index parts, Index h_size, bool c) {
    std::vector<Real> values;
    const auto size = static_cast<std::ptrdiff_t>(block.size()) / parts;
    for (auto from = block.begin(); from != block.end(); from += size)
        values.insert(values.end(), c ? from + h_size : from, c ? from + size : from + h_size);
    return values;
}

RecurrentSpec spec_of(const ReferenceCase& c) {
    static const std::map<std::string, RecurrentSpec::Cell> cells{{"lstm", RecurrentSpec::Cell::lstm},
                                                                  {"gru", RecurrentSpec::Cell::gru},
                                                                  {"rnn_tanh", RecurrentSpec::Cell::rnn_tanh},
                                                                  {"rnn_relu", RecurrentSpec::Cell::rnn_relu}};
    RecurrentSpec spec;
    spec.cell = cells.at(c.operation);
    spec.inputs = c.options.at("input_size");
    spec.hidden = c.options.at("hidden_size");
    spec.layers = c.options.at("num_layers");
    spec.bias = c.options.at("bias");
    spec.projection = c.options.at("proj_size");
    spec.bidirectional = c.options.at("bidirectional");
    return spec;
}

void run_recurrent(const ReferenceCase& c) {
    const RecurrentSpec spec = spec_of(c);
    const bool cell_state = spec.cell == RecurrentSpec::Cell::lstm;
    const Index T = c.options.at("T"), B = c.options.at("B"), parts = spec.layers * (spec.bidirectional ? 2 : 1);
    const Index h_size = B * spec.state(), c_size = cell_state ? B * spec.hidden : 0;
    const auto time_major = [&](const std::string& name) {
        const auto values = c.values_of<double>(name);
        return c.options.at("batch_first") ? swap_axes(values, B, T) : values;
    };
    Problem<double> problem;
    problem.steps = T;
    problem.batch = B;
    problem.x = time_major("input");
    problem.values = time_major("loss_weight.output");
    problem.carry = interleave(c.values_or_zeros("h0", parts * h_size), c.values_or_zeros("c0", parts * c_size), parts);
    const auto weight_h = c.values_or_zeros("loss_weight.hn", parts * h_size),
               weight_c = c.values_or_zeros("loss_weight.cn", parts * c_size);
    problem.dcarry = interleave(weight_h, weight_c, parts);
    double loss_size = weighted_size(problem.values, time_major("output")) +
                       weighted_size(weight_h, c.values_of<double>("hn"));
    if (cell_state) loss_size += weighted_size(weight_c, c.values_of<double>("cn"));
    if (!c.options.at("lengths").is_null()) {
        const std::vector<Index> lengths = c.options.at("lengths");
        for (Index p = 0; p < T * B; ++p)
            problem.marks.push_back(p / B < lengths[static_cast<std::size_t>(p % B)] ? Mark::step : Mark::filler);
    }

    const auto check = [&]<class Real>(const Network<Real>& network) {
        const auto parameters = parameters_of(c, network, "rnn.");
        for (const Index chunk : {T, Index{3}}) {
            if (chunk < T && spec.bidirectional) continue;
            const auto out = sweep(network, parameters, cast<Real>(problem), chunk);
            double loss = out.loss;
            for (std::size_t k = 0; k < out.carry.size(); ++k)
                loss += problem.dcarry[k] * static_cast<double>(out.carry[k]);
            c.check("output", out.y, time_major("output"), c.values());
            c.check("hn", apart(out.carry, parts, h_size, false), c.values());
            if (cell_state) c.check("cn", apart(out.carry, parts, h_size, true), c.values());
            c.check("loss", std::vector<Real>{static_cast<Real>(loss)}, c.values(), loss_size);
            check_gradients(c, network, "rnn.", out.gradients);
            c.check("grad.input", out.dx, time_major("grad.input"), c.gradients());
            if (c.file.find("grad.h0")) c.check("grad.h0", apart(out.dcarry, parts, h_size, false), c.gradients());
            if (c.file.find("grad.c0")) c.check("grad.c0", apart(out.dcarry, parts, h_size, true), c.gradients());
            for (Index p = 0; p < static_cast<Index>(problem.marks.size()); ++p) {  // 0 by definition, hence exactly
                if (problem.marks[static_cast<std::size_t>(p)] != Mark::filler) continue;
                const auto zeros = [p](const std::vector<Real>& array, Index width) {
                    return std::count(array.begin() + p * width, array.begin() + (p + 1) * width, Real{0}) == width;
                };
                BOOST_TEST(zeros(out.y, spec.outputs()));
                BOOST_TEST(zeros(out.dx, spec.inputs));
            }
        }
    };
    for_each_driver({{spec}, inner_product()}, check);
    if (!spec.gated()) return;
    RecurrentSpec made_again = spec;
    made_again.save = {};
    BOOST_TEST_CONTEXT("gates made again") for_each_driver({{made_again}, inner_product()}, check);
}

const Registration lstm{"lstm", run_recurrent};
const Registration gru{"gru", run_recurrent};
const Registration rnn_tanh{"rnn_tanh", run_recurrent};
const Registration rnn_relu{"rnn_relu", run_recurrent};

}  // namespace
