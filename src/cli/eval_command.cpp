// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "cli/commands.hpp"
#include "cli/report.hpp"
#include "cli/run_folder.hpp"
#include "cli/task.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace backsweep::cli {

int eval(const EvalArguments& arguments) {
    std::vector<std::string> warnings;
    OpenRun run = open_run(arguments.run, arguments.settings, warnings);
    warn(warnings);
    const Data data = open_data(run.config.data);
    const ModelSpec model = model_spec(run.config, data);
    run.snapshot.require(model);
    std::vector<std::string> parts = arguments.parts;
    if (parts.empty())
        for (const char* part : {"valid", "test"})
            if (has_part(run.config.data, data, part)) parts.emplace_back(part);
    if (parts.empty())
        throw InvalidArgument(
            "data.split leaves neither validation nor test part; give --part train, or another split");

    return with_precision(run.config.train.precision, [&](auto real) {
        using Real = decltype(real);
        const Network<Real> network = build<Real>(model, run.config.train.device);
        std::vector<Real> parameters(static_cast<std::size_t>(network.parameters().size()));
        run.read_parameters<Real>(network.parameters(), parameters);
        std::vector<PartLoss> losses;
        for (const std::string& part : parts) {
            const auto source = make_source<Real>(run.config.data, data, part);
            const TrainOptions o =
                train_options(run.config, source->windows(), network.parameters(), network.memories().size());
            const Index chunk = run.config.plan.chunk;
            losses.push_back({part, evaluate<Real>(network, parameters, *source, chunk, o.shards, o.threads, o.carry),
                              has_bits(run.config)});
        }
        fmt::print("{}", arguments.json ? as_json(losses, run.snapshot.update, run.path.string()) : as_text(losses));
        return 0;
    });
}

}  // namespace backsweep::cli
