// oneDNN's recurrent primitives: the training step of an LSTM, or of a GRU with the reset after the recurrent product.
// Weights come and gradients go in PyTorch's layout; the mean squared error between the two sweeps is a plain loop.
// SPDX-License-Identifier: MIT
#include "contestant.hpp"

#include <dnnl.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace {

using bench::Array;
using bench::Case;
using dnnl::memory;
using dnnl::prop_kind;
using Tag = memory::format_tag;
constexpr auto one_way = dnnl::rnn_direction::unidirectional_left2right;

class OneDnn {
public:
    explicit OneDnn(const Case& c) : case_(c), lstm_(c.cell == "lstm"), gates_(lstm_ ? 4 : 3) {
        if (!lstm_ && c.cell != "gru") throw std::invalid_argument("oneDNN has no cell " + c.cell);
        const auto any = [](const memory::dims& d) { return desc(d, Tag::any); };
        const memory::desc rows = desc({c.steps, c.batch, c.hidden}, Tag::tnc),
                           bias = desc({c.layers, 1, 4, c.hidden}, Tag::ldgo);
        const memory::dims square{c.layers, 1, c.hidden, gates_, c.hidden};
        // Zero, and given all the same: without it the last layer's recurrent gradient is wrong (2.6.3).
        const memory::desc state = desc({c.layers, 1, c.batch, c.hidden}, Tag::ldnc);
        if (lstm_) {
            const dnnl::lstm_forward::primitive_desc f({prop_kind::forward_training,
                                                        one_way,
                                                        rows,
                                                        state,
                                                        state,
                                                        any(square),
                                                        any(square),
                                                        bias,
                                                        rows,
                                                        {},
                                                        {}},
                                                       engine_);
            const dnnl::lstm_backward::primitive_desc b({prop_kind::backward,
                                                         one_way,
                                                         rows,
                                                         state,
                                                         state,
                                                         any(square),
                                                         any(square),
                                                         bias,
                                                         rows,
                                                         {},
                                                         {},
                                                         rows,
                                                         state,
                                                         state,
                                                         any(square),
                                                         any(square),
                                                         bias,
                                                         rows,
                                                         {},
                                                         {}},
                                                        engine_, f);
            make<dnnl::lstm_forward, dnnl::lstm_backward>(f, b);
            for (const int arg : {DNNL_ARG_SRC_ITER_C, DNNL_ARG_DIFF_SRC_ITER_C}) add_state(arg, state);
        } else {
            const dnnl::lbr_gru_forward::primitive_desc f(
                {prop_kind::forward_training, one_way, rows, state, any(square), any(square), bias, rows, {}}, engine_);
            const dnnl::lbr_gru_backward::primitive_desc b({prop_kind::backward,
                                                            one_way,
                                                            rows,
                                                            state,
                                                            any(square),
                                                            any(square),
                                                            bias,
                                                            rows,
                                                            {},
                                                            rows,
                                                            state,
                                                            any(square),
                                                            any(square),
                                                            bias,
                                                            rows,
                                                            {}},
                                                           engine_, f);
            make<dnnl::lbr_gru_forward, dnnl::lbr_gru_backward>(f, b);
        }
        for (const int arg : {DNNL_ARG_SRC_ITER, DNNL_ARG_DIFF_SRC_ITER}) add_state(arg, state);
        fill();
    }
    static std::string version() {
        const dnnl_version_t* v = dnnl_version();
        return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
    }

    void step() {
        for (const int w : {DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER}) {
            copy(plain_.at(w), forward_args_.at(w));
            copy(plain_.at(w), backward_args_.at(w));
        }
        forward_.execute(stream_, forward_args_);
        stream_.wait();
        loss_ = mean_squared_error();
        for (const int w : {DNNL_ARG_DIFF_WEIGHTS_LAYER, DNNL_ARG_DIFF_WEIGHTS_ITER, DNNL_ARG_DIFF_BIAS}) {
            const memory& m = backward_args_.at(w);  // the primitive adds to it
            std::fill_n(static_cast<char*>(m.get_data_handle()), m.get_desc().get_size(), char{0});
        }
        backward_.execute(stream_, backward_args_);
        for (const int w : {DNNL_ARG_DIFF_WEIGHTS_LAYER, DNNL_ARG_DIFF_WEIGHTS_ITER})
            copy(backward_args_.at(w), plain_.at(w));
        stream_.wait();
    }
    void gradients(const std::string& path) {
        std::vector<float> all;
        each_parameter([&](int arg, std::int64_t at) {
            const int diff = arg == DNNL_ARG_BIAS            ? DNNL_ARG_DIFF_BIAS
                             : arg == DNNL_ARG_WEIGHTS_LAYER ? DNNL_ARG_DIFF_WEIGHTS_LAYER
                                                             : DNNL_ARG_DIFF_WEIGHTS_ITER;
            all.push_back(data(diff == DNNL_ARG_DIFF_BIAS ? backward_args_.at(diff) : plain_.at(diff))[at]);
        });
        const float* const dx = data(backward_args_.at(DNNL_ARG_DIFF_SRC_LAYER));
        bench::write(path, loss_, all, {dx, dx + case_.steps * case_.batch * case_.hidden});
    }
    static std::string facts() { return "{}"; }

private:
    static memory::desc desc(const memory::dims& d, Tag tag) { return {d, memory::data_type::f32, tag}; }
    static float* data(const memory& m) { return static_cast<float*>(m.get_data_handle()); }
    void copy(memory& from, memory& to) { dnnl::reorder(from, to).execute(stream_, from, to); }

