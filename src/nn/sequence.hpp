// Layers one after the other inside one layer: what composites of them are made of.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "nn/catalogue.hpp"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace backsweep {

/// Carry, memories and parameters are those of the layers, one behind the other. The tape is, layer by layer, its own,
/// then its output where its own reverse or the next layer's reads that. Workspace: two buffers for what flows from
/// layer to layer, then the layers' own.
template <class Real>
class Sequence {
public:
    explicit Sequence(std::vector<LayerPointer<Real>> layers) : layers_(std::move(layers)) {
        for (const auto& layer : layers_) {
            offsets_.push_back(parameters_);
            prepared_offsets_.push_back(prepared_);
            prepared_ += aligned<Real>(layer->prepared());
            firsts_.push_back(static_cast<Index>(memories_.size()));
            for (const MemoryShape& memory : layer->memories()) memories_.push_back(memory);
            for (const ParameterShape& shape : layer->parameters()) parameters_ += shape.size();
        }
    }

    std::vector<ParameterShape> parameters() const {
        std::vector<ParameterShape> all;
        for (const auto& layer : layers_)
            for (ParameterShape& shape : layer->parameters()) all.push_back(std::move(shape));
        return all;
    }
    const std::vector<MemoryShape>& memories() const noexcept { return memories_; }
    std::vector<const Layer<Real>*> layers() const {
        std::vector<const Layer<Real>*> all;
        for (const auto& layer : layers_) all.push_back(layer.get());
        return all;
    }

    Index prepared() const noexcept { return prepared_; }
    void prepare(const Real* parameters, Real* prepared) const {
        for (std::size_t l = 0; l < layers_.size(); ++l)
            layers_[l]->prepare(parameters + offsets_[l], prepared + prepared_offsets_[l]);
    }

    /// reads_x as the first layer says; the last one's output is in the tape, where its reverse reads that.
    Footprint footprint(Index steps, Index batch) const {
        Footprint all;
        Index own = 0;
        const Prints prints = of_each(steps, batch);
        for (std::size_t l = 0; l < layers_.size(); ++l) {
            const Footprint& each = prints[l];
            if (l == 0) all.inputs = each.inputs, all.reads_x = each.reads_x;
            all.outputs = each.outputs;
            all.carry += each.carry;
            all.tape += each.tape + kept(prints, l) * steps * batch;
            own = std::max(own, each.workspace);
        }
        all.workspace = 2 * flow(prints, steps * batch) + own;
        return all;
    }

    Work work(Index steps, Index batch) const {
        Work all;
        for (const auto& layer : layers_) {
            const Work each = layer->work(steps, batch);
            all.forward += each.forward;
            all.reverse += each.reverse;
        }
        return all;
    }

    /// By record of every layer where call.tape is not null, else by advance. Answers where the last output is: call.y,
    /// or in the tape; null where it is not wanted.
    const Real* run(const Forward<Real>& call, bool record) const {
        const Segment<Real>& segment = call.at;
        const Index positions = segment.steps * segment.batch;
        const Prints prints = of_each(segment.steps, segment.batch);
        const Index width = flow(prints, positions);
        Real* here = call.workspace;
        Real* other = here + width;
        const Real* x = call.x;
        Real* tape = call.tape;
        Index carry = 0;
        for (std::size_t l = 0; l < layers_.size(); ++l) {
            const Footprint& each = prints[l];
            const Index stays = record ? kept(prints, l) * positions : 0;
            Real* const y = stays > 0 ? tape + each.tape : l + 1 < layers_.size() ? here : call.y;
            const Forward<Real> own{segment,
                                    call.parameters + offsets_[l],
                                    x,
                                    y,
                                    call.carry_in + carry * segment.batch,
                                    call.carry_out + carry * segment.batch,
                                    record ? tape : nullptr,
                                    call.workspace + 2 * width,
                                    nullptr,
                                    from(call.memory, l),
                                    prepared(call.prepared, l)};
            if (record)
                layers_[l]->record(own);
            else
                layers_[l]->advance(own);
            if (record) tape += each.tape + stays;
            carry += each.carry;
            x = y;
            std::swap(here, other);
        }
        return x;
    }

    void reverse(const Backward<Real>& call) const {
        const Segment<Real>& segment = call.at;
        const Index batch = segment.batch, positions = segment.steps * batch;
        const Prints prints = of_each(segment.steps, batch);
        const Index width = flow(prints, positions);
        Real* here = call.workspace;
        Real* other = here + width;
        const Real* dy = call.dy;
        Index tape = 0, carry = 0;
        for (std::size_t l = 0; l < layers_.size(); ++l) {
            tape += prints[l].tape + kept(prints, l) * positions;
            carry += prints[l].carry;
        }
        for (std::size_t l = layers_.size(); l-- > 0;) {
            const Footprint& each = prints[l];
            const Index end = tape;  // of the layer's part: its tape, then its output where that is kept
            tape -= each.tape + kept(prints, l) * positions;
            carry -= each.carry;
            Real* const dx = l > 0 ? here : call.dx;
            const Real* const x = !each.reads_x ? nullptr
                                  : l == 0      ? call.x
                                                : call.tape + tape - each.inputs * positions;
            const Real* const y = each.reads_y ? call.tape + end - each.outputs * positions : nullptr;
            layers_[l]->reverse({segment, call.parameters + offsets_[l], call.gradients + offsets_[l], call.tape + tape,
                                 call.carry_in + carry * batch, dy, dx, call.dcarry + carry * batch,
                                 call.workspace + 2 * width, nullptr, nullptr, from(call.memory, l),
                                 from(call.dmemory, l), x, y, prepared(call.prepared, l)});
            dy = dx;
            std::swap(here, other);
        }
    }

private:
    /// On the stack, for it is made by every call.
    using Prints = boost::container::small_vector<Footprint, 8>;
    Prints of_each(Index steps, Index batch) const {
        Prints all;
        for (const auto& layer : layers_) all.push_back(layer->footprint(steps, batch));
        return all;
    }

    /// Features of layer l's output on the tape.
    static Index kept(const Prints& prints, std::size_t l) {
        const bool next = l + 1 < prints.size() && prints[l + 1].reads_x;
        return prints[l].reads_y || next ? prints[l].outputs : 0;
    }

    /// Elements of the widest that flows between two layers.
    static Index flow(const Prints& prints, Index positions) {
        Index widest = 0;
        for (std::size_t l = 0; l + 1 < prints.size(); ++l) widest = std::max(widest, prints[l].outputs);
        return aligned<Real>(widest * positions);
    }

    const Real* prepared(const Real* all, std::size_t l) const { return all ? all + prepared_offsets_[l] : nullptr; }

    /// The memories, or their adjoints, of layer l on.
    template <class T>
    T* from(T* memories, std::size_t l) const {
        return memories ? memories + firsts_[l] : nullptr;
    }

    std::vector<LayerPointer<Real>> layers_;
    std::vector<Index> offsets_;  // of each layer's parameters
    std::vector<MemoryShape> memories_;
    std::vector<Index> firsts_;  // of each layer's memories
    std::vector<Index> prepared_offsets_;
    Index parameters_ = 0, prepared_ = 0;
};

}  // namespace backsweep
