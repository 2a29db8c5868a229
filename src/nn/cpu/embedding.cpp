// Embedding: rows of a table, copied; the reverse adds to the rows. No tape: the tokens are the segment's. Fillers have no
// token and give 0.
// SPDX-License-Identifier: MIT
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/described_layer.hpp"

#include <algorithm>

namespace backsweep::cpu {
namespace {

template <class Real>
class Embedding final : public DescribedLayer<Real> {
public:
    explicit Embedding(const EmbeddingSpec& spec)
        : DescribedLayer<Real>(spec.name, parameters_of(spec)),
          vocabulary_(spec.vocabulary),
          features_(spec.features),
          padding_(spec.padding.value_or(-1)) {}

    Footprint footprint(Index, Index) const override { return {0, features_, 0, 0, 0}; }

    void advance(const Forward<Real>& call) const override {
        const Segment<Real>& at = call.at;
        require_array(at.tokens, this->name(), "tokens");
        for (Index p = 0; p < at.steps * at.batch; ++p) {
            if (at.filler(p / at.batch, p % at.batch)) {
                std::fill_n(call.y + p * features_, features_, Real{0});
                continue;
            }
            const std::int32_t token = at.tokens[p];
            if (token < 0 || token >= vocabulary_)
                out_of_range(this->name(), "token", token, vocabulary_, at.first + p / at.batch, p % at.batch);
            std::copy_n(call.parameters + token * features_, features_, call.y + p * features_);
        }
    }

    void record(const Forward<Real>& call) const override {
        if (call.y) advance(call);
    }

    void reverse(const Backward<Real>& call) const override {
        const Segment<Real>& at = call.at;
        for (Index p = at.steps * at.batch; p-- > 0;)
            if (const std::int32_t token = at.tokens[p]; !at.filler(p / at.batch, p % at.batch) && token != padding_)
                add(features_, call.dy + p * features_, call.gradients + token * features_);
    }

private:
    Index vocabulary_, features_, padding_;
};

}  // namespace

template <class Real>
LayerPointer<Real> embedding(const EmbeddingSpec& spec) {
    return std::make_unique<Embedding<Real>>(spec);
}

template LayerPointer<float> embedding(const EmbeddingSpec&);
template LayerPointer<double> embedding(const EmbeddingSpec&);
template LayerPointer<Dual<double>> embedding(const EmbeddingSpec&);

}  // namespace backsweep::cpu
