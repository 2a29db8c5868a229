// From a limit in bytes to the whole way a training runs: steps of a link, schedule along time, what is kept along the
// depth and inside layers, where remembered rows lie. Counted, so that the same question always has the same answer.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/train/trainer.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace backsweep {

/// Searches all that the options leave open: chunk where it is 0; schedule where it is "auto"; the depth where
/// `plan_depth`, the places of memories where `plan_memories` is set; and what layers keep inside, among the forms that
/// are added. What the options say is kept. A plan's cost is that of all shards together over a window: counted
/// operations of the layers, and for every call of a layer 8 a parameter that it reads; or seconds, where they are
/// measured.
///
/// Looked at are chunks of 1, 2, 4, ... 256 steps and those that make 1 to 16 links; on every one all families along
/// time and, along the depth, store_all, groups of every number, and kept inputs in rising number; at last, beside the
/// best of these, the optimum along the depth within the bytes that they leave. The chunk of a search divides k1 and k2
/// where the options look back, and window cuts where they are random.
/// One thread at a time.
template <class Real>
class Planner {
public:
    /// The network's form is the first, under the name `save`. All are the caller's and outlive this.
    /// Throws InvalidArgument: options.problem(), or options that do not fit the source.
    Planner(const Network<Real>& network, const Source<Real>& source, TrainOptions options, std::string save = {});
    /// The same model with other things kept inside its layers (save_policy). Throws InvalidArgument if its parameters
    /// differ.
    void add(const Network<Real>& form, std::string save);
    /// Times every layer on links of the source's first window, in `runs` rounds over all forms and lengths, and plans
    /// by the least seconds of a processor from now on: such plans depend on the clock. Lengths between powers of two
    /// are not timed but lie on the line between their neighbours; nor are those that hold more than the limit in RAM
    /// (two are timed in any case).
    void measure(Index runs = 5);

    /// The cheapest plan within the options' budget, or another. Throws NoPlan: the least that works, what it holds,
    /// and how much less other choices than the options' would need.
    Plan best() const { return best(options_.budget); }
    Plan best(const Budget& budget) const;
    /// The plan that needs the fewest bytes of RAM within the limits of time axis and disk.
    Plan smallest(const Budget& budget) const;
    /// Plans that no other beats in both bytes and cost, from `points` limits between the smallest and the fastest.
    std::vector<Plan> front(Index points = 24) const;
    /// A cost that no plan of so many bytes in RAM falls below: what cannot be kept between forward and reverse run is
    /// run again once at least, the cheapest for its bytes first. Disk is left out.
    double lower_bound(std::int64_t bytes) const;
    /// The plan of options that leave nothing open.
    Plan price(const TrainOptions& options, const std::string& save = {}) const;

private:
    struct Form {
        std::string save;
        const Network<Real>* network;
    };
    struct Way;
    struct Found;
    struct Seconds;

    Workload workload_of(const Way& way) const;
    std::vector<Index> chunks() const;
    std::vector<DepthOptions> depths(const Form& form) const;
    std::vector<MemoryPlaces> places(const Form& form) const;
    Offer offered(const Way& way, const Budget& budget, double below) const;
    void look(const Budget& budget, Found& found) const;
    void refine(const Budget& budget, Found& found) const;
    Index steps_timed(const Form& form, Index link) const;
    std::optional<DepthOptions> way_to_time(Index link) const;
    void time(const Form& form, Index link, const DepthOptions& depth, std::size_t shard, const Real* parameters,
              Real* gradients, std::vector<Seconds>& least) const;
    const std::vector<Work>& prices(const Form& form, Index chunk, Index batch) const;
    const DepthProgram& program(const Way& way, Index batch) const;
    Plan finished(Plan plan, const Way& way) const;
    std::string would_buy(const Budget& budget, const Plan& least) const;

    const Source<Real>* source_;
    TrainOptions options_;
    std::vector<Form> forms_;
    Index runs_ = 0;  // 0: counted
    mutable std::map<std::string, std::vector<Work>> prices_;
    mutable std::map<std::string, std::unique_ptr<DepthProgram>> programs_;
};

/// The options as the plan fills them in, of a model with so many memories: nothing is left open. Throws
/// InvalidArgument for a plan with names that are none.
TrainOptions planned(TrainOptions options, const Plan& plan, std::size_t memories);

/// The largest number from `least` on for which `fits` holds, found by doubling and halving; 0 if not even `least`
/// does.
Index largest_that_fits(Index least, Index most, const std::function<bool(Index)>& fits);

}  // namespace backsweep
