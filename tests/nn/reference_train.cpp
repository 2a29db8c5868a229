// Runners of reference files for what training does to parameters: optimizers, clipping, rates.
// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "backsweep/train/clip.hpp"
#include "backsweep/train/optimizer.hpp"
#include "backsweep/train/rate.hpp"
#include "nn/reference_cases.hpp"

#include <cmath>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// All keys must be among those that a runner obeys: an option that is overlooked is no pass.
void only(const nlohmann::json& args, const std::set<std::string>& known) {
    for (const auto& item : args.items())
        if (!known.contains(item.key()))
            throw InvalidArgument("the runner does not know the option '" + item.key() + "'");
}

/// Tensors of the file as parts of one flat vector, in the order of `names`.
struct Parts {
    std::vector<std::string> names;
    ParameterLayout layout;

    Parts(const ReferenceCase& c, std::vector<std::string> given, const std::string& prefix) : names(std::move(given)) {
        for (const std::string& name : names) layout.append({.name = name, .rows = c.file.at(prefix + name).size()});
    }

    /// Puts row `row` of each tensor `prefix`name into its place.
    template <class Real>
    std::vector<Real> gather(const ReferenceCase& c, const std::string& prefix, Index row = 0) const {
        std::vector<Real> flat;
        for (const ParameterView& v : layout.views()) {
            const auto values = c.values_of<Real>(prefix + v.name);
            const auto from = values.begin() + row * v.size();
            flat.insert(flat.end(), from, from + v.size());
        }
        return flat;
    }
    template <class Values>
    auto part(const Values& flat, std::size_t k) const {
        const ParameterView& v = layout.views()[k];
        using Real = std::remove_const_t<std::remove_reference_t<decltype(flat[0])>>;
        return std::vector<Real>(flat.begin() + v.offset, flat.begin() + v.offset + v.size());
    }
};

/// The files' check sum, against the size of what is added up.
template <class Real>
void check_sum(const ReferenceCase& c, const std::vector<Real>& values, Quantity quantity) {
    double sum = 0.0, size = 0.0;
    for (const Real x : values) {
        sum += static_cast<double>(x);
        size += std::abs(static_cast<double>(x));
    }
    c.check("loss", std::vector<Real>{static_cast<Real>(sum)}, quantity, size);
}

template <class Adam>
Adam adam_of(const nlohmann::json& args) {
    only(args, {"lr", "betas", "eps", "weight_decay", "amsgrad"});
    Adam adam;
    adam.beta1 = args.contains("betas") ? args["betas"][0].get<double>() : adam.beta1;
    adam.beta2 = args.contains("betas") ? args["betas"][1].get<double>() : adam.beta2;
    adam.epsilon = args.value("eps", adam.epsilon);
    adam.weight_decay = args.value("weight_decay", adam.weight_decay);
    adam.amsgrad = args.value("amsgrad", false);
    return adam;
}

OptimizerSpec spec_of(const std::string& name, const nlohmann::json& args) {
    OptimizerSpec spec;
    if (name == "adam") {
        spec.rule = adam_of<AdamSpec>(args);
    } else if (name == "adamw") {
        spec.rule = adam_of<AdamWSpec>(args);
    } else if (name == "sgd") {
        only(args, {"lr", "momentum", "dampening", "nesterov", "weight_decay"});
        spec.rule = SgdSpec{.momentum = args.value("momentum", 0.0),
                            .dampening = args.value("dampening", 0.0),
                            .nesterov = args.value("nesterov", false),
                            .weight_decay = args.value("weight_decay", 0.0)};
    } else if (name == "rmsprop") {
        only(args, {"lr", "alpha", "eps", "centered", "momentum", "weight_decay"});
        RmspropSpec r;
        r.alpha = args.value("alpha", r.alpha);
        r.epsilon = args.value("eps", r.epsilon);
        r.centered = args.value("centered", false);
        r.momentum = args.value("momentum", 0.0);
        r.weight_decay = args.value("weight_decay", 0.0);
        spec.rule = r;
    } else if (name == "adagrad") {
        only(args, {"lr", "lr_decay", "initial_accumulator_value", "eps", "weight_decay"});
        AdagradSpec r;
        r.rate_decay = args.value("lr_decay", 0.0);
        r.initial_accumulator = args.value("initial_accumulator_value", 0.0);
        r.epsilon = args.value("eps", r.epsilon);
        r.weight_decay = args.value("weight_decay", 0.0);
        spec.rule = r;
    } else {
        throw InvalidArgument("no optimizer '" + name + "'");
    }
    return spec;
}

template <class Real>
void optimize(const ReferenceCase& c) {
    const Parts parts(c, {"w", "b"}, "");
    Optimizer<Real> optimizer(spec_of(c.options.at("name"), c.options.at("args")), parts.layout);
    std::vector<Real> p = parts.gather<Real>(c, "");
    std::vector<std::vector<Real>> path(parts.names.size());
    const Index steps = c.options.at("steps");
    for (Index s = 0; s < steps; ++s) {
        optimizer.step(p, parts.gather<Real>(c, "grads.", s), c.options.at("args").at("lr"));
        for (std::size_t k = 0; k < path.size(); ++k) {
            const auto now = parts.part(p, k);
            path[k].insert(path[k].end(), now.begin(), now.end());
        }
    }
    for (std::size_t k = 0; k < path.size(); ++k) {
        c.check("params." + parts.names[k], path[k], Quantity::updates);
        for (const auto& [name, values] : optimizer.moments())
            c.check("state." + name + "." + parts.names[k], parts.part(values, k), Quantity::updates);
    }
    check_sum(c, p, Quantity::updates);
}

