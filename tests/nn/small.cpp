// Laws of the layers around the cells: norms, activations, dropout, weight drop, residual blocks, tied heads.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE small
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/blocks.hpp"
#include "nn/composite.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/layer_laws.hpp"
#include "nn/reference/layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

ModelSpec of(std::vector<LayerSpec> layers, LossSpec::Kind kind = LossSpec::Kind::inner_product) {
    ModelSpec spec{std::move(layers), {}};
    spec.loss.kind = kind;
    return spec;
}

NormSpec norm(Index features, NormSpec::Kind kind = NormSpec::Kind::layer, bool affine = true) {
    return {.name = "norm", .features = features, .kind = kind, .affine = affine};
}

RecurrentSpec lstm(Index inputs, Index hidden, Index layers = 1) {
    return {.name = "rnn", .inputs = inputs, .hidden = hidden, .layers = layers};
}

ModelSpec tied_model(std::optional<Index> padding) {
    return {{EmbeddingSpec{"embedding", 11, 3, padding}, lstm(3, 5), DenseSpec{"proj", 5, 3},
             DenseSpec{.name = "head", .inputs = 3, .outputs = 11, .tied = "embedding"}},
            cross_entropy(11, true, 0.1, 4)};
}

const std::vector<std::pair<std::string, ActivationSpec::Kind>> activations{
    {"relu", ActivationSpec::Kind::relu},
    {"silu", ActivationSpec::Kind::silu},
    {"gelu", ActivationSpec::Kind::gelu},
    {"gelu_tanh", ActivationSpec::Kind::gelu_tanh},
    {"tanh", ActivationSpec::Kind::tanh},
    {"sigmoid", ActivationSpec::Kind::sigmoid},
    {"softplus", ActivationSpec::Kind::softplus},
    {"softmax", ActivationSpec::Kind::softmax},
    {"log_softmax", ActivationSpec::Kind::log_softmax}};

