// Sweeps that survive a kill: when one writes down where it stands, what a record holds, and what is found when it goes
// on in another process. docs/restart.md says what is lost and what a commit costs.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/base/range.hpp"
#include "backsweep/store/journal.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace backsweep {

/// When a sweep commits; at least one of the two intervals.
struct BACKSWEEP_API CommitOptions {
    Index links = 0;       ///< after so many links were first reached, or reversed; 0: not by links
    double seconds = 0.0;  ///< after so many seconds, also while states are computed again; 0: not by time
    /// RAM slots of the schedule that goes on after a kill; -1: as many as the schedule has in use at most. One is
    /// taken even of 0 where x_0 is not on disk.
    Index ram_slots = -1;
    /// The caller's own numbers that must survive beside the chain's sums(): what the turn or a watch has given. Called
    /// at every commit, and when a sweep goes on, where it must find the same sizes.
    std::function<std::vector<Blob>()> more{};

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// Where a sweep went on.
struct Recovery {
    enum class From {
        start,    ///< at x_0: there was nothing to go on from
        forward,  ///< in the forward sweep, from x_at
        reverse   ///< behind the turn: the adjoint of x_at is there
    };
    From from = From::start;
    Index at = 0;
    Index states = 0;  ///< found whole on disk
    std::string text;  ///< the same in words, and why a record was not used
};

/// The records of one sweep after another in a journal, and when the next one is due. Part of an Execution.
class BACKSWEEP_API Commits {
public:
    static constexpr Index nowhere = -1;

    /// What a record begins with; then come the survivors, x, the adjoint, and the sums.
    struct Note {
        std::uint64_t magic = 0x3170656577736b62;  // "bksweep1"
        std::uint64_t sweep = 0;
        std::uint64_t start = 0;  ///< fingerprint of x_0
        Index at = nowhere;       ///< the step of x; nowhere: the record has none
        Index end = nowhere;      ///< links below it are left to reverse; nowhere: before the turn, there is no adjoint
        Index turn = nowhere;
        Index length = nowhere;  ///< of the chain; nowhere: not known yet
        Index survivors = 0;
        std::uint64_t x = 0, adjoint = 0, sums = 0;  ///< bytes
    };
    /// A state on disk.
    struct Survivor {
        Index slot = 0, step = 0;
        std::uint64_t bytes = 0, print = 0;  ///< of the content: size and fingerprint
    };

    /// Bytes of a record at most, of which the journal keeps two: so many states on disk, bytes of x, adjoint and sums.
    static constexpr std::int64_t record_bytes(Index on_disk, std::int64_t x, std::int64_t adjoint,
                                               std::int64_t sums) noexcept {
        return static_cast<std::int64_t>(sizeof(Note)) + on_disk * static_cast<std::int64_t>(sizeof(Survivor)) + x +
               adjoint + sums;
    }

    /// The number of the sweep whose record a journal holds, for a program of many sweeps: those before it need no
    /// commits, which would take the record's place. Nothing if there is no record of a sweep.
    static std::optional<std::uint64_t> sweep_in(const Journal& journal);

    /// Without a journal: nothing is due.
    Commits() = default;
    /// The journal must outlive it. Throws InvalidArgument: options.problem().
    Commits(Journal& journal, CommitOptions options);

    bool has_journal() const noexcept { return journal_ != nullptr; }
    const CommitOptions& options() const noexcept { return options_; }
    std::vector<Blob> more() const { return options_.more ? options_.more() : std::vector<Blob>{}; }

    /// A sweep begins that commits; `start`: fingerprint of x_0.
    void begin(std::uint64_t sweep, std::uint64_t start);
    void end() noexcept { on_ = false; }
    bool on() const noexcept { return on_; }

    /// Where an advance stops to let a commit in: at r.last or sooner. `fresh`: its links are reached for the first
    /// time.
    Index pause(Range r, bool fresh) const noexcept;
    /// `links` more are new: whether a commit is due.
    bool due(Index links);
    /// Links that are new since the last commit.
    Index news() const noexcept { return news_; }

    /// The sweep, the start and all sizes are entered into the note. Throws StoreError.
    void write(Note note, const std::vector<Survivor>& survivors, const std::vector<Blob>& x,
               const std::vector<Blob>& adjoint, const std::vector<Blob>& sums);
    /// The newest record if it is of this sweep, which has begun; else nothing, and in words why.
    std::optional<Note> find(std::vector<Survivor>& survivors, std::string& why) const;
    /// Reads it. Throws InvalidArgument if one of the sizes is another.
    void read(const Note& note, const std::vector<Blob>& x, const std::vector<Blob>& adjoint,
              const std::vector<Blob>& sums) const;

private:
    Journal* journal_ = nullptr;
    CommitOptions options_;
    bool on_ = false;
    std::uint64_t sweep_ = 0, start_ = 0;
    Index news_ = 0;
    Index piece_ = 1;  // links between two looks at the clock
    double looked_ = 0.0, committed_ = 0.0;
};

}  // namespace backsweep
