// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE store_disk_store
#include "support/unit_test.hpp"

#include "backsweep/store/disk_store.hpp"
#include "support/scratch.hpp"
#include "support/store_laws.hpp"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace backsweep;
namespace fs = std::filesystem;

namespace {

DiskStoreOptions options_in(const fs::path& folder, Index slots, std::int64_t slot_bytes, Index buffers = 2) {
    DiskStoreOptions o;
    o.folder = folder;
    o.slots = slots;
    o.slot_bytes = slot_bytes;
    o.buffers = buffers;
    o.durable = false;
    return o;
}

/// Calls f for every combination of options that the store offers.
void for_all_options(const fs::path& folder, Index slots, std::int64_t slot_bytes,
                     const std::function<void(const DiskStoreOptions&)>& f) {
    for (const Compression compression : {Compression::none, Compression::zstd}) {
        for (const Precision precision : {Precision::exact, Precision::float32, Precision::bfloat16}) {
            for (const Index buffers : {0, 1, 2, 7}) {
                DiskStoreOptions o = options_in(folder, slots, slot_bytes, buffers);
                o.compression = compression;
                o.precision = precision;
                o.keep = buffers % 2 == 1;
                if (!o.problem().empty()) {
                    BOOST_CHECK_EQUAL(buffers, 0);
                    continue;
                }
                BOOST_TEST_CONTEXT(to_string(compression)
                                   << ", " << to_string(precision) << ", " << buffers << " buffers") {
                    f(o);
                }
            }
        }
    }
}

void write(Store& store, std::int32_t slot, std::vector<std::byte> bytes) {
    const Blob b{bytes.data(), bytes.size()};
    store.write(slot, {&b, 1});
    bytes.assign(bytes.size(), std::byte{0xff});
}

std::vector<std::byte> read(Store& store, std::int32_t slot, std::size_t size) {
    std::vector<std::byte> bytes(size);
    const Blob b{bytes.data(), bytes.size()};
    store.read(slot, {&b, 1});
    return bytes;
}

auto says(std::vector<std::string> words) {
    return [words = std::move(words)](const Error& e) {
        const std::string message = e.what();
        for (const std::string& w : words) {
            if (message.find(w) == std::string::npos) {
                BOOST_TEST_MESSAGE("not in \"" << message << "\": " << w);
                return false;
            }
        }
        return true;
    };
}

/// Turns bits of one byte of a file over.
void spoil(const fs::path& path, std::int64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int c = file.get();
    file.seekp(at);
    file.put(static_cast<char>(c ^ 0x10));
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_obeys_the_laws_with_all_options) {
    const test::Scratch scratch;
    for_all_options(scratch.path(), 97, 100003, [](const DiskStoreOptions& o) {
        DiskStore store(o);
        test::check_store(store);
        store.settle();
        BOOST_TEST(store.kept().empty());
        store.remove();
    });
    BOOST_TEST(scratch.files().empty());
}

BOOST_AUTO_TEST_CASE(it_books_what_was_predicted) {
    const test::Scratch scratch;
    for_all_options(scratch.path(), 3, 5000, [](const DiskStoreOptions& o) {
        Ledger ledger;
        {
            DiskStore store(o, ledger);
            for (std::int32_t i = 0; i < 20; ++i) write(store, i % 3, test::some_bytes(4999, 1));
            for (std::int32_t i = 0; i < 3; ++i) read(store, i, 4999);
            BOOST_CHECK_EQUAL(ledger.live()[Kind::workspace], DiskStore::buffer_bytes(o));
            if (o.keep)
                BOOST_CHECK_EQUAL(static_cast<std::int64_t>(fs::file_size(store.path())), DiskStore::file_bytes(o));
            store.remove();
        }
        BOOST_CHECK_EQUAL(ledger.peak_total(), DiskStore::buffer_bytes(o));
        BOOST_CHECK_EQUAL(ledger.live_total(), 0);
        if (o.compression == Compression::none) BOOST_CHECK_EQUAL(DiskStore::buffer_bytes(o), o.buffers * 5000);
    });
}

BOOST_AUTO_TEST_CASE(sizes_from_nothing_to_a_slot) {
    const test::Scratch scratch;
    constexpr std::size_t room = (std::size_t{5} << 19) + 13;  // two and a half blocks of packing, ragged
    for_all_options(scratch.path(), 2, room, [&](const DiskStoreOptions& o) {
        DiskStore store(o);
        for (const std::size_t size :
             {std::size_t{0}, std::size_t{1}, std::size_t{4096 - 128}, std::size_t{1} << 20, room}) {
            write(store, 1, test::some_bytes(size, 8));
            BOOST_TEST((read(store, 1, size) == test::some_bytes(size, 8)));  // perhaps from a buffer
            store.settle();
            BOOST_TEST((read(store, 1, size) == test::some_bytes(size, 8)));  // from the disk
        }
        BOOST_CHECK_EXCEPTION(write(store, 1, test::some_bytes(room + 1, 8)), StoreError,
                              says({"slot 1", store.path().string(), std::to_string(room), std::to_string(room + 1)}));
        BOOST_CHECK_EXCEPTION(read(store, 1, room), StoreError, says({"slot 1", "empty"}));
        BOOST_CHECK_EXCEPTION(write(store, 2, {}), StoreError, says({"slot 2", "slots from 0 to 1"}));
        store.remove();
    });
}

BOOST_AUTO_TEST_CASE(packing_shrinks_what_can_shrink) {
    const test::Scratch scratch;
    DiskStoreOptions o = options_in(scratch.path(), 1, 3'000'000);
    o.compression = Compression::zstd;
    DiskStore store(o);
    std::vector<std::byte> bytes = test::some_bytes(3'000'000, 3);
    write(store, 0, bytes);
    store.settle();
    BOOST_TEST(store.traffic().bytes_written <= 3'000'000 + 3 * 4 + 128);
    for (std::size_t i = 0; i < bytes.size(); i += 2) bytes[i] = std::byte{7};
    write(store, 0, bytes);
    store.settle();
    BOOST_TEST(store.traffic().bytes_written <= 3'000'000 + 2'000'000);
    BOOST_TEST((read(store, 0, bytes.size()) == bytes));
    BOOST_CHECK_EQUAL(store.traffic().writes, 2);
    BOOST_CHECK_EQUAL(store.traffic().reads, 1);
}

BOOST_AUTO_TEST_CASE(numbers_are_rounded_to_nearest_and_bytes_are_not) {
    const test::Scratch scratch;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    // The second is halfway between two bfloat16 numbers, the third a hair above: by one bit that a float has not.
    std::vector<double> doubles{1.0,      1.00390625, 1.00390625 + 0x1p-40, 1.01171875, -0.0, 0x1p-140, 1e-300,
                                infinity, -3.3};
    std::vector<float> floats{1.0f,    1.00390625f, std::nextafter(1.00390625f, 2.0f), 0x1p-130f, -infinity,
                              3.3e38f, 0.1f};
    const std::vector<double> thin_doubles{1.0, 1.0, 1.0078125, 1.015625, -0.0, 0.0, 0.0, infinity, -3.296875};
    const std::vector<float> thin_floats{1.0f, 1.0f, 1.0078125f, 0x1p-130f, -infinity, 3.296e38f, 0.1f};
    std::array<std::int64_t, 3> header{0x123456789abcdef, -1, 7};
    for (const Compression compression : {Compression::none, Compression::zstd}) {
        for (const Precision precision : {Precision::exact, Precision::float32, Precision::bfloat16}) {
            BOOST_TEST_CONTEXT(to_string(precision)) {
                DiskStoreOptions o = options_in(scratch.path(), 1, 200);
                o.compression = compression;
                o.precision = precision;
                DiskStore store(o);
                BOOST_CHECK_EQUAL(store.exact(), precision == Precision::exact);
                const std::vector<Blob> all{blobs(header)[0], blobs(floats)[0], blobs(doubles)[0]};
                const std::int64_t wide[] = {24 + 28 + 72, 24 + 28 + 36, 24 + 14 + 18};
                BOOST_CHECK_EQUAL(DiskStore::rounded_bytes(all, precision), wide[static_cast<int>(precision)]);
                store.write(0, all);
                auto d = doubles;
                auto f = floats;
                auto h = header;
                d.assign(d.size(), 9), f.assign(f.size(), 9), h.fill(9);
                // Cut elsewhere between the same numbers.
                store.read(0, std::vector<Blob>{blob(h.data(), 1), blob(h.data() + 1, 2), blob(f.data(), 7),
                                                blob(d.data(), 0), blob(d.data(), 4), blob(d.data() + 4, 5)});
                BOOST_TEST((h == header));
                for (std::size_t i = 0; i < doubles.size(); ++i) {
                    const double wanted = precision == Precision::exact     ? doubles[i]
                                          : precision == Precision::float32 ? static_cast<float>(doubles[i])
                                                                            : thin_doubles[i];
                    BOOST_CHECK_EQUAL(d[i], wanted);
                    BOOST_CHECK_EQUAL(std::signbit(d[i]), std::signbit(wanted));
                }
                for (std::size_t i = 0; i < floats.size(); ++i) {
                    if (precision != Precision::bfloat16)
                        BOOST_CHECK_EQUAL(f[i], floats[i]);
                    else
                        BOOST_TEST((f[i] == thin_floats[i] || std::abs(f[i] / thin_floats[i] - 1.0f) < 0x1p-8f));
                }
                if (precision == Precision::exact) continue;
                const std::vector<Blob> other{blobs(floats)[0], blobs(header)[0], blobs(doubles)[0]};
                BOOST_CHECK_EXCEPTION(store.read(0, other), StoreError, says({"slot 0", "other numbers"}));
                std::vector<double> large{1e300};
                BOOST_CHECK_EXCEPTION(store.write(0, blobs(large)), StoreError,
                                      says({"slot 0", "too large", to_string(precision)}));
                BOOST_CHECK_EXCEPTION(store.read(0, all), StoreError, says({"slot 0", "empty"}));
                std::vector<float> none{std::nanf("1")};
                store.write(0, blobs(none));
                none[0] = 1;
                store.read(0, blobs(none));
                BOOST_TEST(std::isnan(none[0]));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(every_float_is_rounded_as_by_long_division) {
    // Against the definition: the nearer of the two neighbours, the even one of a tie.
    const test::Scratch scratch;
    DiskStoreOptions o = options_in(scratch.path(), 1, 20000, 1);
    o.precision = Precision::bfloat16;
    DiskStore store(o);
    std::vector<double> numbers;
    std::uint64_t seed = 12345;
    while (numbers.size() < 10000) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        const double mantissa = 1.0 + std::ldexp(static_cast<double>(seed >> 12), -52);
        numbers.push_back(std::ldexp(numbers.size() % 4 == 0 ? std::round(mantissa * 256) / 256 : mantissa,
                                     static_cast<int>(seed % 200) - 100));
    }
    std::vector<double> back(numbers.size());
    store.write(0, blobs(numbers));
    store.read(0, blobs(back));
    int wrong = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        int exponent = 0;
        const double scaled = std::ldexp(std::frexp(numbers[i], &exponent), 8);  // in [128, 256)
        wrong += back[i] != std::ldexp(std::nearbyint(scaled), exponent - 8);
    }
    BOOST_CHECK_EQUAL(wrong, 0);
}

BOOST_AUTO_TEST_CASE(a_long_random_life_against_a_map) {
    const test::Scratch scratch;
    for_all_options(scratch.path(), 6, 3000, [](const DiskStoreOptions& o) {
        DiskStore store(o);
        std::map<std::int32_t, std::vector<std::byte>> model;
        std::uint32_t seed = 7;
        const auto draw = [&](std::uint32_t below) {
            return (seed = seed * 1664525 + 1013904223, (seed >> 8) % below);
        };
        int wrong = 0;
        for (int i = 0; i < 3000; ++i) {
            const auto slot = static_cast<std::int32_t>(draw(6));
            switch (draw(6)) {
                case 0:
                case 1: {
                    model[slot] = test::some_bytes(draw(3001), seed);
                    write(store, slot, model[slot]);
                    break;
                }
                case 2:
                    store.expect(slot);
                    break;
                case 3:
                    if (draw(3) == 0) store.erase(slot), model.erase(slot);
                    break;
                case 4:
                    if (draw(8) == 0) store.settle();
                    break;
                default:
                    if (model.contains(slot))
                        wrong += read(store, slot, model[slot].size()) != model[slot];
                    else
                        BOOST_CHECK_THROW(read(store, slot, 1), StoreError);
            }
        }
        BOOST_CHECK_EQUAL(wrong, 0);
        BOOST_CHECK_EQUAL(store.kept().size(), model.size());
        store.remove();
    });
}

BOOST_AUTO_TEST_CASE(a_look_ahead_reads_before_it_is_asked) {
    const test::Scratch scratch;
    DiskStore store(options_in(scratch.path(), 4, 100000, 3));
    for (std::int32_t slot = 0; slot < 4; ++slot)
        write(store, slot, test::some_bytes(100000, static_cast<std::uint32_t>(slot)));
    store.settle();
    store.expect(3);
    store.expect(3);  // once only
    store.expect(2);
    store.expect(1);  // the third buffer is for writes: ignored
    for (int i = 0; i < 1000 && store.traffic().reads < 2; ++i) ::usleep(1000);
    BOOST_CHECK_EQUAL(store.traffic().reads, 2);
    BOOST_TEST((read(store, 3, 100000) == test::some_bytes(100000, 3)));
    BOOST_TEST((read(store, 2, 100000) == test::some_bytes(100000, 2)));
    BOOST_CHECK_EQUAL(store.traffic().reads, 2);  // neither was read again
    BOOST_TEST((read(store, 1, 100000) == test::some_bytes(100000, 1)));
    BOOST_CHECK_EQUAL(store.traffic().reads, 3);

    // Writes have a buffer of their own beside what was looked ahead, and an overwritten slot is not served from it.
    store.expect(0);
    store.expect(1);
    for (std::int32_t slot = 0; slot < 4; ++slot)
        write(store, slot, test::some_bytes(99, static_cast<std::uint32_t>(slot) + 10));
    for (std::int32_t slot = 0; slot < 4; ++slot)
        BOOST_TEST((read(store, slot, 99) == test::some_bytes(99, static_cast<std::uint32_t>(slot) + 10)));
}

BOOST_AUTO_TEST_CASE(stores_share_a_throttle) {
    // Bounds from below only: a machine may always be slower.
    using Clock = Throttle::Clock;
    const auto seconds_since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
    const auto throttle = std::make_shared<Throttle>(2e6);
    BOOST_CHECK_EQUAL(throttle->bytes_per_second(), 2e6);
    const Clock::time_point begin = Clock::now();
    throttle->pass(20000, begin);
    throttle->pass(20000, begin);  // behind the first one
    BOOST_CHECK(seconds_since(begin) >= 0.02);
    throttle->pass(1000000, Clock::now() - std::chrono::seconds(1));  // has had its time already
    const test::Scratch scratch;
    for (const Index buffers : {0, 2}) {
        DiskStoreOptions o = options_in(scratch.path(), 2, 10000, buffers);
        o.throttle = throttle;
        o.name = "one";
        DiskStore one(o);
        o.name = "other";
        DiskStore other(o);
        const Clock::time_point from = Clock::now();
        for (DiskStore* store : {&one, &other})
            for (std::int32_t slot = 0; slot < 2; ++slot) write(*store, slot, test::some_bytes(10000, 3));
        one.settle();
        other.settle();
        BOOST_CHECK(seconds_since(from) >= 4 * 10000 / 2e6);
        for (DiskStore* store : {&one, &other}) BOOST_TEST((read(*store, 0, 10000) == test::some_bytes(10000, 3)));
        BOOST_CHECK(seconds_since(from) >= 6 * 10000 / 2e6);
    }
    for (const double rate : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
        BOOST_CHECK_EXCEPTION(Throttle{rate}, InvalidArgument, [](const Error& e) {
            return std::string(e.what()).find("a throttle lets bytes a second pass, above 0, got") != std::string::npos;
        });
}

BOOST_AUTO_TEST_CASE(a_kept_store_is_taken_over) {
    const test::Scratch scratch;
    const fs::path folder = scratch.path() / "a" / "b";
    for (const Index buffers : {0, 1, 2}) {
        DiskStoreOptions o = options_in(folder, 5, 1000, buffers);
        o.keep = true;
        o.run = 0xabc;
        o.durable = true;
        {
            DiskStore store(o);
            BOOST_CHECK_EQUAL(store.sequence(), 0u);
            for (std::int32_t slot = 0; slot < 4; ++slot) write(store, slot, test::some_bytes(900, 1));
            write(store, 1, test::some_bytes(1000, 2));
            store.erase(3);  // stays on the disk
            store.settle();
            BOOST_CHECK_EQUAL(store.kept().size(), 3u);
            BOOST_TEST((store.path().filename() == "slots-0000000000000abc.slots"));
            BOOST_CHECK_EXCEPTION(DiskStore{o}, StoreError, says({store.path().string(), "in use by another process"}));
            BOOST_CHECK_EQUAL(test::end_of(test::start_process([&] {
                                  try {
                                      DiskStore second(o);
                                  } catch (const StoreError&) {
                                      return 3;
                                  }
                                  return 0;
                              })),
                              3);
        }
        {
            DiskStore store(o);
            const auto kept = store.kept();
            BOOST_TEST_REQUIRE(kept.size() == 4u);
            BOOST_CHECK_EQUAL(kept[1].slot, 1);
            BOOST_CHECK_EQUAL(kept[1].bytes, 1000);
            BOOST_CHECK_EQUAL(kept[1].sequence, 5u);
            BOOST_CHECK_EQUAL(kept[3].sequence, 4u);
            BOOST_CHECK_EQUAL(store.sequence(), 5u);
            BOOST_TEST((read(store, 1, 1000) == test::some_bytes(1000, 2)));
            BOOST_TEST((read(store, 3, 900) == test::some_bytes(900, 1)));
            write(store, 4, {});
            BOOST_CHECK_EQUAL(store.sequence(), 6u);
        }
        DiskStoreOptions other = o;
        other.run = 0xabd;
        {
            DiskStore store(other);
            BOOST_TEST(store.kept().empty());
            store.remove();
        }
        other = o;
        other.slot_bytes = 1001;
        const fs::path path = folder / "slots-0000000000000abc.slots";
        BOOST_CHECK_EXCEPTION(DiskStore{other}, StoreError,
                              says({path.string(), "5 slots of 1000 bytes", "5 slots of 1001"}));
        DiskStore store(o);
        BOOST_CHECK_EQUAL(store.kept().size(), 5u);
        store.remove();
        BOOST_TEST(fs::is_empty(folder));
    }
}

BOOST_AUTO_TEST_CASE(files_of_others_are_left_alone) {
    const test::Scratch scratch;
    DiskStoreOptions o = options_in(scratch.path(), 2, 100);
    o.keep = true;
    const fs::path path = scratch.path() / "slots-0000000000000000.slots";
    const std::string text(20000, 'x');
    std::ofstream(path) << text;
    BOOST_CHECK_EXCEPTION(DiskStore{o}, StoreError, says({path.string(), "no file of a disk store"}));
    std::ifstream in(path);
    BOOST_TEST((std::string(std::istreambuf_iterator<char>(in), {}) == text));
}

BOOST_AUTO_TEST_CASE(any_damaged_byte_is_found) {
    const test::Scratch scratch;
    for (const Compression compression : {Compression::none, Compression::zstd}) {
        DiskStoreOptions o = options_in(scratch.path(), 3, 300, 1);
        o.compression = compression;
        o.keep = true;
        std::vector<std::byte> content(300, std::byte{0x55});  // can be packed
        fs::path path;
        std::int64_t stored = 0;
        {
            DiskStore store(o);
            path = store.path();
            for (std::int32_t slot = 0; slot < 3; ++slot) write(store, slot, content);
            store.settle();
            stored = store.traffic().bytes_written / 3;
        }
        const std::int64_t head = stored - (compression == Compression::none ? 300 : 0);
        BOOST_TEST(stored < (compression == Compression::none ? 400 : 150));
        const std::int64_t slot = 4096 + 4096;  // the middle one
        int found = 0, meaningless = 0, places = 0;
        for (std::int64_t at = 0; at < 128 + 300; ++at) {
            const bool in_head = at < 80, in_content = at >= 128 && at < 128 + stored - 80;
            if (!in_head && !in_content) continue;
            // zstd's headers have a bit that means nothing: then the content is whole, and must be the right one.
            const auto harmless = [&](DiskStore& store) {
                return compression == Compression::zstd && in_content && read(store, 1, 300) == content;
            };
            spoil(path, slot + at);
            bool means_nothing = false;
            {
                DiskStore store(o);
                if (store.kept().size() == 3) {
                    means_nothing = harmless(store);
                    meaningless += means_nothing;
                } else {
                    found += store.kept().size() == 2 && store.kept()[1].slot == 2;
                    BOOST_CHECK_EXCEPTION(read(store, 1, 300), StoreError, test::names(1));
                }
                BOOST_TEST((read(store, 0, 300) == content));
            }
            spoil(path, slot + at);
            {
                DiskStore store(o);  // and while it is open
                BOOST_CHECK_EQUAL(store.kept().size(), 3u);
                spoil(path, slot + at);
                if (means_nothing)
                    BOOST_TEST(harmless(store));
                else
                    BOOST_CHECK_EXCEPTION(read(store, 1, 300), StoreError, says({"slot 1", path.string(), "damaged"}));
                spoil(path, slot + at);
                BOOST_TEST((read(store, 1, 300) == content));
            }
            ++places;
        }
        BOOST_CHECK_EQUAL(found + meaningless, places);
        BOOST_TEST(meaningless <= (compression == Compression::zstd ? 1 : 0));
        BOOST_TEST(places >= 80 + (head > 0 ? 10 : 0));
        for (std::int64_t at = 0; at < 64; ++at) {
            spoil(path, at);
            BOOST_CHECK_THROW(DiskStore{o}, StoreError);
            spoil(path, at);
        }
        DiskStore(o).remove();
    }
}

BOOST_AUTO_TEST_CASE(a_lost_or_cut_file_is_an_error) {
    const test::Scratch scratch;
    for (const Index buffers : {0, 2}) {
        const fs::path folder = scratch.path() / "folder";
        DiskStoreOptions o = options_in(folder, 3, 50000, buffers);
        o.keep = true;
        {
            DiskStore store(o);
            for (std::int32_t slot = 0; slot < 3; ++slot) write(store, slot, test::some_bytes(50000, 1));
            store.settle();
            fs::resize_file(store.path(), 4096 + 60000);
            BOOST_TEST((read(store, 0, 50000) == test::some_bytes(50000, 1)));
            BOOST_CHECK_EXCEPTION(read(store, 1, 50000), StoreError,
                                  says({store.path().string(), "50000 bytes", "the file ends there"}));
        }
        BOOST_CHECK_EXCEPTION(DiskStore{o}, StoreError, says({"3 slots of 50000 bytes"}));
        fs::remove_all(folder);
        {
            DiskStore store(o);
            write(store, 0, test::some_bytes(10, 1));
            store.settle();
            fs::remove_all(folder);
            const auto gone = says({store.path().string(), "was removed"});
            if (buffers == 0)
                BOOST_CHECK_EXCEPTION(write(store, 1, test::some_bytes(10, 1)), StoreError, gone);
            else
                write(store, 1, test::some_bytes(10, 1));
            o.durable = true;
            BOOST_CHECK_EXCEPTION((store.settle(), write(store, 1, {}), store.settle()), StoreError, gone);
        }
        o.durable = false;
        o.folder = scratch.path() / "file";
        std::ofstream(o.folder) << "no folder";
        BOOST_CHECK_EXCEPTION(DiskStore{o}, StoreError, says({o.folder.string()}));
        o.keep = false;
        BOOST_CHECK_EXCEPTION(DiskStore{o}, StoreError, says({o.folder.string()}));
        fs::remove(o.folder);
    }
}

BOOST_AUTO_TEST_CASE(options_with_a_problem_are_refused) {
    const DiskStoreOptions good = options_in("folder", 3, 100);
    BOOST_CHECK_EQUAL(good.problem(), std::string());
    const auto refused = [&](const std::string& word, auto change) {
        DiskStoreOptions o = good;
        change(o);
        BOOST_TEST(o.problem().find(word) == 0u);
        BOOST_CHECK_THROW(DiskStore{o}, InvalidArgument);
    };
    refused("folder", [](DiskStoreOptions& o) { o.folder.clear(); });
    refused("name", [](DiskStoreOptions& o) { o.name = "a/b"; });
    refused("name", [](DiskStoreOptions& o) { o.name.clear(); });
    refused("slots", [](DiskStoreOptions& o) { o.slots = 0; });
    refused("slot_bytes", [](DiskStoreOptions& o) { o.slot_bytes = -1; });
    refused("slot_bytes", [](DiskStoreOptions& o) { o.slot_bytes = std::numeric_limits<std::int64_t>::max(); });
    refused("buffers", [](DiskStoreOptions& o) { o.buffers = -1; });
    refused("buffers", [](DiskStoreOptions& o) { o.buffers = 0, o.precision = Precision::float32; });
    refused("compression", [](DiskStoreOptions& o) { o.compression = static_cast<Compression>(7); });
    refused("precision", [](DiskStoreOptions& o) { o.precision = static_cast<Precision>(7); });
}
