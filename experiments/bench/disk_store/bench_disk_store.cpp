// What a disk store costs: MB/s beside a plain loop of pwrite and fdatasync, or pread, over the same bytes in the same
// run; a sweep with its slots on the disk beside the same one with all of them in RAM; and what plans foretell of sweeps on
// the disk as it is and on a throttled one.
// SPDX-License-Identifier: MIT
#include "backsweep/chain/execution.hpp"
#include "backsweep/plan/plan.hpp"
#include "backsweep/schedule/periodic_disk.hpp"
#include "backsweep/store/disk_store.hpp"
#include "backsweep/store/ram_store.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace backsweep;

constexpr std::int64_t mib = 1 << 20;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double resident_mib() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

[[noreturn]] void stop(const std::string& what) {
    std::printf("%s\n", what.c_str());
    std::exit(1);
}

struct Size {
    std::filesystem::path folder;
    std::int64_t state = 4 * mib;  // bytes
    std::int64_t states = 0;       // written in all
    std::int64_t slots = 64;

    double megabytes() const { return static_cast<double>(states * state) / 1e6; }
};

/// Activations of a cell: dense, so packing gains little.
std::vector<float> numbers(std::int64_t bytes) {
    std::vector<float> x(static_cast<std::size_t>(bytes) / sizeof(float));
    std::uint64_t seed = 1;
    for (float& v : x) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        v = std::tanh(static_cast<float>(static_cast<std::int64_t>(seed) >> 32) * 0x1p-31f * 2.0f);
    }
    return x;
}

/// So that reads come from the disk.
void forget_pages(int file) {
    ::fdatasync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
}

struct Rates {
    double write = 0.0, read = 0.0;  // MB/s
};

/// Every slot is written in turn, and forced to the disk after each round; then all are read once.
Rates plain(const Size& size, std::vector<float>& x) {
    const std::string path = size.folder / "plain";
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || ::posix_fallocate(file, 0, size.slots * size.state) != 0) stop("no room in " + path);
    const auto bytes = static_cast<std::size_t>(size.state);
    Rates rates;
    double begin = now();
    for (std::int64_t i = 0; i < size.states; ++i) {
        if (::pwrite(file, x.data(), bytes, i % size.slots * size.state) != size.state) stop("a write failed");
        if (i % size.slots == size.slots - 1) ::fdatasync(file);
    }
    ::fdatasync(file);
    rates.write = size.megabytes() / (now() - begin);
    forget_pages(file);
    begin = now();
    for (std::int64_t i = size.slots; i-- > 0;)
        if (::pread(file, x.data(), bytes, i * size.state) != size.state) stop("a read failed");
    rates.read = static_cast<double>(size.slots * size.state) / 1e6 / (now() - begin);
    ::close(file);
    ::unlink(path.c_str());
    return rates;
}

Rates stored(const Size& size, DiskStoreOptions o, std::vector<float>& x) {
    o.folder = size.folder;
    o.slots = size.slots;
    o.slot_bytes = size.state;
    o.keep = true;
    DiskStore store(o);
    Rates rates;
    double begin = now();
    for (std::int64_t i = 0; i < size.states; ++i) {
        store.write(static_cast<std::int32_t>(i % size.slots), blobs(x));
        if (i % size.slots == size.slots - 1) store.settle();
    }
    store.settle();
    rates.write = size.megabytes() / (now() - begin);
    const int file = ::open(store.path().c_str(), O_RDWR);
    forget_pages(file);
    ::close(file);
    begin = now();
    for (auto slot = static_cast<std::int32_t>(size.slots); slot-- > 0;) {
        store.expect(slot - 1);
        store.read(slot, blobs(x));
    }
    rates.read = static_cast<double>(size.slots * size.state) / 1e6 / (now() - begin);
    store.remove();
    return rates;
}

