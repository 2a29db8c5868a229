// A dense layer and its loss one after the other, of which nothing is kept: reverse runs both again.
// SPDX-License-Identifier: MIT
#include "nn/described_layer.hpp"
#include "nn/reference/layers.hpp"

#include <utility>
#include <vector>

namespace backsweep::reference {
namespace {

template <class Real>
class Head final : public DescribedLayer<Real> {
public:
    Head(const DenseSpec& dense, const LossSpec& loss)
        : DescribedLayer<Real>(dense.name, parameters_of(dense)),
          inputs_(dense.inputs),
          outputs_(dense.outputs),
          tied_(tied_to(dense)),
          dense_(reference::dense<Real>(dense)),
          loss_(reference::loss<Real>(loss, dense.outputs)) {}

    std::string tied() const override { return tied_; }

    Footprint footprint(Index, Index) const override { return {.inputs = inputs_, .reads_x = true}; }

    void advance(const Forward<Real>&) const override {}

    void record(const Forward<Real>& call) const override {
        const Size size(*this, call.at);
        std::vector<Real> y(size.y), tape(size.tape);
        run(call.at, call.parameters, call.tied, call.x, y, tape);
    }

    void reverse(const Backward<Real>& call) const override {
        const Size size(*this, call.at);
        std::vector<Real> y(size.y), dy(size.y), tape(size.tape);
        Segment<Real> at = call.at;
        at.loss = nullptr;
        at.losses = nullptr;
        run(at, call.parameters, call.tied, call.x, y, tape);
        loss_->reverse({.at = at,
                        .parameters = nullptr,
                        .gradients = nullptr,
                        .tape = tape.data(),
                        .carry_in = nullptr,
                        .dy = nullptr,
                        .dx = dy.data(),
                        .dcarry = nullptr,
                        .workspace = nullptr});
        Backward<Real> below = call;
        below.tape = nullptr;
        below.dy = dy.data();
        dense_->reverse(below);
    }

private:
    struct Size {
        Size(const Head& head, const Segment<Real>& at)
            : y(static_cast<std::size_t>(head.outputs_ * at.steps * at.batch)),
              tape(static_cast<std::size_t>(head.loss_->footprint(at.steps, at.batch).tape)) {}
        std::size_t y, tape;
    };

    void run(const Segment<Real>& at, const Real* parameters, const Real* tied, const Real* x, std::vector<Real>& y,
             std::vector<Real>& tape) const {
        Forward<Real> call{.at = at,
                           .parameters = parameters,
                           .x = x,
                           .y = y.data(),
                           .carry_in = nullptr,
                           .carry_out = nullptr,
                           .tape = nullptr,
                           .workspace = nullptr,
                           .tied = tied};
        dense_->advance(call);
        call.x = std::exchange(call.y, nullptr);
        call.tape = tape.data();
        loss_->record(call);
    }

    Index inputs_, outputs_;
    std::string tied_;
    LayerPointer<Real> dense_, loss_;
};

}  // namespace

template <class Real>
LayerPointer<Real> head(const DenseSpec& dense, const LossSpec& loss) {
    return std::make_unique<Head<Real>>(dense, loss);
}

template LayerPointer<float> head(const DenseSpec&, const LossSpec&);
template LayerPointer<double> head(const DenseSpec&, const LossSpec&);
template LayerPointer<Dual<double>> head(const DenseSpec&, const LossSpec&);

}  // namespace backsweep::reference
