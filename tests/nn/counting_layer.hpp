// A layer that passes every call on and counts it: the judge of what runs along the depth.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/network.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace backsweep::test {

struct LayerCalls {
    std::atomic<Index> advances = 0, records = 0, reverses = 0;
    std::atomic<Index> unread = 0;  ///< records whose output is not wanted

    void forget() { advances = records = reverses = unread = 0; }
};

template <class Real>
class CountingLayer final : public Layer<Real> {
public:
    CountingLayer(const Layer<Real>& inner, LayerCalls& calls) : inner_(inner), calls_(calls) {}

    const std::string& name() const noexcept override { return inner_.name(); }
    Footprint footprint(Index steps, Index batch) const override { return inner_.footprint(steps, batch); }
    Work work(Index steps, Index batch) const override { return inner_.work(steps, batch); }
    std::vector<ParameterShape> parameters() const override { return inner_.parameters(); }
    std::string tied() const override { return inner_.tied(); }
    std::vector<MemoryShape> memories() const override { return inner_.memories(); }
    void advance(const Forward<Real>& call) const override {
        ++calls_.advances;
        inner_.advance(call);
    }
    void record(const Forward<Real>& call) const override {
        ++calls_.records;
        if (!call.y) ++calls_.unread;
        inner_.record(call);
    }
    void reverse(const Backward<Real>& call) const override {
        ++calls_.reverses;
        inner_.reverse(call);
    }

private:
    const Layer<Real>& inner_;
    LayerCalls& calls_;
};

/// The network, which must outlive it, with its layers counted in `calls`, one each.
template <class Real>
Network<Real> counted(const Network<Real>& network, std::deque<LayerCalls>& calls) {
    typename Network<Real>::Layers layers;
    calls.resize(static_cast<std::size_t>(network.depth()));
    for (Index l = 0; l < network.depth(); ++l)
        layers.push_back(std::make_unique<CountingLayer<Real>>(network.layer(l), calls[static_cast<std::size_t>(l)]));
    return {network.spec(), std::move(layers)};
}

}  // namespace backsweep::test