void rates(const Size& size, int rounds) {
    std::vector<float> x = numbers(size.state);
    struct Row {
        std::string name;
        std::function<Rates()> run;
        std::vector<double> write, read;
    };
    const auto with = [&](Index buffers, Compression compression, Precision precision) {
        DiskStoreOptions o;
        o.buffers = buffers;
        o.compression = compression;
        o.precision = precision;
        return [&size, &x, o] { return stored(size, o, x); };
    };
    std::vector<Row> rows{{"plain pwrite, pread", [&] { return plain(size, x); }, {}, {}},
                          {"2 buffers", with(2, Compression::none, Precision::exact), {}, {}},
                          {"no buffer", with(0, Compression::none, Precision::exact), {}, {}},
                          {"2 buffers, zstd", with(2, Compression::zstd, Precision::exact), {}, {}},
                          {"2 buffers, bfloat16", with(2, Compression::none, Precision::bfloat16), {}, {}}};
    for (int k = 0; k < rounds; ++k) {
        for (Row& row : rows) {
            const Rates r = row.run();
            row.write.push_back(r.write);
            row.read.push_back(r.read);
        }
    }
    std::printf("%lld states of %.2f MiB, %.2f GiB, median of %d\n%-22s %14s %14s\n",
                static_cast<long long>(size.states), static_cast<double>(size.state) / static_cast<double>(mib),
                static_cast<double>(size.states * size.state) / static_cast<double>(1 << 30), rounds, "", "write MB/s",
                "read MB/s");
    for (const Row& row : rows)
        std::printf("%-22s %14.0f %14.0f\n", row.name.c_str(), median(row.write), median(row.read));
    std::printf("peak RSS %.1f MiB, of which a state %.1f and two buffers %.1f\n", resident_mib(),
                static_cast<double>(size.state) / static_cast<double>(mib),
                2.0 * static_cast<double>(size.state) / static_cast<double>(mib));
}

/// A link rotates every number a few times: `turns` set how long it takes, and `least` how long at least, the reverse
/// twice that: then it waits, as for a device, and other programs on the machine do not decide how long a sweep takes.
struct Rotation {
    using State = std::vector<float>;
    using Tape = State;
    using Adjoint = State;
    Index links;
    std::int64_t bytes;
    int turns;
    double least = 0.0;  // seconds

    std::optional<Index> length() const { return links; }
    State initial() const { return numbers(bytes); }
    Index advance(Range r, State& x) {
        for (Index k = r.first; k < r.last; ++k) {
            const double begin = now();
            for (int t = 0; t < turns; ++t)
                for (float& v : x) v = v * 0.99f + (v - v * v * v) * 0.01f;
            wait_until(begin + least);
        }
        return r.last;
    }
    Index record(Range r, State& x, Tape& tape) {
        tape = x;
        return advance(r, x);
    }
    void seed(const State& x, Adjoint& a) { a = x; }
    void reverse(Range, State&, Tape& tape, Adjoint& a) {
        const double begin = now();
        for (std::size_t i = 0; i < a.size(); ++i) a[i] *= 1.0f - 0.03f * tape[i] * tape[i];
        wait_until(begin + 2.0 * least);
    }

private:
    void wait_until(double time) const {
        if (least > 0.0) std::this_thread::sleep_for(std::chrono::duration<double>(time - now()));
    }
};

double sweep(Rotation& chain, Index period, Store& store, std::vector<float>& adjoint) {
    PeriodicDiskOptions o;
    o.steps = chain.links;
    o.ram_slots = 1;
    o.period = period;
    Execution run(chain, periodic_disk(o));
    run.use(Tier::disk, store);
    const double begin = now();
    run.forward();
    run.backward();
    const double seconds = now() - begin;
    if (!adjoint.empty() && adjoint != run.adjoint()) stop("another gradient");
    adjoint = run.adjoint();
    return seconds;
}

