// The time axis: a chain whose link is a chunk of steps through all layers, for one shard of the batch.
// The state is the carry of all layers in one block. The tape of a link is that carry, and one block of what a schedule
// over the layers keeps between the forward and the reverse run of the link. State, tape and adjoint hand the memory of
// a carry to one another: a tape may take the state's, and the adjoint that of the last state.
// Memories of earlier steps are logs that all checkpoints share, or rows of the state.
// Head and loss run in `record` only, which assigns the link's entry of a loss log.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/ledger.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/nn/depth_chain.hpp"
#include "backsweep/nn/depth_program.hpp"
#include "backsweep/nn/memories.hpp"
#include "backsweep/store/store.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace backsweep {

/// A window of data of one shard, [step][batch][feature], owned by the caller and not copied.
template <class Real>
struct Window {
    Index first = 0;  ///< the window's first step, counted in the stream
    Index steps = 0;  ///< >= 1
    const std::int32_t* tokens = nullptr;   ///< models that start with an embedding
    const Real* inputs = nullptr;           ///< models that do not
    const std::int32_t* classes = nullptr;  ///< cross_entropy
    const Real* values = nullptr;           ///< other losses
    const Real* weights = nullptr;          ///< weight of each position, or null
    const Mark* marks = nullptr;            ///< [step][batch], or null: no fillers, no sequence begins
    const std::uint8_t* key_padding = nullptr;  ///< [step][batch], 1: hidden from attention as a key; or null
    const Context<Real>* context = nullptr;     ///< of models whose layers attend across
    bool begins = false;                    ///< all sequences begin with the window's first step
    bool training = true;                   ///< false: dropout is off
    std::uint64_t seed = 0;                 ///< of the window's random numbers
    Index sequence = 0;                     ///< number of the first sequence in the whole batch
    /// Of each link but the first, by what the adjoint is multiplied that leaves it for the link before; empty: 1.
    std::span<const double> factors{};
    Index loss_from = 0;                    ///< steps of the window before this one have no loss
    double scale = 1.0;                     ///< 1 / loss_divisor of everything that forms one loss
    Real* losses = nullptr;                 ///< [step][batch], assigned where not null
    Real* input_gradient = nullptr;         ///< [step][batch][inputs], assigned where not null
    /// [step][batch][outputs] of a part of a network without the loss: assigned by advance and record, and the adjoint of it,
    /// which reverse reads.
    Real* outputs = nullptr;
    const Real* output_gradient = nullptr;
};

/// Throws InvalidArgument if an array is missing that the network reads from a window of `batch` sequences, or the window does
/// not fit it; `starts`: a state to start from is given.
template <class Real>
void check_window(const Network<Real>& network, const Window<Real>& window, Index batch, bool starts);
/// Steps of the window up to the last that is no filler in every sequence, at least 1: those that are swept.
template <class Real>
Index swept_steps(const Window<Real>& window, Index batch);

/// What a time chain of these sizes holds, in bytes: the planner's arithmetic, equal to what the ledger counts.
struct TimeChainSizes {
    std::int64_t state = 0;      ///< one state: a slot
    std::int64_t tape = 0;       ///< the tape of a full chunk, booked as tape
    std::int64_t tape_carry = 0;  ///< and as carry
    std::int64_t working = 0;     ///< the working state and the adjoint, booked as carry: beside the working tape
    std::int64_t workspace = 0;
    std::int64_t log = 0;        ///< the loss log, and the memories' logs
    std::int64_t between = 0;    ///< a state between two windows, with the rows of all memories
    std::int64_t adjoint = 0;
    std::int64_t prepared = 0;   ///< of the parameters, where the chain prepares them itself
    double replayed = 0.0;  ///< what the reverse of a link runs forward again, in forward runs of the link
};
/// `carried`: windows go on from a state, so that logs begin with the rows before the window.
template <class Real>
TimeChainSizes time_chain_sizes(const Network<Real>& network, Index steps, Index batch, Index chunk, bool carried = true,
                                const MemoryPlaces& places = {}, const DepthOptions& depth = {});
/// With a program for links of min(chunk, steps) steps.
template <class Real>
TimeChainSizes time_chain_sizes(const Network<Real>& network, Index steps, Index batch, Index chunk, bool carried,
                                const MemoryPlaces& places, const DepthProgram& program);

