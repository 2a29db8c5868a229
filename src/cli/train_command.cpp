// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "backsweep/train/plan_json.hpp"
#include "backsweep/train/weights.hpp"
#include "cli/commands.hpp"
#include "cli/planning.hpp"
#include "cli/process.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "cli/run_folder.hpp"
#include "cli/task.hpp"
#include "cli/toml.hpp"
#include "cli/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>

namespace backsweep::cli {

namespace {

constexpr const char* seconds_note = "seconds";

/// Adds up the seconds between starts and stops.
class Stopwatch {
public:
    explicit Stopwatch(double before) : total_(before) {}
    void start() { from_ = Clock::now(); }
    void stop() { total_ += std::chrono::duration<double>(Clock::now() - from_).count(); }
    double seconds() const noexcept { return total_; }

private:
    using Clock = std::chrono::steady_clock;
    double total_;
    Clock::time_point from_{};
};

/// The limits of a run: the first one reached ends it.
struct Limits {
    Index updates = 0;     ///< 0: none
    Index epochs = 0;      ///< 0: none, or said by updates
    double seconds = 0.0;  ///< 0: none

    Limits(const Config::Train& t, Index windows) : updates(t.updates), seconds(t.seconds) {
        if (t.windows != "fixed")
            epochs = t.epochs;
        else if (t.epochs > 0 && (updates == 0 || t.epochs * windows < updates))
            updates = t.epochs * windows;
    }
    double done(Index update, Index epoch, double spent) const {
        const auto share = [](double is, double limit) { return limit > 0.0 ? is / limit : 0.0; };
        return std::min(1.0, std::max({share(static_cast<double>(update), static_cast<double>(updates)),
                                       share(static_cast<double>(epoch), static_cast<double>(epochs)),
                                       share(spent, seconds)}));
    }
};

/// Seconds of one update's actions by verb. A shard writes its own line alone.
class Spent {
public:
    explicit Spent(Index shards) : lines_(static_cast<std::size_t>(shards)) {}
    void add(const Played& p) noexcept {
        lines_[static_cast<std::size_t>(p.shard)].seconds[static_cast<std::size_t>(p.action.verb)] += p.end - p.begin;
    }
    /// The sums over the shards, which begin anew.
    VerbSeconds take() noexcept {
        VerbSeconds sums{};
        for (Line& line : lines_) {
            for (std::size_t v = 0; v < sums.size(); ++v) sums[v] += line.seconds[v];
            line = {};
        }
        return sums;
    }

private:
    struct alignas(64) Line {
        VerbSeconds seconds{};
    };
    std::vector<Line> lines_;
};

TrainOptions::Verify verify_mode(const std::string& name) {
    using Verify = TrainOptions::Verify;
    return name == "steps" ? Verify::steps : name == "slots" ? Verify::slots : Verify::off;
}

struct Interrupted {};

/// A source that is read no further once a signal was noted: read() throws Interrupted.
template <class Real>
class InterruptibleSource final : public Source<Real> {
public:
    explicit InterruptibleSource(std::unique_ptr<Source<Real>> source) : source_(std::move(source)) {}