void sweeps(const Size& size, int turns, Index period, int rounds) {
    Rotation chain{size.states * period + 1, size.state, turns};
    std::vector<float> adjoint;
    std::vector<double> ratios;
    DiskStore::Traffic traffic;
    for (int k = 0; k < rounds; ++k) {
        DiskStoreOptions o;
        o.folder = size.folder;
        o.slots = size.states + 1;
        o.slot_bytes = size.state + 64;
        double disk = 0.0;
        {
            DiskStore store(o);
            disk = sweep(chain, period, store, adjoint);
            store.settle();
            traffic = store.traffic();
        }
        const double rss = resident_mib();
        RamStore ram;
        const double in_ram = sweep(chain, period, ram, adjoint);
        ratios.push_back(disk / in_ram);
        std::printf("disk %.2f s (peak RSS %.1f MiB), RAM %.2f s: %.3f x; written at %.0f MB/s, read at %.0f MB/s\n",
                    disk, rss, in_ram, ratios.back(),
                    static_cast<double>(traffic.bytes_written) / 1e6 / traffic.seconds_writing,
                    static_cast<double>(traffic.bytes_read) / 1e6 / traffic.seconds_reading);
    }
    std::sort(ratios.begin(), ratios.end());
    std::printf("%lld states of %.2f MiB on disk, %.2f GiB, period %lld: median %.3f x the time with all in RAM\n",
                static_cast<long long>(traffic.writes), static_cast<double>(size.state) / static_cast<double>(mib),
                static_cast<double>(traffic.bytes_written) / static_cast<double>(1 << 30),
                static_cast<long long>(period), ratios[ratios.size() / 2]);
}

/// Seconds of a link, the means of 20: what other programs take of the machine counts.
void calibrate(Rotation& chain, Workload& w) {
    constexpr int samples = 20;
    std::vector<float> x = chain.initial(), tape, a = x;
    double advance = 0.0, record = 0.0, reverse = 0.0;
    for (int k = 0; k < samples; ++k) {
        const double begin = now();
        chain.advance({0, 1}, x);
        const double advanced = now();
        chain.record({0, 1}, x, tape);
        const double recorded = now();
        chain.reverse({0, 1}, x, tape, a);
        advance += (advanced - begin) / samples;
        record += (recorded - advanced) / samples;
        reverse += (now() - recorded) / samples;
    }
    w.advance = advance, w.record = record, w.reverse = reverse;
}

