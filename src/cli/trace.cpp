// SPDX-License-Identifier: MIT
#include "cli/trace.hpp"

#include "backsweep/base/error.hpp"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <utility>

namespace backsweep::cli {

namespace {

const std::filesystem::path& in_a_folder(const std::filesystem::path& path) {
    std::error_code error;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);  // DurableFile says why not
    return path;
}

/// The places of an action, as JSON members behind others.
std::string slots_of(const Action& a) {
    std::string out;
    for (const auto& [key, slot] : {std::pair{"from", a.from}, std::pair{"to", a.to}})
        if (slot.index >= 0) out += fmt::format(R"(,"{}":"{}")", key, to_string(slot));
    return out;
}

}  // namespace

double steady_seconds() noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Trace::Trace(const std::filesystem::path& path, Index shards, Index events)
    : path_(path),
      file_(in_a_folder(path)),
      live_(static_cast<std::size_t>(shards) + 1),
      start_(steady_seconds()),
      most_(events) {
    file_.stream() << "{\"traceEvents\":[";
    for (Index p = 0; p <= shards; ++p) {
        line(fmt::format(R"({{"ph":"M","pid":{0},"tid":{0},"name":"process_name","args":{{"name":"{1}"}}}})", p,
                         p < shards ? fmt::format("shard {}", p) : "training"));
        line(fmt::format(R"({{"ph":"M","pid":{0},"tid":{0},"name":"thread_name","args":{{"name":"{1}"}}}})", p,
                         p < shards ? "actions" : "updates"));
        line(fmt::format(R"({{"ph":"M","pid":{0},"tid":{0},"name":"process_sort_index","args":{{"sort_index":{1}}}}})", p,
                         p < shards ? p + 1 : 0));
    }
}

Trace::~Trace() {
    try {
        finish();
    } catch (const std::exception&) {  // the error that ended the training is the one to tell
    }
}

void Trace::line(const std::string& event) {
    file_.stream() << (std::exchange(first_, false) ? "\n" : ",\n") << event;
}

bool Trace::has_room(Index update) {
    if (events_ < most_) return ++events_, true;
    ++left_out_;
    if (full_at_ == 0) full_at_ = update;
    return false;
}

void Trace::counter(Index process, double at, const Bytes& live) {
    std::string kinds;
    for (std::size_t k = 0; k < kind_count; ++k)
        kinds += fmt::format(R"({}"{}":{})", k == 0 ? "" : ",", to_string(static_cast<Kind>(k)), live.by_kind[k]);
    line(fmt::format(R"({{"ph":"C","pid":{},"name":"live bytes","ts":{:.3f},"args":{{{}}}}})", process, micro(at), kinds));
}

void Trace::add(const Played& p, const Bytes& live) {
    const Action& a = p.action;
    if (a.verb == Verb::done) return;
    const std::lock_guard lock(mutex_);
    if (has_room(p.update))
        line(fmt::format(R"({{"ph":"X","cat":"action","pid":{0},"tid":{0},"name":"{1}","ts":{2:.3f},"dur":{3:.3f},)"
                         R"("args":{{"first":{4},"last":{5}{6},"update":{7},"micro_batch":{8}}}}})",
                         p.shard, to_string(a.verb), micro(p.begin), 1e6 * (p.end - p.begin), a.steps.first, a.steps.last,
                         slots_of(a), p.update, p.micro_batch));
    Bytes& told = live_[static_cast<std::size_t>(p.shard)];
    if (live == told || !has_room(p.update)) return;
    counter(p.shard, p.end, told = live);
}

void Trace::add(const UpdateReport& r, double begin, double end, const Bytes& live) {
    const std::lock_guard lock(mutex_);
    const Index process = static_cast<Index>(live_.size()) - 1;
    if (has_room(r.update))
        line(fmt::format(R"({{"ph":"X","cat":"update","pid":{0},"tid":{0},"name":"update {1}","ts":{2:.3f},"dur":{3:.3f},)"
                         R"("args":{{"first":{4},"steps":{5},"loss":{6:.9g},"rate":{7:.9g}}}}})",
                         process, r.update, micro(begin), 1e6 * (end - begin), r.first, r.steps, r.loss, r.rate));
    Bytes& told = live_.back();
    if (live == told || !has_room(r.update)) return;
    counter(process, end, told = live);
}

std::string Trace::notice() {
    const std::lock_guard lock(mutex_);
    if (full_at_ == 0 || std::exchange(told_, true)) return {};
    return fmt::format("the trace '{}' has reached its limit of {} events in update {}: what follows is not in it; "
                       "--trace-events moves the limit",
                       path_.string(), most_, full_at_);
}

void Trace::finish() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(finished_, true)) return;
    file_.stream() << fmt::format(
        "\n],\"displayTimeUnit\":\"ms\",\"otherData\":{{\"events\":{},\"left_out\":{},\"full_in_update\":{}}}}}\n", events_,
        left_out_, full_at_);
    file_.commit();
}

}  // namespace backsweep::cli
