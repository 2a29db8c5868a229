// SPDX-License-Identifier: MIT
#include "cli/planning.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/blocks.hpp"

#include <algorithm>

namespace backsweep::cli {

namespace {

std::vector<std::string> policies_of(const Config& config) {
    const Config::Model& m = config.model;
    const bool gated = m.kind == "lstm" || m.kind == "gru", attends = m.kind == "sha_rnn" || m.kind == "transformer_xl";
    if (!gated && !attends) return {""};
    if (m.save != "auto") return {m.save};
    return gated ? std::vector<std::string>{"everything", "nothing"} : save_policies();
}

/// What the model may keep inside, the most first; one without a name where there is nothing to choose.
std::vector<std::string> forms_of(const Config& config) {
    const auto& list = config.model.layers.list;
    const bool classes = config.data.kind != "adding",
               headed = list.empty() || std::holds_alternative<DenseSpec>(list.back());
    const std::string& save = config.loss.save;
    std::vector<std::string> forms;
    for (const std::string& policy : policies_of(config)) {
        if (!classes || save != "nothing") forms.push_back(Kept{policy, true}.name());
        if (classes && (save == "nothing" || (save == "auto" && headed))) forms.push_back(Kept{policy, false}.name());
    }
    return forms;
}

template <class Real>
std::unique_ptr<Network<Real>> network_of(Config config, const Data& data, const std::string& save) {
    const Kept kept = Kept::from(save);
    if (!kept.policy.empty()) config.model.save = kept.policy;
    config.loss.save = kept.logits ? "logits" : "nothing";
    return std::make_unique<Network<Real>>(build<Real>(model_spec(config, data), config.train.device));
}

}  // namespace

template <class Real>
Planning<Real>::Planning(Config& config, const Data& data, const Source<Real>& source) {
    std::vector<std::string> forms = forms_of(config);
    if (config.pinned() && std::find(forms.begin(), forms.end(), config.plan.save) != forms.end())
        forms = {config.plan.save};
    for (const std::string& form : forms) networks_[form] = network_of<Real>(config, data, form);
    const Network<Real>& first = *networks_.at(forms.front());
    options_ = train_options(config, source.windows(), first.parameters(), first.memories().size());
    planner_ = std::make_unique<Planner<Real>>(first, source, options_, forms.front());
    for (std::size_t f = 1; f < forms.size(); ++f) {
        const Network<Real>& form = *networks_.at(forms[f]);
        // A head that is one with its loss is no layer that depth.always and depth.never can name.
        if (options_.depth.problem(layer_names(form), form.links()).empty()) planner_->add(form, forms[f]);
    }
    if (config.calibrate && !config.pinned()) planner_->measure();
}

template <class Real>
Plan Planning<Real>::plan(const Config& config) const {
    if (!config.pinned()) return planner_->best();
    if (networks_.find(config.plan.save) == networks_.end())
        throw InvalidArgument("the pinned [plan] is for layers that keep '" + config.plan.save +
                              "', but those of this model do not; delete [plan] to plan anew");
    return config.plan;
}

template class Planning<float>;
template class Planning<double>;

}  // namespace backsweep::cli