std::vector<Model> small_models() {
    using Kind = NormSpec::Kind;
    const auto squares = LossSpec::Kind::mean_squared_error;
    std::vector<Model> all{
        {"layer norm", of({norm(5)})},
        {"layer norm 33", of({norm(33)}, squares)},
        {"layer norm of one feature", of({DenseSpec{"below", 2, 1}, norm(1)})},
        {"layer norm without parameters", of({DenseSpec{"below", 2, 7}, norm(7, Kind::layer, false)}, squares)},
        {"rms norm", of({norm(6, Kind::rms)})},
        {"rms norm of one feature", of({norm(1, Kind::rms)}, squares)},
        {"rms norm without parameters", of({DenseSpec{"below", 3, 9}, norm(9, Kind::rms, false)})},
        {"residual of one layer", of({ResidualSpec{"residual", {DenseSpec{"inner", 4, 4}}}})},
        {"residual within a residual",
         of({ResidualSpec{
                 "outer",
                 {norm(4), ResidualSpec{"inner",
                                        {DenseSpec{"a", 4, 6}, ActivationSpec{"t", 6, ActivationSpec::Kind::tanh},
                                         DenseSpec{"b", 6, 4}}}}},
             DenseSpec{"head", 4, 3}},
            squares)},
        {"residual round two cells", of({DenseSpec{"below", 2, 3},
                                         ResidualSpec{"residual",
                                                      {norm(3), lstm(3, 5, 2), DenseSpec{"back", 5, 3},
                                                       RecurrentSpec{.name = "top", .inputs = 3, .hidden = 3}}},
                                         DenseSpec{"head", 3, 2}},
                                        squares)},
        {"concatenation of one layer", of({ConcatenateSpec{"c", {DenseSpec{"inner", 4, 3}}}})},
        {"concatenations in a row",
         of({DenseSpec{"below", 2, 3},
             ConcatenateSpec{"c1", {norm(3), ActivationSpec{"t", 3, ActivationSpec::Kind::tanh}}},
             ConcatenateSpec{"c2", {lstm(6, 5)}}, DenseSpec{"head", 11, 2}},
            squares)},
        {"concatenations within each other and a residual",
         of({ResidualSpec{"r", {ConcatenateSpec{"outer",
                                                {DenseSpec{"down", 4, 3}, ResidualSpec{"s", {DenseSpec{"m", 3, 3}}},
                                                 ConcatenateSpec{"inner", {DenseSpec{"low", 3, 2}}},
                                                 ActivationSpec{"g", 5, ActivationSpec::Kind::sigmoid}}},
                                DenseSpec{"up", 9, 4}}},
             DenseSpec{"head", 4, 3}})},
        {"dropout", of({DenseSpec{"below", 3, 5}, DropoutSpec{"dropout", 5, 0.3}, DenseSpec{"head", 5, 2}})},
        {"locked dropout",
         of({DenseSpec{"below", 3, 5}, DropoutSpec{"dropout", 5, 0.6, true}, DenseSpec{"head", 5, 2}}, squares)},
        {"stack with dropout",
         of({RecurrentSpec{.name = "rnn", .inputs = 3, .hidden = 4, .layers = 3, .dropout = 0.4, .weight_drop = 0.5}})},
        {"locked stack",
         of({RecurrentSpec{.name = "rnn", .inputs = 2, .hidden = 5, .layers = 2, .dropout = 0.5, .locked = true}},
            squares)},
        {"fold", of({DenseSpec{"below", 2, 12}, FoldSpec{"fold", 12, 4}, DenseSpec{"head", 4, 3}}, squares)},
        {"fold to one feature", of({DenseSpec{"below", 2, 7}, FoldSpec{"fold", 7, 1}})},
        {"fold of one block", of({DenseSpec{"below", 3, 5}, FoldSpec{"fold", 5, 5}})},
        {"tied head", tied_model(std::nullopt)},
        {"tied head without bias",
         {{EmbeddingSpec{"embedding", 5, 4, std::nullopt},
           DenseSpec{.name = "head", .inputs = 4, .outputs = 5, .bias = false, .tied = "embedding"}},
          cross_entropy(5, false, 0.0, std::nullopt)}}};
    for (const auto& [name, kind] : activations) {
        all.push_back({name, of({DenseSpec{"below", 3, 5}, ActivationSpec{name, 5, kind}})});
        all.push_back(
            {name + " of 33",
             of({DenseSpec{"below", 2, 33}, ActivationSpec{name, 33, kind}, DenseSpec{"head", 33, 3}}, squares)});
    }
    for (const auto where : {FeedForward::Norm::pre, FeedForward::Norm::post})
        all.push_back({where == FeedForward::Norm::pre ? "feed-forward, norm before" : "feed-forward, norm behind",
                       of(feed_forward({.features = 4, .hidden = 7, .norm = where, .dropout = 0.2}), squares)});
    return all;
}

const std::vector<Marking> unequal{Marking::none, Marking::tails, Marking::packed};

/// One dropout layer over one segment of 12 steps and 5 sequences.
template <class Real>
struct OneDropout {
    LayerPointer<Real> layer;
    Segment<Real> at{};

    OneDropout(Driver driver, const DropoutSpec& spec, std::uint32_t stream = 0)
        : layer(driver == Driver::cpu ? cpu::dropout<Real>(spec, stream) : reference::dropout<Real>(spec, stream)) {
        at.steps = 12;
        at.batch = 5;
        at.seed = 7;
    }

    std::vector<Real> forward(const std::vector<Real>& x) const {
        auto y = unassigned<Real>(static_cast<Index>(x.size())), workspace = scratch();
        layer->record({at, nullptr, x.data(), y.data(), nullptr, nullptr, nullptr, workspace.data()});
        return y;
    }
    std::vector<Real> reverse(const std::vector<Real>& dy) const {
        auto dx = unassigned<Real>(static_cast<Index>(dy.size())), workspace = scratch();
        layer->reverse({at, nullptr, nullptr, nullptr, nullptr, dy.data(), dx.data(), nullptr, workspace.data()});
        return dx;
    }
    /// What 1 becomes: 0 or 1 / (1 - rate), [step][batch][feature].
    std::vector<Real> mask() const {
        const Footprint f = layer->footprint(at.steps, at.batch);
        return forward(std::vector<Real>(static_cast<std::size_t>(at.steps * at.batch * f.inputs), Real{1}));
    }

private:
    std::vector<Real> scratch() const { return unassigned<Real>(layer->footprint(at.steps, at.batch).workspace); }
};

}  // namespace