    template <class Forward, class Backward>
    void make(const typename Forward::primitive_desc& f, const typename Backward::primitive_desc& b) {
        forward_ = Forward(f);
        backward_ = Backward(b);
        const auto room = [&](const memory::desc& d) { return memory(d, engine_); };
        const memory x = room(f.src_layer_desc()), y = room(f.dst_layer_desc()), bias = room(f.bias_desc()),
                     workspace = room(f.workspace_desc());
        const std::unordered_map<int, memory> shared{
            {DNNL_ARG_SRC_LAYER, x}, {DNNL_ARG_DST_LAYER, y}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_WORKSPACE, workspace}};
        forward_args_ = backward_args_ = shared;
        forward_args_.emplace(DNNL_ARG_WEIGHTS_LAYER, room(f.weights_layer_desc()));
        forward_args_.emplace(DNNL_ARG_WEIGHTS_ITER, room(f.weights_iter_desc()));
        backward_args_.emplace(DNNL_ARG_WEIGHTS_LAYER, room(b.weights_layer_desc()));
        backward_args_.emplace(DNNL_ARG_WEIGHTS_ITER, room(b.weights_iter_desc()));
        backward_args_.emplace(DNNL_ARG_DIFF_SRC_LAYER, room(b.diff_src_layer_desc()));
        backward_args_.emplace(DNNL_ARG_DIFF_DST_LAYER, room(b.diff_dst_layer_desc()));
        backward_args_.emplace(DNNL_ARG_DIFF_WEIGHTS_LAYER, room(b.diff_weights_layer_desc()));
        backward_args_.emplace(DNNL_ARG_DIFF_WEIGHTS_ITER, room(b.diff_weights_iter_desc()));
        backward_args_.emplace(DNNL_ARG_DIFF_BIAS, room(b.diff_bias_desc()));
        const memory::desc plain = desc({case_.layers, 1, case_.hidden, gates_, case_.hidden}, Tag::ldgoi);
        for (const int w :
             {DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER, DNNL_ARG_DIFF_WEIGHTS_LAYER, DNNL_ARG_DIFF_WEIGHTS_ITER})
            plain_.emplace(w, room(plain));
    }

    void add_state(int arg, const memory::desc& shape) {
        const memory state(shape, engine_);
        std::fill_n(data(state), case_.layers * case_.batch * case_.hidden, 0.0f);
        forward_args_.emplace(arg, state);
        backward_args_.emplace(arg, state);
    }

    /// f(argument, element of its plain array) of all parameters in PyTorch's order. Its
    /// r z n are oneDNN's 1 0 2; the two biases of a gate are one here, but for n of the GRU, whose second is a fourth.
    template <class F>
    void each_parameter(F f) const {
        const std::int64_t h = case_.hidden;
        const auto gate = [&](std::int64_t g) { return lstm_ || g == 2 ? g : 1 - g; };
        for (std::int64_t l = 0; l < case_.layers; ++l) {
            for (const int arg : {DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER})
                for (std::int64_t g = 0; g < gates_; ++g)
                    for (std::int64_t k = 0; k < h * h; ++k) f(arg, (l * gates_ + gate(g)) * h * h + k);
            for (const bool second : {false, true})
                for (std::int64_t g = 0; g < gates_; ++g)
                    for (std::int64_t k = 0; k < h; ++k) {
                        const bool fourth = !lstm_ && g == 2 && second;
                        f(DNNL_ARG_BIAS, (l * 4 + (fourth ? 3 : gate(g))) * h + k);
                    }
        }
    }
    void fill() {
        float* const bias = data(forward_args_.at(DNNL_ARG_BIAS));
        std::fill_n(bias, case_.layers * 4 * case_.hidden, 0.0f);
        std::uint64_t k = 0;
        const float width = 1.0f / std::sqrt(static_cast<float>(case_.hidden));
        each_parameter([&](int arg, std::int64_t at) {
            const float value = bench::number(Array::parameters, k++, width);
            if (arg == DNNL_ARG_BIAS)
                bias[at] += value;
            else
                data(plain_.at(arg))[at] = value;
        });
        float* const x = data(forward_args_.at(DNNL_ARG_SRC_LAYER));
        targets_.resize(static_cast<std::size_t>(case_.steps * case_.batch * case_.hidden));
        for (std::size_t e = 0; e < targets_.size(); ++e) {
            x[e] = bench::number(Array::inputs, e, 1.0f);
            targets_[e] = bench::number(Array::targets, e, 1.0f);
        }
    }
    double mean_squared_error() {
        const float* const y = data(forward_args_.at(DNNL_ARG_DST_LAYER));
        const float* const target = targets_.data();
        float* const dy = data(backward_args_.at(DNNL_ARG_DIFF_DST_LAYER));
        const auto twice = static_cast<float>(2.0 * case_.scale);
        const std::int64_t row = case_.batch * case_.hidden;
        double sum = 0.0;
#pragma omp parallel for reduction(+ : sum)
        for (std::int64_t t = 0; t < case_.steps; ++t) {
            float of_step = 0.0f;
#pragma omp simd reduction(+ : of_step)
            for (std::int64_t k = t * row; k < (t + 1) * row; ++k) {
                const float d = y[k] - target[k];
                dy[k] = twice * d;
                of_step += d * d;
            }
            sum += static_cast<double>(of_step);
        }
        return case_.scale * sum;
    }

    Case case_;
    bool lstm_;
    std::int64_t gates_;
    dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream_{engine_};
    dnnl::primitive forward_, backward_;
    std::unordered_map<int, memory> forward_args_, backward_args_, plain_;
    std::vector<float> targets_;
    double loss_ = 0.0;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::serve<OneDnn>(argc, argv);
}