void run_optimizer(const ReferenceCase& c) {
    only(c.options, {"name", "args", "steps"});
    optimize<double>(c);
    optimize<float>(c);
}

template <class Real>
void clip_all(const ReferenceCase& c) {
    ClipSpec spec;
    if (c.options.at("kind") == "value") {
        spec = {ClipSpec::Kind::value, c.options.at("clip_value")};
    } else {
        const std::string type = c.options.at("norm_type");
        if (type != "2" && type != "inf") throw InvalidArgument("no norm '" + type + "'");
        spec = {type == "2" ? ClipSpec::Kind::norm : ClipSpec::Kind::largest_norm, c.options.at("max_norm")};
    }
    const Parts parts(c, {"w", "b", "u"}, "grads.");
    std::vector<Real> g = parts.gather<Real>(c, "grads.");
    const double before = clip<Real>(spec, parts.layout, g);
    if (c.file.find("total_norm"))
        c.check("total_norm", std::vector<Real>{static_cast<Real>(before)}, Quantity::rates_and_clipping);
    for (std::size_t k = 0; k < parts.names.size(); ++k)
        c.check("clipped." + parts.names[k], parts.part(g, k), Quantity::rates_and_clipping);
    check_sum(c, g, Quantity::rates_and_clipping);
}

void run_clip(const ReferenceCase& c) {
    only(c.options, {"kind", "clip_value", "max_norm", "norm_type", "scale"});
    clip_all<double>(c);
    clip_all<float>(c);
}

void run_rate(const ReferenceCase& c) {
    const auto& args = c.options.at("args");
    const std::string name = c.options.at("name");
    RateSpec spec{.peak = c.options.at("lr")};
    if (name == "CosineAnnealingLR") {
        only(args, {"T_max", "eta_min"});
        spec.law = RateSpec::Law::annealing;
        spec.length = args.at("T_max");
        spec.floor = args.value("eta_min", 0.0);
    } else if (name == "LinearLR") {  // a warm-up
        only(args, {"start_factor", "total_iters"});
        spec.warm_up = args.at("total_iters");
        spec.warm_up_from = args.at("start_factor");
    } else if (name == "StepLR") {
        only(args, {"step_size", "gamma"});
        spec.law = RateSpec::Law::step;
        spec.period = args.at("step_size");
        spec.factor = args.value("gamma", 0.1);
    } else if (name == "ExponentialLR") {
        only(args, {"gamma"});
        spec.law = RateSpec::Law::exponential;
        spec.factor = args.at("gamma");
    } else if (name == "OneCycleLR") {
        only(args, {"max_lr", "total_steps", "pct_start", "anneal_strategy", "div_factor", "final_div_factor",
                    "three_phase"});
        spec.law = RateSpec::Law::one_cycle;
        spec.peak = args.at("max_lr");
        spec.length = args.at("total_steps");
        spec.one_cycle.rise = args.value("pct_start", spec.one_cycle.rise);
        spec.one_cycle.linear = args.value("anneal_strategy", "cos") == "linear";
        spec.one_cycle.start_divisor = args.value("div_factor", spec.one_cycle.start_divisor);
        spec.one_cycle.end_divisor = args.value("final_div_factor", spec.one_cycle.end_divisor);
        spec.one_cycle.three_phase = args.value("three_phase", false);
    } else if (name == "ReduceLROnPlateau") {
        only(args, {"factor", "patience", "cooldown", "min_lr", "mode", "threshold", "threshold_mode"});
        spec.law = RateSpec::Law::plateau;
        spec.factor = args.value("factor", 0.1);
        spec.floor = args.value("min_lr", 0.0);
        spec.plateau.rising = args.value("mode", "min") == "max";
        spec.plateau.absolute = args.value("threshold_mode", "rel") == "abs";
        spec.plateau.threshold = args.value("threshold", spec.plateau.threshold);
        spec.plateau.patience = args.value("patience", spec.plateau.patience);
        spec.plateau.cooldown = args.value("cooldown", Index{0});
    } else {
        throw InvalidArgument("no rate '" + name + "'");
    }
    BOOST_TEST_REQUIRE(spec.problem() == "");
    std::vector<double> rates, momenta, metrics;
    if (spec.law == RateSpec::Law::plateau) metrics = c.values_of<double>("metrics");
    Plateau state;
    const Index steps = c.options.at("steps");
    for (Index t = 0; t < steps; ++t) {
        rates.push_back(spec.at(t, state));
        if (const auto momentum = spec.momentum_at(t)) momenta.push_back(*momentum);
        if (!metrics.empty()) state = spec.after(metrics.at(static_cast<std::size_t>(t)), state);
    }
    if (!momenta.empty()) c.check("momentum", momenta, Quantity::rates_and_clipping);
    c.check("lr", rates, Quantity::rates_and_clipping);
    check_sum(c, rates, Quantity::rates_and_clipping);
}

const Registration optimizer{"optimizer", run_optimizer};
const Registration clipping{"clip", run_clip};
const Registration rates{"lr_schedule", run_rate};

}  // namespace
