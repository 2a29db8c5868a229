// SPDX-License-Identifier: MIT
#include "nn/composite.hpp"
#include "nn/described_layer.hpp"
#include "nn/sequence.hpp"

#include <utility>

namespace backsweep {
namespace {

/// No tape: reverse reads the input and makes the layers' tapes again in its workspace, which is their tape, their
/// carry behind the segment, then theirs.
template <class Real>
class Checkpointed final : public DescribedLayer<Real> {
public:
    Checkpointed(std::string name, Sequence<Real> layers)
        : DescribedLayer<Real>(std::move(name), layers.parameters()),
          layers_(std::move(layers)) {}

    Footprint footprint(Index steps, Index batch) const override {
        Footprint all = layers_.footprint(steps, batch);
        all.workspace += own(all, batch);
        all.tape = 0;
        all.reads_x = all.inputs > 0;
        return all;
    }
    Work work(Index steps, Index batch) const override {
        Work all = layers_.work(steps, batch);
        all.reverse += all.forward;
        return all;
    }
    std::vector<MemoryShape> memories() const override { return layers_.memories(); }
    Index prepared() const override { return layers_.prepared(); }
    void prepare(const Real* parameters, Real* prepared) const override { layers_.prepare(parameters, prepared); }

    void advance(const Forward<Real>& call) const override { layers_.run(call, false); }
    void record(const Forward<Real>& call) const override {
        if (call.y) layers_.run(call, false);
    }

    void reverse(const Backward<Real>& call) const override {
        const Segment<Real>& at = call.at;
        const Footprint inner = layers_.footprint(at.steps, at.batch);
        Real* const tape = call.workspace;
        Real* const workspace = tape + own(inner, at.batch);
        layers_.run({at, call.parameters, call.x, nullptr, call.carry_in, tape + aligned<Real>(inner.tape), tape,
                     workspace, nullptr, call.memory, call.prepared},
                    true);
        Backward<Real> rest = call;
        rest.tape = tape;
        rest.workspace = workspace;
        layers_.reverse(rest);
    }

private:
    static Index own(const Footprint& inner, Index batch) {
        return aligned<Real>(inner.tape) + aligned<Real>(inner.carry * batch);
    }

    Sequence<Real> layers_;
};

}  // namespace

template <class Real>
LayerPointer<Real> checkpointed(std::string name, std::vector<LayerPointer<Real>> layers) {
    return std::make_unique<Checkpointed<Real>>(std::move(name), Sequence<Real>(std::move(layers)));
}

template LayerPointer<float> checkpointed(std::string, std::vector<LayerPointer<float>>);
template LayerPointer<double> checkpointed(std::string, std::vector<LayerPointer<double>>);
template LayerPointer<Dual<double>> checkpointed(std::string, std::vector<LayerPointer<Dual<double>>>);

}  // namespace backsweep