    const std::string& name() const noexcept override { return source_->name(); }
    Index batch() const noexcept override { return source_->batch(); }
    Index window() const noexcept override { return source_->window(); }
    Index windows() const noexcept override { return source_->windows(); }
    Index length() const noexcept override { return source_->length(); }
    bool divisible() const noexcept override { return source_->divisible(); }
    std::int64_t step_bytes() const noexcept override { return source_->step_bytes(); }
    Index remainder() const noexcept override { return source_->remainder(); }
    bool fresh(Index window) const noexcept override { return source_->fresh(window); }
    void read(const Cut& cut, Batch<Real>& batch) const override {
        if (interrupted()) throw Interrupted{};
        source_->read(cut, batch);
    }

private:
    std::unique_ptr<Source<Real>> source_;
};

/// Refuses a pinned plan that the configuration does not allow.
void check_pinned(const Config& config) {
    const ScheduleOptions &wanted = config.schedule, &pinned = config.plan.schedule;
    if (wanted.family != "auto" &&
        (wanted.family != pinned.family || wanted.slots != pinned.slots || wanted.period != pinned.period ||
         (!wanted.rule.empty() && wanted.rule != pinned.rule)))
        throw InvalidArgument("the pinned [plan] and [schedule] name different schedules; delete [plan] to plan anew");
    if (!fits(config.plan, config.memory))
        throw NoPlan(fmt::format("the pinned [plan] does not fit [memory]: {}; delete [plan] to plan anew",
                                 shortfall(config.plan, config.memory)));
}

RunManifest manifest_of(const Config& config, const Data& data, const Plan& plan, const std::vector<std::string>& command) {
    RunManifest manifest = this_program();
    manifest.threads = config.train.threads;
    manifest.seed = static_cast<std::uint64_t>(config.train.seed);
    manifest.data = data.text ? data.text->path() : config.data.kind;
    manifest.data_bytes = data.text ? data.text->size() : 0;
    manifest.data_checksum = config.data.checksum;
    manifest.plan = to_json(plan);
    manifest.command = command;
    return manifest;
}

/// Opens and checks everything before the first byte is written, then trains.
template <class Real>
class Run {
public:
    Run(Config config, const std::optional<Config>& then, TrainOptions::Verify verify, RunFolder& folder,
        std::vector<std::string>& warnings)
        : config_(std::move(config)),
          folder_(folder),
          data_(open_data(config_.data)),
          source_(make_source<Real>(config_.data, data_, "train")),
          limits_(config_.train, source_->windows()) {
        if (then && !config_.pinned()) pin(config_, then->plan);
        planning_ = std::make_unique<Planning<Real>>(config_, data_, *source_);
        options_ = planning_->options();
        options_.verify = verify;
        if (then) {
            if (then->data.checksum != config_.data.checksum && then->data.kind == config_.data.kind)
                throw InvalidArgument(fmt::format(
                    "the text '{}' is not the one of the run in '{}': its checksum was {} and is {}; bring the old "
                    "text back, or start another run with --out",
                    config_.data.path, folder.path().string(), then->data.checksum, config_.data.checksum));
            if (config_.model.weights == then->model.weights && config_.model.checksum.empty())
                config_.model.checksum = then->model.checksum;
            if (const std::string changed = difference(*then, config_); !changed.empty())
                throw InvalidArgument(fmt::format(
                    "the run in '{}' cannot be resumed with another configuration: {}; give the old value, or "
                    "start another run with --out",
                    folder.path().string(), changed));
        }
        if (config_.pinned()) check_pinned(config_);
        pin(config_, planning_->plan(config_));
        trainer_ = std::make_unique<Trainer<Real>>(network(), *source_, options_, config_.plan);
        options_ = trainer_->options();
        if (has_part(config_.data, data_, "valid"))
            valid_ = std::make_unique<InterruptibleSource<Real>>(make_source<Real>(config_.data, data_, "valid"));
        if (!valid_ && config_.output.eval_every > 0)
            throw InvalidArgument(
                "'output.eval_every' has no effect here: the validation part of the text has less than two bytes; "
                "leave it out");
        if (!valid_ && options_.rate.law == RateSpec::Law::plateau)
            throw InvalidArgument(
                "rate.law = \"plateau\" needs a validation part, but the one of the text has less than two bytes; "
                "change data.split, or take another law");
        std::optional<NewestSnapshot> newest;
        if (then) newest = folder.newest(warnings);
        if (!newest && !config_.model.weights.empty()) start_from_weights();
        if (newest) {
            trainer_->restore(newest->snapshot);
            snapshot_ = newest->path.string();
            if (const auto note = newest->snapshot.notes.find(seconds_note); note != newest->snapshot.notes.end())
                seconds_before_ = std::strtod(note->second.c_str(), nullptr);
        }
    }

    /// Once: a resumed run has a snapshot, and asks for the file no more.
    void start_from_weights() try {
        std::string& known = config_.model.checksum;
        const std::string checksum = file_checksum(config_.model.weights);
        if (!known.empty() && known != checksum)
            throw InvalidArgument(fmt::format(
                "the weights '{}' have changed: their checksum was {} and is {}; bring the old file back, or train anew",
                config_.model.weights, known, checksum));
        known = checksum;
        load_weights<Real>(config_.model.weights, network(), trainer_->parameters());
    } catch (const StoreError& error) {
        throw InvalidArgument(error.what());
    }

    Index shards() const noexcept { return trainer_->shards(); }

