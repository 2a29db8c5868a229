// Ours, for run.py: forward and reverse of causal attention over heads of 64 features, on arrays as the peers hold
// them, [head][step][feature], or as the layer holds them, [step][head][feature].
// SPDX-License-Identifier: MIT
#include "../recurrent/contestant.hpp"
#include "backsweep/base/buffer.hpp"
#include "nn/cpu/attend.hpp"

#include <array>

namespace {

using namespace backsweep;
using bench::Case;

class Ours {
public:
    explicit Ours(const Case& c) : steps_(c.steps), heads_(c.number("heads", 4)) {
        const bool apart = c.text("layout", "apart") == "apart";
        stride_ = apart ? width : heads_ * width;
        head_ = apart ? steps_ * width : width;
        for (Buffer<float>* b : {&q_, &k_, &v_, &d_o_, &o_, &dq_, &dk_, &dv_})
            *b = Buffer<float>(steps_ * heads_ * width, Kind::data);
        lse_ = Buffer<float>(steps_ * heads_, Kind::tape);
        std::uint64_t array = 0;
        for (Buffer<float>* b : {&q_, &k_, &v_, &d_o_}) {
            for (Index h = 0; h < heads_; ++h)
                for (Index t = 0; t < steps_; ++t)
                    for (Index f = 0; f < width; ++f)
                        row(*b, h)[t][f] =
                            bench::number(static_cast<bench::Array>(array),
                                          static_cast<std::uint64_t>((h * steps_ + t) * width + f), 2.0F);
            ++array;
        }
        attend_.queries = attend_.keys = steps_;
        attend_.width = attend_.value_width = width;
        attend_.scale = 0.125F;
        workspace_ = Buffer<float>(cpu::attend_workspace(attend_), Kind::workspace);
    }
    static std::string version() { return "backsweep"; }
    void step() {
        dk_.fill(0.0F);
        dv_.fill(0.0F);
        for (Index h = 0; h < heads_; ++h) {
            float* const lse = lse_.data() + h * steps_;
            cpu::attend<float>(attend_, in(q_, h), in(k_, h), in(v_, h), row(o_, h), lse, workspace_.data());
            AttendReverse<float> call{in(q_, h),   in(k_, h),   in(v_, h),   in(o_, h),  lse,
                                      in(d_o_, h), row(dq_, h), row(dk_, h), row(dv_, h)};
            cpu::attend_reverse<float>(attend_, call, workspace_.data());
        }
    }
    /// o, dq, dk, dv as the peers hold them, behind a number that no one reads.
    void gradients(const std::string& path) {
        std::vector<float> all;
        for (Buffer<float>* b : {&o_, &dq_, &dk_, &dv_})
            for (Index h = 0; h < heads_; ++h)
                for (Index t = 0; t < steps_; ++t) all.insert(all.end(), row(*b, h)[t], row(*b, h)[t] + width);
        bench::write(path, 0.0, all, {});
    }
    std::string facts() const {
        return "{\"workspace\": " + std::to_string(workspace_.size() * Index{sizeof(float)}) + "}";
    }

private:
    static constexpr Index width = 64;
    Rows<float> row(Buffer<float>& b, Index head) const { return {b.data() + head * head_, stride_}; }
    Rows<const float> in(const Buffer<float>& b, Index head) const { return {b.data() + head * head_, stride_}; }

    Index steps_, heads_, stride_ = 0, head_ = 0;
    Buffer<float> q_, k_, v_, d_o_, o_, dq_, dk_, dv_, lse_, workspace_;
    Attend<float> attend_;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::serve<Ours>(argc, argv);
}
