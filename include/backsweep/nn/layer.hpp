// The interface of a layer over one segment: a chunk of steps of one shard of the batch.
// A layer keeps nothing inside: parameters, carry, tape and seed are arguments, and all methods are const and pure.
// Arrays are [step][batch][feature], C order; arguments of one call never alias.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"
#include "backsweep/nn/parameters.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace backsweep {

/// What a position [step][batch] is to its sequence. Sequences of unequal length in one batch leave fillers behind their
/// ends; sequences packed one behind the other begin anew.
enum class Mark : std::uint8_t {
    step,   ///< a step of the sequence that the position before belongs to
    first,  ///< the first step of a sequence: the state starts afresh, whatever came before
    filler  ///< nothing: no data is read, a state is held, embeddings and cells give 0, there is no loss and no gradient
};

/// What layers attend to besides the sequences themselves: an encoder's output, say. [step][batch][feature], the caller's.
template <class Real>
struct Context {
    Index steps = 0;
    const Real* keys = nullptr;
    const Real* values = nullptr;  ///< null: the keys
    const Mark* marks = nullptr;   ///< [step][batch]: fillers are not seen; null: all are
    Real* dkeys = nullptr;         ///< added to by reverse where not null
    Real* dvalues = nullptr;       ///< likewise; null, where values are the keys: all goes to dkeys
};

/// Earlier steps that a layer reads besides the segment: its inputs there.
struct MemoryShape {
    Index rows = 0;        ///< at most so many steps before the segment
    Index features = 0;    ///< its inputs
    bool gradient = true;  ///< false: detached, no adjoint goes back to those rows

    friend bool operator==(const MemoryShape&, const MemoryShape&) = default;
};

/// A chunk of steps with the data that belong to it. Pointers are at the chunk's first step and owned by the caller.
template <class Real>
struct Segment {
    Index first = 0;  ///< the chunk's first step, counted in the stream (keys random numbers, names errors)
    Index steps = 0;  ///< >= 1
    Index batch = 0;  ///< sequences in this shard, >= 1
    std::uint64_t seed = 0;   ///< of the window's random numbers
    Index sequence = 0;       ///< number of the first sequence in the whole batch (keys random numbers)
    bool training = true;     ///< false: dropout is off
    bool begins = false;      ///< all sequences begin with the first step, as if it were marked `first`
    const Mark* marks = nullptr;  ///< [step][batch], or null: all are `step`
    Index behind = 0;             ///< steps of the window behind this chunk; marks reach over them too
    /// [step][batch], or null: no step is hidden from attention as a key; 1: it is [PyTorch's key_padding_mask].
    const std::uint8_t* key_padding = nullptr;
    Index remembered = 0;  ///< steps before the segment, at most as many as any layer's memory, that a memory holds
    const std::uint8_t* seen = nullptr;  ///< [remembered][batch]: 1: a key of the sequence that goes on; 0: hidden
    const Context<Real>* context = nullptr;

    const std::int32_t* tokens = nullptr;   ///< [step][batch], if the model starts with an embedding
    const std::int32_t* classes = nullptr;  ///< [step][batch], targets of cross_entropy
    const Real* values = nullptr;   ///< [step][batch][feature], targets (inner_product: weights) of the other losses
    const Real* weights = nullptr;  ///< [step][batch] weight of each position's loss, or null: all 1; 0: it has none
    Index loss_from = 0;            ///< steps of the chunk before this one have no loss (>= steps: none has)
    double scale = 1.0;             ///< gradients are those of scale * (sum of the losses of the window)
    double* loss = nullptr;         ///< assigned where not null: the weighted sum of this chunk's losses, before scale
    Real* losses = nullptr;  ///< [step][batch], assigned where not null: each position's loss, before weight and scale

    /// Rows that a memory of at most `rows` holds before the segment: the last of those remembered.
    Index rows_before(Index rows) const noexcept { return rows < remembered ? rows : remembered; }
    /// Whether the step `back` (1 .. remembered) before the segment is a key of the sequence that goes on.
    bool sees(Index back, Index b) const noexcept { return seen[(remembered - back) * batch + b] != 0; }
    /// Whether there is nothing at step t of sequence b.
    bool filler(Index t, Index b) const noexcept { return marks && marks[t * batch + b] == Mark::filler; }
    /// Whether the state starts afresh before step t of sequence b.
    bool starts(Index t, Index b) const noexcept {
        return (begins && t == 0 && !filler(t, b)) || (marks && marks[t * batch + b] == Mark::first);
    }
    /// Whether step t of sequence b is the last of its sequence: a filler, another sequence or nothing follows.
    bool last(Index t, Index b) const noexcept {
        if (filler(t, b)) return false;
        return t + 1 == steps + behind || (marks && marks[(t + 1) * batch + b] != Mark::step);
    }
};

/// Sizes for one segment, in elements of Real.
struct Footprint {
    Index inputs = 0;     ///< features read per position (0: reads tokens)
    Index outputs = 0;    ///< features written per position (0: a loss)
    Index carry = 0;      ///< per sequence
    Index tape = 0;       ///< for the whole segment
    Index workspace = 0;  ///< scratch for any one call, for the whole segment
    bool reads_x = false;  ///< reverse reads Backward::x: whoever keeps the tape keeps the input beside it
    bool reads_y = false;  ///< likewise the output

