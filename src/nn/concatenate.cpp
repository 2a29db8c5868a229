// SPDX-License-Identifier: MIT
#include "nn/composite.hpp"
#include "nn/described_layer.hpp"
#include "nn/rows.hpp"
#include "nn/sequence.hpp"

#include <utility>

namespace backsweep {
namespace {

/// Workspace: f(x), or its adjoint, then that of the layers.
template <class Real>
class Concatenate final : public DescribedLayer<Real> {
public:
    Concatenate(std::string name, Sequence<Real> layers)
        : DescribedLayer<Real>(std::move(name), layers.parameters()),
          layers_(std::move(layers)),
          inputs_(layers_.footprint(1, 1).inputs),
          added_(layers_.footprint(1, 1).outputs) {}

    Footprint footprint(Index steps, Index batch) const override {
        Footprint all = layers_.footprint(steps, batch);
        all.outputs = inputs_ + added_;
        all.workspace += own(steps * batch);
        return all;
    }
    Work work(Index steps, Index batch) const override {
        const double positions = static_cast<double>(steps * batch);
        Work all = layers_.work(steps, batch);
        all.forward += static_cast<double>(inputs_ + added_) * positions;
        all.reverse += static_cast<double>(inputs_ + added_) * positions;
        return all;
    }
    std::vector<MemoryShape> memories() const override { return layers_.memories(); }
    Index prepared() const override { return layers_.prepared(); }
    void prepare(const Real* parameters, Real* prepared) const override { layers_.prepare(parameters, prepared); }
    Opened<Real> opened() const override { return {layers_.layers(), Join::concatenate}; }

    void advance(const Forward<Real>& call) const override { run(call, false); }
    void record(const Forward<Real>& call) const override { run(call, true); }

    void reverse(const Backward<Real>& call) const override {
        const Index positions = call.at.steps * call.at.batch, outputs = inputs_ + added_;
        copy_rows(positions, added_, call.dy + inputs_, outputs, call.workspace, added_);
        Backward<Real> inner = call;
        inner.dy = call.workspace;
        inner.workspace = call.workspace + own(positions);
        layers_.reverse(inner);
        if (call.dx) add_rows(positions, inputs_, call.dy, outputs, call.dx, inputs_);
    }

private:
    Index own(Index positions) const { return aligned<Real>(added_ * positions); }

    void run(const Forward<Real>& call, bool record) const {
        const Index positions = call.at.steps * call.at.batch, outputs = inputs_ + added_;
        Forward<Real> inner = call;
        if (call.y) inner.y = call.workspace;
        inner.workspace = call.workspace + own(positions);
        const Real* const f = layers_.run(inner, record);
        if (!call.y) return;
        copy_rows(positions, inputs_, call.x, inputs_, call.y, outputs);
        copy_rows(positions, added_, f, added_, call.y + inputs_, outputs);
    }

    Sequence<Real> layers_;
    Index inputs_, added_;
};

}  // namespace

template <class Real>
LayerPointer<Real> concatenate(std::string name, std::vector<LayerPointer<Real>> layers) {
    return std::make_unique<Concatenate<Real>>(std::move(name), Sequence<Real>(std::move(layers)));
}

template LayerPointer<float> concatenate(std::string, std::vector<LayerPointer<float>>);
template LayerPointer<double> concatenate(std::string, std::vector<LayerPointer<double>>);
template LayerPointer<Dual<double>> concatenate(std::string, std::vector<LayerPointer<Dual<double>>>);

}  // namespace backsweep
