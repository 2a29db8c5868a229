// A dense layer and the cross-entropy of its outputs as one. record makes logits of a block of positions, all classes
// of each, and keeps maximum and sum of their softmax; reverse makes them again by blocks of classes [Milakov18 keeps
// the same two numbers, but adds the sum up under a running maximum, which rounds otherwise]. Every number is one chain
// of the same multiply-adds as in the two layers apart, so that bits are equal.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/loss.hpp"
#include "nn/cpu/class_targets.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/cpu/multiply.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace backsweep::cpu {
namespace {

using std::log;  // Dual has its own

template <class Real>
class Head final : public DescribedLayer<Real> {
public:
    Head(const DenseSpec& dense, const LossSpec& loss)
        : DescribedLayer<Real>(dense.name, parameters_of(dense)),
          inputs_(dense.inputs),
          classes_(dense.outputs),
          bias_(dense.bias),
          tied_(tied_to(dense)),
          loss_(loss),
          targets_(loss, classes_) {}

    std::string tied() const override { return tied_; }

    Footprint footprint(Index steps, Index batch) const override {
        const Index positions = steps * batch;
        const Index rows = (block_rows(positions) + 1) * classes_;
        const Index columns = (std::min(block_positions, positions) + 1) * std::min(block_classes, classes_);
        return {.inputs = inputs_, .tape = 2 * positions, .workspace = std::max(rows, columns), .reads_x = true};
    }

    /// Those of the two layers, forward once more in reverse.
    Work work(Index steps, Index batch) const override {
        const auto positions = static_cast<double>(steps * batch);
        const double forward = positions * static_cast<double>((2 * inputs_ + 1) * classes_);
        return {forward, 3.0 * forward};
    }

    void advance(const Forward<Real>&) const override {}

    void record(const Forward<Real>& call) const override {
        const Segment<Real>& at = call.at;
        const Index positions = at.steps * at.batch, rows = block_rows(positions);
        Real* const logits = call.workspace;
        Real* const e = logits + rows * classes_;
        double sum = 0.0;
        for (Index first = 0; first < positions; first += rows) {
            const Index last = std::min(first + rows, positions);
            bool made = false;  // a block without a loss is not made
            for (Index p = first; p < last; ++p) {
                Real &max = call.tape[2 * p], &inverse = call.tape[2 * p + 1];
                double loss = 0.0;
                if (silent(at, p)) {
                    max = inverse = Real{0};
                } else {
                    if (!std::exchange(made, true))
                        make_logits({0, classes_}, last - first, call.parameters, call.tied, call.x + first * inputs_,
                                    logits);
                    const Real* const x = logits + (p - first) * classes_;
                    const Index t = targets_.of(at, p);
                    max = largest(classes_, x);
                    std::copy_n(x, classes_, e);
                    const Real total = exponentials(classes_, max, e);
                    inverse = Real{1} / total;
                    loss = targets_.loss(t, x, {max, log(total)});
                    sum += at.weights ? static_cast<double>(at.weights[p]) * loss : loss;
                }
                if (at.losses) at.losses[p] = static_cast<Real>(loss);
            }
        }
        if (at.loss) *at.loss = sum;
    }

    void reverse(const Backward<Real>& call) const override {
        const Index positions = call.at.steps * call.at.batch, wide = std::min(block_classes, classes_);
        Real* const d = call.workspace;
        Real* const db = d + std::min(block_positions, positions) * wide;
        for (Index c = 0; c < classes_; c += wide) {
            const Range classes{c, std::min(classes_, c + wide)};
            const Index width = classes.size();
            const Real* const W = weight(call.parameters, call.tied) + c * inputs_;
            Real* const dW = weight(call.gradients, call.tied_gradients) + c * inputs_;
            std::fill_n(db, width, Real{0});
            for (Index first = 0; first < positions; first += block_positions) {
                const Index count = std::min(block_positions, positions - first);
                const Real* const x = call.x + first * inputs_;
                make_logits(classes, count, call.parameters, call.tied, x, d);
                for (Index k = 0; k < count; ++k) {
                    derivative(call, first + k, classes, d + k * width);
                    if (bias_) add(width, d + k * width, db);
                }
                add_outer(width, inputs_, count, d, x, dW);
                if (call.dx)
                    apply_transposed(width, inputs_, count, W, d, c > 0 ? Real{1} : Real{0}, call.dx + first * inputs_);
            }
            if (bias_) add(width, db, bias(call.gradients) + c);
        }
    }

private:
    /// Reverse: a block of logits is half a MiB of float, and W's rows of it stay in the second cache.
    static constexpr Index block_classes = 512, block_positions = 256;

    /// record: as many positions as 2 MiB of float have room for, but so many that W is worth packing.
    Index block_rows(Index positions) const noexcept {
        return std::min(std::clamp<Index>((Index{1} << 19) / classes_, 32, 64), positions);
    }

    void make_logits(Range classes, Index positions, const Real* own, const Real* tied, const Real* x, Real* y) const {
        apply(classes.size(), inputs_, positions, weight(own, tied) + classes.first * inputs_, x,
              bias_ ? bias(own) + classes.first : nullptr, y, classes.size());
    }

    /// d: in: logits of position p, out: their adjoint.
    void derivative(const Backward<Real>& call, Index p, Range classes, Real* d) const {
        const Segment<Real>& at = call.at;
        const Index width = classes.size();
        if (silent(at, p)) {
            std::fill_n(d, width, Real{0});
            return;
        }
        const Real max = call.tape[2 * p], inverse = call.tape[2 * p + 1];
        exponentials(width, max, d);
        for (Index k = 0; k < width; ++k) d[k] *= inverse;
        targets_.derivative(at.classes[p], classes, d);
        const Real factor = static_cast<Real>(at.weights ? at.scale * static_cast<double>(at.weights[p]) : at.scale);
        for (Index k = 0; k < width; ++k) d[k] = factor * d[k];
    }

    bool silent(const Segment<Real>& at, Index p) const {
        return !has_loss(loss_, at, p / at.batch, p % at.batch) || targets_.ignored(at, p);
    }

    template <class T>
    T* weight(T* own, T* tied) const {
        return tied_.empty() ? own : tied;
    }
    template <class T>
    T* bias(T* own) const {
        return tied_.empty() ? own + inputs_ * classes_ : own;
    }

    Index inputs_, classes_;
    bool bias_;
    std::string tied_;
    LossSpec loss_;
    ClassTargets<Real> targets_;
};

}  // namespace

template <class Real>
LayerPointer<Real> head(const DenseSpec& dense, const LossSpec& loss) {
    return std::make_unique<Head<Real>>(dense, loss);
}

template LayerPointer<float> head(const DenseSpec&, const LossSpec&);
template LayerPointer<double> head(const DenseSpec&, const LossSpec&);
template LayerPointer<Dual<double>> head(const DenseSpec&, const LossSpec&);

}  // namespace backsweep::cpu
