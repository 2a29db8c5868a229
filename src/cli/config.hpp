// A training run as plain data, and the one table of its keys: names, values, defaults, meaning. Checks, nearest names,
// the resolved file and the table of docs/program.md all come from it.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/spec.hpp"
#include "backsweep/plan/plan.hpp"

#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace backsweep::cli {

/// A number of layers, or with model.kind = "layers" the layers themselves.
struct Layers {
    Index count = 1;
    std::vector<LayerSpec> list{};
};

/// The keys of a file, table by table. A number outside its key's domain (docs/program.md) means "not given".
struct Config {
    struct Data {
        std::string kind = "text", path, checksum, vocabulary = "occurring";
        std::vector<double> split{90.0, 5.0, 5.0};
        Index batch = 32, window = 64, delay = 100, length = 10, symbols = 8, windows = 1000, seed = 1;
    } data;
    struct Model {
        std::string kind = "lstm";
        Index embedding = 32, hidden = 128;
        Layers layers;
        bool bias = true;
        Index projection = 0, heads = 1, head_features = 0, inner = 0;
        Index memory = 64;
        bool detached = false;
        Index window = 0, attention_layer = -1;
        std::string positions, save = "auto";
        bool layer_norm = false, learned_state = false;
        std::string start = "uniform";
        double forget_bias = std::numeric_limits<double>::quiet_NaN();
        double dropout = 0.0, attention_dropout = 0.0, input_dropout = 0.0, output_dropout = 0.0;
        bool locked = false;
        double weight_drop = 0.0;
        bool tied = false;
        std::string weights, checksum;

        /// Whether all layers are one kind of cell.
        bool recurrent() const { return kind != "sha_rnn" && kind != "transformer_xl" && kind != "layers"; }
        bool attends() const { return kind == "transformer_xl" || (kind == "sha_rnn" && attention_layer != 0); }
    } model;
    struct Loss {
        std::string kind = "mean_squared_error", reduction = "mean";
        std::vector<double> class_weights;
        double label_smoothing = 0.0;
        Index ignore_index = -1;
        double delta = 1.0, beta = 1.0, epsilon = 1e-6;
        bool full = false;
        std::string save = "auto";
    } loss;
    struct Train {
        Index updates = 0, epochs = 0;
        double seconds = 0.0;
        Index look_back = 0;
        std::string look_back_form = "recompute";
        bool carry = true;
        std::string windows = "fixed";
        double window_deviation = 5.0, window_half = 0.05, window_tail = 4.0;
        Index window_shortest = 5, window_longest = 0;
        Index chunk = 0, shards = 0, threads = 1, micro_batches = 1, seed = 0;
        std::string precision = "float", device = "cpu";
    } train;
    struct Optimizer {
        std::string kind = "adam";
        double rate = 1e-3, momentum = 0.0, dampening = 0.0;
        bool nesterov = false;
        double beta1 = 0.9, beta2 = 0.999, epsilon = -1.0;
        bool amsgrad = false;
        double alpha = 0.99;
        bool centered = false;
        double rate_decay = 0.0, initial_accumulator = 0.0;
        double weight_decay = 0.0;
        bool decay_biases = false;
    } optimizer;
    struct Rate {
        std::string law = "constant";
        double floor = 0.0, factor = 0.0;
        Index length = 0, period = 0, warm_up = 0;
        double warm_up_from = 0.1;
        double rise = 0.3, start_divisor = 25.0, end_divisor = 1e4;
        std::string shape = "cosine";
        Index phases = 2;
        bool cycle_momentum = true;
        double momentum_high = 0.95, momentum_low = 0.85;
        Index patience = 10, cooldown = 0;
        double threshold = 1e-4;
        std::string threshold_kind = "relative";

        bool cycles_momentum() const { return law == "one_cycle" && cycle_momentum; }
    } rate;
    struct Clip {
        std::string kind = "none";
        double limit = 0.0;
    } clip;
    Budget memory;
    struct Disk {
        std::string log = "auto";  ///< where remembered rows lie
        std::string folder, compression = "none", precision = "exact";
        double throttle = 0.0;  ///< 0: none
        double bandwidth = 5e8, speed = 1e10;
        Index commit_links = 0;
        double commit_seconds = 0.0;

