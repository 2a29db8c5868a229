// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "backsweep/plan/plan.hpp"
#include "backsweep/train/durable_file.hpp"
#include "cli/commands.hpp"
#include "cli/history.hpp"
#include "cli/plot.hpp"
#include "cli/report.hpp"
#include "cli/report_page.hpp"
#include "cli/run_folder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace backsweep::cli {

int report(const ReportArguments& arguments) {
    const Config config = RunFolder(arguments.run).config();
    Page page;
    page.history = read_history(arguments.run);
    page.plan = config.plan;
    page.limits = config.memory;
    const Index sweeps = config.train.shards == 0 ? 4 : config.train.shards;
    page.threads = std::min({config.train.threads, sweeps, config.data.batch / config.train.micro_batches});
    page.config = to_toml(config);
    const std::filesystem::path whole = std::filesystem::absolute(arguments.run).lexically_normal();
    page.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
    try {
        const Index links = page.plan.schedule.steps;
        page.picture = plot(*schedule_for(page.plan, links), links,
                            fmt::format("{}, {} links of {} steps", in_words(page.plan.schedule), links, page.plan.chunk));
    } catch (const InvalidArgument& error) {
        page.no_picture = error.what();
    }
    if (page.history.unreadable > 0)
        warn({fmt::format("lines of '{}' that cannot be read and are passed over: {}",
                          (arguments.run / "metrics.jsonl").string(), page.history.unreadable)});
    const std::filesystem::path out = arguments.out.empty() ? arguments.run / "report.html" : arguments.out;
    if (std::filesystem::is_directory(out))
        throw InvalidArgument(fmt::format("--out wants a file, but '{}' is a folder", out.string()));
    write_durable(out, report_page(page));
    fmt::print("{}\n", out.string());
    return 0;
}

}  // namespace backsweep::cli
