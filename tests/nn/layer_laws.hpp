// Laws of every layer as functions over a list of models: splitting, plain loops against the CPU's, finite differences,
// Taylor slope and dot product, errors in float; each with every way to mark steps that the list asks for.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/chain/gradient_check.hpp"
#include "nn/cases.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace backsweep::test {

/// How positions are marked.
enum class Marking {
    none,
    begins,  ///< all sequences begin with the first step
    tails,   ///< sequences of unequal length, begun, the last of them empty if there are several
    holes,   ///< fillers in the middle and at the front of sequences that go on
    packed,  ///< sequences that begin in the middle, one behind the other
    nothing  ///< fillers only
};
inline constexpr std::array markings{Marking::none,  Marking::begins, Marking::tails,
                                     Marking::holes, Marking::packed, Marking::nothing};

inline void mark(Problem<double>& p, Marking marking) {
    p.begins = marking == Marking::begins || marking == Marking::tails;
    p.marks.clear();
    if (marking == Marking::none || marking == Marking::begins) return;
    for (Index t = 0; t < p.steps; ++t)
        for (Index b = 0; b < p.batch; ++b) {
            Mark mark = Mark::step;
            if (marking == Marking::tails && t >= (p.batch > 1 ? (p.batch - 1 - b) * p.steps / (p.batch - 1) : p.steps))
                mark = Mark::filler;
            if (marking == Marking::holes && (t + b) % 3 == 0) mark = Mark::filler;
            if (marking == Marking::packed && (t + 2 * b) % 4 == 1) mark = Mark::first;
            if (marking == Marking::packed && (t + 2 * b) % 4 == 0 && b % 2 == 1) mark = Mark::filler;
            if (marking == Marking::nothing) mark = Mark::filler;
            p.marks.push_back(mark);
        }
}

/// Starting values, weights three times as large so that gates leave the middle of their range, and none of them tame:
/// norms, learned states and fixed biases too get noise.
template <class Real>
std::vector<Real> untamed_parameters(const Network<Real>& network, std::uint64_t seed = 11) {
    std::vector<Real> parameters(static_cast<std::size_t>(network.parameters().size()));
    network.start(seed, parameters);
    const std::vector<double> noise =
        random_values(network.parameters().size(), 40 + static_cast<std::uint32_t>(seed), 0.3);
    for (const ParameterView& view : network.parameters().views())
        for (Index k = view.offset; k < view.offset + view.size(); ++k) {
            Real& p = parameters[static_cast<std::size_t>(k)];
            p = (view.cols > 0 ? Real{3} * p : p) + static_cast<Real>(noise[static_cast<std::size_t>(k)]);
        }
    return parameters;
}