    friend bool operator==(const Footprint&, const Footprint&) = default;
};

/// Counted operations of one call over a segment, a multiplication and an addition being two. Plans weigh layers by them.
struct Work {
    double forward = 0.0;  ///< record
    double reverse = 0.0;
    double spared = 0.0;  ///< of forward, by an advance: nothing where it is counted
};

template <class Real>
struct Forward {
    const Segment<Real>& at;
    const Real* parameters;  ///< this layer's part of the flat vector
    const Real* x;           ///< [step][batch][inputs]; null if the layer reads tokens
    Real* y;                 ///< [step][batch][outputs], assigned; null (record, unless Footprint::reads_y): not wanted,
                             ///< and then carry_out and memory, which have their bits already, may be left alone
    const Real* carry_in;    ///< carry x batch elements, the state before the segment
    Real* carry_out;         ///< assigned: the state after it
    Real* tape;              ///< record: assigned; advance: null
    Real* workspace;
    const Real* tied = nullptr;  ///< the parameter of another layer that Layer::tied() names
    /// For each of Layer::memories() [rows_before(rows) + steps][batch][features]: the rows before the segment, behind
    /// which the layer, in advance and record alike, assigns its inputs.
    Real* const* memory = nullptr;
    /// What Layer::prepare made of the parameters; null: nothing, which is slower and has the same bits.
    const Real* prepared = nullptr;
};

template <class Real>
struct Backward {
    const Segment<Real>& at;
    const Real* parameters;
    Real* gradients;  ///< this layer's part, added to
    const Real* tape;
    const Real* carry_in;  ///< the state before the segment
    const Real* dy;        ///< [step][batch][outputs], adjoint of the output; null for a loss
    Real* dx;              ///< [step][batch][inputs], assigned; null: not wanted
    Real* dcarry;          ///< in: adjoint of the state after the segment; out: before it
    Real* workspace;
    const Real* tied = nullptr;
    Real* tied_gradients = nullptr;  ///< added to
    Real* const* memory = nullptr;  ///< as it was left forward; a layer that runs again assigns the same bits
    /// The adjoint of those rows, null where detached. In: what later segments add, to this one's rows too; the layer adds
    /// its own to the rows before the segment and passes the segment's rows on to dx.
    Real* const* dmemory = nullptr;
    const Real* x = nullptr;  ///< the input; null unless Footprint::reads_x
    const Real* y = nullptr;  ///< the output; null unless Footprint::reads_y
    const Real* prepared = nullptr;  ///< as in Forward
};

/// How a layer made of layers, one after the other, joins what they give, f(x), with what it reads.
enum class Join {
    none,        ///< y = f(x)
    add,         ///< y = f(x) + x
    concatenate  ///< y = [x, f(x)], by positions
};

template <class Real>
class Layer;

/// The layers of which a layer is made, for who runs them one by one, with the same bits: their parameters, carry and
/// memories are the layer's own, one behind the other.
template <class Real>
struct Opened {
    std::vector<const Layer<Real>*> layers{};
    Join join = Join::none;
};

template <class Real>
class Layer {
public:
    virtual ~Layer() = default;

    /// For error messages: the specification's name, of stacked layers with their number from 0 ("rnn, layer 1").
    virtual const std::string& name() const noexcept = 0;
    virtual Footprint footprint(Index steps, Index batch) const = 0;
    /// What layers without products take: one operation for each number read or written, and twice as many in reverse.
    virtual Work work(Index steps, Index batch) const {
        const Footprint f = footprint(steps, batch);
        const double numbers = static_cast<double>((f.inputs + f.outputs) * steps * batch);
        return {numbers, 2.0 * numbers};
    }
    /// In canonical order; empty if there are none.
    virtual std::vector<ParameterShape> parameters() const = 0;
    /// Name of a parameter of an earlier layer that this one reads too ("embedding.weight"); empty: none.
    virtual std::string tied() const { return {}; }

    /// Earlier inputs that it reads, in the order of Forward::memory; empty: none.
    virtual std::vector<MemoryShape> memories() const { return {}; }

    /// Of a layer that is to be run as a whole, none. They live as long as the layer.
    virtual Opened<Real> opened() const { return {}; }

    /// Elements, on 64-byte boundaries, of what `prepare` makes of the parameters once for all calls with them: weights
    /// in the order in which products read them. 0: nothing.
    virtual Index prepared() const { return 0; }
    virtual void prepare(const Real* /*parameters*/, Real* /*prepared*/) const {}

    /// y, carry_out from x, carry_in. Writes no tape and no loss.
    /// Throws InvalidArgument, as `record` does, for a token or class out of range, naming step and sequence.
    virtual void advance(const Forward<Real>& call) const = 0;
    /// The same bits in y and carry_out, and the tape; a loss assigns Segment::loss.
    virtual void record(const Forward<Real>& call) const = 0;
    /// Spends nothing: reads the tape, adds to gradients, assigns dx, replaces dcarry.
    virtual void reverse(const Backward<Real>& call) const = 0;
};

}  // namespace backsweep
