// A dense layer and cross-entropy as one: the bits of the two apart, whatever the blocks; the errors of the two; its
// derivatives against plain loops, differences and dual numbers; and what a link keeps, to the byte.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE head
#include "support/unit_test.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/error.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/nn/curvature.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "nn/cases.hpp"

#include <cmath>
#include <string>

using namespace backsweep;
using namespace backsweep::test;

namespace {

struct Case {
    std::string name;
    ModelSpec spec;  ///< logits kept
    Problem<double> problem;
};

ModelSpec in_blocks(ModelSpec spec) {
    spec.loss.save = {};
    return spec;
}

/// Everything that a position can be: ignored, of weight 0 or below, before loss_from, filler, in one batch of 3.
Problem<double> data(const ModelSpec& spec, Index steps, bool tame = false) {
    constexpr Index batch = 3;
    Problem<double> p = data_for(spec, 0, steps, batch);
    p.scale = -0.6;
    if (tame) {
        p.weights.clear();
        return p;
    }
    const Index positions = steps * batch;
    p.marks.assign(static_cast<std::size_t>(positions), Mark::step);
    for (Index t = steps - steps / 3; t < steps; ++t) p.marks[static_cast<std::size_t>(t * batch + 1)] = Mark::filler;
    for (Index k = 4; k < positions; k += 9) p.weights[static_cast<std::size_t>(k)] = 0.0;
    if (spec.loss.ignore_index)
        for (Index k = 2; k < positions; k += 7) p.classes[static_cast<std::size_t>(k)] = -1;
    p.loss_from = steps / 8;
    return p;
}

/// Classes that fill blocks and that do not, positions likewise.
std::vector<Case> cases() {
    std::vector<Case> all;
    for (const auto& [classes, steps] :
         {std::pair<Index, Index>{1, 5}, {37, 100}, {512, 3}, {513, 90}, {1037, 60}, {5003, 40}, {40'009, 13}})
        for (const bool bias : {true, false})
            for (const bool tied : {false, true})
                for (const bool plain : {true, false}) {
                    constexpr Index inputs = 5;
                    if (classes > 2000 && (bias == tied || (bias && plain))) continue;  // takes its time
                    ModelSpec spec;
                    if (tied) spec.layers.push_back(EmbeddingSpec{"words", classes, inputs, std::nullopt});
                    spec.layers.push_back(DenseSpec{"head", inputs, classes, bias, tied ? "words" : ""});
                    if (!plain) spec.loss = cross_entropy(classes, true, 0.1, -1);
                    if (!bias && !plain && tied) spec.loss.at = LossSpec::At::last;
                    all.push_back({std::to_string(classes) + (bias ? " classes" : " classes, no bias") +
                                       (tied ? ", tied" : "") + (plain ? "" : ", all options"),
                                   spec, data(spec, steps, plain)});
                }
    return all;
}

template <class Real>
std::vector<Real> parameters(const Network<Real>& network) {
    return random_values<Real>(network.parameters().size(), 7, 1.5);
}

}  // namespace

BOOST_AUTO_TEST_CASE(blocks_have_the_bits_of_the_two_layers) {
    const auto body = [](auto real) {
        using Real = decltype(real);
        for (const Case& c : cases()) BOOST_TEST_CONTEXT(c.name) {
                const auto kept = cpu::build<Real>(c.spec), blocks = cpu::build<Real>(in_blocks(c.spec));
                BOOST_TEST(blocks.depth() == kept.depth() - 1);
                BOOST_TEST(blocks.links() == kept.links());
                const Problem<Real> problem = cast<Real>(c.problem);
                const std::vector<Real> at = parameters(kept);
                for (const Index chunk : {problem.steps, problem.steps / 2 + 1}) {
                    const auto out = sweep(blocks, at, problem, chunk), wanted = sweep(kept, at, problem, chunk);
                    BOOST_TEST(std::isfinite(out.loss));
                    BOOST_TEST(out.loss == wanted.loss);
                    BOOST_TEST(same_bits(out.losses, wanted.losses));
                    BOOST_TEST(same_bits(out.gradients, wanted.gradients));
                    BOOST_TEST(same_bits(out.dx, wanted.dx));
                }
            }
    };
    body(float{});
    body(double{});
}

// With u = 2^-53 a logit, six numbers below 2.3, errs by less than 6 * 6 * 2.3 u = 83 u, a probability by twice that;
// sums of n numbers err by n u at most and by n^(1/2) u as a rule, 200 u for 40,009 classes. Together below 1000 u of
// the largest, where sums over positions cancel no more than 8 times.
BOOST_AUTO_TEST_CASE(plain_loops_agree) {
    for (const Case& c : cases()) BOOST_TEST_CONTEXT(c.name) {
            const auto network = cpu::build<double>(in_blocks(c.spec)),
                       plain = reference::build<double>(in_blocks(c.spec));
            const std::vector<double> at = parameters(network);
            const Index chunk = c.problem.steps / 2 + 1;
            const auto out = sweep(network, at, c.problem, chunk), wanted = sweep(plain, at, c.problem, chunk);
            constexpr double rounding = 8 * 1000 * 0x1p-53;
            BOOST_TEST(compare(std::vector{out.loss}, std::vector{wanted.loss}, {rounding, 1e-13}));
            BOOST_TEST(compare(out.losses, wanted.losses, {rounding}));
            BOOST_TEST(compare(out.gradients, wanted.gradients, {rounding}));
            if (!out.dx.empty()) BOOST_TEST(compare(out.dx, wanted.dx, {rounding}));
        }
}

BOOST_AUTO_TEST_CASE(differences_agree) {
    for (const Driver driver : drivers)
        for (const bool tied : {false, true}) {
            ModelSpec spec;
            if (tied) spec.layers.push_back(EmbeddingSpec{"words", 37, 4, std::nullopt});
            spec.layers.push_back(DenseSpec{"head", 4, 37, true, tied ? "words" : ""});
            spec.loss = cross_entropy(37, true, 0.1, -1);
            spec.loss.save = {};
            Problem<double> p = data(spec, 8);
            const auto network = build<double>(driver, spec);
            std::vector<double> at = parameters(network);
            const auto out = sweep(network, at, p, 3);
            const auto value = [&] { return p.scale * sweep(network, at, p, 3, 0, Checks::none).loss; };
            BOOST_TEST(compare(out.gradients, central_differences(at, value), {1e-8, 1e-9}));
            if (!tied) BOOST_TEST(compare(out.dx, central_differences(p.x, value), {1e-8, 1e-9}));
        }
}

// The product of the Hessian and a vector, of 600 classes in two blocks and of 300 positions in three.
BOOST_AUTO_TEST_CASE(second_derivatives_are_those_of_the_two_layers) {
    constexpr Index classes = 600, inputs = 3, steps = 100, batch = 3;
    const ModelSpec spec{
        {EmbeddingSpec{"words", classes, inputs, std::nullopt}, RecurrentSpec{"rnn", inputs, inputs, 1, true},
         DenseSpec{"head", inputs, classes, true, "words"}},
        cross_entropy(classes, true, 0.1, 4)};
    const Problem<double> p = data_for(spec, 0, steps, batch);
    Window<double> window;
    window.steps = steps;
    window.tokens = p.tokens.data();
    window.classes = p.classes.data();
    for (const auto matrix : {CurvatureOptions::Matrix::hessian, CurvatureOptions::Matrix::gauss_newton}) {
        std::vector<double> products[2], gradients[2];
        for (const bool blocks : {false, true}) {
            Curvature curvature(blocks ? in_blocks(spec) : spec, batch, {.matrix = matrix, .chunk = 40});
            const auto at = random_values(curvature.size(), 21), v = random_values(curvature.size(), 22);
            products[blocks].resize(at.size());
            if (matrix == CurvatureOptions::Matrix::hessian) gradients[blocks].resize(at.size());
            curvature.multiply({window, at}, v, products[blocks], gradients[blocks]);
        }
        BOOST_TEST(compare(products[1], products[0], {1e-13}));
        if (matrix == CurvatureOptions::Matrix::hessian) BOOST_TEST(compare(gradients[1], gradients[0], {1e-13}));
    }
}

BOOST_AUTO_TEST_CASE(a_class_out_of_range_is_named_as_ever) {
    ModelSpec spec{{DenseSpec{"head", 2, 40, true}}, {}};
    Problem<double> p = data(spec, 60, true);
    for (const std::int32_t bad : {-1, 40}) {
        p.classes[50 * 3 + 2] = bad;
        std::string said[2];
        for (const bool blocks : {false, true}) {
            const auto network = cpu::build<double>(blocks ? in_blocks(spec) : spec);
            try {
                sweep(network, parameters(network), p, 40);
            } catch (const InvalidArgument& e) {
                said[blocks] = e.what();
            }
        }
        BOOST_TEST(said[1] == said[0]);
        BOOST_TEST(said[1].find("at step 1050 of sequence 2 is not in [0, 40)") != std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(extremes_are_those_of_the_two_layers) {
    ModelSpec spec{{DenseSpec{"head", 1, 6, true}}, {}};
    const auto kept = cpu::build<float>(spec), blocks = cpu::build<float>(in_blocks(spec));
    constexpr float inf = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
    for (const float last : {3e38F, -3e38F, -inf, inf, none}) {
        const std::vector<float> at{800, -800, 0, 799, -1, 3, 0, 0, 0, 0, 0, last};
        Problem<float> p;
        p.x = {1.0F};
        p.classes = {1};
        const auto out = sweep(blocks, at, p, 1, 0, Checks::none), wanted = sweep(kept, at, p, 1, 0, Checks::none);
        BOOST_TEST((out.loss == wanted.loss || (std::isnan(out.loss) && std::isnan(wanted.loss))));
        if (!std::isfinite(out.loss)) continue;
        BOOST_TEST(same_bits(sweep(blocks, at, p, 1).gradients, sweep(kept, at, p, 1).gradients));
    }
}

// Of 10,003 classes the two layers keep an array of all logits in every link and share another; the head keeps two
// numbers a position, and its workspace does not grow with the link.
BOOST_AUTO_TEST_CASE(a_link_keeps_two_numbers_a_position) {
    constexpr Index classes = 10'003, inputs = 8, steps = 64, batch = 4, links = 3, positions = steps * batch;
    const ModelSpec spec{{RecurrentSpec{"rnn", 6, inputs, 1, true}, DenseSpec{"head", inputs, classes, true}}, {}};
    const auto kept = build<float>(spec), blocks = build<float>(in_blocks(spec));
    const TimeChainSizes with = time_chain_sizes(kept, links * steps, batch, steps),
                         without = time_chain_sizes(blocks, links * steps, batch, steps);
    constexpr auto element = static_cast<std::int64_t>(sizeof(float));
    const std::int64_t logits = aligned<float>(positions * classes) * element,
                       numbers = aligned<float>(2 * positions) * element;
    BOOST_TEST(with.tape - without.tape == logits - numbers);
    // Scratch: the logits, then their adjoint; or what the cell reads and gives.
    const std::int64_t flows = aligned<float>(6 * positions) + aligned<float>(inputs * positions);
    const Footprint head = blocks.layer(1).footprint(steps, batch);
    BOOST_TEST(head.workspace == 53 * classes);  // 52 positions and one more
    BOOST_TEST(blocks.layer(1).footprint(10 * steps, batch).workspace == head.workspace);
    const std::int64_t dense = std::max(classes, kept.layer(0).footprint(steps, batch).workspace);
    BOOST_TEST(with.workspace - without.workspace == logits - (flows + head.workspace - dense) * element);

    const std::vector<float> at = parameters(kept);
    const Problem<float> p = cast<float>(data_for(spec, 0, links * steps, batch));
    std::vector<float> gradients[2];
    for (const bool headed : {false, true}) {
        const Network<float>& network = headed ? blocks : kept;
        const TimeChainSizes& sizes = headed ? without : with;
        gradients[headed].resize(at.size());
        Ledger ledger;
        TimeChain<float> chain(network, batch, steps, ledger);
        Window<float> window;
        window.steps = links * steps;
        window.inputs = p.x.data();
        window.classes = p.classes.data();
        chain.show(window);
        chain.use(at.data());
        chain.add_to(gradients[headed].data());
        ScheduleOptions all{.family = "store_all", .steps = links};
        Execution<TimeChain<float>> run(chain, make_schedule(all));
        run.forward();
        run.backward();
        BOOST_TEST(ledger.peak()[Kind::tape] == links * sizes.tape);
        BOOST_TEST(ledger.peak()[Kind::workspace] == sizes.workspace);
    }
    BOOST_TEST(same_bits(gradients[1], gradients[0]));
}
