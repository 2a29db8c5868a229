// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "backsweep/train/weights.hpp"
#include "cli/commands.hpp"
#include "cli/run_folder.hpp"
#include "cli/task.hpp"

#include <fmt/format.h>

#include <vector>

namespace backsweep::cli {

int export_weights(const ExportArguments& arguments) {
    if (std::filesystem::is_directory(arguments.file))
        throw InvalidArgument(fmt::format("'{}' is a folder; name the file to write", arguments.file.string()));
    std::vector<std::string> warnings;
    const OpenRun run = open_run(arguments.run, {}, warnings);
    warn(warnings);
    return with_precision(run.config.train.precision, [&](auto real) {
        using Real = decltype(real);
        const Network<Real> network = build<Real>(run.snapshot.model, run.config.train.device);
        std::vector<Real> parameters(static_cast<std::size_t>(network.parameters().size()));
        run.read_parameters<Real>(network.parameters(), parameters);
        save_weights<Real>(arguments.file, network, parameters);
        fmt::print("{}: {} parameters after {} updates, from {}\n", arguments.file.string(), parameters.size(),
                   run.snapshot.update, run.path.string());
        return 0;
    });
}

}  // namespace backsweep::cli
