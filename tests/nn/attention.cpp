// Laws of attention layers. Every model sees as many steps as its memory holds, so that chunks change nothing but bits.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE attention
#include "support/unit_test.hpp"

#include "nn/layer_laws.hpp"

using namespace backsweep;
using namespace backsweep::test;

namespace {

std::vector<Model> attentions() {
    using Position = AttentionSpec::Position;
    std::vector<Model> all;
    const auto add = [&](const char* name, AttentionSpec a, auto change) {
        a.features = a.features > 0 ? a.features : 4;
        change(a);
        LossSpec loss;
        loss.kind = LossSpec::Kind::inner_product;
        all.push_back({name, {{a}, loss}});
    };
    const auto remember = [](Index rows) {
        return [rows](AttentionSpec& a) {
            a.memory = rows;
            a.window = rows + 1;
        };
    };
    AttentionSpec linear{.name = "attention", .heads = 2}, gated = linear;
    gated.projection = AttentionSpec::Projection::gated;
    add("linear", linear, remember(4));
    add("one feature", {.name = "attention", .features = 1}, remember(50));
    add("wide heads without bias", linear, [&](AttentionSpec& a) {
        remember(3)(a);
        a.head_features = 5;
        a.bias = false;
        a.scale = 0.7;
        a.save = {};
    });
    add("alibi", {.name = "attention", .features = 6, .heads = 3}, [&](AttentionSpec& a) {
        remember(60)(a);
        a.position = Position::alibi;
        a.save = {"output"};
    });
    add("rotary", linear, [&](AttentionSpec& a) {
        remember(5)(a);
        a.head_features = 5;
        a.position = Position::rotary;
        a.rotary_features = 4;
        a.save = {"value", "query"};
    });
    add("rotary interleaved", linear, [&](AttentionSpec& a) {
        remember(2)(a);
        a.position = Position::rotary;
        a.interleaved = true;
        a.rotary_base = 7.0;
    });
    add("relative", linear, [&](AttentionSpec& a) {
        remember(4)(a);
        a.position = Position::relative;
        a.head_features = 3;
    });
    add("relative without bias", linear, [&](AttentionSpec& a) {
        remember(1)(a);
        a.position = Position::relative;
        a.bias = false;
        a.save = {"key"};
    });
    add("gated", gated, remember(4));
    add("gated with dropout", gated, [&](AttentionSpec& a) {
        remember(6)(a);
        a.dropout = 0.3;
        a.save = {"key"};
    });
    add("only itself", linear, [](AttentionSpec& a) { a.window = 1; });
    add("full", linear, [](AttentionSpec& a) { a.mask = AttentionSpec::Mask::full; });
    add("full with alibi and dropout", linear, [](AttentionSpec& a) {
        a.mask = AttentionSpec::Mask::full;
        a.position = Position::alibi;
        a.dropout = 0.2;
    });
    return all;
}

const std::vector<Marking> all_markings(markings.begin(), markings.end());

}  // namespace

BOOST_AUTO_TEST_CASE(cpu_and_reference_agree_in_double) {
    check_cpu_against_reference(attentions(), all_markings);
}

BOOST_AUTO_TEST_CASE(reverse_agrees_with_central_differences) {
    check_against_central_differences(attentions(), {Marking::none, Marking::tails, Marking::packed});
}

BOOST_AUTO_TEST_CASE(taylor_slope_is_two_and_the_dot_product_agrees) {
    check_taylor_slope_and_dot_product(attentions());
}

// Not judged where a step sees itself alone: the adjoint of its logit, P (dP - D), is then 0, which plain loops hit in
// bits since they make dP and D by the same loop.
BOOST_AUTO_TEST_CASE(fast_float_errs_at_most_three_times_as_much_as_plain_float) {
    std::vector<Model> models = attentions();
    std::erase_if(models, [](const Model& model) { return model.name == "only itself"; });
    check_errors_in_float(models);
}

// The workspace does not depend on the length of a context, which no footprint knows: nothing is written behind it.
BOOST_AUTO_TEST_CASE(a_long_context_needs_no_more_workspace) {
    AttentionSpec across{
        .name = "across", .features = 4, .heads = 2, .mask = AttentionSpec::Mask::full, .across = true};
    LossSpec loss;
    loss.kind = LossSpec::Kind::inner_product;
    for (const Driver driver : drivers) {
        const Network<double> network = build<double>(driver, {{across}, loss});
        const auto parameters = untamed_parameters(network);
        constexpr Index steps = 2, batch = 3, keys = 4000, width = 4;
        const auto x = random_values(steps * batch * width, 1), context_keys = random_values(keys * batch * width, 2);
        std::vector<Mark> marks(keys * batch, Mark::step);
        marks[5] = Mark::filler;
        const Context<double> context{keys, context_keys.data(), nullptr, marks.data()};
        Segment<double> at;
        at.steps = steps;
        at.batch = batch;
        at.context = &context;
        const Layer<double>& layer = network.layer(0);
        const Footprint size = layer.footprint(steps, batch);
        std::vector<double> workspace(static_cast<std::size_t>(size.workspace + 4 * keys), 7.0);
        std::vector<double> y(x.size()), dx(x.size()), tape(static_cast<std::size_t>(size.tape)),
            gradients(parameters.size());
        layer.record({at, parameters.data(), x.data(), y.data(), nullptr, nullptr, tape.data(), workspace.data()});
        layer.reverse({at, parameters.data(), gradients.data(), tape.data(), nullptr, y.data(), dx.data(), nullptr,
                       workspace.data(), nullptr, nullptr, nullptr, nullptr, x.data()});
        BOOST_TEST(std::count(workspace.begin() + size.workspace, workspace.end(), 7.0) == 4 * keys);
        BOOST_TEST(all_assigned(dx));
    }
}