/// The objective whose gradient a sweep computes: scale * losses + terminal adjoint . final state.
inline double objective(const Network<double>& network, const std::vector<double>& parameters,
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

/// Calls f(model, steps, batch) over the grid of models and sizes.
template <class F>
void for_each_case(const std::vector<Model>& models, F f) {
    for (const Model& model : models)
        for (const Index steps : {1, 2, 7})
            for (const Index batch : {1, 3, 8})
                BOOST_TEST_CONTEXT(model.name << ", " << steps << " steps, batch " << batch) f(model, steps, batch);
}

/// Data of a case under each of its markings.
template <class F>
void for_each_marking(const Model& model, Index carry, Index steps, Index batch, const std::vector<Marking>& marked,
                      F f) {
    for (const Marking marking : marked) BOOST_TEST_CONTEXT("marking " << static_cast<int>(marking)) {
            Problem<double> problem = data_for(model.spec, carry, steps, batch);
            mark(problem, marking);
            f(problem);
        }
}

/// `chunks` that a model can be cut into.
inline std::vector<Index> chunks_of(const ModelSpec& spec, Index steps, std::vector<Index> chunks) {
    return spec.segmentable() ? chunks : std::vector<Index>{steps};
}

/// sweep() itself checks advance = record, purity and that everything is assigned.
template <class Real>
void check_splitting_of_the_reference(const std::vector<Model>& models, const std::vector<Marking>& marked) {
    for_each_case(models, [&](const Model& model, Index steps, Index batch) {
        const auto network = reference::build<Real>(model.spec);
        const auto parameters = untamed_parameters(network);
        for_each_marking(model, network.carry(), steps, batch, marked, [&](const Problem<double>& data) {
            const auto problem = cast<Real>(data);
            const auto whole = sweep(network, parameters, problem, steps);
            for (const Index chunk : chunks_of(model.spec, steps, {1, 3, 6}))
                BOOST_TEST_CONTEXT("chunk " << chunk) check_same(sweep(network, parameters, problem, chunk), whole);
        });
    });
}

inline void check_cpu_against_reference(const std::vector<Model>& models, const std::vector<Marking>& marked) {
    double worst = 0.0;
    for_each_case(models, [&](const Model& model, Index steps, Index batch) {
        const auto slow = reference::build<double>(model.spec);
        const auto fast = cpu::build<double>(model.spec);
        const auto parameters = untamed_parameters(slow);
        BOOST_TEST(same_bits(untamed_parameters(fast), parameters));
        for_each_marking(model, slow.carry(), steps, batch, marked, [&](const Problem<double>& problem) {
            const auto wanted = sweep(slow, parameters, problem, steps);
            for (const Index chunk : chunks_of(model.spec, steps, {1, 3, 7})) {
                const auto got = sweep(fast, parameters, problem, chunk);
                check_close(got, wanted,
                            {1e-12, 1e-15});  // absolute: where terms of size 1 cancel, as a norm of 2 makes them
                worst = std::fmax(worst, compare(got.gradients, wanted.gradients, {}).worst);
            }
        });
    });
    BOOST_TEST_MESSAGE("largest difference of a gradient: " << worst);
}

/// All parameters, inputs and initial states of the small models, by both drivers.
inline void check_against_central_differences(const std::vector<Model>& models, const std::vector<Marking>& marked) {
    for (const Driver driver : drivers)
        for_each_case(models, [&](const Model& model, Index steps, Index batch) {
            const auto network = build<double>(driver, model.spec);
            if (steps * batch > 9 || network.parameters().size() > 1000) return;
            auto parameters = untamed_parameters(network);
            for_each_marking(model, network.carry(), steps, batch, marked, [&](Problem<double> problem) {
                problem.loss_from = steps > 2 ? 2 : 0;
                const auto got = sweep(network, parameters, problem, model.spec.segmentable() ? 3 : steps);
                const auto value = [&] { return objective(network, parameters, problem); };
                // Differences err by h^2 and by rounding over h, which is why they have an absolute part.
                const Tolerance tolerance{1e-7, 1e-8};
                BOOST_TEST_CONTEXT(to_string(driver)) {
                    std::vector<double> wanted = central_differences(parameters, value);
                    if (const EmbeddingSpec* embedding = model.spec.table(); embedding && embedding->padding)
                        std::fill_n(wanted.begin() + *embedding->padding * embedding->features, embedding->features,
                                    0.0);
                    BOOST_TEST(compare(got.gradients, wanted, tolerance));
                    if (!problem.x.empty())
                        BOOST_TEST(compare(got.dx, central_differences(problem.x, value), tolerance));
                    if (!problem.carry.empty())
                        BOOST_TEST(compare(got.dcarry, central_differences(problem.carry, value), tolerance));
                }
            });
        });
}

/// Along random directions of parameters and initial state: the Taylor slope, and the dot product of the adjoint with a
/// central difference.
inline void check_taylor_slope_and_dot_product(const std::vector<Model>& models) {
    for (const Driver driver : drivers)
        for (const Model& model : models) BOOST_TEST_CONTEXT(model.name << ", " << to_string(driver)) {
                const auto network = build<double>(driver, model.spec);
                const auto parameters = untamed_parameters(network);
                auto problem = data_for(model.spec, network.carry(), 13, 5);
                mark(problem, Marking::packed);
                const auto got = sweep(network, parameters, problem, model.spec.segmentable() ? 4 : 13);
                std::vector<double> point = parameters, gradient = got.gradients;
                point.insert(point.end(), problem.carry.begin(), problem.carry.end());
                gradient.insert(gradient.end(), got.dcarry.begin(), got.dcarry.end());
                const auto size = static_cast<std::ptrdiff_t>(parameters.size());
                const auto value = [&](std::span<const double> x) {
                    problem.carry.assign(x.begin() + size, x.end());
                    return objective(network, {x.begin(), x.begin() + size}, problem);
                };
                const std::vector<double> direction = random_values(static_cast<Index>(point.size()), 77);
                const double slope = taylor_slope(value, point, gradient, direction, 1e-3);
                BOOST_TEST(std::abs(slope - 2.0) <= 0.05, "slope " << slope);
                const auto moved = [&](double h) {
                    std::vector<double> x = point;
                    for (std::size_t k = 0; k < x.size(); ++k) x[k] += h * direction[k];
                    return value(x);
                };
                constexpr double h = 1e-6;
                double along = 0.0, size_of_terms = 0.0;
                for (std::size_t k = 0; k < point.size(); ++k) {
                    along += gradient[k] * direction[k];
                    size_of_terms += std::abs(gradient[k] * direction[k]);
                }
                const double difference = (moved(h) - moved(-h)) / (2.0 * h);
                BOOST_TEST(std::abs(along - difference) <= 1e-8 * size_of_terms, along << " is not " << difference);
            }
}

/// Against double, the float layers of the CPU err at most three times as much as plain loops in float do: the errors,
/// each relative to the largest value of its array, in the middle one of many draws of parameters and data. For one
/// draw may be exact by luck, and some make a recurrence chaotic, which says nothing of who rounds.
inline void check_errors_in_float(const std::vector<Model>& models) {
    double worst = 0.0;
    for (const Model& model : models)
        for (const Index batch : {1, 5}) {
            const Index steps = 40, chunk = model.spec.segmentable() ? 16 : steps;
            const auto exact = reference::build<double>(model.spec);
            const auto plain = reference::build<float>(model.spec);
            const auto fast = cpu::build<float>(model.spec);
            struct Errors {
                std::vector<double> plain, fast;
            };
            std::map<std::string, Errors> errors;
            for (std::uint32_t draw = 0; draw < 25; ++draw) {
                const auto parameters = untamed_parameters(plain, draw);
                const auto problem = cast<float>(data_for(model.spec, plain.carry(), steps, batch, 100 + 20 * draw));
                const auto wanted = sweep(exact, cast<double>(parameters), cast<double>(problem), steps);
                const auto slow = sweep(plain, parameters, problem, chunk);
                const auto got = sweep(fast, parameters, problem, chunk);
                const auto measure = [&errors](const char* what, const auto& g, const auto& s, const auto& w) {
                    if (w.empty()) return;
                    const double largest = compare(w, w, {1.0, 0.0}).limit, size = largest > 0.0 ? largest : 1.0;
                    errors[what].plain.push_back(compare(s, w, {}).worst / size);
                    errors[what].fast.push_back(compare(g, w, {}).worst / size);
                };
                measure("losses", got.losses, slow.losses, wanted.losses);
                measure("y", got.y, slow.y, wanted.y);
                measure("carry", got.carry, slow.carry, wanted.carry);
                measure("gradients", got.gradients, slow.gradients, wanted.gradients);
                measure("dx", got.dx, slow.dx, wanted.dx);
                measure("dcarry", got.dcarry, slow.dcarry, wanted.dcarry);
            }
            const auto middle = [](std::vector<double>& values) {
                std::nth_element(values.begin(), values.begin() + 12, values.end());
                return values[12];
            };
            for (auto& [what, e] : errors) {
                const double slow =
                    std::fmax(middle(e.plain), 0x1.0p-24);  // the rounding of a result itself is allowed
                const double got = middle(e.fast);
                BOOST_TEST(got <= 3.0 * slow, model.name << ", batch " << batch << ", " << what << ": error " << got
                                                         << ", of plain loops " << slow);
                worst = std::fmax(worst, got / slow);
            }
        }
    BOOST_TEST_MESSAGE("largest error of fast float over that of plain float: " << worst);
}

}  // namespace backsweep::test
