// SPDX-License-Identifier: MIT
#include "backsweep/chain/commits.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

namespace backsweep {

namespace {

double now() noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Blob blob_of(Commits::Note& note) {
    return {reinterpret_cast<std::byte*>(&note), sizeof note};
}

Blob blob_of(const std::vector<Commits::Survivor>& survivors) {
    return {reinterpret_cast<std::byte*>(const_cast<Commits::Survivor*>(survivors.data())),
            survivors.size() * sizeof survivors[0]};
}

/// Whether the newest record is one of a sweep.
bool read_note(const Journal& journal, Commits::Note& note) {
    const auto last = journal.last();
    if (!last || last->bytes < static_cast<std::int64_t>(sizeof note)) return false;
    const Blob head = blob_of(note);
    journal.read({&head, 1});
    return note.magic == Commits::Note{}.magic;
}

void same_size(const char* what, std::uint64_t recorded, const std::vector<Blob>& now) {
    if (recorded == total_size(now)) return;
    throw InvalidArgument(std::string("the journal holds ") + std::to_string(recorded) + " bytes of " + what +
                          ", but the sweep that is to go on has " + std::to_string(total_size(now)) +
                          "; go on with the chain, the options and the sizes of the killed run, or clear the journal");
}

}  // namespace

std::string CommitOptions::problem() const {
    if (links < 0)
        return "links is " + std::to_string(links) + "; a commit follows after 1 link or more, 0: not by links";
    if (!(seconds >= 0.0) || std::isinf(seconds))
        return "seconds is " + std::to_string(seconds) + "; give a finite number above 0, or 0: not by time";
    if (links == 0 && seconds == 0.0) return "neither links nor seconds is given; say how often to commit";
    if (ram_slots < -1) return "ram_slots is " + std::to_string(ram_slots) + "; give 0 or more, or -1: as the schedule";
    return {};
}

Commits::Commits(Journal& journal, CommitOptions options) : journal_(&journal), options_(std::move(options)) {
    if (const std::string why = options_.problem(); !why.empty()) throw InvalidArgument("commits: " + why);
}

void Commits::begin(std::uint64_t sweep, std::uint64_t start) {
    sweep_ = sweep;
    start_ = start;
    on_ = true;
    news_ = 0;
    piece_ = 1;
    looked_ = committed_ = now();
}

Index Commits::pause(Range r, bool fresh) const noexcept {
    Index stop = r.last;
    if (fresh && options_.links > 0) stop = std::min(stop, r.first + std::max<Index>(1, options_.links - news_));
    if (options_.seconds > 0.0) stop = std::min(stop, r.first + piece_);
    return stop;
}

bool Commits::due(Index links) {
    news_ += links;
    if (links > 0 && options_.links > 0 && news_ >= options_.links) return true;
    if (options_.seconds == 0.0) return false;
    const double t = now();
    // A piece takes a 50th of the interval or less, unless a link takes longer.
    piece_ = t - looked_ < options_.seconds / 100.0 ? std::min<Index>(2 * piece_, Index{1} << 40)
                                                    : std::max<Index>(piece_ / 2, 1);
    looked_ = t;
    return t - committed_ >= options_.seconds;
}

void Commits::write(Note note, const std::vector<Survivor>& survivors, const std::vector<Blob>& x,
                    const std::vector<Blob>& adjoint, const std::vector<Blob>& sums) {
    note.sweep = sweep_;
    note.start = start_;
    note.survivors = static_cast<Index>(survivors.size());
    note.x = total_size(x);
    note.adjoint = total_size(adjoint);
    note.sums = total_size(sums);
    std::vector<Blob> all{blob_of(note), blob_of(survivors)};
    for (const std::vector<Blob>* part : {&x, &adjoint, &sums}) all.insert(all.end(), part->begin(), part->end());
    journal_->commit(all);
    news_ = 0;
    committed_ = looked_ = now();
}

std::optional<std::uint64_t> Commits::sweep_in(const Journal& journal) {
    Note note;
    return read_note(journal, note) ? std::optional(note.sweep) : std::nullopt;
}

std::optional<Commits::Note> Commits::find(std::vector<Survivor>& survivors, std::string& why) const {
    Note note;
    const std::string number = std::to_string(sweep_);
    if (!journal_->last()) {
        why = "the journal is empty";
    } else if (!read_note(*journal_, note)) {
        why = "the journal's record is none of a sweep, or of another version";
    } else if (note.sweep != sweep_) {
        why = "the journal's record is of sweep " + std::to_string(note.sweep) + ", not " + number;
    } else if (note.start != start_) {
        why = "the journal's record of sweep " + number + " began at another x_0";
    } else {
        survivors.resize(static_cast<std::size_t>(note.survivors));
        const Blob parts[] = {blob_of(note), blob_of(survivors)};
        journal_->read(parts);
        return note;
    }
    return {};
}

void Commits::read(const Note& note, const std::vector<Blob>& x, const std::vector<Blob>& adjoint,
                   const std::vector<Blob>& sums) const {
    same_size("a state", note.x, x);
    same_size("an adjoint", note.adjoint, adjoint);
    same_size("sums", note.sums, sums);
    Note again;
    std::vector<Survivor> survivors(static_cast<std::size_t>(note.survivors));
    std::vector<Blob> all{blob_of(again), blob_of(survivors)};
    for (const std::vector<Blob>* part : {&x, &adjoint, &sums}) all.insert(all.end(), part->begin(), part->end());
    journal_->read(all);
}

}  // namespace backsweep
