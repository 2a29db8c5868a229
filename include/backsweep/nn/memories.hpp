// The memories of earlier steps that a network's layers read, inside one window: rows in logs that all checkpoints
// share, or in the state. Used by the time chain; planners read MemoryPlaces and MemoryLayout.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/log.hpp"
#include "backsweep/nn/network.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace backsweep {

/// Where a memory's rows live inside a window.
enum class MemoryPlace {
    log,   ///< in an append-only log in RAM: all rows of the window and those before it, once
    file,  ///< in a log in a file, of which the rows of one link and its memory are resident
    state  ///< in every state, and so in every slot
};

/// The places of a network's memories, in the order of Network::memories().
struct MemoryPlaces {
    std::vector<MemoryPlace> places{};  ///< empty: all `log`
    std::string folder{};               ///< of the files

    MemoryPlace of(std::size_t memory) const { return places.empty() ? MemoryPlace::log : places[memory]; }
    /// Empty if valid for so many memories, else what is wrong, what was given and what to do.
    std::string problem(std::size_t memories) const;
    friend bool operator==(const MemoryPlaces&, const MemoryPlaces&) = default;
};

/// Where the rows of every memory begin, in elements; -1: not there. Blocks are of all sequences.
struct MemoryLayout {
    std::vector<Index> in_state;    ///< in a state inside a window, behind the carry
    std::vector<Index> in_between;  ///< in a state between two windows
    std::vector<Index> in_adjoint;
    std::vector<Index> in_area;   ///< rows before and of a segment, of those in the state
    std::vector<Index> in_darea;  ///< rows before and of a segment, of the adjoints
    Index state = 0, between = 0, adjoint = 0, area = 0, darea = 0;  ///< sizes of these blocks
    Index seen = 0;                                                  ///< in bytes
    bool carry_alone = false;  ///< states and adjoints inside a window are the carry and nothing else
};

/// For links of at most `steps` steps.
template <class Real>
MemoryLayout memory_layout(const Network<Real>& network, Index batch, Index steps, const MemoryPlaces& places);
/// Bytes of all logs of a window of `steps` steps, of files the resident ones; `carried`: with the rows before the
/// window.
template <class Real>
std::int64_t memory_log_bytes(const Network<Real>& network, Index batch, Index steps, Index chunk, bool carried,
                              const MemoryPlaces& places);
/// Bytes of those logs that lie in files, on the disk.
template <class Real>
std::int64_t memory_file_bytes(const Network<Real>& network, Index batch, Index steps, bool carried,
                               const MemoryPlaces& places);

/// The window's steps are counted from 0; rows before it have negative numbers.
template <class Real>
class Memories {
public:
    /// Throws InvalidArgument: places.problem().
    Memories(const Network<Real>& network, Index batch, Index chunk, MemoryPlaces places, Ledger& ledger);

    /// A window of `steps` steps; arrays as Window's.
    void show(Index steps, const Mark* marks, const std::uint8_t* key_padding, bool begins);
    const MemoryLayout& layout() const noexcept { return layout_; }

    /// A sweep's first state out of a state between windows (null: zero); lays the rows before the window.
    void start(const Real* between, Real* state);
    /// That state alone, once more.
    void first(const Real* between, Real* state) const;
    /// The state between windows before `step`, out of a sweep's state there.
    void between(Index step, const Real* state, Real* between);

    /// Lets a segment of `steps` steps find its rows: those in the state lie in `area` (layout().area elements).
    void point(Segment<Real>& at, Index step, Index steps, Real* area);
    /// The rows in a state before the segment, into the area.
    void load(const Real* state);
    /// The rows of the area into the state behind the segment.
    void keep(Index steps, Real* state) const;
    /// The adjoint of the state behind the segment, spread over its rows; and of the one before it, collected from
    /// them.
    void spread(Index steps, const Real* adjoint);
    void collect(Real* adjoint) const;

    /// As Forward::memory and Backward::dmemory; null: there are none.
    Real* const* rows() const noexcept { return rows_.empty() ? nullptr : rows_.data(); }
    Real* const* drows() const noexcept { return drows_.empty() ? nullptr : drows_.data(); }

    /// Scratch for `area` of a segment whose tape is not kept.
    Real* scratch() noexcept { return scratch_.data(); }

private:
    Index row(std::size_t memory) const { return memories()[memory].features * batch_; }
    Index before(std::size_t memory) const { return std::min(memories()[memory].rows, remembered_); }
    const std::vector<MemoryShape>& memories() const noexcept { return network_->memories(); }
    bool logged(std::size_t memory) const { return places_.of(memory) != MemoryPlace::state; }
    Real* logged_row(std::size_t memory, Index step);
    void remember(Index step);

    const Network<Real>* network_;
    Index batch_, chunk_;
    MemoryPlaces places_;
    Ledger* ledger_;
    MemoryLayout layout_;
    Index steps_ = 0;
    const Mark* marks_ = nullptr;
    const std::uint8_t* key_padding_ = nullptr;
    bool begins_ = false;
    std::vector<Log<Real>> logs_;  // by memory; empty where its rows are in the state
    Buffer<std::uint8_t> flags_;   // [remembered()][batch] of the state that the window starts from
    bool carried_ = false;         // it starts from one
    Buffer<std::uint8_t> seen_;    // [remembered()][batch] before the segment, then [batch] scratch
    Index remembered_ = 0;         // the last rows of seen_ that count
    Buffer<Real> scratch_;         // an area, or the rows of the adjoints
    std::vector<Real*> rows_, drows_;
};

}  // namespace backsweep
