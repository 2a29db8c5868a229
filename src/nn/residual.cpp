// SPDX-License-Identifier: MIT
#include "backsweep/base/buffer.hpp"
#include "nn/composite.hpp"
#include "nn/described_layer.hpp"

#include <algorithm>
#include <utility>

namespace backsweep {
namespace {

template <class Real>
std::vector<ParameterShape> all_parameters(const std::vector<LayerPointer<Real>>& layers) {
    std::vector<ParameterShape> all;
    for (const auto& layer : layers)
        for (ParameterShape& shape : layer->parameters()) all.push_back(std::move(shape));
    return all;
}

/// Carry, tape, memories and parameters are those of the layers, one behind the other. Workspace: two buffers for what flows from
/// layer to layer, then the layers' own.
template <class Real>
class Residual final : public DescribedLayer<Real> {
public:
    Residual(std::string name, std::vector<LayerPointer<Real>> layers)
        : DescribedLayer<Real>(std::move(name), all_parameters(layers)),
          layers_(std::move(layers)) {
        for (const auto& layer : layers_) {
            offsets_.push_back(parameters_);
            firsts_.push_back(static_cast<Index>(memories_.size()));
            for (const MemoryShape& memory : layer->memories()) memories_.push_back(memory);
            for (const ParameterShape& shape : layer->parameters()) parameters_ += shape.size();
        }
    }

    Footprint footprint(Index steps, Index batch) const override {
        Footprint all;
        all.inputs = all.outputs = layers_.front()->footprint(steps, batch).inputs;
        Index own = 0;
        for (const auto& layer : layers_) {
            const Footprint each = layer->footprint(steps, batch);
            all.carry += each.carry;
            all.tape += each.tape;
            own = std::max(own, each.workspace);
        }
        all.workspace = 2 * flow(steps, batch) + own;
        return all;
    }

    std::vector<MemoryShape> memories() const override { return memories_; }

    void advance(const Forward<Real>& call) const override { run(call, &Layer<Real>::advance); }
    void record(const Forward<Real>& call) const override { run(call, &Layer<Real>::record); }

    void reverse(const Backward<Real>& call) const override {
        const Segment<Real>& at = call.at;
        const Index width = flow(at.steps, at.batch);
        Real* here = call.workspace;
        Real* other = here + width;
        const Real* dy = call.dy;
        Index tape = 0, carry = 0;
        for (const auto& layer : layers_) {
            const Footprint each = layer->footprint(at.steps, at.batch);
            tape += each.tape;
            carry += each.carry;
        }
        for (std::size_t l = layers_.size(); l-- > 0;) {
            const Footprint each = layers_[l]->footprint(at.steps, at.batch);
            tape -= each.tape;
            carry -= each.carry;
            Real* const dx = l > 0 ? here : call.dx;
            layers_[l]->reverse({at, call.parameters + offsets_[l], call.gradients + offsets_[l], call.tape + tape,
                                 call.carry_in + carry * at.batch, dy, dx, call.dcarry + carry * at.batch,
                                 call.workspace + 2 * width, nullptr, nullptr, from(call.memory, l), from(call.dmemory, l)});
            dy = dx;
            std::swap(here, other);
        }
        if (call.dx) add(at, call.dy, call.dx);
    }

private:
    /// Elements of the widest that flows between two layers.
    Index flow(Index steps, Index batch) const {
        Index widest = 0;
        for (std::size_t l = 0; l + 1 < layers_.size(); ++l)
            widest = std::max(widest, layers_[l]->footprint(steps, batch).outputs);
        return aligned<Real>(widest * steps * batch);
    }

    /// The memories, or their adjoints, of layer l on.
    template <class T>
    T* from(T* memories, std::size_t l) const {
        return memories ? memories + firsts_[l] : nullptr;
    }

    void add(const Segment<Real>& at, const Real* from, Real* to) const {
        const Index count = layers_.front()->footprint(at.steps, at.batch).inputs * at.steps * at.batch;
        for (Index k = 0; k < count; ++k) to[k] += from[k];
    }

    void run(const Forward<Real>& call, void (Layer<Real>::*method)(const Forward<Real>&) const) const {
        const Segment<Real>& at = call.at;
        const Index width = flow(at.steps, at.batch);
        Real* here = call.workspace;
        Real* other = here + width;
        const Real* x = call.x;
        Real* tape = call.tape;
        Index carry = 0;
        for (std::size_t l = 0; l < layers_.size(); ++l) {
            const Footprint each = layers_[l]->footprint(at.steps, at.batch);
            Real* const y = l + 1 < layers_.size() ? here : call.y;
            (*layers_[l].*method)({at, call.parameters + offsets_[l], x, y, call.carry_in + carry * at.batch,
                                   call.carry_out + carry * at.batch, tape, call.workspace + 2 * width, nullptr,
                                   from(call.memory, l)});
            if (tape) tape += each.tape;
            carry += each.carry;
            x = y;
            std::swap(here, other);
        }
        add(at, call.x, call.y);
    }

    std::vector<LayerPointer<Real>> layers_;
    std::vector<Index> offsets_;  // of each layer's parameters
    std::vector<MemoryShape> memories_;
    std::vector<Index> firsts_;  // of each layer's memories
    Index parameters_ = 0;
};

}  // namespace

template <class Real>
LayerPointer<Real> residual(std::string name, std::vector<LayerPointer<Real>> layers) {
    return std::make_unique<Residual<Real>>(std::move(name), std::move(layers));
}

template LayerPointer<float> residual(std::string, std::vector<LayerPointer<float>>);
template LayerPointer<double> residual(std::string, std::vector<LayerPointer<double>>);

}  // namespace backsweep
