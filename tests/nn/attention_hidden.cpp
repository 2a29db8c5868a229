// What attention must not read: keys that nothing sees, whatever numbers lie there, and memories of other layers.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE attention_hidden
#include "support/unit_test.hpp"

#include "nn/cases.hpp"
#include "nn/swept_window.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Index features = 4, batch = 2;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

ModelSpec of(std::vector<LayerSpec> layers) {
    ModelSpec spec{std::move(layers), {}};
    spec.loss.kind = LossSpec::Kind::inner_product;
    return spec;
}

std::vector<AttentionSpec> kinds(Index memory) {
    const AttentionSpec plain{.name = "attention", .features = features, .heads = 2, .memory = memory};
    std::vector<AttentionSpec> all(5, plain);
    all[1].position = AttentionSpec::Position::rotary;
    all[2].position = AttentionSpec::Position::relative;
    all[3].projection = AttentionSpec::Projection::gated;
    all[4].save = {};
    return all;
}

void check_same(const SweptWindow<double>& got, const SweptWindow<double>& wanted) {
    BOOST_TEST(all_assigned(wanted.gradients));
    BOOST_TEST(same_bits(got.gradients, wanted.gradients));
    BOOST_TEST(same_bits(got.dx, wanted.dx));
    BOOST_TEST(same_bits(got.dstart, wanted.dstart));
    BOOST_TEST(same_bits(std::vector{got.objective}, std::vector{wanted.objective}));
}

/// run(filling) has the bits of run(0), whatever fills the places that are hidden.
template <class Run>
void check_hidden(Run run) {
    const auto wanted = run(0.0);
    for (const double filling : {1e30, not_a_number}) check_same(run(filling), wanted);
}

}  // namespace

BOOST_AUTO_TEST_CASE(hidden_rows_of_a_memory_change_no_bit) {
    for (const Driver driver : drivers)
        for (const AttentionSpec& attention : kinds(8))
            for (const Index chunk : {2, 5}) BOOST_TEST_CONTEXT(to_string(driver) << ", chunk " << chunk) {
                    const auto network = build<double>(driver, of({attention}));
                    const auto parameters = parameters_for(network);
                    const auto problem = data_for(network.spec(), 0, 5, batch);
                    check_hidden([&](double filling) {
                        auto start = remembering(network, batch, 3, 9);
                        const Index rows = 8 * batch;
                        for (Index row = 0; row < rows; ++row)
                            if (start[static_cast<std::size_t>(rows * features + row)] == 0.0)
                                std::fill_n(start.begin() + row * features, features, filling);
                        return swept(network, parameters, problem, start, chunk);
                    });
                }
}

BOOST_AUTO_TEST_CASE(hidden_rows_of_a_context_change_no_bit) {
    constexpr Index steps = 4, key_features = 3, value_features = 5;
    const std::vector<Mark> marks{Mark::step, Mark::filler, Mark::filler, Mark::step,
                                  Mark::step, Mark::step,   Mark::filler, Mark::filler};
    AttentionSpec across{.name = "attention", .features = features, .heads = 2, .mask = AttentionSpec::Mask::full};
    across.across = true;
    across.key_features = key_features;
    across.value_features = value_features;
    for (const Driver driver : drivers) BOOST_TEST_CONTEXT(to_string(driver)) {
            const auto network = build<double>(driver, of({across}));
            const auto parameters = parameters_for(network);
            const auto problem = data_for(network.spec(), 0, 3, batch);
            check_hidden([&](double filling) {
                auto keys = random_values(steps * batch * key_features, 3), values = random_values(steps * batch * value_features, 4);
                for (Index p = 0; p < steps * batch; ++p) {
                    if (marks[static_cast<std::size_t>(p)] != Mark::filler) continue;
                    std::fill_n(keys.begin() + p * key_features, key_features, filling);
                    std::fill_n(values.begin() + p * value_features, value_features, filling);
                }
                std::vector<double> dkeys(keys.size()), dvalues(values.size());
                const Context<double> context{steps, keys.data(), values.data(), marks.data(), dkeys.data(), dvalues.data()};
                auto out = swept(network, parameters, problem, {}, 3, nullptr, &context);
                out.dstart = dkeys;
                out.dstart.insert(out.dstart.end(), dvalues.begin(), dvalues.end());
                for (Index p = 0; p < steps * batch; ++p)
                    for (Index k = 0; k < key_features; ++k)
                        BOOST_TEST((marks[static_cast<std::size_t>(p)] != Mark::filler ||
                                    dkeys[static_cast<std::size_t>(p * key_features + k)] == 0.0));
                return out;
            });
        }
}