// But for those whose gradients are gathered segment by segment: dropped weights and tables that two layers share.
BOOST_AUTO_TEST_CASE(splitting_a_segment_of_the_reference_changes_no_bit) {
    std::vector<Model> all = small_models();
    std::erase_if(all, [](const Model& model) {
        return std::any_of(model.spec.layers.begin(), model.spec.layers.end(), [](const LayerSpec& layer) {
            const auto* rnn = std::get_if<RecurrentSpec>(&layer);
            const auto* dense = std::get_if<DenseSpec>(&layer);
            return (rnn && rnn->weight_drop > 0.0) || (dense && !dense->tied.empty());
        });
    });
    check_splitting_of_the_reference<float>(all, {Marking::none});
    check_splitting_of_the_reference<double>(all, unequal);
}

BOOST_AUTO_TEST_CASE(cpu_and_reference_agree_in_double) {
    check_cpu_against_reference(small_models(), unequal);
}

BOOST_AUTO_TEST_CASE(reverse_agrees_with_central_differences) {
    check_against_central_differences(small_models(), unequal);
}

BOOST_AUTO_TEST_CASE(taylor_slope_and_dot_product) {
    check_taylor_slope_and_dot_product(small_models());
}

BOOST_AUTO_TEST_CASE(fast_float_errs_at_most_three_times_as_much_as_plain_float) {
    check_errors_in_float(small_models());
}

