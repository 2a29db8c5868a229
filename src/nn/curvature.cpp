// SPDX-License-Identifier: MIT
#include "backsweep/nn/curvature.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/error.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/nn/dual.hpp"
#include "backsweep/schedule/ended.hpp"
#include "nn/cpu/layers.hpp"

#include <cmath>
#include <string>
#include <utility>

namespace backsweep {
namespace {

using D = Dual<double>;

/// The loss, but its adjoint loses its value on the way down and keeps its tangent: (0, H_L J v) of (dL/dy, H_L J v).
class OuterLoss final : public Layer<D> {
public:
    explicit OuterLoss(LayerPointer<D> loss) : loss_(std::move(loss)) {}

    const std::string& name() const noexcept override { return loss_->name(); }
    Footprint footprint(Index steps, Index batch) const override { return loss_->footprint(steps, batch); }
    Work work(Index steps, Index batch) const override { return loss_->work(steps, batch); }
    std::vector<ParameterShape> parameters() const override { return loss_->parameters(); }
    void advance(const Forward<D>& call) const override { loss_->advance(call); }
    void record(const Forward<D>& call) const override { loss_->record(call); }
    void reverse(const Backward<D>& call) const override {
        loss_->reverse(call);
        const Index count = footprint(1, 1).inputs * call.at.steps * call.at.batch;
        for (Index k = 0; call.dx && k < count; ++k) call.dx[k].value = 0.0;
    }

private:
    LayerPointer<D> loss_;
};

LayerPointer<D> outer_loss(const LossSpec& spec, Index features) {
    return std::make_unique<OuterLoss>(cpu::loss<D>(spec, features));
}

Network<D> network_of(ModelSpec spec, CurvatureOptions::Matrix matrix) {
    Catalogue<D> catalogue = cpu::catalogue<D>();
    if (matrix == CurvatureOptions::Matrix::gauss_newton) {
        catalogue.loss = &outer_loss;
        spec.loss.save = LossSpec{}.save;  // the matrix is cut at the logits
    }
    return assemble<D>(spec, catalogue);
}

/// numbers := constants; returns them, null where there are none.
const D* lift(const double* constants, Index count, Buffer<D>& numbers) {
    if (!constants) return nullptr;
    numbers.resize(count);
    for (Index k = 0; k < count; ++k) numbers[k] = constants[k];
    return numbers.data();
}

void require_size(std::size_t size, Index wanted, const char* what) {
    if (static_cast<Index>(size) != wanted)
        throw InvalidArgument(std::string(what) + " of " + std::to_string(wanted) + " numbers is wanted, but one of " +
                              std::to_string(size) + " was given");
}

}  // namespace

struct Curvature::Parts {
    Parts(const ModelSpec& spec, Index sequences, CurvatureOptions given, Ledger& ledger)
        : options(std::move(given)),
          network(network_of(spec, options.matrix)),
          batch(sequences),
          chain(network, batch, options.chunk, ledger, options.memories, options.depth),
          parameters(Kind::parameters, ledger),
          gradients(Kind::gradients, ledger),
          inputs(Kind::data, ledger),
          values(Kind::data, ledger),
          weights(Kind::data, ledger),
          keys(Kind::data, ledger),
          values_of_context(Kind::data, ledger),
          start(chain.zero()) {}

    Window<D> lifted(const Window<double>& from) {
        if (from.losses || from.input_gradient || from.outputs || from.output_gradient ||
            (from.context && (from.context->dkeys || from.context->dvalues)))
            throw InvalidArgument(
                "a product with a matrix of second derivatives assigns the product alone; leave the window's losses, "
                "input_gradient, outputs and output_gradient and its context's dkeys and dvalues null");
        const Index positions = from.steps > 0 ? from.steps * batch : 0;
        Window<D> to;
        to.first = from.first;
        to.steps = from.steps;
        to.tokens = from.tokens;
        to.inputs = lift(from.inputs, positions * network.inputs(), inputs);
        to.classes = from.classes;
        to.values = lift(from.values, positions * network.spec().targets(), values);
        to.weights = lift(from.weights, positions, weights);
        to.marks = from.marks;
        to.key_padding = from.key_padding;
        if (from.context) {
            const auto [of_keys, of_values] = network.spec().context().value_or(std::pair<Index, Index>{0, 0});
            const Index rows = from.context->steps * batch;
            context.steps = from.context->steps;
            context.keys = lift(from.context->keys, rows * of_keys, keys);
            context.values = lift(from.context->values, rows * of_values, values_of_context);
            context.marks = from.context->marks;
            to.context = &context;
        }
        to.begins = from.begins;
        to.training = from.training;
        to.seed = from.seed;
        to.sequence = from.sequence;
        to.factors = from.factors;
        to.loss_from = from.loss_from;
        to.scale = from.scale;
        return to;
    }

