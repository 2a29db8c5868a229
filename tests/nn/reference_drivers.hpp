// What the runners of reference files for layers share: every driver in float and double, parameters out of a file and
// gradients against it, layers without state.
// SPDX-License-Identifier: MIT
#pragma once

#include "nn/reference_cases.hpp"
#include "nn/sweep.hpp"

#include <string>
#include <vector>

namespace backsweep::test {

inline LossSpec inner_product() {
    LossSpec loss;
    loss.kind = LossSpec::Kind::inner_product;
    return loss;
}

/// Calls f(network, driver) for each driver in float and double.
template <class F>
void for_each_driver(const ModelSpec& spec, F f) {
    for (const Driver driver : drivers) BOOST_TEST_CONTEXT(to_string(driver)) {
            f(build<float>(driver, spec));
            f(build<double>(driver, spec));
        }
}

/// The flat vector out of a file whose names have no `prefix`.
template <class Real>
std::vector<Real> parameters_of(const ReferenceCase& c, const Network<Real>& network, const std::string& prefix) {
    std::vector<Real> parameters;
    for (const ParameterView& view : network.parameters().views()) {
        const std::vector<Real> values = c.values_of<Real>(view.name.substr(prefix.size()));
        BOOST_TEST_REQUIRE(static_cast<Index>(values.size()) == view.size());
        parameters.insert(parameters.end(), values.begin(), values.end());
    }
    return parameters;
}

template <class Real>
void check_gradients(const ReferenceCase& c, const Network<Real>& network, const std::string& prefix,
                     const std::vector<Real>& gradients) {
    for (const ParameterView& view : network.parameters().views())
        c.check("grad." + view.name.substr(prefix.size()),
                std::vector<Real>(gradients.begin() + view.offset, gradients.begin() + view.offset + view.size()),
                c.gradients());
}

/// What all layers without state have: output, loss, gradients; `problem` holds the data but for the loss's weights.
inline void run_stateless(const ReferenceCase& c, const ModelSpec& spec, const std::string& prefix,
                          Problem<double> problem) {
    const auto weights = c.values_of<double>("loss_weight.output"), output = c.values_of<double>("output");
    problem.values = weights;
    for_each_driver(spec, [&]<class Real>(const Network<Real>& network) {
        const auto parameters = parameters_of(c, network, prefix);
        for (const Index chunk : {problem.steps, Index{3}}) {
            const auto out = sweep(network, parameters, cast<Real>(problem), chunk);
            c.check("output", out.y, c.values());
            c.check("loss", std::vector<Real>{static_cast<Real>(out.loss)}, c.values(), weighted_size(weights, output));
            check_gradients(c, network, prefix, out.gradients);
            if (!problem.x.empty()) c.check("grad.input", out.dx, c.gradients());
        }
    });
}

}  // namespace backsweep::test