// The layer itself, for a chain clears what lies in fillers of the input.
BOOST_AUTO_TEST_CASE(fillers_change_no_bit) {
    constexpr Index steps = 5, positions = steps * batch;
    std::vector<Mark> marks(positions, Mark::step);
    marks[3] = marks[7] = marks[9] = Mark::filler;
    for (const Driver driver : drivers)
        for (const Index memory : {0, 4})
            for (const AttentionSpec& attention : kinds(memory))
                BOOST_TEST_CONTEXT(to_string(driver) << ", memory " << memory) {
                    const auto network = build<double>(driver, of({attention}));
                    const Layer<double>& layer = network.layer(0);
                    const Footprint sizes = layer.footprint(steps, batch);
                    const auto parameters = parameters_for(network);
                    const auto problem = data_for(network.spec(), 0, steps, batch);
                    check_hidden([&](double filling) {
                        auto x = problem.x, rows = random_values((memory + steps) * batch * features, 12);
                        for (std::size_t p = 0; p < marks.size(); ++p)
                            if (marks[p] == Mark::filler) std::fill_n(x.begin() + static_cast<Index>(p) * features, features, filling);
                        const std::vector<std::uint8_t> seen(static_cast<std::size_t>(memory * batch + 1), 1);
                        Segment<double> at;
                        at.steps = steps, at.batch = batch, at.marks = marks.data();
                        at.remembered = memory, at.seen = seen.data();
                        std::vector<double> y(x.size()), tape(static_cast<std::size_t>(sizes.tape));
                        std::vector<double> workspace(static_cast<std::size_t>(sizes.workspace)), drows(rows.size());
                        double *const memories = rows.data(), *const dmemories = drows.data();
                        SweptWindow<double> out;
                        out.gradients.resize(parameters.size());
                        out.dx.resize(x.size());
                        layer.record({at, parameters.data(), x.data(), y.data(), nullptr, nullptr, tape.data(), workspace.data(),
                                      nullptr, memory > 0 ? &memories : nullptr});
                        layer.reverse({at, parameters.data(), out.gradients.data(), tape.data(), nullptr, problem.values.data(),
                                       out.dx.data(), nullptr, workspace.data(), nullptr, nullptr, memory > 0 ? &memories : nullptr,
                                       memory > 0 ? &dmemories : nullptr, sizes.reads_x ? x.data() : nullptr,
                                       sizes.reads_y ? y.data() : nullptr});
                        for (std::size_t p = 0; p < marks.size(); ++p)
                            for (std::size_t k = 0; k < features; ++k)
                                BOOST_TEST((marks[p] != Mark::filler || (y[p * features + k] == 0.0 && out.dx[p * features + k] == 0.0)));
                        out.dstart = y;
                        out.dstart.insert(out.dstart.end(), drows.begin(), drows.end());
                        return out;
                    });
                }
}

// A network hands all of its layers its memories, each from its own on: one that has none must not take another's.
BOOST_AUTO_TEST_CASE(layers_without_memory_stand_beside_those_with_one) {
    const auto attention = [](const char* name, Index memory, bool detached) {
        return AttentionSpec{.name = name, .features = features, .heads = 2, .memory = memory, .detached = detached};
    };
    for (const Driver driver : drivers)
        for (const bool detached : {false, true})
            for (const bool within : {false, true})
                BOOST_TEST_CONTEXT(to_string(driver) << ", detached " << detached << ", in a residual block " << within) {
                    std::vector<LayerSpec> layers{attention("a", 0, false), attention("b", 3, detached), attention("c", 0, false)};
                    if (within) layers = {ResidualSpec{"residual", layers}};
                    const auto network = build<double>(driver, of(layers));
                    auto parameters = parameters_for(network);
                    auto problem = data_for(network.spec(), 0, 4, batch);
                    const auto start = remembering(network, batch, 3, 9);
                    const auto got = swept(network, parameters, problem, start, 4);
                    const auto value = [&] { return swept(network, parameters, problem, start, 4).objective; };
                    BOOST_TEST(compare(got.gradients, central_differences(parameters, value), {1e-6, 0.0}));
                    BOOST_TEST(compare(got.dx, central_differences(problem.x, value), {1e-6, 0.0}));
                }
}