// Where only the tape is wanted, what it does not keep is not made: with nothing saved, nothing at all.
BOOST_AUTO_TEST_CASE(a_tape_without_output_is_made_without_mixing) {
    constexpr Index steps = 3, batch = 2;
    const auto assigned = [](const std::vector<double>& values) {
        return std::count_if(values.begin(), values.end(), [](double v) { return !std::isnan(v); });
    };
    for (const Driver driver : drivers)
        for (const bool gated : {false, true})
            for (const Index memory : {0, 4}) {
                AttentionSpec a{.name = "a", .features = 6, .memory = memory};
                if (gated) a.projection = AttentionSpec::Projection::gated;
                const auto record = [&](std::vector<std::string> save, std::vector<double>& tape) {
                    a.save = std::move(save);
                    LossSpec loss;
                    loss.kind = LossSpec::Kind::inner_product;
                    const Network<double> network = build<double>(driver, {{a}, loss});
                    const auto parameters = untamed_parameters(network);
                    const Footprint size = network.layer(0).footprint(steps, batch);
                    const auto x = random_values(steps * batch * 6, 1);
                    auto rows = random_values((memory + steps) * batch * 6, 2), workspace = unassigned<double>(size.workspace);
                    const std::vector<std::uint8_t> seen(static_cast<std::size_t>(memory * batch + 1), 1);
                    tape = unassigned<double>(size.tape);
                    Segment<double> at;
                    at.steps = steps, at.batch = batch, at.remembered = memory, at.seen = seen.data();
                    double* const memories = rows.data();
                    network.layer(0).record({at, parameters.data(), x.data(), nullptr, nullptr, nullptr, tape.data(), workspace.data(),
                                             nullptr, &memories});
                    if (memory > 0) BOOST_TEST(same_bits(std::vector<double>(rows.end() - steps * batch * 6, rows.end()), x));
                    return assigned(workspace);
                };
                BOOST_TEST_CONTEXT(to_string(driver) << ", gated " << gated << ", memory " << memory) {
                    std::vector<double> tape;
                    BOOST_TEST(record({}, tape) == 0);
                    BOOST_TEST(tape.empty());
                    BOOST_TEST(record({"key"}, tape) == 0);
                    BOOST_TEST(assigned(tape) == (memory + steps) * batch * 6);
                    record({"query"}, tape);
                    BOOST_TEST(assigned(tape) == steps * batch * 6);
                }
            }
}

// Products, and two operations for each feature of a pair of a query and a key that it sees.
BOOST_AUTO_TEST_CASE(work_is_that_of_the_products_and_of_the_pairs_that_are_seen) {
    constexpr Index T = 5, B = 3, E = 6, H = 8, M = 4;
    const auto work = [](AttentionSpec a) {
        LossSpec loss;
        loss.kind = LossSpec::Kind::inner_product;
        return cpu::build<double>({{std::move(a)}, loss}).layer(0).work(T, B);
    };
    AttentionSpec a{.name = "a", .features = E, .heads = 2, .head_features = 4, .memory = M};
    const double product = 2.0 * B * E * H, products = product * (2 * T + 2 * (M + T)), pair = 2.0 * B * H;
    const double causal = T * M + T * (T + 1) / 2;
    BOOST_TEST(work(a).forward == products + 2.0 * pair * causal);
    BOOST_TEST(work(a).reverse == 2.0 * products + 5.0 * pair * causal);
    const Work everything = work(a);
    a.save = {"output"};  // as docs/attention.md counts
    BOOST_TEST(work(a).reverse - everything.reverse == product * (T + 2 * (M + T)));
    a.save = {};
    BOOST_TEST(work(a).reverse - everything.reverse == product * (T + 2 * (M + T)) + 2.0 * pair * causal);
    BOOST_TEST(work(a).forward == everything.forward);
    a.window = 5;
    BOOST_TEST(work(a).forward == products + 2.0 * pair * 5 * T);
    a.window = 0;
    a.position = AttentionSpec::Position::relative;
    BOOST_TEST(work(a).forward == products + 2.0 * (M + T) * E * H + 3.0 * pair * causal);
    AttentionSpec full{.name = "a", .features = E, .heads = 2, .mask = AttentionSpec::Mask::full};
    BOOST_TEST(work(full).forward == 2.0 * B * E * E * 4 * T + 2.0 * (2.0 * B * E) * T * T);
    const AttentionSpec gated{.name = "a", .features = E, .projection = AttentionSpec::Projection::gated};
    BOOST_TEST(work(gated).forward == 2.0 * B * E * E * T + 2.0 * (2.0 * B * E) * (T * (T + 1) / 2));
}
