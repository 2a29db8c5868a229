// SPDX-License-Identifier: MIT
#include "backsweep/train/spec_json.hpp"
#include "cli/commands.hpp"
#include "cli/report.hpp"
#include "cli/planning.hpp"
#include "cli/toml.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace backsweep::cli {

namespace {

template <class Real>
ModelInfo info_of(const Network<Real>& network, Index batch, Index chunk, Index shards) {
    ModelInfo info;
    info.model = describe(network.spec());
    info.batch = batch;
    info.chunk = chunk;
    info.shards = static_cast<Index>(shard_sizes(batch, shards).size());
    constexpr auto real = static_cast<std::int64_t>(sizeof(Real));
    for (Index l = 0; l < network.depth(); ++l) {
        const Layer<Real>& layer = network.layer(l);
        LayerInfo row;
        row.name = layer.name();
        for (const ParameterShape& shape : layer.parameters()) {
            row.parameters += shape.size();
            row.names.push_back(shape.name);
        }
        for (const Index sequences : shard_sizes(batch, shards)) {
            const Footprint size = layer.footprint(chunk, sequences);
            row.inputs = size.inputs;
            row.outputs = size.outputs;
            row.carry += size.carry * sequences * real;
            row.tape += size.tape * real;
            row.workspace += size.workspace * real;
            for (const MemoryShape& memory : layer.memories())
                row.memory += memory.rows * memory.features * sequences * real;
        }
        info.layers.push_back(std::move(row));
    }
    return info;
}

}  // namespace

int info(const InfoArguments& arguments) {
    Config config = configure_with(read_toml(arguments.file), arguments.settings).config;
    const Data data = open_data(config.data);
    return with_precision(config.train.precision, [&](auto real) {
        using Real = decltype(real);
        const auto source = make_source<Real>(config.data, data, "train");
        const Planning<Real> planning(config, data, *source);  // refuses what train would refuse
        const TrainOptions& options = planning.options();
        const Plan plan = config.pinned() ? planning.plan(config) : planning.planner().best(Budget{});
        const ModelInfo all = info_of(planning.network(plan), source->batch() / options.micro_batches,
                                      std::min(plan.chunk, source->window()), options.shards);
        fmt::print("{}", arguments.json ? as_json(all) : as_text(all));
        return 0;
    });
}

}  // namespace backsweep::cli
