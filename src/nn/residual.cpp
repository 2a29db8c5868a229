// SPDX-License-Identifier: MIT
#include "nn/composite.hpp"
#include "nn/described_layer.hpp"
#include "nn/sequence.hpp"

#include <algorithm>
#include <utility>

namespace backsweep {
namespace {

template <class Real>
class Residual final : public DescribedLayer<Real> {
public:
    Residual(std::string name, Sequence<Real> layers)
        : DescribedLayer<Real>(std::move(name), layers.parameters()),
          layers_(std::move(layers)),
          features_(layers_.footprint(1, 1).inputs) {}

    Footprint footprint(Index steps, Index batch) const override { return layers_.footprint(steps, batch); }
    Work work(Index steps, Index batch) const override {
        const double numbers = static_cast<double>(features_ * steps * batch);
        Work all = layers_.work(steps, batch);
        all.forward += numbers;
        all.reverse += numbers;
        return all;
    }
    std::vector<MemoryShape> memories() const override { return layers_.memories(); }
    Index prepared() const override { return layers_.prepared(); }
    void prepare(const Real* parameters, Real* prepared) const override { layers_.prepare(parameters, prepared); }
    Opened<Real> opened() const override { return {layers_.layers(), Join::add}; }

    void advance(const Forward<Real>& call) const override { run(call, false); }
    void record(const Forward<Real>& call) const override { run(call, true); }

    void reverse(const Backward<Real>& call) const override {
        layers_.reverse(call);
        if (call.dx) add(call.at, call.dy, call.dx);
    }

private:
    void add(const Segment<Real>& at, const Real* from, Real* to) const {
        const Index count = features_ * at.steps * at.batch;
        for (Index k = 0; k < count; ++k) to[k] += from[k];
    }

    void run(const Forward<Real>& call, bool record) const {
        const Real* const f = layers_.run(call, record);
        if (!call.y) return;
        if (f != call.y) std::copy_n(f, features_ * call.at.steps * call.at.batch, call.y);
        add(call.at, call.x, call.y);
    }

    Sequence<Real> layers_;
    Index features_;
};

}  // namespace

template <class Real>
LayerPointer<Real> residual(std::string name, std::vector<LayerPointer<Real>> layers) {
    return std::make_unique<Residual<Real>>(std::move(name), Sequence<Real>(std::move(layers)));
}

template LayerPointer<float> residual(std::string, std::vector<LayerPointer<float>>);
template LayerPointer<double> residual(std::string, std::vector<LayerPointer<double>>);
template LayerPointer<Dual<double>> residual(std::string, std::vector<LayerPointer<Dual<double>>>);

}  // namespace backsweep
