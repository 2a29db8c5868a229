// Laws of every layer, for the plain-loop and the CPU layers, in float and double.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE layers
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "nn/layer_laws.hpp"

#include <cmath>
#include <string>

using namespace backsweep;
using namespace backsweep::test;

BOOST_AUTO_TEST_CASE(splitting_a_segment_of_the_reference_changes_no_bit) {
    check_splitting_of_the_reference<float>(models(), {Marking::none});
    check_splitting_of_the_reference<double>(models(), {Marking::none});
}

BOOST_AUTO_TEST_CASE(cpu_and_reference_agree_in_double) {
    check_cpu_against_reference(models(), {Marking::none});
}

BOOST_AUTO_TEST_CASE(reverse_agrees_with_central_differences) {
    check_against_central_differences(models(), {Marking::none});
}

BOOST_AUTO_TEST_CASE(fast_float_errs_at_most_three_times_as_much_as_plain_float) {
    check_errors_in_float(models());
}

BOOST_AUTO_TEST_CASE(gradients_are_added_to) {
    for (const Driver driver : drivers)
        for (const Model& model : models()) {
            const auto network = build<double>(driver, model.spec);
            const auto parameters = parameters_for(network);
            const auto problem = data_for(model.spec, network.carry(), 2, 3);
            for (Index l = 0; l < network.depth(); ++l) {
                const Layer<double>& layer = network.layer(l);
                const Footprint f = layer.footprint(2, 3);
                Segment<double> at;
                at.steps = 2;
                at.batch = 3;
                at.tokens = problem.tokens.data();
                at.classes = problem.classes.data();
                at.values = problem.values.data();
                Index size = 0;
                for (const ParameterShape& shape : layer.parameters()) size += shape.size();
                const auto x = random_values(6 * f.inputs, 300), carry = random_values(3 * f.carry, 301),
                           dy = random_values(6 * f.outputs, 302);
                std::vector<double> y(static_cast<std::size_t>(6 * f.outputs)), after(carry.size()),
                    tape(static_cast<std::size_t>(f.tape)), workspace(static_cast<std::size_t>(f.workspace)),
                    dcarry(carry.size());
                const double* p = parameters.data() + network.parameter_offset(l);
                layer.record({at, p, x.data(), y.data(), carry.data(), after.data(), tape.data(), workspace.data()});
                std::vector<double> zero(static_cast<std::size_t>(size)), seven(zero.size(), 7.0);
                for (auto* g : {&zero, &seven}) {
                    std::fill(dcarry.begin(), dcarry.end(), 0.25);
                    layer.reverse({at, p, g->data(), tape.data(), carry.data(), dy.data(), nullptr, dcarry.data(),
                                   workspace.data(), nullptr, nullptr, nullptr, nullptr, f.reads_x ? x.data() : nullptr,
                                   f.reads_y ? y.data() : nullptr});
                }
                for (double& v : zero) v += 7.0;
                if (size > 0) BOOST_TEST(compare(seven, zero, {1e-14, 0.0}), model.name << ", " << layer.name());
            }
        }
}

BOOST_AUTO_TEST_CASE(repeated_tokens_add_up_and_padding_gets_nothing) {
    LossSpec product;
    product.kind = LossSpec::Kind::inner_product;
    const ModelSpec spec{{EmbeddingSpec{"embedding", 4, 2, 1}}, product};
    for (const Driver driver : drivers) {
        const auto network = build<double>(driver, spec);
        std::vector<double> table{1, 2, 30, 40, 5, 6, 7, 8};
        Problem<double> p;
        p.steps = 2;
        p.batch = 3;
        p.tokens = {3, 1, 3, 0, 3, 1};
        p.values = {1, 10, 2, 20, 4, 40, 8, 80, 16, 160, 32, 320};
        const auto out = sweep(network, table, p, 2);
        BOOST_TEST((out.y == std::vector<double>{7, 8, 30, 40, 7, 8, 1, 2, 7, 8, 30, 40}));  // the padding row as it is
        BOOST_TEST((out.gradients == std::vector<double>{8, 80, 0, 0, 0, 0, 21, 210}));
    }
}

BOOST_AUTO_TEST_CASE(bad_tokens_and_classes_are_named) {
    const Model model = models().back();
    for (const Driver driver : drivers)
        for (const std::int32_t bad : {-1, 11}) {
            const auto network = build<float>(driver, model.spec);
            const auto parameters = parameters_for(network);
            const auto good = cast<float>(data_for(model.spec, network.carry(), 3, 4));
            const auto names = [bad](const char* layer, const char* what) {
                return [=](const InvalidArgument& e) {
                    BOOST_TEST_MESSAGE(e.what());
                    return e.what() ==
                           std::string("layer '") + layer + "': " + what + " " + std::to_string(bad) +
                               " at step 1001 of sequence 2 is not in [0, 11); correct the data or the model's sizes";
                };
            };
            auto tokens = good;
            tokens.tokens[6] = bad;
            BOOST_CHECK_EXCEPTION(sweep(network, parameters, tokens, 3), InvalidArgument, names("embedding", "token"));
            auto classes = good;
            classes.classes[6] = bad;
            BOOST_CHECK_EXCEPTION(sweep(network, parameters, classes, 3), InvalidArgument,
                                  names("cross_entropy", "class"));
            classes.loss_from = 2;  // a target without loss is not looked at
            BOOST_CHECK_NO_THROW(sweep(network, parameters, classes, 3));
            auto none = good;
            none.classes.clear();
            BOOST_CHECK_THROW(sweep(network, parameters, none, 3), InvalidArgument);
            none = good;
            none.tokens.clear();
            BOOST_CHECK_THROW(sweep(network, parameters, none, 3), InvalidArgument);
        }
}

BOOST_AUTO_TEST_CASE(values_that_are_not_finite_pass_through) {
    const ModelSpec spec = models()[7].spec;
    for (const Driver driver : drivers) {
        const auto network = build<float>(driver, spec);
        auto parameters = parameters_for(network);
        parameters.back() = std::numeric_limits<float>::quiet_NaN();  // the head's bias of one feature
        const auto problem = cast<float>(data_for(spec, network.carry(), 1, 1));
        const Index l = network.depth() - 2;
        const Layer<float>& head = network.layer(l);
        std::vector<float> x(33, 0.5F), y(2);
        std::vector<float> workspace(static_cast<std::size_t>(head.footprint(1, 1).workspace));
        Segment<float> at;
        at.steps = at.batch = 1;
        head.advance({at, parameters.data() + network.parameter_offset(l), x.data(), y.data(), nullptr, nullptr,
                      nullptr, workspace.data()});
        BOOST_TEST(std::isfinite(y[0]));
        BOOST_TEST(std::isnan(y[1]));
    }
}
