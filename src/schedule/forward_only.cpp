// SPDX-License-Identifier: MIT
#include "backsweep/schedule/forward_only.hpp"

#include "backsweep/base/error.hpp"
#include "schedule/block_schedule.hpp"
#include "schedule/emit.hpp"

namespace backsweep {
namespace {

class ForwardOnly final : public BlockSchedule {
public:
    ForwardOnly(Index steps, bool loss) : steps_(steps), loss_(loss) {}

private:
    void begin() override { at_ = 0; }

    std::size_t generate(std::span<Action> out) override {
        std::size_t written = 0;
        if (!loss_ && at_ < steps_) {
            out[written++] = emit::advance(at_, steps_);
            at_ = steps_;
        }
        for (; at_ < steps_ && written + 2 <= out.size(); ++at_) {
            out[written++] = emit::record(at_);
            out[written++] = emit::drop_working_tape(at_);
        }
        if (at_ == steps_ && written < out.size()) out[written++] = emit::done();
        return written;
    }

    Index steps_;
    bool loss_;
    Index at_ = 0;
};

}  // namespace

std::unique_ptr<Schedule> forward_only(Index steps, bool loss) {
    if (steps < 0) {
        throw InvalidArgument("forward_only: steps must be 0 or more, came " + std::to_string(steps) +
                              "; give the number of links of the chain");
    }
    return std::make_unique<ForwardOnly>(steps, loss);
}

}  // namespace backsweep
