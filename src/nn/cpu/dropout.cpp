// Dropout. No tape: the mask is made again in reverse.
// SPDX-License-Identifier: MIT
#include "backsweep/base/random.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/described_layer.hpp"
#include "nn/spared.hpp"

#include <algorithm>

namespace backsweep::cpu {
namespace {

template <class Real>
class Dropout final : public DescribedLayer<Real> {
public:
    Dropout(const DropoutSpec& spec, std::uint32_t stream)
        : DescribedLayer<Real>(spec.name, {}),
          features_(spec.features),
          spared_(spec.rate),
          locked_(spec.locked),
          stream_(stream) {}

    // Workspace: the factors of a locked mask.
    Footprint footprint(Index, Index batch) const override {
        return {features_, features_, 0, 0, locked_ ? batch * features_ : 0};
    }

    void advance(const Forward<Real>& call) const override { apply(call.at, call.x, call.y, call.workspace); }
    void record(const Forward<Real>& call) const override {
        if (call.y) advance(call);
    }
    void reverse(const Backward<Real>& call) const override {
        if (call.dx) apply(call.at, call.dy, call.dx, call.workspace);
    }

private:
    /// y = mask x; the mask of a step is that of the features of all sequences, one behind the other.
    void apply(const Segment<Real>& at, const Real* x, Real* y, Real* workspace) const {
        const Index row = at.batch * features_;
        if (!at.training || spared_.all()) {
            std::copy_n(x, at.steps * row, y);
            return;
        }
        const Random random(at.seed, stream_);
        const auto first = static_cast<std::uint64_t>(at.sequence * features_), count = static_cast<std::uint64_t>(row);
        const Real kept = spared_.factor<Real>();
        if (locked_) {
            random.words(0, first, count,
                         [&](std::uint64_t k, std::uint32_t word) { workspace[k] = spared_(word) ? kept : Real{0}; });
            for (Index t = 0; t < at.steps; ++t, x += row, y += row)
                for (Index k = 0; k < row; ++k) y[k] = workspace[k] > Real{0} ? x[k] * workspace[k] : Real{0};
            return;
        }
        for (Index t = 0; t < at.steps; ++t, x += row, y += row)
            random.words(static_cast<std::uint32_t>(at.first + t), first, count,
                         [&](std::uint64_t k, std::uint32_t word) { y[k] = spared_(word) ? x[k] * kept : Real{0}; });
    }

    Index features_;
    Spared spared_;
    bool locked_;
    std::uint32_t stream_;
};

}  // namespace

template <class Real>
LayerPointer<Real> dropout(const DropoutSpec& spec, std::uint32_t stream) {
    return std::make_unique<Dropout<Real>>(spec, stream);
}

template LayerPointer<float> dropout(const DropoutSpec&, std::uint32_t);
template LayerPointer<double> dropout(const DropoutSpec&, std::uint32_t);
template LayerPointer<Dual<double>> dropout(const DropoutSpec&, std::uint32_t);

}  // namespace backsweep::cpu