        bool commits() const { return commit_links > 0 || commit_seconds > 0.0; }
    } disk;
    struct Depth {
        std::string family = "auto";
        Index period = 0, slots = 0;
        std::int64_t budget = 0;
        std::string always, never;
    } depth;
    ScheduleOptions schedule{.family = "auto"};
    struct Output {
        std::string folder;
        Index snapshot_every = 0, keep = 2, eval_every = 0;
    } output;
    bool calibrate = false;
    Plan plan{};              ///< pinned where plan.chunk > 0
    Index plan_ram_slots = -1;  ///< of a pinned schedule with slots on disk

    bool pinned() const noexcept { return plan.chunk > 0; }
};

/// A value as it stands in a file or on the command line.
struct Value {
    std::variant<bool, Index, double, std::string, std::vector<double>, std::vector<LayerSpec>> is;
    std::string text;  ///< for messages
};

/// A key that somebody has given.
struct Given {
    std::string name;  ///< dotted
    Value value;
    std::string place;             ///< "train.toml:7" or "--set data.window=2.5"
    std::filesystem::path base{};  ///< what relative paths are relative to
};

/// Where a key's value stands in a Config.
using Field = std::variant<bool*, Index*, double*, std::string*, std::vector<double>*, Layers*>;

/// Which values a key takes.
struct Domain {
    enum class Kind { flag, number, bytes, choice, text, path, percents, weights, layers };
    Kind kind = Kind::text;
    double least = 0.0, most = 0.0;  ///< numbers
    bool open = false;               ///< `least` itself is out
    bool below = false;              ///< `most` itself is out
    std::vector<std::string> choices{};

    bool holds(double x) const noexcept { return (open ? x > least : x >= least) && (below ? x < most : x <= most); }
    /// "integer in [1, inf)", "one of: text, adding, copy".
    std::string in_words(const Field& field) const;
};

/// One row of the table.
struct Key {
    std::string_view name;
    Field (*field)(Config&);
    Domain domain;
    std::string_view doc;
    /// Null if the key has an effect in this configuration, else why not. An empty function: always.
    const char* (*idle)(const Config&) = nullptr;
    bool required = false;    ///< where it has an effect
    bool may_change = false;  ///< when a run is resumed
    bool written = false;     ///< by the program; not meant to be written by hand

    bool has_effect(const Config& config) const { return !idle || !idle(config); }
    /// Whether a value, given or default, is there: a number in its domain, a text that is not empty.
    bool is_set(const Config& config) const;
    /// The value as TOML.
    std::string text(const Config& config) const;
};

std::span<const Key> keys();

/// The known name that a mistyped one most likely means.
std::string nearest_key(std::string_view name);

/// Whether keys stand in this table: "data".
bool is_table(std::string_view name);
/// The known table that a mistyped one most likely means.
std::string nearest_table(std::string_view name);

/// A configuration, and where each key that was given stands.
struct Loaded {
    Config config;
    std::map<std::string, std::string, std::less<>> places;
};

/// Defaults, then `given` in this order, then all checks. Throws InvalidArgument, naming the place: an unknown key with
/// the nearest known one, a wrong type, a value out of its range, a key without effect, a required key that is missing.
Loaded configure(std::span<const Given> given);

/// Pins the plan.
void pin(Config& config, const Plan& plan);

/// The keys that are set and have an effect, as a TOML file that gives the same configuration.
std::string to_toml(const Config& config);

/// The first key, not one that may change, whose values differ in two runs; empty if none: "data.window: 64 then, 32
/// now". The plan counts where it is pinned now.
std::string difference(const Config& then, const Config& now);

/// The table of docs/program.md.
std::string keys_as_markdown();

/// Whether these bytes are a text: snapshots, TOML and JSON hold no other.
bool is_utf8(std::string_view text) noexcept;

/// "2 MiB" -> 2097152; -1 if it is no size.
std::int64_t bytes_from(std::string_view words) noexcept;

}  // namespace backsweep::cli
