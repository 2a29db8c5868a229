// Laws of every layer, for the plain-loop and the CPU layers, in float and double.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE layers
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "nn/cases.hpp"

#include <cmath>
#include <map>
#include <string>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// The objective whose gradient a sweep computes: scale * losses + terminal adjoint . final state.
double objective(const Network<double>& network, const std::vector<double>& parameters,
                 const Problem<double>& problem) {
    const Outcome<double> out = sweep(network, parameters, problem, problem.steps, 0, Checks::none);
    double value = problem.scale * out.loss;
    for (std::size_t k = 0; k < problem.dcarry.size(); ++k) value += problem.dcarry[k] * out.carry[k];
    return value;
}

template <class Real>
void check_same(const Outcome<Real>& a, const Outcome<Real>& b) {
    BOOST_TEST(same_bits(a.losses, b.losses));
    BOOST_TEST(same_bits(a.y, b.y));
    BOOST_TEST(same_bits(a.carry, b.carry));
    BOOST_TEST(same_bits(a.gradients, b.gradients));
    BOOST_TEST(same_bits(a.dx, b.dx));
    BOOST_TEST(same_bits(a.dcarry, b.dcarry));
}

template <class A, class B>
void check_close(const Outcome<A>& got, const Outcome<B>& wanted, Tolerance tolerance) {
    BOOST_TEST(compare(got.losses, wanted.losses, tolerance));
    if (!wanted.y.empty()) BOOST_TEST(compare(got.y, wanted.y, tolerance));
    if (!wanted.carry.empty()) BOOST_TEST(compare(got.carry, wanted.carry, tolerance));
    BOOST_TEST(compare(got.gradients, wanted.gradients, tolerance));
    if (!wanted.dx.empty()) BOOST_TEST(compare(got.dx, wanted.dx, tolerance));
    if (!wanted.dcarry.empty()) BOOST_TEST(compare(got.dcarry, wanted.dcarry, tolerance));
}

/// Calls f(model, driver's name, steps, batch) over the grid of models and sizes.
template <class F>
void for_each_case(F f) {
    for (const Model& model : models())
        for (const Index steps : {1, 2, 7})
            for (const Index batch : {1, 3, 8})
                BOOST_TEST_CONTEXT(model.name << ", " << steps << " steps, batch " << batch) f(model, steps, batch);
}

}  // namespace

// sweep() itself checks advance = record, purity and that everything is assigned.
BOOST_AUTO_TEST_CASE(splitting_a_segment_of_the_reference_changes_no_bit) {
    const auto body = [](auto real) {
        using Real = decltype(real);
        for_each_case([](const Model& model, Index steps, Index batch) {
            const auto network = reference::build<Real>(model.spec);
            const auto parameters = parameters_for(network);
            const auto problem = cast<Real>(data_for(model.spec, network.carry(), steps, batch));
            const auto whole = sweep(network, parameters, problem, steps);
            for (const Index chunk : {1, 3, 6})
                BOOST_TEST_CONTEXT("chunk " << chunk) check_same(sweep(network, parameters, problem, chunk), whole);
        });
    };
    body(float{});
    body(double{});
}

BOOST_AUTO_TEST_CASE(cpu_and_reference_agree_in_double) {
    double worst = 0.0;
    for_each_case([&](const Model& model, Index steps, Index batch) {
        const auto slow = reference::build<double>(model.spec);
        const auto fast = cpu::build<double>(model.spec);
        const auto parameters = parameters_for(slow);
        BOOST_TEST(same_bits(parameters_for(fast), parameters));
        const auto problem = data_for(model.spec, slow.carry(), steps, batch);
        const auto wanted = sweep(slow, parameters, problem, steps);
        for (const Index chunk : {1, 3, 7}) {
            const auto got = sweep(fast, parameters, problem, chunk);
            check_close(got, wanted, {1e-12, 0.0});
            worst = std::fmax(worst, compare(got.gradients, wanted.gradients, {}).worst);
        }
    });
    BOOST_TEST_MESSAGE("largest difference of a gradient: " << worst);
}

