// SPDX-License-Identifier: MIT
#include "backsweep/base/buffer.hpp"
#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "nn/composite.hpp"
#include "nn/described_layer.hpp"
#include "nn/spared.hpp"

#include <algorithm>
#include <utility>

namespace backsweep {
namespace {

/// Workspace: the parameters as the layer sees them (reverse: and its gradients), then the layer's own.
template <class Real>
class WeightDrop final : public DescribedLayer<Real> {
public:
    WeightDrop(LayerPointer<Real> layer, const std::string& parameter, double rate, std::uint32_t stream)
        : DescribedLayer<Real>(layer->name(), layer->parameters()),
          layer_(std::move(layer)),
          spared_(rate),
          stream_(stream) {
        for (const ParameterShape& shape : layer_->parameters()) {
            if (shape.name == parameter) dropped_ = {size_, size_ + shape.size()};
            size_ += shape.size();
        }
        if (dropped_.empty())
            throw InvalidArgument("layer '" + this->name() + "' has no parameter '" + parameter +
                                  "' to drop; name one of its own");
    }

    Footprint footprint(Index steps, Index batch) const override {
        Footprint all = layer_->footprint(steps, batch);
        all.workspace += 2 * aligned<Real>(size_) + aligned<Real>(layer_->prepared());
        return all;
    }

    Work work(Index steps, Index batch) const override { return layer_->work(steps, batch); }
    /// For calls that drop nothing; weights that are dropped are prepared by every call.
    Index prepared() const override { return layer_->prepared(); }
    void prepare(const Real* parameters, Real* prepared) const override { layer_->prepare(parameters, prepared); }

    void advance(const Forward<Real>& call) const override { run(call, &Layer<Real>::advance); }
    void record(const Forward<Real>& call) const override { run(call, &Layer<Real>::record); }

    void reverse(const Backward<Real>& call) const override {
        if (!call.at.training) return layer_->reverse(call);
        Backward<Real> inner = call;
        Real* const gradients = call.workspace + aligned<Real>(size_);
        std::fill_n(gradients, size_, Real{0});
        inner.parameters = seen(call.at, call.parameters, call.workspace);
        inner.gradients = gradients;
        inner.prepared = prepared_of(inner.parameters, call.workspace);
        inner.workspace = own(call.workspace);
        layer_->reverse(inner);
        drop(call.at, gradients);
        for (Index k = 0; k < size_; ++k) call.gradients[k] += gradients[k];
    }

private:
    void run(const Forward<Real>& call, void (Layer<Real>::*method)(const Forward<Real>&) const) const {
        Forward<Real> inner = call;
        if (call.at.training) {
            inner.parameters = seen(call.at, call.parameters, call.workspace);
            inner.prepared = prepared_of(inner.parameters, call.workspace);
        }
        inner.workspace = own(call.workspace);
        (*layer_.*method)(inner);
    }

    const Real* seen(const Segment<Real>& at, const Real* parameters, Real* copy) const {
        std::copy_n(parameters, size_, copy);
        drop(at, copy);
        return copy;
    }

    /// Behind the parameters and gradients of the workspace.
    const Real* prepared_of(const Real* parameters, Real* workspace) const {
        Real* const to = workspace + 2 * aligned<Real>(size_);
        layer_->prepare(parameters, to);
        return to;
    }
    Real* own(Real* workspace) const { return workspace + 2 * aligned<Real>(size_) + aligned<Real>(layer_->prepared()); }

    void drop(const Segment<Real>& at, Real* parameters) const {
        Real* const w = parameters + dropped_.first;
        const Real kept = spared_.factor<Real>();
        Random(at.seed, stream_)
            .words(0, 0, static_cast<std::uint64_t>(dropped_.size()),
                   [&](std::uint64_t k, std::uint32_t word) { w[k] = spared_(word) ? kept * w[k] : Real{0}; });
    }

    LayerPointer<Real> layer_;
    Spared spared_;
    std::uint32_t stream_;
    Range dropped_{};
    Index size_ = 0;
};

}  // namespace

template <class Real>
LayerPointer<Real> weight_drop(LayerPointer<Real> layer, const std::string& parameter, double rate,
                               std::uint32_t stream) {
    return std::make_unique<WeightDrop<Real>>(std::move(layer), parameter, rate, stream);
}

template LayerPointer<float> weight_drop(LayerPointer<float>, const std::string&, double, std::uint32_t);
template LayerPointer<double> weight_drop(LayerPointer<double>, const std::string&, double, std::uint32_t);
template LayerPointer<Dual<double>> weight_drop(LayerPointer<Dual<double>>, const std::string&, double, std::uint32_t);

}  // namespace backsweep