    /// `trace` may be null; `timed`: what actions take is noted.
    TrainReport train(const std::vector<std::string>& command, Trace* trace, bool timed, std::FILE* out) {
        const Index began = trainer_->updates();
        const bool idle = limits_.done(began, trainer_->epoch(), seconds_before_) >= 1.0;  // the folder stays as it is
        if (!idle) folder_.begin(config_, manifest_of(config_, data_, trainer_->plan(), command), began);
        Stopwatch watch(seconds_before_);
        Progress progress(out, config_.memory);
        TrainReport report;
        report.bits = has_bits(config_);
        double steps = 0.0;
        report.snapshot = snapshot_;
        Index saved = snapshot_.empty() ? -1 : began, evaluated = -1;
        const Config::Output& every = config_.output;
        Spent spent(trainer_->shards());
        Bytes peak{};
        std::int64_t rss = 0;
        std::size_t told = 0;  // of the recoveries
        if (timed || trace)
            trainer_->observe_actions([&](const Played& played) {
                spent.add(played);
                if (trace) trace->add(played, trainer_->live(played.shard));
            });
        const auto is_due = [&](Index count) { return count > 0 && trainer_->updates() % count == 0; };
        // An interrupted run may lack the validation loss that the rate waits for.
        const auto rate_waits = [&] {
            return options_.rate.law == RateSpec::Law::plateau &&
                   trainer_->updates() / config_.rate.period > trainer_->plateau().seen;
        };
        const auto evaluate_now = [&] {
            if (!evaluate_valid(report)) return;
            evaluated = trainer_->updates();
            if (rate_waits()) trainer_->observe(report.valid->result.loss);
        };

        if (!idle && rate_waits()) or_snapshot(report, watch, evaluate_now);
        while (!interrupted() && limits_.done(trainer_->updates(), trainer_->epoch(), watch.seconds()) < 1.0) {
            watch.start();
            const double begun = steady_seconds();
            const UpdateReport update = or_snapshot(report, watch, [&] { return trainer_->update(); });
            const double ended = steady_seconds();
            watch.stop();
            for (; told < trainer_->recoveries().size(); ++told) {
                const Recovery& recovery = trainer_->recoveries()[told];
                if (recovery.from == Recovery::From::start) continue;
                progress.clear();
                fmt::print(out, "update {}, shard {}: {}\n", update.update, told, recovery.text);
                std::fflush(out);
            }
            UpdateNote note{watch.seconds(), report.bits, trainer_->live(), {}, 0, {}};
            if (timed) note.spent = spent.take();
            if (const Bytes now = trainer_->measured(); now != peak) note.peak = peak = now;
            if (const std::int64_t now = peak_rss(); now != rss) note.peak_rss = rss = now;
            report.loss = update.loss;
            report.last = update.counts;
            report.all += update.counts;
            steps += static_cast<double>(update.steps * source_->batch());
            folder_.append(metrics_line(update, note));
            if (trace) {
                trace->add(update, begun, ended, note.live);
                if (const std::string notice = trace->notice(); !notice.empty()) progress.clear(), warn({notice});
            }
            const double trained = watch.seconds() - seconds_before_;
            progress.show({update.update, limits_.done(update.update, trainer_->epoch(), watch.seconds()), watch.seconds(),
                           trained > 0.0 ? steps / trained : 0.0, update.loss, report.bits, trainer_->live()});
            if (is_due(every.eval_every) || rate_waits()) or_snapshot(report, watch, evaluate_now);
            if (is_due(every.snapshot_every)) saved = save(report, watch.seconds());
        }
        if (saved != trainer_->updates()) saved = save(report, watch.seconds());
        if (valid_ && !interrupted() && evaluated != trainer_->updates()) evaluate_valid(report, !idle);
        report.interrupted = interrupted();
        trainer_->observe_actions({});
        progress.clear();

        report.updates = trainer_->updates();
        report.epochs = trainer_->epoch();
        report.steps = source_->window() + options_.look_back;
        report.seconds = watch.seconds();
        report.remainder = source_->remainder();
        report.plan = trainer_->plan();
        report.measured = trainer_->measured();
        if (const std::string over = trainer_->overrun(); !over.empty()) warn({over});
        report.chains =
            options_.micro_batches *
            static_cast<Index>(shard_sizes(source_->batch() / options_.micro_batches, options_.shards).size());
        report.peak_rss = peak_rss();
        report.folder = folder_.path().string();
        return report;
    }

private:
    const Network<Real>& network() const { return planning_->network(config_.plan); }

