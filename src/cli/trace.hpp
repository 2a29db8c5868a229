// What a training did when, in Chrome's trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/ledger.hpp"
#include "backsweep/train/durable_file.hpp"
#include "backsweep/train/trainer.hpp"

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace backsweep::cli {

/// Process and thread of an event are the number of its shard; behind the shards stands one process for the updates.
/// Actions and updates are complete events ("X") with the categories `action` and `update`; live bytes are counters, told
/// where they change. Times are microseconds since the trace was opened. Events go to the file as they come, so that a
/// trace takes no memory; the file is there whole once it is finished, or not at all.
class Trace {
public:
    /// At most `events` of them. Makes the folder; throws StoreError.
    Trace(const std::filesystem::path& path, Index shards, Index events);
    /// Finishes, if finish() was not called: a training that fails leaves its trace. Errors end here.
    ~Trace();
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    /// Any thread; `live`: what the shard holds after it.
    void add(const Played& played, const Bytes& live);
    /// An update that is over; `live`: of all shards and what they share.
    void add(const UpdateReport& report, double begin, double end, const Bytes& live);
    /// "" or, once, that the limit was reached, in which update, and what to do.
    std::string notice();
    /// Throws StoreError.
    void finish();

private:
    /// One more event fits.
    bool has_room(Index update);
    void line(const std::string& event);
    void counter(Index process, double at, const Bytes& live);
    double micro(double seconds) const noexcept { return 1e6 * (seconds - start_); }

    std::filesystem::path path_;
    DurableFile file_;
    std::mutex mutex_;
    std::vector<Bytes> live_;  // last told, by process
    double start_;
    Index most_, events_ = 0, left_out_ = 0;
    Index full_at_ = 0;  // update in which the limit was reached; 0: not yet
    bool told_ = false, finished_ = false, first_ = true;
};

/// Seconds of the clock that Played counts.
double steady_seconds() noexcept;

}  // namespace backsweep::cli