    /// The schedule follows the number of links.
    Execution<TimeChain<D>>& execution() {
        const Index links = *chain.length();
        if (run && links == links_of_run) return *run;
        const bool open = is_open_ended(options.schedule.family);
        if (!open) options.schedule.steps = links;
        std::unique_ptr<Schedule> schedule = make_schedule(options.schedule);
        if (open) schedule = std::make_unique<Ended>(std::move(schedule), links, Ending::late);
        if (run)
            run->follow(std::move(schedule));
        else
            run = std::make_unique<Execution<TimeChain<D>>>(chain, std::move(schedule));
        links_of_run = links;
        if (slots) run->use(Tier::disk, *slots);
        return *run;
    }

    CurvatureOptions options;
    Network<D> network;
    Index batch;
    TimeChain<D> chain;
    Buffer<D> parameters, gradients, inputs, values, weights, keys, values_of_context;
    Context<D> context;
    TimeChain<D>::State start;
    Store* slots = nullptr;
    std::unique_ptr<Execution<TimeChain<D>>> run;
    Index links_of_run = 0;
};

Curvature::Curvature(const ModelSpec& spec, Index batch, CurvatureOptions options, Ledger& ledger)
    : parts_(std::make_unique<Parts>(spec, batch, std::move(options), ledger)) {}
Curvature::~Curvature() = default;
Curvature::Curvature(Curvature&&) noexcept = default;

void Curvature::use(Store& slots, Store& activations) {
    parts_->slots = &slots;
    parts_->chain.use(activations);
    if (parts_->run) parts_->run->use(Tier::disk, slots);
}

Index Curvature::size() const noexcept {
    return parts_->network.parameters().size();
}

Counts Curvature::counts() const noexcept {
    return parts_->run ? parts_->run->counts() : Counts{};
}

double Curvature::multiply(const CurvaturePoint& at, std::span<const double> direction, std::span<double> product,
                           std::span<double> gradient) {
    Parts& p = *parts_;
    require_size(at.parameters.size(), size(), "a vector of parameters");
    require_size(direction.size(), size(), "a direction");
    require_size(product.size(), size(), "room for a product");
    if (!gradient.empty()) {
        require_size(gradient.size(), size(), "room for a gradient");
        if (p.options.matrix == CurvatureOptions::Matrix::gauss_newton)
            throw InvalidArgument(
                "a sweep with the Gauss-Newton matrix has no gradient; leave its room empty, or take the hessian");
    }
    if (at.state.empty()) {
        p.chain.start_from_zero();
    } else {
        require_size(at.state.size(), p.start.carry.size(), "a state between windows");
        lift(at.state.data(), p.start.carry.size(), p.start.carry);
        p.chain.start_from(p.start);
    }
    p.chain.show(p.lifted(at.window));

    p.parameters.resize(size());
    for (std::size_t k = 0; k < direction.size(); ++k)
        p.parameters[static_cast<Index>(k)] = {at.parameters[k], direction[k]};
    p.gradients.assign(size(), D{0});
    p.chain.use(p.parameters.data());
    p.chain.add_to(p.gradients.data());
    Execution<TimeChain<D>>& run = p.execution();
    run.forward();
    if (!run.resting())
        throw InvalidArgument("a product with a matrix of second derivatives is a reverse sweep, but the schedule '" +
                              p.options.schedule.family + "' has none; take another family");
    run.backward();

    bool finite = true;
    for (std::size_t k = 0; k < product.size(); ++k) {
        const D& g = p.gradients[static_cast<Index>(k)];
        product[k] = g.tangent;
        if (!gradient.empty()) gradient[k] = g.value;
        finite = finite && std::isfinite(g.tangent);
    }
    if (!finite)
        throw NumericError(
            "the loss of the window is " + std::to_string(p.chain.loss()) +
            ", but its product with a matrix of second derivatives has a number that is not finite; is the direction "
            "finite, and the loss twice differentiable there?");
    return p.chain.loss();
}

}  // namespace backsweep
