// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/nn/depth_chain.hpp"
#include "cli/commands.hpp"
#include "cli/report.hpp"
#include "cli/run_folder.hpp"
#include "cli/task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>

namespace backsweep::cli {

namespace {

/// A network that is fed one token at a time, one sequence wide.
template <class Real>
class Speaker {
public:
    Speaker(const Network<Real>& network, const Real* parameters) : network_(network) {
        Index workspace = 0;
        for (Index l = 0; l < network.depth(); ++l)
            workspace = std::max(workspace, network.layer(l).footprint(1, 1).workspace);
        workspace_.resize(workspace);
        carry_.assign(network.carry(), Real{0});
        next_carry_.resize(network.carry());
        frame_.network = &network;
        frame_.at.steps = frame_.at.batch = 1;
        frame_.at.training = false;
        frame_.at.begins = network.spec().learned_state();
        frame_.parameters = parameters;
        if (network.prepared() > 0) {
            prepared_.resize(network.prepared());
            network.prepare(parameters, prepared_.data());
            frame_.prepared = prepared_.data();
        }
        frame_.workspace = workspace_.data();
        for (const MemoryShape& shape : network.memories())
            memories_.emplace_back(Memory{shape}).values.resize((2 * shape.rows + 1) * shape.features);
        rows_.resize(memories_.size());
        frame_.memory = rows_.data();
        seen_.assign(static_cast<std::size_t>(network.remembered()), 1);
        frame_.at.seen = seen_.data();
    }

    /// What the head says of the next token: [outputs], valid until the next call.
    std::span<const Real> hear(std::int32_t token) {
        frame_.at.tokens = &token;
        frame_.carry_in = carry_.data();
        frame_.carry_out = next_carry_.data();
        for (std::size_t m = 0; m < memories_.size(); ++m)
            rows_[m] = memories_[m].before(frame_.at.rows_before(memories_[m].shape.rows));
        chain_.frame() = frame_;
        chain_.advance({0, network_.depth() - 1}, x_);  // all but the loss
        carry_.swap(next_carry_);
        frame_.at.begins = false;
        ++frame_.at.first;
        for (Memory& memory : memories_) memory.append();
        frame_.at.remembered = std::min(frame_.at.first, network_.remembered());
        return x_.values.span();
    }

private:
    /// The rows that it has so far, with room for as many again and one more: a full one starts anew with its last rows.
    struct Memory {
        MemoryShape shape;
        Buffer<Real> values{Kind::log};
        Index rows = 0;

        Real* before(Index count) { return values.data() + (rows - count) * shape.features; }
        void append() {
            if (++rows <= 2 * shape.rows) return;
            std::copy_n(before(shape.rows), shape.rows * shape.features, values.data());
            rows = shape.rows;
        }
    };

    const Network<Real>& network_;
    DepthChain<Real> chain_;
    DepthFrame<Real> frame_{};
    typename DepthChain<Real>::State x_{Buffer<Real>(Kind::workspace)};
    Buffer<Real> prepared_{Kind::parameters};
    Buffer<Real> carry_{Kind::carry}, next_carry_{Kind::carry}, workspace_{Kind::workspace};
    std::vector<Memory> memories_;
    std::vector<Real*> rows_;
    std::vector<std::uint8_t> seen_;
};

/// Draws from softmax(scores / temperature) with a uniform number in [0, 1).
template <class Real>
std::int32_t draw(std::span<const Real> scores, double temperature, double uniform) {
    const auto best = std::max_element(scores.begin(), scores.end());
    if (temperature == 0.0) return static_cast<std::int32_t>(best - scores.begin());
    std::vector<double> sums;
    double sum = 0.0;
    for (const Real s : scores)
        sums.push_back(sum += std::exp((static_cast<double>(s) - static_cast<double>(*best)) / temperature));
    const auto drawn = std::upper_bound(sums.begin(), sums.end(), uniform * sum);
    return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(drawn - sums.begin(), std::ssize(sums) - 1));
}

}  // namespace

int sample(const SampleArguments& arguments) {
    if (arguments.prompt.empty())
        throw InvalidArgument("--prompt wants at least one byte: the first that the model reads");
    require_within("--bytes", arguments.bytes, 0, 1'000'000'000);
    require_within("--seed", arguments.seed, 0, std::numeric_limits<Index>::max());
    if (!(arguments.temperature >= 0.0) || !std::isfinite(arguments.temperature))
        throw InvalidArgument(fmt::format("--temperature wants a number in [0, inf), got {}", arguments.temperature));
    std::vector<std::string> warnings;
    const OpenRun run = open_run(arguments.run, {}, warnings);
    warn(warnings);
    if (run.config.data.kind != "text")
        throw InvalidArgument(fmt::format("only models of text can be sampled, but this run's data.kind is \"{}\"",
                                          run.config.data.kind));
    const Data data{nullptr, vocabulary_from(run.config.data.vocabulary)};
    ModelSpec model = model_spec(run.config, data);
    run.snapshot.require(model);
    model.loss.save = LossSpec{}.save;  // what the head says is read
    const std::vector<std::int32_t> prompt = data.vocabulary.encode(arguments.prompt);

    return with_precision(run.config.train.precision, [&](auto real) {
        using Real = decltype(real);
        const Network<Real> network = build<Real>(model, run.config.train.device);
        std::vector<Real> parameters(static_cast<std::size_t>(network.parameters().size()));
        run.read_parameters<Real>(network.parameters(), parameters);
        Speaker<Real> speaker(network, parameters.data());
        for (std::size_t k = 0; k + 1 < prompt.size(); ++k) speaker.hear(prompt[k]);
        const auto seed = static_cast<std::uint64_t>(arguments.seed);
        const Random random(seed, 0);
        std::vector<std::int32_t> said;
        for (Index k = 0; k < arguments.bytes; ++k) {
            const std::span<const Real> scores = speaker.hear(said.empty() ? prompt.back() : said.back());
            said.push_back(draw(scores, arguments.temperature, random.uniform(static_cast<std::uint64_t>(k), 0)));
        }
        const std::string text = data.vocabulary.decode(said);
        if (arguments.json)
            fmt::print("{}", sample_as_json(arguments.prompt, text, arguments.temperature, seed));
        else
            std::cout << arguments.prompt << text << '\n';
        return 0;
    });
}

}  // namespace backsweep::cli
