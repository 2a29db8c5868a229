// The folder of a run: config.toml (resolved, with the pinned plan), manifest.json, metrics.jsonl, snapshots/.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/train/manifest.hpp"
#include "backsweep/train/snapshot.hpp"
#include "cli/config.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace backsweep::cli {

class RunFolder {
public:
    explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
    ~RunFolder();
    RunFolder(const RunFolder&) = delete;
    RunFolder& operator=(const RunFolder&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    std::filesystem::path snapshots() const { return path_ / "snapshots"; }

    /// Whether a file stands there, other than the lock and what a killed process left half-written.
    bool used() const;
    /// Takes the run that stands there for this object's life. Throws InvalidArgument if there is none, or another
    /// process has it.
    void claim();
    /// The configuration of the run that stands there, changed by "key=value"; throws InvalidArgument if there is none.
    Config config(const std::vector<std::string>& settings = {}) const;
    /// The newest snapshot that can be read; empty if none was written yet. Tells `warnings` of damaged ones; throws
    /// InvalidArgument if all are.
    std::optional<NewestSnapshot> newest(std::vector<std::string>& warnings) const;

    /// Writes config.toml and manifest.json, and keeps of the metrics those up to `update`; claims a new run. Throws
    /// StoreError, and InvalidArgument if another process has begun a run there meanwhile.
    void begin(const Config& config, const RunManifest& manifest, Index update);
    /// Appends to metrics.jsonl; throws StoreError.
    void append(const std::string& line);

private:
    void require_run() const;
    void lock();

    std::filesystem::path path_;
    std::ofstream metrics_;
    int lock_ = -1;  // a descriptor: the system gives the lock back however the process ends
};

/// A run or a single snapshot, read for use.
struct OpenRun {
    Config config;
    Snapshot snapshot;
    std::filesystem::path path;  ///< of the snapshot

    /// Snapshot::read_parameters(), but what does not fit, such as another precision, is InvalidArgument.
    template <class Real>
    void read_parameters(const ParameterLayout& layout, std::span<Real> to) const {
        try {
            snapshot.read_parameters<Real>(layout, to);
        } catch (const StoreError& error) {
            throw InvalidArgument(error.what());
        }
    }
};
/// `path`: a run's folder (its newest snapshot), or a snapshot, which knows its run's configuration. `settings` are
/// "key=value". Throws InvalidArgument.
OpenRun open_run(const std::filesystem::path& path, const std::vector<std::string>& settings,
                 std::vector<std::string>& warnings);

/// The note of a snapshot under which the configuration of its run stands.
inline constexpr const char* config_note = "config";

}  // namespace backsweep::cli