/// A Chain over ceil(steps / chunk) links, of a network or a part of one; the last chunk may be short. Steps behind the
/// last that is no filler in any sequence are left out: they change no bit. Network, parameters, gradients and data are the
/// caller's and must outlive it. Bits depend on the chunk, never on the schedule. One thread at a time.
template <class Real>
class TimeChain {
public:
    struct State {
        Buffer<Real> carry;
        void rebook(Kind kind) noexcept { carry.rebook(kind); }
        friend void swap(State& a, State& b) noexcept { a.carry.swap(b.carry); }
        friend std::vector<Blob> blobs(State& x) { return backsweep::blobs(x.carry); }
        friend std::span<Real> values(State& x) { return x.carry.span(); }
    };
    /// The carry before the chunk, which the layers' reverse reads; then the memory rows of states and DepthProgram::rest,
    /// with room for a full chunk, so that any tape serves any link.
    struct Tape {
        Buffer<Real> carry, values;
        friend void swap(Tape& a, Tape& b) noexcept {
            a.carry.swap(b.carry);
            a.values.swap(b.values);
        }
        friend std::vector<Blob> blobs(Tape& tape) {
            std::vector<Blob> all = backsweep::blobs(tape.carry);
            for (const Blob& blob : backsweep::blobs(tape.values)) all.push_back(blob);
            return all;
        }
    };
    using Adjoint = State;

    /// `batch` sequences in chunks of `chunk` steps, booked in `ledger`. Throws InvalidArgument if one is below 1,
    /// places.problem(), or depth.problem().
    TimeChain(const Network<Real>& network, Index batch, Index chunk, Ledger& ledger = Ledger::process(), MemoryPlaces places = {},
              DepthOptions depth = {});
    ~TimeChain();
    TimeChain(TimeChain&&) = delete;
    TimeChain& operator=(TimeChain&&) = delete;

    /// The data of the next sweeps. The state carries on from initial(); throws InvalidArgument if an array is missing.
    void show(const Window<Real>& window);
    /// The window's output_gradient and input_gradient, where they are not there before the forward sweep. From now on
    /// outputs are not written any more.
    void pull(const Real* output_gradient, Real* input_gradient) {
        window_.outputs = nullptr;
        window_.output_gradient = output_gradient;
        window_.input_gradient = input_gradient;
    }
    /// Whether calls of layers are timed from now on, and their mean seconds so far, of this thread's time on a processor:
    /// for DepthOptions::work.
    void measure(bool on) {
        measures_ = on;
        timed_.assign(on ? static_cast<std::size_t>(network_->depth()) : 0, {});
    }
    std::vector<Work> measured() const;
    /// Flat parameters, the same for every link of a sweep, and what Network::prepare made of them; null: the chain makes
    /// that itself where a sweep begins, after this call, show() or initial(), in a buffer booked as parameters.
    void use(const Real* parameters, const Real* prepared = nullptr);
    /// One flat parameter vector per link (textbook truncated BPTT: each step keeps the version of its first run).
    void use(std::vector<const Real*> versions);
    /// Flat gradients, added to by reverse.
    void add_to(Real* gradients) { gradients_ = gradients; }
    /// x_0 of the next sweeps, the caller's, a state between windows (zero(), carry_over); zero until set. It must stay
    /// as it is until they are reversed: a sweep reads it again.
    void start_from(const State& x0) { start_ = &x0; }
    void start_from(State&&) = delete;
    void start_from_zero() { start_ = nullptr; }
    /// Terminal adjoint that `seed` gives; zero until set.
    void end_with(std::optional<State> adjoint) { end_ = std::move(adjoint); }
    /// Where activations lie that DepthOptions::place sends to disk: a store of this chain's alone, which must outlive it. The
    /// chain empties the slots that it has filled.
    void use(Store& store) {
        empty_store();
        store_ = &store;
    }
    /// Verify mode: whenever a layer runs a link again in the same window, its output, carry and loss must have the bits of
    /// the first time; else NumericError names step and layer. It begins anew with every sweep from initial(). Costs 8 bytes
    /// and a pass over the output a layer and link, and room for one output, which no prediction has.
    void verify(bool on) {
        verify_ = on;
        prints_.clear();
    }

    /// Of the window, those left out included.
    Index steps() const noexcept { return window_.steps; }
    Index chunk() const noexcept { return chunk_; }
    Index batch() const noexcept { return batch_; }
    /// A zero state between windows: sequences begin behind it, nothing is remembered. One block as in Network::state().
    State zero() const;
    /// A zero adjoint: one block as in Network::adjoint().
    Adjoint zero_adjoint() const;
    /// to := the state between windows that the next one starts from where it begins at `link` (at most length()); x is the
    /// sweep's state there, from run.state() or a watch. Without memories a copy of x.
    void carry_over(Index link, const State& x, State& to);