/// Plans for the disk as it is and for a slow one, in the same RAM, and what came of them.
int throttled(const Size& size, double slow, int rounds, int turns, double least, Index links) {
    Rotation chain{links, size.state, turns, least};
    DiskStoreOptions o;
    o.folder = size.folder;
    o.slot_bytes = size.state + ExecutionBase::header_bytes();
    Workload w;
    w.steps = links;
    w.chunk = 1;
    w.state = w.tape = size.state;
    w.always[Kind::carry] = 2 * size.state;
    w.disk_buffers = o.buffers;
    w.buffers = DiskStore::buffer_bytes(o);
    o.slots = 1, w.disk_file = DiskStore::file_bytes(o);
    o.slots = 2, w.disk_slot = DiskStore::file_bytes(o) - w.disk_file;
    w.disk_file -= w.disk_slot;
    Budget budget;
    budget.ram = w.always.total() + w.tape + w.buffers + 3 * w.state;
    budget.disk = Budget::unlimited;

    std::vector<float> x = numbers(size.state);
    const Rates rates = stored(size, {}, x);
    const auto on_disk = [&](double write, double read) {  // MB/s
        w.write = static_cast<double>(o.slot_bytes) / 1e6 / write;
        w.read = static_cast<double>(o.slot_bytes) / 1e6 / read;
    };
    calibrate(chain, w);
    on_disk(rates.write, rates.read);
    const Plan fast_plan = make_plan(w, budget);
    on_disk(slow, slow);
    const Plan slow_plan = make_plan(w, budget);
    std::printf("%lld links of %.1f ms (reverse %.1f), states of %.2f MiB, %.2f MiB of RAM; disk: %.0f and %.0f MB/s\n",
                static_cast<long long>(links), 1e3 * w.advance, 1e3 * w.reverse,
                static_cast<double>(size.state) / static_cast<double>(mib),
                static_cast<double>(budget.ram) / static_cast<double>(mib), rates.write, rates.read);
    const auto tell = [&](const char* of, const Plan& plan) {
        std::printf("plan for %s: %s, %lld slots in RAM, %lld on disk, %lld advances\n", of,
                    plan.schedule.family.c_str(), static_cast<long long>(plan.predicted[Kind::slots] / size.state),
                    static_cast<long long>(plan.disk_slots), static_cast<long long>(plan.advances));
    };
    tell("the disk as it is", fast_plan);
    tell("the throttled disk", slow_plan);

    struct Row {
        const char* name;
        const Plan* plan;
        bool throttled;
        std::vector<double> predicted{}, measured{}, ratio{}, sum{};
    };
    std::vector<Row> rows{{"its plan, the disk as it is", &fast_plan, false},
                          {"its plan, throttled", &slow_plan, true},
                          {"the other plan, throttled", &fast_plan, true}};
    std::vector<float> adjoint;
    for (int k = 0; k < rounds; ++k)
        for (Row& row : rows) {
            calibrate(chain, w);
            row.throttled ? on_disk(slow, slow) : on_disk(rates.write, rates.read);
            DiskStoreOptions of_row = o;
            of_row.slots = std::max<Index>(1, row.plan->disk_slots);
            if (row.throttled) of_row.throttle = std::make_shared<Throttle>(slow * 1e6);
            DiskStore store(of_row);
            Execution run(chain, schedule_for(*row.plan, links));
            run.use(Tier::disk, store);
            const double begin = now();
            run.forward();
            run.backward();
            row.measured.push_back(now() - begin);
            row.predicted.push_back(price(w, row.plan->schedule).cost);
            row.ratio.push_back(row.predicted.back() / row.measured.back());
            Workload no_buffers = w;
            no_buffers.disk_buffers = 0;
            row.sum.push_back(price(no_buffers, row.plan->schedule).cost);
            if (!adjoint.empty() && adjoint != run.adjoint()) stop("another gradient");
            adjoint = run.adjoint();
        }
    bool met = slow_plan.schedule.family != fast_plan.schedule.family || slow_plan.disk_slots != fast_plan.disk_slots;
    std::printf("median of %d%*s %12s %12s %8s %12s   all ratios\n", rounds, 17, "", "predicted s", "measured s", "ratio",
                "sum s");
    for (const Row& row : rows) {
        std::printf("%-28s %12.2f %12.2f %8.3f %12.2f  ", row.name, median(row.predicted), median(row.measured),
                    median(row.ratio), median(row.sum));
        for (const double ratio : row.ratio) std::printf(" %.3f", ratio);
        std::printf("\n");
        met = met && std::abs(median(row.ratio) - 1.0) <= 0.1;
    }
    std::printf("another plan for the throttled disk, and predictions within 10 %%: %s\n", met ? "met" : "NOT MET");
    return met ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    if (count < 5) {
        std::printf("bench_disk_store rates|sweep FOLDER STATE_MIB GIB [ROUNDS [TURNS [PERIOD]]]\n"
                    "bench_disk_store throttled FOLDER STATE_MIB MB_PER_SECOND [ROUNDS [TURNS [MS [LINKS]]]]\n");
        return 2;
    }
    ::mallopt(M_MMAP_THRESHOLD, 1 << 18);  // what is freed goes back, and the peak is that of one store
    Size size;
    size.folder = words[2];
    size.state = static_cast<std::int64_t>(std::atof(words[3]) * static_cast<double>(mib));
    const int rounds = count > 5 ? std::atoi(words[5]) : 3;
    if (std::string(words[1]) == "throttled") {
        size.states = size.slots;
        return throttled(size, std::atof(words[4]), rounds, count > 6 ? std::atoi(words[6]) : 20,
                         count > 7 ? std::atof(words[7]) / 1e3 : 0.0, count > 8 ? std::atoi(words[8]) : 100);
    }
    size.states = static_cast<std::int64_t>(std::atof(words[4]) * static_cast<double>(1 << 30)) / size.state;
    size.slots = std::min(size.slots, size.states);
    if (std::string(words[1]) == "rates")
        rates(size, rounds);
    else
        sweeps(size, count > 6 ? std::atoi(words[6]) : 24, count > 7 ? std::atoi(words[7]) : 4, rounds);
}