    Index save(TrainReport& report, double seconds) {
        Snapshot snapshot = trainer_->snapshot();
        snapshot.notes[config_note] = to_toml(config_);
        snapshot.notes[seconds_note] = fmt::format("{}", seconds);
        report.snapshot = save_snapshot(folder_.snapshots(), snapshot, config_.output.keep).string();
        return trainer_->updates();
    }

    /// Calls f; where its numbers fail before the first snapshot, leaves one of the parameters that it found.
    template <class F>
    auto or_snapshot(TrainReport& report, const Stopwatch& watch, const F& f) {
        try {
            return f();
        } catch (const NumericError& error) {
            if (report.snapshot.empty()) save(report, watch.seconds());
            throw NumericError(fmt::format("after update {}: {}; the last snapshot is '{}'", trainer_->updates(),
                                           error.what(), report.snapshot));
        }
    }

    /// False, with nothing done, once a signal was noted.
    bool evaluate_valid(TrainReport& report, bool noted = true) {
        try {
            report.valid = {"valid",
                            evaluate<Real>(network(), trainer_->parameters(), *valid_, options_.chunk, options_.shards,
                                           options_.threads, options_.carry),
                            has_bits(config_)};
        } catch (const Interrupted&) {
            return false;
        }
        if (noted) folder_.append(metrics_line(*report.valid, trainer_->updates()));
        return true;
    }

    Config config_;
    RunFolder& folder_;
    Data data_;
    std::unique_ptr<Source<Real>> source_, valid_;
    TrainOptions options_;
    Limits limits_;
    std::unique_ptr<Planning<Real>> planning_;
    std::unique_ptr<Trainer<Real>> trainer_;
    double seconds_before_ = 0.0;
    std::string snapshot_;  // that was restored
};

/// Nothing is written yet: a place that takes no file is a bad argument.
std::unique_ptr<Trace> open_trace(const TrainArguments& arguments, Index shards) try {
    if (std::filesystem::is_directory(arguments.trace))
        throw InvalidArgument(fmt::format("--trace wants a file, but '{}' is a folder", arguments.trace.string()));
    return std::make_unique<Trace>(arguments.trace, shards, arguments.trace_events);
} catch (const StoreError& error) {
    throw InvalidArgument(fmt::format("--trace: {}", error.what()));
}

}  // namespace

int train(const TrainArguments& arguments) {
    require_within("--trace-events", arguments.trace_events, 1, 1'000'000'000);
    std::vector<Given> given = read_toml(arguments.file);
    for (const std::string& setting : arguments.settings) given.push_back(parse_setting(setting));
    if (!arguments.out.empty())
        given.push_back({"output.folder",
                         {arguments.out, arguments.out},
                         "--out " + arguments.out,
                         std::filesystem::current_path()});
    Config config = configure(given).config;
    if (config.output.folder.empty())
        config.output.folder = (std::filesystem::current_path() / "runs" / arguments.file.stem()).string();
    if (!is_utf8(config.output.folder))
        throw InvalidArgument(
            fmt::format("the folder '{}' is no UTF-8; give another one with --out", config.output.folder));
    RunFolder folder(config.output.folder);
    std::optional<Config> then;
    if (folder.used()) {
        if (!arguments.resume)
            throw InvalidArgument(
                fmt::format("the folder '{}' is not empty; --resume goes on with its run, --out starts one elsewhere",
                            folder.path().string()));
        folder.claim();
        then = folder.config();
    }
    note_interrupts();
    return with_precision(config.train.precision, [&](auto real) {
        std::vector<std::string> warnings;
        Run<decltype(real)> run(config, then, verify_mode(arguments.verify), folder, warnings);
        warn(warnings);
        std::unique_ptr<Trace> trace;
        if (!arguments.trace.empty()) trace = open_trace(arguments, run.shards());
        const TrainReport report = run.train(arguments.command, trace.get(), !arguments.untimed, arguments.json ? stderr : stdout);
        if (trace) trace->finish();
        if (!report.loss && !report.interrupted)
            fmt::print(stderr, "backsweep: nothing is left to do: the run in '{}' has reached its limit\n",
                       report.folder);
        fmt::print("{}", arguments.json ? as_json(report) : as_text(report));
        if (report.interrupted)
            fmt::print(stderr, "interrupted after update {}; --resume goes on with the same bits\n", report.updates);
        return report.interrupted ? 128 + report.interrupted : 0;
    });
}

}  // namespace backsweep::cli