    /// The sum over all links, in rising order, of what they last wrote to the loss log, before scale.
    double loss() const;
    /// The loss log: one entry a link.
    std::span<const double> losses() const noexcept { return log_.span(); }

    /// What a killed sweep must find again: the flat gradients, the loss log, and the window's losses, input gradient and
    /// outputs where it has room for them.
    std::vector<Blob> sums();
    /// False where rows of a memory lie in a log: a state has not all that is needed to go on.
    bool self_contained() const;

    std::optional<Index> length() const;
    State initial() const;
    void initial(State& x) const;
    void again(State& x) const;
    void shape(Tape& tape) const;
    Index advance(Range r, State& x);
    /// Throws NumericError if the link's loss is not finite: it names the first step and layer with a number that is not.
    Index record(Range r, State& x, Tape& tape);
    void keep(Range r, State& x, Tape& tape);
    void seed(const State& x, Adjoint& a);
    void spend(State& x, Adjoint& a);
    void reverse(Range r, State& x, Tape& tape, Adjoint& a);
    void reuse(Adjoint& a);

private:
    Segment<Real> segment(Index link);
    DepthFrame<Real> frame(Index link, const Real* carry_in, Real* carry_out, Real* area);
    /// Runs the link of a tape that has its carry, up to its turn; x null: nothing reads the state behind it.
    void make(Index link, State* x, Tape& tape);
    /// Of a tape, behind the rows of memories in the state: what the depth keeps.
    Real* rest_of(Tape& tape) const { return tape.values.data() + memories_.layout().area; }
    /// Null: there is none.
    Real* array(const DepthCall::Place& place, Real* rest) {
        return place.size == 0 ? nullptr : (place.rests ? rest : scratch_.data()) + place.offset;
    }
    /// For a window of so many steps.
    void compile(Index steps);
    /// The link's input into x, and its output, if it is a part that has one, out of y.
    void input(Index link, Real* x) const;
    void output(Index link, const Real* y) const;
    void run(const std::vector<DepthCall>& calls, const DepthFrame<Real>& frame, Index link, Real* rest);
    /// The forward call may go on: the layer has the footprint that it had.
    void same_shape(const DepthFrame<Real>& frame, Index link, Index layer) const;
    void same_bits(const DepthFrame<Real>& frame, Index link, Index layer, const Real* y);
    void empty_store() noexcept;
    [[noreturn]] void not_finite(Index link, Tape& tape);
    /// What is prepared of them; null: nothing.
    const Real* prepared(Index link);
    const Real* parameters(Index link) const { return versions_.empty() ? parameters_ : versions_[static_cast<std::size_t>(link)]; }

    const Network<Real>* network_;
    Ledger* ledger_;
    Index batch_, chunk_;
    Window<Real> window_{};
    Index steps_ = 0;  // of the window up to the last that is no filler
    const Real* parameters_ = nullptr;
    std::vector<const Real*> versions_;
    const Real* given_ = nullptr;  // prepared by the caller
    Buffer<Real> prepared_;
    mutable const Real* prepared_of_ = nullptr;  // the parameters that prepared_ is of; null: parameters may have changed
    Real* gradients_ = nullptr;
    const State* start_ = nullptr;
    std::optional<State> end_;
    Buffer<Real> scratch_;    // of the depth program: what does not rest
    Buffer<Real> spare_;      // of one layer's carry
    Buffer<Real> block_;      // of the carry: the last adjoint's memory, until a tape takes it
    Buffer<Real> workspace_;  // of one layer call
    Buffer<double> log_;
    mutable Memories<Real> memories_;  // initial() lays the rows before the window
    DepthOptions depth_;
    DepthProgram program_;
    Index compiled_ = 0;  // the most steps of the links that it is for
    std::vector<Footprint> full_, last_;  // of every layer: full links, and the last
    Store* store_ = nullptr;
    std::set<std::int32_t> stored_;  // slots that are not empty
    /// Seconds and calls of a layer.
    struct Timed {
        double seconds = 0.0, calls = 0.0;
        double mean() const { return calls > 0.0 ? seconds / calls : 0.0; }
    };
    bool measures_ = false;
    std::vector<std::array<Timed, 3>> timed_;  // by layer and what it did: advance, record, reverse
    bool verify_ = false;
    mutable std::vector<std::uint64_t> prints_;  // verify: of each link and layer, 0: not seen
    Buffer<Real> unread_;                // verify: an output that nothing reads
};

}  // namespace backsweep
