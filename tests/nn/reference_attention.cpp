// Runners of reference files for attention as a layer: PyTorch's, Transformer-XL's, an encoder layer; in one segment and,
// causal ones, in segments of three steps.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/blocks.hpp"
#include "nn/reference_drivers.hpp"

#include <string>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// What a file calls a parameter that the network calls `name`.
std::string of_file(std::string name) {
    for (const std::string prefix : {"mha.", "xl."})
        if (name.starts_with(prefix)) name.erase(0, prefix.size());
    return name;
}

/// The last rows that a window of `window` steps (0: no limit) can see, of `memory` ones.
Index seen_rows(Index memory, Index window) {
    return window > 0 ? std::min(memory, window - 1) : memory;
}

/// `attention` gives heads, mask, window and memory where the file has them.
void read_mask(const ReferenceCase& c, AttentionSpec& spec) {
    spec.features = c.options.at("embed_dim");
    spec.heads = c.options.at("heads");
    const std::string mask = c.options.at("mask");
    spec.mask = mask == "full" ? AttentionSpec::Mask::full : AttentionSpec::Mask::causal;
    if (mask == "window") spec.window = c.options.at("window");
    spec.memory = spec.mask == AttentionSpec::Mask::causal
                      ? seen_rows(c.options.at("memory"), spec.window)
                      : 0;
}

void run(const ReferenceCase& c, const ModelSpec& model, const AttentionSpec& attention) {
    const Index T = c.options.at("T"), B = c.options.at("B"), E = attention.features;
    const bool batch_first = c.options.value("batch_first", false);
    const bool large = c.options.value("input_scale", 1.0) > 10.0;
    const Quantity values = large ? Quantity::large_values : Quantity::values,
                   gradients = large ? Quantity::large_gradients : Quantity::gradients;
    const auto time_major = [&](const std::string& name) {
        const auto all = c.values_of<double>(name);
        const auto& shape = c.file.at(name).shape;
        return batch_first ? swap_axes(all, shape[0], shape[1]) : all;
    };
    const std::string input = attention.across ? "query" : "input";
    Problem<double> problem;
    problem.steps = T;
    problem.batch = B;
    problem.x = time_major(input);
    problem.values = time_major("loss_weight.output");
    if (attention.across) {
        problem.keys = time_major("key");
        problem.values_of_context = time_major("value");
        problem.context_steps = c.options.at("S");
    }
    const Index rows = c.options.at("memory"), hidden_rows = rows - attention.memory;
    if (rows > 0) {
        const auto all = time_major("memory");
        problem.memory = {{all.begin() + hidden_rows * B * E, all.end()}};
        problem.seen.assign(static_cast<std::size_t>(attention.memory * B), 1);
    }
    if (c.file.find("key_padding_mask"))
        problem.key_padding = cast<std::uint8_t>(swap_axes(c.integers_of("key_padding_mask"), B, T));
    const auto output = time_major("output");
    const double loss_size = weighted_size(problem.values, output);

    // In segments of three steps the memory must reach back to the first row of all.
    AttentionSpec longer = attention;
    if (model.segmentable() && !attention.across) longer.memory = seen_rows(rows + T, attention.window);
    for (const Index chunk : {T, Index{3}}) {
        if (chunk < T && !model.segmentable() && !attention.across) continue;
        ModelSpec cut = model;
        const auto lengthen = [&](auto self, std::vector<LayerSpec>& layers) -> void {
            for (LayerSpec& layer : layers) {
                if (auto* own = std::get_if<AttentionSpec>(&layer)) own->memory = longer.memory;
                if (auto* residual = std::get_if<ResidualSpec>(&layer)) self(self, residual->layers);
            }
        };
        if (chunk < T) lengthen(lengthen, cut.layers);
        for_each_driver(cut, [&]<class Real>(const Network<Real>& network) {
            std::vector<Real> parameters;
            for (const ParameterView& view : network.parameters().views()) {
                const auto own = c.values_of<Real>(of_file(view.name));
                BOOST_TEST_REQUIRE(static_cast<Index>(own.size()) == view.size());
                parameters.insert(parameters.end(), own.begin(), own.end());
            }
            const auto out = sweep(network, parameters, cast<Real>(problem), chunk);
            c.check("output", out.y, output, values);
            c.check("loss", std::vector<Real>{static_cast<Real>(out.loss)}, values, loss_size);
            for (const ParameterView& view : network.parameters().views())
                c.check("grad." + of_file(view.name),
                        std::vector<Real>(out.gradients.begin() + view.offset,
                                          out.gradients.begin() + view.offset + view.size()),
                        gradients);
            c.check("grad." + input, out.dx, time_major("grad." + input), gradients);
            if (attention.across) {
                c.check("grad.key", out.dkeys, time_major("grad.key"), gradients);
                c.check("grad.value", out.dvalues, time_major("grad.value"), gradients);
            }
            if (rows > 0) {
                const auto wanted = time_major("grad.memory");
                const auto first = wanted.begin() + hidden_rows * B * E;
                BOOST_TEST(std::count(wanted.begin(), first, 0.0) == hidden_rows * B * E);  // no step sees those
                c.check("grad.memory", out.dmemory.at(0), {first, wanted.end()}, gradients);
            }
        });
    }
    // The layers never hold weights; lse of the kernel is compared by the runners of sdpa.
    c.checked.insert("attn_weights");
}

void run_mha(const ReferenceCase& c) {
    AttentionSpec spec{.name = "mha"};
    read_mask(c, spec);
    spec.bias = c.options.at("bias");
    spec.across = c.options.at("kind") == "cross";
    if (spec.across) {
        spec.mask = AttentionSpec::Mask::full;
        spec.key_features = c.file.at("key").shape.back();
        spec.value_features = c.file.at("value").shape.back();
    }
    run(c, {{spec}, inner_product()}, spec);
}

void run_xl(const ReferenceCase& c) {
    AttentionSpec spec{.name = "xl"};
    read_mask(c, spec);
    spec.head_features = c.options.at("head_dim");
    spec.position = AttentionSpec::Position::relative;
    spec.bias = false;
    ModelSpec model{{spec}, inner_product()};
    if (c.options.at("residual_norm"))
        model.layers = {ResidualSpec{"residual", {spec}}, NormSpec{.name = "layer_norm", .features = spec.features}};
    run(c, model, spec);
}

void run_encoder_layer(const ReferenceCase& c) {
    EncoderLayer block;
    read_mask(c, block.attention);
    block.hidden = c.options.at("inner");
    block.activation = c.options.at("activation") == "gelu" ? ActivationSpec::Kind::gelu : ActivationSpec::Kind::relu;
    block.norm_first = c.options.at("norm") == "pre";
    block.epsilon = c.options.at("eps");
    run(c, {encoder_layer(block), inner_product()}, block.attention);
}

const Registration mha{"mha", run_mha};
const Registration xl{"xl_attention", run_xl};
const Registration encoder{"transformer_encoder_layer", run_encoder_layer};

}  // namespace