BOOST_AUTO_TEST_CASE(reverse_agrees_with_central_differences) {
    for (const Driver driver : drivers)
        for_each_case([driver](const Model& model, Index steps, Index batch) {
            if (steps * batch > 9 || model.name == "lstm 33") return;
            const auto network = build<double>(driver, model.spec);
            auto parameters = parameters_for(network);
            auto problem = data_for(model.spec, network.carry(), steps, batch);
            problem.loss_from = steps > 2 ? 2 : 0;
            const auto got = sweep(network, parameters, problem, 3);
            const auto value = [&] { return objective(network, parameters, problem); };
            // Differences err by h^2 and by rounding over h, which is why they have an absolute part.
            const Tolerance tolerance{1e-7, 1e-8};
            BOOST_TEST_CONTEXT(to_string(driver)) {
                std::vector<double> wanted = central_differences(parameters, value);
                if (const auto* embedding = std::get_if<EmbeddingSpec>(&model.spec.layers.front());
                    embedding && embedding->padding)
                    std::fill_n(wanted.begin() + *embedding->padding * embedding->features, embedding->features, 0.0);
                BOOST_TEST(compare(got.gradients, wanted, tolerance));
                if (!problem.x.empty()) BOOST_TEST(compare(got.dx, central_differences(problem.x, value), tolerance));
                if (!problem.carry.empty())
                    BOOST_TEST(compare(got.dcarry, central_differences(problem.carry, value), tolerance));
            }
        });
}

// Against double, the float layers of the CPU err at most three times as much as plain loops in float do: the largest
// errors over several draws of data, each relative to the largest value of its array, for one array alone may be exact
// by luck.
BOOST_AUTO_TEST_CASE(fast_float_errs_at_most_three_times_as_much_as_plain_float) {
    double worst = 0.0;
    for (const Model& model : models())
        for (const Index batch : {1, 5}) {
            const Index steps = 40;
            const auto exact = reference::build<double>(model.spec);
            const auto plain = reference::build<float>(model.spec);
            const auto fast = cpu::build<float>(model.spec);
            struct Errors {
                double plain = 0x1.0p-24, fast = 0.0;  // the rounding of a result itself is allowed to both
            };
            std::map<std::string, Errors> errors;
            for (std::uint32_t draw = 0; draw < 8; ++draw) {
                const auto parameters = parameters_for(plain, draw);
                const auto problem = cast<float>(data_for(model.spec, plain.carry(), steps, batch, 100 + 20 * draw));
                const auto wanted = sweep(exact, cast<double>(parameters), cast<double>(problem), steps);
                const auto slow = sweep(plain, parameters, problem, 16);
                const auto got = sweep(fast, parameters, problem, 16);
                const auto measure = [&errors](const char* what, const auto& g, const auto& s, const auto& w) {
                    if (w.empty()) return;
                    const double size = compare(w, w, {1.0, 0.0}).limit;
                    Errors& e = errors[what];
                    e.plain = std::fmax(e.plain, compare(s, w, {}).worst / size);
                    e.fast = std::fmax(e.fast, compare(g, w, {}).worst / size);
                };
                measure("losses", got.losses, slow.losses, wanted.losses);
                measure("y", got.y, slow.y, wanted.y);
                measure("carry", got.carry, slow.carry, wanted.carry);
                measure("gradients", got.gradients, slow.gradients, wanted.gradients);
                measure("dx", got.dx, slow.dx, wanted.dx);
                measure("dcarry", got.dcarry, slow.dcarry, wanted.dcarry);
            }
            for (const auto& [what, e] : errors) {
                BOOST_TEST(e.fast <= 3.0 * e.plain, model.name << ", batch " << batch << ", " << what << ": error "
                                                               << e.fast << ", of plain loops " << e.plain);
                worst = std::fmax(worst, e.fast / e.plain);
            }
        }
    BOOST_TEST_MESSAGE("largest error of fast float over that of plain float: " << worst);
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
                                   workspace.data()});
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