// Each figure within four of its standard errors.
BOOST_AUTO_TEST_CASE(a_mask_has_the_mean_and_the_variance_of_its_law) {
    for (const double rate : {0.1, 0.3, 0.5, 0.9}) {
        OneDropout<double> one(Driver::cpu, {"dropout", 33, rate});
        one.at.steps = 400;
        one.at.batch = 8;
        const std::vector<double> mask = one.mask();
        const double n = static_cast<double>(mask.size()), kept = 1.0 - rate, variance = rate / kept;
        double mean = 0.0, spread = 0.0;
        for (const double m : mask) {
            BOOST_TEST_REQUIRE((m == 0.0 || std::abs(m * kept - 1.0) < 1e-15));
            mean += m / n;
            spread += (m - 1.0) * (m - 1.0) / n;
        }
        BOOST_TEST_CONTEXT("rate " << rate) {
            BOOST_TEST(std::abs(mean - 1.0) <= 4.0 * std::sqrt(variance / n));
            // (m - 1)^2 is 1 with probability rate, else (rate / kept)^2.
            const double step = 1.0 - variance * variance;
            BOOST_TEST(std::abs(spread - variance) <= 4.0 * std::abs(step) * std::sqrt(rate * kept / n) + 1e-12);
            // Neighbours in feature, in sequence, in step and at a whole block's distance are independent.
            for (const std::size_t lag : {1, 4, 33, 8 * 33}) {
                double covariance = 0.0;
                for (std::size_t k = lag; k < mask.size(); ++k)
                    covariance += (mask[k] - 1.0) * (mask[k - lag] - 1.0) / n;
                BOOST_TEST(std::abs(covariance) <= 4.0 * variance / std::sqrt(n), "lag " << lag);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_mask_is_a_function_of_its_place) {
    constexpr Index features = 7;
    for (const Driver driver : drivers)
        for (const bool locked : {false, true}) BOOST_TEST_CONTEXT(to_string(driver) << ", locked " << locked) {
                const auto dropout = [&](std::uint64_t seed, std::uint32_t stream, Index first, Index sequence) {
                    OneDropout<float> one(driver, {"dropout", features, 0.4, locked}, stream);
                    one.at.seed = seed;
                    one.at.first = first;
                    one.at.sequence = sequence;
                    return one;
                };
                const std::vector<float> whole = dropout(7, 3, 1000, 0).mask();
                BOOST_TEST(same_bits(dropout(7, 3, 1000, 0).mask(), whole));
                BOOST_TEST(same_bits(dropout(7, 3, 1000, 0).reverse(std::vector<float>(whole.size(), 1.0F)), whole));
                for (const auto& other :
                     {dropout(8, 3, 1000, 0).mask(), dropout(7, 4, 1000, 0).mask(), dropout(7, 3, 1000, 1).mask()})
                    BOOST_TEST(!same_bits(other, whole).passed);
                BOOST_TEST(same_bits(dropout(7, 3, 2000, 0).mask(), whole).passed == locked);

                OneDropout<float> part = dropout(7, 3, 1004, 2);  // five steps of sequences 2 and 3
                part.at.steps = 5;
                part.at.batch = 2;
                std::vector<float> wanted;
                for (Index t = 4; t < 9; ++t)
                    wanted.insert(wanted.end(), whole.begin() + (t * 5 + 2) * features,
                                  whole.begin() + (t * 5 + 4) * features);
                BOOST_TEST(same_bits(part.mask(), wanted));

                for (Index t = 1; t < 12; ++t) {
                    const auto step = [&](Index which) {
                        return std::vector<float>(whole.begin() + which * 5 * features,
                                                  whole.begin() + (which + 1) * 5 * features);
                    };
                    BOOST_TEST(same_bits(step(t), step(0)).passed == locked);
                }
                for (Index b = 1; b < 5; ++b)
                    BOOST_TEST(!std::equal(whole.begin(), whole.begin() + features, whole.begin() + b * features));
            }
}

BOOST_AUTO_TEST_CASE(chunks_do_not_change_a_mask) {
    for (const Driver driver : drivers)
        for (const bool locked : {false, true}) {
            const ModelSpec spec = of({DropoutSpec{"first", 5, 0.3, locked}, DropoutSpec{"second", 5, 0.3, locked}});
            const auto network = build<float>(driver, spec);
            const auto problem = cast<float>(data_for(spec, 0, 37, 3));
            const auto whole = sweep(network, {}, problem, 37);
            for (const Index chunk : {1, 3, 32}) {
                const auto cut = sweep(network, {}, problem, chunk);
                BOOST_TEST(same_bits(cut.y, whole.y));
                BOOST_TEST(same_bits(cut.dx, whole.dx));
            }
            // Two layers of one network have masks of their own: 0.49 of the elements, not 0.7, come through both.
            const auto through =
                static_cast<double>(std::count_if(whole.y.begin(), whole.y.end(), [](float y) { return y != 0.0F; }));
            const double n = static_cast<double>(locked ? 3 * 5 : whole.y.size());
            if (!locked) BOOST_TEST(std::abs(through / n - 0.49) < 4.0 * std::sqrt(0.49 * 0.51 / n));
        }
}

BOOST_AUTO_TEST_CASE(without_training_or_rate_dropout_is_nothing) {
    const std::vector<float> values{
        0.0F,  -0.0F, 1.5F, -3e38F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
        1e-45F};
    for (const Driver driver : drivers)
        for (const bool locked : {false, true})
            for (const bool training : {false, true}) {
                OneDropout<float> one(driver, {"dropout", 7, training ? 0.0 : 0.9, locked});
                one.at.steps = one.at.batch = 1;
                one.at.training = training;
                BOOST_TEST(same_bits(one.forward(values), values));
                BOOST_TEST(same_bits(one.reverse(values), values));
            }
}

// What is not finite does not come through a mask that drops it.
BOOST_AUTO_TEST_CASE(a_dropped_element_is_zero_whatever_it_was) {
    for (const Driver driver : drivers)
        for (const bool locked : {false, true}) {
            const OneDropout<double> one(driver, {"dropout", 3, 0.5, locked});
            const std::vector<double> mask = one.mask();
            const auto y = one.forward(std::vector<double>(mask.size(), std::numeric_limits<double>::quiet_NaN()));
            for (std::size_t k = 0; k < mask.size(); ++k) BOOST_TEST((mask[k] == 0.0 ? y[k] == 0.0 : std::isnan(y[k])));
        }
}

// Weight drop: of weight_hh only, one mask whatever the chunk and the sequences, none in evaluation; what is dropped
// has gradient 0, and what stays has that of a weight grown by 1 / (1 - rate).
BOOST_AUTO_TEST_CASE(weight_drop_is_a_model_with_other_recurrent_weights) {
    constexpr double rate = 0.5;
    RecurrentSpec dropping = lstm(3, 6);
    dropping.weight_drop = rate;
    const ModelSpec spec = of({dropping}), plain_spec = of({lstm(3, 6)});
    for (const Driver driver : drivers) BOOST_TEST_CONTEXT(to_string(driver)) {
            const auto network = build<double>(driver, spec), plain = build<double>(driver, plain_spec);
            const auto parameters = untamed_parameters(network);
            const ParameterView& U = network.parameters().find("rnn.weight_hh_l0");
            auto problem = data_for(spec, network.carry(), 9, 4);
            const auto got = sweep(network, parameters, problem, 9);
            auto seen = parameters;
            Index dropped = 0;
            for (Index k = U.offset; k < U.offset + U.size(); ++k) {
                auto& w = seen[static_cast<std::size_t>(k)];
                const bool gone = got.gradients[static_cast<std::size_t>(k)] == 0.0;
                dropped += gone;
                w = gone ? 0.0 : 2.0 * w;
            }
            const double n = static_cast<double>(U.size());
            BOOST_TEST(std::abs(static_cast<double>(dropped) / n - rate) < 4.0 * std::sqrt(rate * (1.0 - rate) / n));
            const auto wanted = sweep(plain, seen, problem, 9);
            BOOST_TEST(same_bits(got.y, wanted.y));
            BOOST_TEST(same_bits(got.dx, wanted.dx));
            for (Index k = 0; k < network.parameters().size(); ++k) {
                const auto e = static_cast<std::size_t>(k);
                const bool recurrent = k >= U.offset && k < U.offset + U.size();
                const double factor = !recurrent ? 1.0 : seen[e] == 0.0 ? 0.0 : 2.0;
                BOOST_TEST(got.gradients[e] == factor * wanted.gradients[e]);
            }
            for (const Index chunk : {1, 4}) check_close(sweep(network, parameters, problem, chunk), got, {1e-12, 0.0});
            problem.seed = 6;
            BOOST_TEST(!same_bits(sweep(network, parameters, problem, 9).y, got.y).passed);
            problem.training = false;
            check_same(sweep(network, parameters, problem, 9), sweep(plain, parameters, problem, 9));
        }
}

BOOST_AUTO_TEST_CASE(weight_drop_names_a_parameter_that_is_not_there) {
    BOOST_CHECK_EXCEPTION(weight_drop<float>(cpu::dense<float>({"head", 2, 3}), "head.weight_hh", 0.5, 0),
                          InvalidArgument, [](const InvalidArgument& e) {
                              return std::string(e.what()) ==
                                     "layer 'head' has no parameter 'head.weight_hh' to drop; name one of its own";
                          });
}

// The gradient of a shared table is the sum of what the embedding and the head would have; of the padding row, which
// the embedding leaves alone, it is the head's.
BOOST_AUTO_TEST_CASE(a_tied_table_gets_the_sum_of_both_gradients) {
    for (const auto padding : {std::optional<Index>{}, std::optional<Index>{4}}) {
        const ModelSpec tied_spec = tied_model(padding);
        ModelSpec own_spec = tied_spec;
        std::get<DenseSpec>(own_spec.layers.back()).tied.clear();
        for (const Driver driver : drivers)
            BOOST_TEST_CONTEXT(to_string(driver) << ", padding " << padding.has_value()) {
                const auto tied = build<double>(driver, tied_spec), own = build<double>(driver, own_spec);
                BOOST_TEST(own.parameters().size() == tied.parameters().size() + 11 * 3);
                const auto parameters = untamed_parameters(tied);
                std::vector<double> of_both;
                for (const ParameterView& v : own.parameters().views()) {
                    const Index from =
                        tied.parameters().find(v.name == "head.weight" ? "embedding.weight" : v.name).offset;
                    of_both.insert(of_both.end(), parameters.begin() + from, parameters.begin() + from + v.size());
                }
                const auto problem = data_for(tied_spec, tied.carry(), 7, 3);
                const auto got = sweep(tied, parameters, problem, 3), wanted = sweep(own, of_both, problem, 3);
                BOOST_TEST(same_bits(got.y, wanted.y));
                BOOST_TEST(same_bits(got.losses, wanted.losses));
                const Index head = own.parameters().find("head.weight").offset,
                            bias = own.parameters().find("head.bias").offset;
                std::vector<double> table(wanted.gradients.begin(), wanted.gradients.begin() + 33);
                if (padding)
                    for (Index k = 0; k < 3; ++k) BOOST_TEST(table[static_cast<std::size_t>(*padding * 3 + k)] == 0.0);
                for (std::size_t k = 0; k < 33; ++k) table[k] += wanted.gradients[static_cast<std::size_t>(head) + k];
                BOOST_TEST(compare(std::vector<double>(got.gradients.begin(), got.gradients.begin() + 33), table,
                                   {1e-13, 0.0}));
                std::vector<double> rest(wanted.gradients.begin() + 33, wanted.gradients.begin() + head);
                rest.insert(rest.end(), wanted.gradients.begin() + bias, wanted.gradients.end());
                BOOST_TEST(
                    compare(std::vector<double>(got.gradients.begin() + 33, got.gradients.end()), rest, {1e-13, 0.0}));
            }
    }
}

// Whatever lies where there is no token, in or out of range, it changes no bit and gives 0.
BOOST_AUTO_TEST_CASE(an_embedding_reads_no_filler) {
    const ModelSpec spec = of({EmbeddingSpec{"embedding", 5, 3, 1}});
    for (const Driver driver : drivers) {
        const auto network = build<double>(driver, spec);
        const auto parameters = untamed_parameters(network);
        auto problem = data_for(spec, 0, 4, 3);
        mark(problem, Marking::holes);
        const auto filled = [&](std::int32_t filler) {
            for (std::size_t p = 0; p < problem.marks.size(); ++p)
                if (problem.marks[p] == Mark::filler) problem.tokens[p] = filler;
            return sweep(network, parameters, problem, 3);
        };
        const auto wanted = filled(0);
        for (const std::int32_t filler : {3, -1, 5, std::numeric_limits<std::int32_t>::max()})
            check_same(filled(filler), wanted);
        for (std::size_t p = 0; p < problem.marks.size(); ++p)
            for (std::size_t k = 0; k < 3; ++k)
                BOOST_TEST((problem.marks[p] != Mark::filler || wanted.y[3 * p + k] == 0.0));
    }
}

BOOST_AUTO_TEST_CASE(activations_keep_their_heads_at_the_edges) {
    using Kind = ActivationSpec::Kind;
    const auto body = [](auto real, Driver driver) {
        using Real = decltype(real);
        const Real infinite = std::numeric_limits<Real>::infinity(), nan = std::numeric_limits<Real>::quiet_NaN();
        for (const auto& [name, kind] : activations) BOOST_TEST_CONTEXT(to_string(driver) << ", " << name) {
                const bool row = kind == Kind::softmax || kind == Kind::log_softmax;
                const ModelSpec spec = of({ActivationSpec{name, 1, kind}});
                const auto network = build<Real>(driver, spec);
                const auto at = [&](Real x) {
                    Problem<Real> p;
                    p.x = {x};
                    p.values = {1};
                    return sweep(network, {}, p, 1, 0, std::isfinite(x) ? Checks::laws : Checks::none);
                };
                if (!row) BOOST_TEST(std::isnan(at(nan).y[0]));
                for (const Real x : {Real(-1e30), Real(-800), Real(800), Real(1e30)}) {
                    const auto out = at(x);
                    const bool grows = kind == Kind::relu || kind == Kind::silu || kind == Kind::gelu ||
                                       kind == Kind::gelu_tanh || kind == Kind::softplus;
                    const Real y = row                  ? Real(kind == Kind::softmax)
                                   : grows              ? std::max(x, Real{0})
                                   : x > 0              ? Real{1}
                                   : kind == Kind::tanh ? Real{-1}
                                                        : Real{0};
                    BOOST_TEST(out.y[0] == y);
                    BOOST_TEST(out.dx[0] == (grows && x > 0 ? Real{1} : Real{0}));
                }
                for (const Real zero : {Real{0}, -Real{0}}) {
                    const auto out = at(zero);
                    const Real half = Real(0.5);
                    const Real y = kind == Kind::sigmoid    ? half
                                   : kind == Kind::softplus ? std::log(Real{2})
                                   : row                    ? Real(kind == Kind::softmax)
                                                            : Real{0};
                    BOOST_TEST(std::abs(out.y[0] - y) <= std::numeric_limits<Real>::epsilon());
                    const Real slope = row || kind == Kind::relu ? Real{0}
                                       : kind == Kind::tanh      ? Real{1}
                                       : kind == Kind::sigmoid   ? Real(0.25)
                                                                 : half;
                    BOOST_TEST(out.dx[0] == slope);
                }
                if (kind == Kind::tanh) BOOST_TEST(at(infinite).y[0] == Real{1});
            }
    };
    for (const Driver driver : drivers) {
        body(float{}, driver);
        body(double{}, driver);
    }
}

// Blocks of features, not every so manyth feature; the adjoint goes to all of them.
BOOST_AUTO_TEST_CASE(a_fold_adds_blocks) {
    for (const Driver driver : drivers) BOOST_TEST_CONTEXT(to_string(driver)) {
            Problem<double> problem;
            problem.steps = 2;
            problem.x = {1, 2, 4, 8, 16, 32, -1, -2, -4, -8, -16, -32};
            problem.values = {3, 5, 7, 11};
            const auto out = sweep(build<double>(driver, of({FoldSpec{"fold", 6, 2}})), {}, problem, 2);
            BOOST_TEST(same_bits(out.y, std::vector<double>{21, 42, -21, -42}));
            BOOST_TEST(same_bits(out.dx, std::vector<double>{3, 5, 3, 5, 3, 5, 7, 11, 7, 11, 7, 11}));
        }
    BOOST_TEST(of({FoldSpec{"fold", 7, 2}}).problem() == "layer 'fold': outputs must divide inputs = 7, but is 2");
}

// Rows far from 0 whose spread is small, and one without spread: the norm sees the spread alone. In float the sum of
// such a row rounds by a tenth of the spread.
BOOST_AUTO_TEST_CASE(a_norm_does_not_lose_a_small_spread_far_from_zero) {
    const ModelSpec spec = of({norm(33, NormSpec::Kind::layer, false)});
    const auto exact = reference::build<double>(spec);
    Problem<float> problem;
    problem.steps = 3;
    problem.values = random_values<float>(99, 51);
    problem.x = random_values<float>(99, 52);
    for (std::size_t k = 0; k < 99; ++k) problem.x[k] = 16384.3F + (k < 66 ? problem.x[k] : 0.0F);
    const auto wanted = sweep(exact, {}, cast<double>(problem), 3);
    const auto spread_out = [](const auto& rows) { return std::vector(rows.begin(), rows.begin() + 66); };
    for (const Driver driver : drivers) BOOST_TEST_CONTEXT(to_string(driver)) {
            const auto got = sweep(build<float>(driver, spec), {}, problem, 3);
            BOOST_TEST(compare(spread_out(got.y), spread_out(wanted.y), {1e-6, 0.0}));
            BOOST_TEST(compare(spread_out(got.dx), spread_out(wanted.dx), {1e-6, 0.0}));
            for (std::size_t k = 66; k < 99; ++k) BOOST_TEST(got.y[k] == 0.0F);
        }
}

// Sizes are part of the promise: nothing on the tape of a small layer, x or y read where needed, no layer carries.
BOOST_AUTO_TEST_CASE(tapes_are_as_small_as_they_can_be) {
    using Kind = ActivationSpec::Kind;
    const auto check = [](const LayerSpec& spec, Index tape, bool reads_x, bool reads_y) {
        const Footprint f = cpu::build<float>(of({spec})).layer(0).footprint(7, 3);
        BOOST_TEST(f.carry == 0);
        BOOST_TEST(f.tape == tape);
        BOOST_TEST(f.reads_x == reads_x);
        BOOST_TEST(f.reads_y == reads_y);
    };
    check(DropoutSpec{"dropout", 5, 0.5, false}, 0, false, false);
    check(DropoutSpec{"dropout", 5, 0.5, true}, 0, false, false);
    check(norm(5), 0, true, false);
    check(norm(5, NormSpec::Kind::rms), 0, true, false);
    check(DenseSpec{"dense", 5, 3}, 0, true, false);
    for (const auto& [name, kind] : activations) {
        const bool of_x = kind == Kind::silu || kind == Kind::gelu || kind == Kind::gelu_tanh || kind == Kind::softplus;
        check(ActivationSpec{name, 5, kind}, 0, of_x, !of_x);
    }
    check(FoldSpec{"fold", 6, 3}, 0, false, false);
    // Beside x, which norm reads, the inputs of linear1 (4), of the activation (6; relu: of none) and of linear2 (6).
    FeedForward block{.features = 4, .hidden = 6, .activation = Kind::gelu, .dropout = 0.5};
    check(feed_forward(block).front(), 7 * 3 * (4 + 6 + 6), true, false);
    block.activation = Kind::relu;
    check(feed_forward(block).front(), 7 * 3 * (4 + 6 + 6), true, false);  // its output, and linear2's input behind dropout
    block.dropout = 0.0;
    check(feed_forward(block).front(), 7 * 3 * (4 + 6), true, false);  // which are one
}

BOOST_AUTO_TEST_CASE(a_feed_forward_block_has_its_names_and_judges_its_sizes) {
    const auto names = [](const FeedForward& block) {
        const auto network = cpu::build<float>(of(feed_forward(block)));
        std::string all;
        for (const ParameterView& v : network.parameters().views()) all += v.name + " ";
        return all;
    };
    BOOST_TEST(names({.features = 4, .hidden = 6}) ==
               "norm.weight norm.bias linear1.weight linear1.bias linear2.weight linear2.bias ");
    BOOST_TEST(
        names({.features = 4,
               .hidden = 6,
               .norm = FeedForward::Norm::post,
               .kind = NormSpec::Kind::rms,
               .prefix = "block0."}) ==
        "block0.linear1.weight block0.linear1.bias block0.linear2.weight block0.linear2.bias block0.norm.weight ");
    auto two = feed_forward({.features = 4, .hidden = 6, .dropout = 0.1, .prefix = "a."});
    for (LayerSpec& layer : feed_forward({.features = 4, .hidden = 6, .dropout = 0.1, .prefix = "b."}))
        two.push_back(std::move(layer));
    BOOST_TEST(of(two).problem() == "");
    BOOST_TEST(of(feed_forward({.features = 4})).problem() ==
               "layer 'residual': layer 'linear1': outputs must be at least 1, but is 0");
    BOOST_TEST(of(feed_forward({.features = 4, .hidden = 3, .dropout = -0.5})).problem() ==
               "layer 'residual': layer 'dropout1': rate must be in [0, 1), but is -0.500000");
}
