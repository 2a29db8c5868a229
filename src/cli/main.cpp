// The program `backsweep`: its command line and its exit codes.
// 0: done; 2: what was given cannot be used, nothing was written; 1: the run failed; 130, 143: interrupted, snapshot
// written.
// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "base/build_info.hpp"
#include "cli/commands.hpp"
#include "cli/config.hpp"
#include "cli/process.hpp"
#include "cli/report.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>

namespace backsweep::cli {

void warn(const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings) fmt::print(stderr, "backsweep: warning: {}\n", warning);
}

void require_within(const char* argument, Index value, Index least, Index most) {
    if (value < least || value > most)
        throw InvalidArgument(fmt::format("{} wants an integer in [{}, {}], got {}", argument, least, most, value));
}

namespace {

constexpr int failed = 1, bad_input = 2;

int run(int count, char** words) {
    CLI::App app{"Trains sequence models by back-propagation through time in bounded memory.", "backsweep"};
    app.require_subcommand(1);
    const auto with_json = [](CLI::App* command, bool& json) { command->add_flag("--json", json, "answer as JSON"); };
    const auto with_settings = [](CLI::App* command, std::vector<std::string>& settings) {
        command->add_option("--set", settings, "key=value, over the file's; may be repeated")->allow_extra_args(false);
    };

    // Short names of settings.
    const auto with_limits = [](CLI::App* command, std::vector<std::string>& settings) {
        for (const auto& [option, key, what] : {std::tuple{"--memory", "memory.limit", "bytes in RAM, such as \"2 GiB\""},
                                                std::tuple{"--disk", "memory.disk", "bytes on disk"}})
            command->add_option_function<std::string>(
                option, [&settings, key = std::string(key)](const std::string& value) { settings.push_back(fmt::format("{}=\"{}\"", key, value)); }, what);
        command->add_flag_function(
            "--calibrate", [&settings](std::int64_t) { settings.push_back("schedule.calibrate=true"); },
            "plan by measured seconds of every layer");
    };

    TrainArguments to_train;
    to_train.command = {words, words + count};
    CLI::App* train_command = app.add_subcommand("train", "train a model");
    train_command->add_option("file", to_train.file, "configuration, see docs/program.md")->required();
    with_settings(train_command, to_train.settings);
    with_limits(train_command, to_train.settings);
    train_command->add_option("--out", to_train.out, "folder of the run");
    train_command->add_flag("--resume", to_train.resume, "go on with the run in the folder, with the same bits");
    CLI::Option* trace =
        train_command->add_option("--trace", to_train.trace, "what is done when, as Chrome trace events, for Perfetto");
    train_command->add_option("--trace-events", to_train.trace_events, "most events of the trace")
        ->needs(trace)
        ->capture_default_str();
    train_command->add_flag("--no-timing", to_train.untimed, "do not note what actions take: two looks at the clock each");
    train_command
        ->add_option("--verify", to_train.verify,
                     "what must have the same bits again: slots (states that are kept or reached again), steps (every "
                     "layer's output besides)")
        ->check(CLI::IsMember({"off", "slots", "steps"}))
        ->capture_default_str();
    with_json(train_command, to_train.json);

    EvalArguments to_eval;
    CLI::App* eval_command = app.add_subcommand("eval", "loss of a trained model");
    eval_command->add_option("run", to_eval.run, "folder of a run, or a snapshot")->required();
    eval_command->add_option("--part", to_eval.parts, "train, valid or test; may be repeated")
        ->check(CLI::IsMember({"train", "valid", "test"}))
        ->allow_extra_args(false);
    with_settings(eval_command, to_eval.settings);
    with_json(eval_command, to_eval.json);

    ReportArguments to_report;
    CLI::App* report_command = app.add_subcommand("report", "a page about a run, as one HTML file");
    report_command->add_option("run", to_report.run, "folder of a run, also of one that is training")->required();
    report_command->add_option("--out", to_report.out, "the file; report.html in the folder unless given");

    SampleArguments to_sample;
    CLI::App* sample_command = app.add_subcommand("sample", "let a model of text write");
    sample_command->add_option("run", to_sample.run, "folder of a run, or a snapshot")->required();
    sample_command->add_option("--bytes", to_sample.bytes, "how much")->capture_default_str();
    sample_command->add_option("--temperature", to_sample.temperature, "0: always the likeliest byte")
        ->capture_default_str();
    sample_command->add_option("--seed", to_sample.seed, "of the draws")->capture_default_str();
    sample_command->add_option("--prompt", to_sample.prompt, "what the model reads first; a new line unless given");
    with_json(sample_command, to_sample.json);

    ExportArguments to_export;
    CLI::App* export_command = app.add_subcommand("export", "a model's weights as PyTorch names them, .safetensors");
    export_command->add_option("run", to_export.run, "folder of a run, or a snapshot")->required();
    export_command->add_option("file", to_export.file, "where to; `model.weights` reads it")->required();

    InfoArguments to_info;
    CLI::App* info_command = app.add_subcommand("info", "a model's layers, their parameters and bytes");
    info_command->add_option("file", to_info.file, "configuration of a run")->required();
    with_settings(info_command, to_info.settings);
    with_json(info_command, to_info.json);

    PlanArguments to_plan;
    CLI::App* plan_command = app.add_subcommand("plan", "schedules, their work and their bytes");
    plan_command->add_option("file", to_plan.file, "configuration of a run; with --graph also a graph; without it: --steps");
    with_settings(plan_command, to_plan.settings);
    plan_command->add_option("--measure", to_plan.measure, "updates of each schedule to run and measure");
    plan_command->add_option("--fit", to_plan.fit, "the largest data.window (T) or data.batch (B) that fits the limits")
        ->check(CLI::IsMember({"T", "B"}));
    plan_command->add_flag("--calibrate", to_plan.calibrate, "plan by measured seconds of every layer");
    ChainArguments& chain = to_plan.chain;
    plan_command->add_option("--steps", chain.steps, "links of a chain");
    plan_command->add_option("--slots", chain.slots, "states that RAM may keep; or --memory");
    plan_command->add_option("--memory", chain.memory, "bytes in RAM of all but the adjoint, such as \"2 GiB\"");
    plan_command->add_option("--state-bytes", chain.state_bytes, "size of a state");
    plan_command->add_option("--tape-bytes", chain.tape_bytes, "size of a link's tape; that of a state unless given");
    plan_command->add_option("--disk", chain.disk, "bytes that the disk may keep");
    plan_command->add_option("--disk-slots", chain.disk_slots, "states that the disk may keep");
    plan_command->add_option("--costs", chain.costs,
                             "advance=1,record=1,reverse=1,ram-write=0,ram-read=0,disk-write=0,disk-read=0");
    plan_command->add_flag("--restart", chain.restart, "a tape gives the state behind its link");
    plan_command->add_option("--schedule", chain.schedule, "one family; without it all, best first");
    plan_command->add_flag("--actions", chain.actions, "print the actions of the best one");
    plan_command->add_option("--plot", chain.plot, "draw the best one, or of a configuration bytes against time, as SVG");
    plan_command->add_flag("--graph", to_plan.graph,
                           "the graph of the model, or the file is one, in JSON: see docs/graphs.md; with --memory its plan");
    with_json(plan_command, to_plan.json);

    bool version_json = false;
    CLI::App* version_command = app.add_subcommand("version", "of the program and how it was built");
    with_json(version_command, version_json);
    CLI::App* keys_command = app.add_subcommand("keys", "all keys of a configuration, as a Markdown table");

    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    if (count > 1 && words[1][0] != '-' &&
        std::none_of(commands.begin(), commands.end(), [&](const CLI::App* c) { return c->get_name() == words[1]; })) {
        fmt::print(stderr, "backsweep: unknown command '{}'; --help lists them\n", words[1]);
        return bad_input;
    }
    try {
        app.parse(count, words);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : bad_input;
    }

    try {
        if (*train_command) return train(to_train);
        if (*eval_command) return eval(to_eval);
        if (*report_command) return report(to_report);
        if (*sample_command) return sample(to_sample);
        if (*export_command) return export_weights(to_export);
        if (*info_command) return info(to_info);
        if (*plan_command) return plan(to_plan);
        if (*keys_command) return fmt::print("{}", keys_as_markdown()), 0;
        const BuildInfo& info = build_info();
        fmt::print("{}", version_json ? version_as_json()
                                      : fmt::format("backsweep {}, built by {} ({}) with {}\n", info.version,
                                                    info.compiler, info.build_type, info.flags));
        return *version_command ? 0 : bad_input;
    } catch (const InvalidArgument& error) {
        fmt::print(stderr, "backsweep: {}\n", error.what());
        return bad_input;
    } catch (const NoPlan& error) {
        fmt::print(stderr, "backsweep: {}\n", error.what());
        return bad_input;
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "backsweep: the system has too little memory for this model and data; make them smaller\n");
        return failed;
    } catch (const std::exception& error) {
        fmt::print(stderr, "backsweep: {}\n", error.what());
        return failed;
    }
}

/// The code, or that of a failure if the answer did not get out.
int flushed(int code) {
    errno = 0;
    std::cout.flush();
    const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
    if (!lost || code != 0) return code;
    fmt::print(stderr, "backsweep: cannot write to standard output: {}\n",
               errno != 0 ? std::strerror(errno) : "an earlier write failed");
    return failed;
}

}  // namespace

}  // namespace backsweep::cli

int main(int count, char** words) {
    backsweep::cli::pin_blas();
    backsweep::cli::survive_file_limits();
    return backsweep::cli::flushed(backsweep::cli::run(count, words));
}
