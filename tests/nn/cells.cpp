// Laws of the recurrent cells and their variants, alone, stacked, in both directions and under every marking; how they
// start; their field cases.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cells
#include "support/unit_test.hpp"

#include "nn/layer_laws.hpp"

#include <cmath>
#include <set>
#include <string>

using namespace backsweep;
using namespace backsweep::test;

namespace {

using Cell = RecurrentSpec::Cell;

ModelSpec of(std::vector<LayerSpec> layers, LossSpec::Kind kind = LossSpec::Kind::inner_product) {
    ModelSpec spec{std::move(layers), {}};
    spec.loss.kind = kind;
    return spec;
}

/// What every cell can do, of odd sizes.
std::vector<Model> models_of(const std::string& name, Cell cell) {
    const auto squares = LossSpec::Kind::mean_squared_error;
    return {
        {name, of({RecurrentSpec{.name = "rnn", .inputs = 3, .hidden = 5, .cell = cell}})},
        {name + " without bias",
         of({RecurrentSpec{.name = "rnn", .inputs = 2, .hidden = 7, .layers = 2, .bias = false, .cell = cell}},
            squares)},
        {"narrow " + name, of({RecurrentSpec{.name = "rnn", .inputs = 1, .hidden = 1, .layers = 3, .cell = cell}})},
        {name + " 33", of({RecurrentSpec{.name = "rnn", .inputs = 4, .hidden = 33, .cell = cell},
                           DenseSpec{.name = "head", .inputs = 33, .outputs = 2}},
                          squares)},
        {name + " of three heads",
         of({RecurrentSpec{.name = "rnn", .inputs = 2, .hidden = 6, .layers = 2, .cell = cell, .heads = 3}})},
        {name + " with learned state",
         of({RecurrentSpec{
             .name = "rnn", .inputs = 2, .hidden = 5, .layers = 2, .cell = cell, .learned_state = true}})},
        {"bidirectional " + name,
         of({RecurrentSpec{
             .name = "rnn", .inputs = 2, .hidden = 3, .layers = 2, .cell = cell, .bidirectional = true}})},
        {"bidirectional " + name + " with learned state",
         of({RecurrentSpec{
             .name = "rnn", .inputs = 2, .hidden = 3, .cell = cell, .bidirectional = true, .learned_state = true}})},
    };
}

std::vector<Model> cells() {
    std::vector<Model> all = models_of("gru", Cell::gru);
    for (Model& model : models_of("rnn_tanh", Cell::rnn_tanh)) all.push_back(std::move(model));
    for (Model& model : models_of("rnn_relu", Cell::rnn_relu)) all.push_back(std::move(model));
    all.push_back({"gru with layer norm",
                   of({RecurrentSpec{
                       .name = "rnn", .inputs = 3, .hidden = 5, .layers = 2, .cell = Cell::gru, .layer_norm = true}})});
    all.push_back(
        {"gru with layer norm, without bias, with learned state", of({RecurrentSpec{.name = "rnn",
                                                                                    .inputs = 2,
                                                                                    .hidden = 4,
                                                                                    .bias = false,
                                                                                    .cell = Cell::gru,
                                                                                    .layer_norm = true,
                                                                                    .learned_state = true}})});
    all.push_back(
        {"narrow gru with layer norm",
         of({RecurrentSpec{.name = "rnn", .inputs = 2, .hidden = 1, .cell = Cell::gru, .layer_norm = true}})});
    all.push_back(
        {"bidirectional gru with layer norm",
         of({RecurrentSpec{
             .name = "rnn", .inputs = 2, .hidden = 3, .cell = Cell::gru, .layer_norm = true, .bidirectional = true}})});
    for (Model& model : models_of("lstm", Cell::lstm)) all.push_back(std::move(model));
    all.push_back({"lstm with projection",
                   of({RecurrentSpec{.name = "rnn", .inputs = 3, .hidden = 5, .layers = 2, .projection = 3}})});
    all.push_back(
        {"lstm with projection to 1, without bias, with learned state",
         of({RecurrentSpec{
             .name = "rnn", .inputs = 2, .hidden = 7, .bias = false, .projection = 1, .learned_state = true}})});
    all.push_back(
        {"bidirectional lstm with projection",
         of({RecurrentSpec{
             .name = "rnn", .inputs = 2, .hidden = 4, .layers = 2, .projection = 2, .bidirectional = true}})});
    all.push_back({"lstm with layer norm",
                   of({RecurrentSpec{.name = "rnn", .inputs = 3, .hidden = 5, .layers = 2, .layer_norm = true}})});
    all.push_back(
        {"lstm with layer norm, without bias, with learned state",
         of({RecurrentSpec{
             .name = "rnn", .inputs = 2, .hidden = 4, .bias = false, .layer_norm = true, .learned_state = true}})});
    all.push_back({"narrow lstm with layer norm",
                   of({RecurrentSpec{.name = "rnn", .inputs = 2, .hidden = 1, .layer_norm = true}})});
    all.push_back(
        {"bidirectional lstm with layer norm",
         of({RecurrentSpec{.name = "rnn", .inputs = 2, .hidden = 3, .layer_norm = true, .bidirectional = true}})});
    all.push_back(
        {"lstm with weight drop",
         of({RecurrentSpec{.name = "rnn", .inputs = 2, .hidden = 6, .layers = 2, .heads = 2, .weight_drop = 0.4}})});
    all.push_back(
        {"gru on plain on lstm", of({RecurrentSpec{.name = "lstm", .inputs = 2, .hidden = 3},
                                     RecurrentSpec{.name = "plain", .inputs = 3, .hidden = 5, .cell = Cell::rnn_tanh},
                                     RecurrentSpec{.name = "gru", .inputs = 5, .hidden = 2, .cell = Cell::gru}})});
    // Gates that are not kept, in every variant.
    for (Model model : std::vector(all)) {
        if (!std::set<std::string>{"gru", "gru of three heads", "bidirectional gru with learned state", "gru with layer norm",
                                   "gru with layer norm, without bias, with learned state", "lstm 33", "lstm with learned state",
                                   "lstm with projection", "bidirectional lstm with projection", "lstm with layer norm",
                                   "lstm with layer norm, without bias, with learned state", "lstm with weight drop"}
                 .contains(model.name))
            continue;
        std::get<RecurrentSpec>(model.spec.layers.front()).save = {};
        all.push_back({model.name + ", gates made again", model.spec});
    }
    return all;
}

const std::vector<Marking> all_markings(markings.begin(), markings.end());

bool drops_weights(const Model& model) {
    const auto* rnn = std::get_if<RecurrentSpec>(&model.spec.layers.front());
    return rnn && rnn->weight_drop > 0.0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(splitting_a_segment_of_the_reference_changes_no_bit) {
    std::vector<Model> models = cells();
    std::erase_if(models, drops_weights);  // their gradients are masked segment by segment
    check_splitting_of_the_reference<float>(models, {Marking::none, Marking::packed});
    check_splitting_of_the_reference<double>(models, all_markings);
}

BOOST_AUTO_TEST_CASE(cpu_and_reference_agree_in_double) {
    check_cpu_against_reference(cells(), all_markings);
}

// A segment that LSTM and GRU take in blocks of 32 steps, the last one short; fillers lie across their ends.
BOOST_AUTO_TEST_CASE(several_blocks_of_steps_agree_with_the_reference) {
    constexpr Index steps = 70, batch = 8;
    const std::vector<Marking> marked{Marking::none, Marking::tails, Marking::holes, Marking::packed, Marking::nothing};
    for (const Model& model : cells()) {
        if (!(model.name.starts_with("lstm") || model.name.starts_with("gru")) || drops_weights(model)) continue;
        const auto slow = reference::build<double>(model.spec);
        const auto fast = cpu::build<double>(model.spec);
        const auto parameters = untamed_parameters(slow);
        for_each_marking(model, slow.carry(), steps, batch, marked, [&](Problem<double> problem) {
            for (Index b = 0; b < 3 && !problem.marks.empty(); ++b)  // up to 1, 2 and 3 steps behind the first block
                for (Index t = 30 - 10 * b; t < 33 + b; ++t) problem.marks[static_cast<std::size_t>(t * batch + b)] = Mark::filler;
            const auto wanted = sweep(slow, parameters, problem, steps);
            for (const Index chunk : {steps, Index{50}})
                BOOST_TEST_CONTEXT(model.name << ", chunk " << chunk)
                    check_close(sweep(fast, parameters, problem, chunk), wanted, {1e-11, 1e-14});
        });
    }
}

BOOST_AUTO_TEST_CASE(reverse_agrees_with_central_differences) {
    check_against_central_differences(cells(), {Marking::none, Marking::tails, Marking::packed});
}

BOOST_AUTO_TEST_CASE(taylor_slope_is_two_and_the_dot_product_agrees) {
    check_taylor_slope_and_dot_product(cells());
}

BOOST_AUTO_TEST_CASE(fast_float_errs_at_most_three_times_as_much_as_plain_float) {
    check_errors_in_float(cells());
}

// What lies in a filler, if it is finite, changes no bit, and outputs and input adjoints are 0 there. Chains clear what
// is not finite: padding.cpp.
BOOST_AUTO_TEST_CASE(fillers_are_not_read) {
    const auto body = [](auto real, const Model& model, Driver driver, Marking marking) {
        using Real = decltype(real);
        const auto network = build<Real>(driver, model.spec);
        const auto parameters = untamed_parameters(network);
        auto data = data_for(model.spec, network.carry(), 7, 3);
        mark(data, marking);
        auto problem = cast<Real>(data);
        const Index inputs = model.spec.inputs(), chunk = model.spec.segmentable() ? 3 : 7;
        const auto fill = [&](std::vector<Real>& array, Index width, Real with) {
            for (std::size_t p = 0; p < problem.marks.size(); ++p)
                if (problem.marks[p] == Mark::filler)
                    std::fill_n(array.begin() + static_cast<Index>(p) * width, width, with);
        };
        fill(problem.x, inputs, Real{0});
        const auto zeros = sweep(network, parameters, problem, chunk);
        auto wanted_y = zeros.y, wanted_dx = zeros.dx;
        fill(wanted_y, network.layer(network.depth() - 1).footprint(1, 1).inputs, Real{0});
        fill(wanted_dx, inputs, Real{0});
        if (std::get_if<DenseSpec>(&model.spec.layers.back()) == nullptr) BOOST_TEST((zeros.y == wanted_y));
        BOOST_TEST((zeros.dx == wanted_dx));
        for (const Real with : {static_cast<Real>(1e30), static_cast<Real>(-3)}) {
            fill(problem.x, inputs, with);
            check_same(sweep(network, parameters, problem, chunk), zeros);
        }
    };
    for (const Driver driver : drivers)
        for (const Model& model : cells())
            for (const Marking marking : {Marking::tails, Marking::holes, Marking::packed, Marking::nothing})
                BOOST_TEST_CONTEXT(model.name << ", " << to_string(driver) << ", " << static_cast<int>(marking)) {
                    body(float{}, model, driver, marking);
                    body(double{}, model, driver, marking);
                }
}

// The state before a sequence of fillers is there behind it, in bits.
BOOST_AUTO_TEST_CASE(fillers_hold_the_state) {
    for (const Driver driver : drivers)
        for (const Model& model : cells()) BOOST_TEST_CONTEXT(model.name << ", " << to_string(driver)) {
                const auto network = build<float>(driver, model.spec);
                auto data = data_for(model.spec, network.carry(), 5, 3);
                mark(data, Marking::nothing);
                const auto problem = cast<float>(data);
                const auto out = sweep(network, untamed_parameters(network), problem, model.spec.segmentable() ? 2 : 5);
                BOOST_TEST(same_bits(out.carry, problem.carry));
                BOOST_TEST(compare(out.dcarry, problem.dcarry, {0.0, 0.0}));
                if (std::get_if<DenseSpec>(&model.spec.layers.back()) == nullptr)
                    BOOST_TEST(*std::max_element(out.gradients.begin(), out.gradients.end()) == 0.0F);
            }
}

// Sequences of unequal length in one batch give what each gives alone: by plain loops in bits, by BLAS but for
// rounding.
BOOST_AUTO_TEST_CASE(a_sequence_does_not_see_the_others) {
    for (const Driver driver : drivers)
        for (const Model& model : cells()) BOOST_TEST_CONTEXT(model.name << ", " << to_string(driver)) {
                constexpr Index steps = 7, batch = 4;
                const auto network = build<double>(driver, model.spec);
                const auto parameters = untamed_parameters(network);
                auto together = data_for(model.spec, network.carry(), steps, batch);
                mark(together, Marking::tails);
                together.dcarry.clear();
                const auto all = sweep(network, parameters, together, steps);
                std::vector<double> gradients(parameters.size());
                Index positions = 0;
                for (Index b = 0; b < batch; ++b) {
                    Problem<double> alone;
                    alone.steps = (batch - 1 - b) * steps / (batch - 1);
                    if (alone.steps == 0) continue;
                    positions += alone.steps;
                    const auto column = [&](const std::vector<double>& from, Index width) {
                        std::vector<double> part;
                        for (Index t = 0; t < alone.steps; ++t)
                            part.insert(part.end(), from.begin() + (t * batch + b) * width,
                                        from.begin() + (t * batch + b + 1) * width);
                        return part;
                    };
                    alone.begins = true;
                    alone.scale = together.scale;
                    alone.x = column(together.x, model.spec.inputs());
                    alone.values = column(together.values, model.spec.targets());
                    alone.weights = column(together.weights, 1);
                    const auto one = sweep(network, parameters, alone, alone.steps);
                    const Tolerance tolerance{driver == Driver::cpu ? 1e-13 : 0.0, 0.0};
                    BOOST_TEST(compare(column(all.y, model.spec.outputs()), one.y, tolerance));
                    BOOST_TEST(compare(column(all.losses, 1), one.losses, tolerance));
                    BOOST_TEST(compare(column(all.dx, model.spec.inputs()), one.dx, tolerance));
                    for (std::size_t k = 0; k < gradients.size(); ++k) gradients[k] += one.gradients[k];
                }
                BOOST_TEST(positions == 7 + 4 + 2);
                BOOST_TEST(compare(all.gradients, gradients, {1e-13, 0.0}));
            }
}

// G34: finite differences agree for short and odd lengths, 1 to 3 layers, loss on all steps and on the last only.
BOOST_AUTO_TEST_CASE(G34_gradients_of_plain_and_gru_layers_at_every_length) {
    for (const Driver driver : drivers)
        for (const Cell cell : {Cell::rnn_tanh, Cell::rnn_relu, Cell::gru})
            for (const Index layers : {1, 2, 3})
                for (Index steps = 1; steps <= 6; ++steps)
                    for (const bool last : {false, true})
                        BOOST_TEST_CONTEXT(to_string(driver) << ", cell " << static_cast<int>(cell) << ", layers "
                                                             << layers << ", steps " << steps << ", last " << last) {
                            const auto network = build<double>(
                                driver,
                                of({RecurrentSpec{
                                        .name = "rnn", .inputs = 2, .hidden = 3, .layers = layers, .cell = cell},
                                    DenseSpec{.name = "head", .inputs = 3, .outputs = 2}},
                                   LossSpec::Kind::mean_squared_error));
                            auto parameters = untamed_parameters(network);
                            auto problem = data_for(network.spec(), network.carry(), steps, 2);
                            problem.loss_from = last ? steps - 1 : 0;
                            problem.dcarry.clear();
                            const auto got = sweep(network, parameters, problem, steps);
                            const auto value = [&] { return objective(network, parameters, problem); };
                            const Tolerance tolerance{1e-6, 0.0};
                            BOOST_TEST(compare(got.gradients, central_differences(parameters, value), tolerance));
                            BOOST_TEST(compare(got.dx, central_differences(problem.x, value), tolerance));
                            BOOST_TEST(compare(got.dcarry, central_differences(problem.carry, value), tolerance));
                        }
}

// G36, the CPU's half: the one formula of RecurrentSpec, with both biases and the reset after the recurrent product.
BOOST_AUTO_TEST_CASE(G36_gru_in_float_agrees_with_plain_loops_in_double) {
    const ModelSpec spec =
        of({RecurrentSpec{.name = "rnn", .inputs = 7, .hidden = 33, .layers = 2, .cell = Cell::gru}});
    const auto fast = cpu::build<float>(spec);
    const auto slow = reference::build<double>(spec);
    std::vector<float> parameters(static_cast<std::size_t>(fast.parameters().size()));
    fast.start(3, parameters);
    for (const ParameterView& view : fast.parameters().views())
        if (view.cols == 0) {
            const auto bias = random_values<float>(view.size(), static_cast<std::uint32_t>(view.offset), 0.9);
            std::copy(bias.begin(), bias.end(), parameters.begin() + view.offset);
        }
    const auto problem = cast<float>(data_for(spec, fast.carry(), 50, 4));
    const auto got = sweep(fast, parameters, problem, 50);
    const auto wanted = sweep(slow, cast<double>(parameters), cast<double>(problem), 50);
    BOOST_TEST(compare(got.y, wanted.y, {1e-5, 0.0}));
    BOOST_TEST(compare(got.carry, wanted.carry, {1e-5, 0.0}));
    for (const ParameterView& view : fast.parameters().views()) {
        const auto part = [&view](const auto& flat) {
            return std::vector(flat.begin() + view.offset, flat.begin() + view.offset + view.size());
        };
        BOOST_TEST(compare(part(got.gradients), part(wanted.gradients), {1e-4, 0.0}), view.name);
    }
    BOOST_TEST(compare(got.dx, wanted.dx, {1e-4, 0.0}));
    BOOST_TEST(compare(got.dcarry, wanted.dcarry, {1e-4, 0.0}));
}

namespace {

template <class Real>
std::vector<Real> started(const Network<Real>& network, const std::string& name) {
    std::vector<Real> all(static_cast<std::size_t>(network.parameters().size()));
    network.start(11, all);
    const ParameterView& view = network.parameters().find(name);
    return {all.begin() + view.offset, all.begin() + view.offset + view.size()};
}

}  // namespace

// IRNN [LJH15]: the identity, rectified. With no input it hands its state on for ever.
BOOST_AUTO_TEST_CASE(identity_start_is_the_identity) {
    for (const Index heads : {1, 3}) {
        const auto network = build<double>(of({RecurrentSpec{.name = "rnn",
                                                             .inputs = 2,
                                                             .hidden = 6,
                                                             .bias = false,
                                                             .cell = Cell::rnn_relu,
                                                             .heads = heads,
                                                             .start = RecurrentSpec::Start::identity}}));
        const auto U = started(network, "rnn.weight_hh_l0");
        const Index cols = 6 / heads;
        for (Index r = 0; r < 6; ++r)
            for (Index c = 0; c < cols; ++c)
                BOOST_TEST(U[static_cast<std::size_t>(r * cols + c)] == (r % cols == c ? 1.0 : 0.0));
        std::vector<double> parameters(static_cast<std::size_t>(network.parameters().size()));
        network.start(11, parameters);
        auto problem = data_for(network.spec(), network.carry(), 9, 2);
        std::fill(problem.x.begin(), problem.x.end(), 0.0);
        for (double& v : problem.carry) v = std::abs(v);
        BOOST_TEST(same_bits(sweep(network, parameters, problem, 4).carry, problem.carry));
    }
}

BOOST_AUTO_TEST_CASE(orthogonal_start_is_orthogonal) {
    for (const Cell cell : {Cell::gru, Cell::rnn_tanh, Cell::lstm})
        for (const Index hidden : {1, 6, 33})
            for (const Index heads : {1, 3}) {
                if (hidden % heads != 0) continue;
                const auto network = build<double>(of({RecurrentSpec{.name = "rnn",
                                                                     .inputs = 2,
                                                                     .hidden = hidden,
                                                                     .cell = cell,
                                                                     .heads = heads,
                                                                     .start = RecurrentSpec::Start::orthogonal}}));
                const auto U = started(network, "rnn.weight_hh_l0");
                const Index n = hidden / heads;
                double worst = 0.0;
                for (std::size_t block = 0; block < U.size(); block += static_cast<std::size_t>(n * n))
                    for (Index i = 0; i < n; ++i)
                        for (Index j = 0; j < n; ++j) {
                            double product = i == j ? -1.0 : 0.0;
                            for (Index k = 0; k < n; ++k)
                                product += U[block + static_cast<std::size_t>(i * n + k)] *
                                           U[block + static_cast<std::size_t>(j * n + k)];
                            worst = std::fmax(worst, std::abs(product));
                        }
                BOOST_TEST(worst <= 1e-12, "hidden " << hidden << ", heads " << heads << ": " << worst);
                if (n > 1) BOOST_TEST(U[0] != U[static_cast<std::size_t>(n * n) % U.size() + 1]);  // blocks differ
            }
}

BOOST_AUTO_TEST_CASE(forget_bias_starts_as_asked) {
    const auto network =
        build<double>(of({RecurrentSpec{.name = "rnn", .inputs = 2, .hidden = 5, .layers = 2, .forget_bias = 1.5}}));
    for (const char* layer : {"0", "1"}) {
        const auto ih = started(network, std::string("rnn.bias_ih_l") + layer),
                   hh = started(network, std::string("rnn.bias_hh_l") + layer);
        for (std::size_t k = 0; k < 20; ++k) {
            const bool forget = k / 5 == 1;
            BOOST_TEST((forget ? ih[k] == 1.5 : std::abs(ih[k]) < 0.448));
            BOOST_TEST((forget ? hh[k] == 0.0 : std::abs(hh[k]) < 0.448 && hh[k] != 0.0));
        }
    }
}

// What the tape keeps changes no bit, in one block of steps and in several.
BOOST_AUTO_TEST_CASE(gates_made_again_are_those_that_were) {
    const std::string suffix = ", gates made again";
    Index pairs = 0;
    for (const Model& model : cells())
        for (const Index batch : {1, 3, 8})
            for (const Marking marking : all_markings) {
                if (!model.name.ends_with(suffix)) continue;
                const Index steps = batch < 8 ? 7 : 70;
                ModelSpec kept = model.spec;
                std::get<RecurrentSpec>(kept.layers.front()).save = {"gates"};
                const auto with = cpu::build<double>(kept), without = cpu::build<double>(model.spec);
                const auto parameters = untamed_parameters(with);
                auto problem = data_for(kept, with.carry(), steps, batch);
                mark(problem, marking);
                const Index chunk = !kept.segmentable() ? steps : batch < 8 ? 3 : 66;
                const auto a = sweep(with, parameters, problem, chunk), b = sweep(without, parameters, problem, chunk);
                BOOST_TEST_CONTEXT(model.name << ", batch " << batch << ", marking " << static_cast<int>(marking))
                check_same(b, a);
                ++pairs;
            }
    BOOST_TEST(pairs == 12 * 3 * static_cast<Index>(all_markings.size()));
}

BOOST_AUTO_TEST_CASE(work_is_that_of_the_products_and_of_numbers_touched) {
    const auto work = [](RecurrentSpec spec) { return build<float>(of({spec})).layer(0).work(7, 3); };
    const auto check = [&](const RecurrentSpec& spec, double gates, double columns, double projection, double numbers) {
        const double sums = 2 * gates * columns, forward = 21 * (sums + projection + numbers);
        BOOST_TEST(work(spec).forward == forward);
        BOOST_TEST(work(spec).reverse == 2 * forward + (spec.saves("gates") ? 0 : 21 * sums));
    };
    for (const std::vector<std::string>& save : {std::vector<std::string>{"gates"}, {}}) {
        check({.name = "rnn", .inputs = 4, .hidden = 6, .save = save}, 24, 4 + 6, 0, 4 + 24 + 12 + 6);
        check({.name = "rnn", .inputs = 4, .hidden = 6, .heads = 3, .save = save}, 24, 4 + 2, 0, 4 + 24 + 12 + 6);
        check({.name = "rnn", .inputs = 4, .hidden = 6, .projection = 5, .save = save}, 24, 4 + 5, 2 * 5 * 6, 4 + 24 + 12 + 5);
        check({.name = "rnn", .inputs = 4, .hidden = 6, .cell = Cell::gru, .save = save}, 18, 4 + 6, 0, 4 + 18 + 12 + 6);
    }
    check({.name = "rnn", .inputs = 4, .hidden = 6, .cell = Cell::rnn_relu}, 6, 4 + 6, 0, 4 + 6 + 12 + 6);
}

// Tapes are as small as the files' heads say.
BOOST_AUTO_TEST_CASE(tapes_hold_what_is_promised) {
    const auto tape = [](RecurrentSpec spec) { return build<float>(of({spec})).layer(0).footprint(7, 3).tape; };
    BOOST_TEST(tape({.name = "rnn", .inputs = 4, .hidden = 5}) == 21 * 5 * 5);
    BOOST_TEST(tape({.name = "rnn", .inputs = 4, .hidden = 5, .projection = 2}) == 21 * 5 * 5);
    BOOST_TEST(tape({.name = "rnn", .inputs = 4, .hidden = 5, .layer_norm = true}) == 21 * (9 * 5 + 2));
    BOOST_TEST(tape({.name = "rnn", .inputs = 4, .hidden = 5, .cell = Cell::gru}) == 21 * 4 * 5);
    BOOST_TEST(tape({.name = "rnn", .inputs = 4, .hidden = 5, .cell = Cell::gru, .layer_norm = true}) == 21 * (9 * 5 + 4));
    BOOST_TEST(tape({.name = "rnn", .inputs = 4, .hidden = 5, .cell = Cell::rnn_tanh}) == 0);
    BOOST_TEST(tape({.name = "rnn", .inputs = 4, .hidden = 5, .save = {}}) == 21 * 5);
    BOOST_TEST(tape({.name = "rnn", .inputs = 4, .hidden = 5, .projection = 2, .save = {}}) == 21 * 5);
    BOOST_TEST(tape({.name = "rnn", .inputs = 4, .hidden = 5, .layer_norm = true, .save = {}}) == 21 * 5);
    BOOST_TEST(tape({.name = "rnn", .inputs = 4, .hidden = 5, .cell = Cell::gru, .save = {}}) == 0);
    BOOST_TEST(tape({.name = "rnn", .inputs = 4, .hidden = 5, .cell = Cell::gru, .layer_norm = true, .save = {}}) == 0);
}

// Nor does scratch grow with the steps of a segment, but for those of one block.
BOOST_AUTO_TEST_CASE(workspace_is_that_of_a_block_of_steps) {
    for (const Cell cell : {Cell::lstm, Cell::gru})
        for (const bool layer_norm : {false, true})
            for (const std::vector<std::string>& save : {std::vector<std::string>{"gates"}, {}}) {
                const auto network = build<float>(of({RecurrentSpec{
                    .name = "rnn", .inputs = 4, .hidden = 32, .cell = cell, .layer_norm = layer_norm, .save = save}}));
                const auto workspace = [&](Index steps) { return network.layer(0).footprint(steps, 8).workspace; };
                BOOST_TEST(workspace(32) > 10 * workspace(2));
                BOOST_TEST(workspace(1000) == workspace(33));
            }
}
