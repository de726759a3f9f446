// Performs the commands of bench-cli on RocksDB, LMDB or a bare file: a line in, a line of JSON out.
//
//   disk-peer rocksdb|lmdb|floor DIRECTORY BODIES
//
//   disk-store size=4096 entries=1000     stores new entries and flushes
//   disk-hit size=4096 entries=1000 operations=500
//
// BODIES is a file from which both sides take the bodies: entry n of size s begins at
// (n * 506816) mod (file size - s), and its first byte is replaced by the low byte of n.

#include "store.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <vector>

void die(const std::string &what) {
    std::cerr << "disk-peer: " << what << std::endl;
    std::exit(1);
}

namespace {

constexpr size_t body_stride = 506816;

/// A key as bench-cli writes it: 46 bytes that contain the size and the number.
std::string key_text(long size, long number) {
    const std::string prefix = "https://example.test/assets/";
    std::string digits = std::to_string(number);
    std::string kind = std::to_string(size) + "-";
    return prefix + kind + std::string(46 - prefix.size() - kind.size() - digits.size(), '0') +
           digits;
}

/// SplitMix64, as in bench-cli.
struct Random {
    uint64_t state;

    uint64_t next() {
        state += 0x9E3779B97F4A7C15ULL;
        uint64_t mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ULL;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
        return mixed ^ (mixed >> 31);
    }
};

class Peer {
public:
    Peer(std::unique_ptr<Store> store, std::string bodies)
        : store_(std::move(store)), bodies_(std::move(bodies)) {}

    std::string answer(const std::string &line) {
        std::istringstream words(line);
        std::string command, word;
        words >> command;
        std::map<std::string, long> settings;
        while (words >> word) {
            auto equals = word.find('=');
            if (equals != std::string::npos) {
                settings[word.substr(0, equals)] = std::atol(word.c_str() + equals + 1);
            }
        }
        if (command == "describe") return "{\"configuration\": \"" + store_->configuration() + "\"}";
        if (command == "disk-store") return put_all(settings["size"], settings["entries"]);
        if (command == "disk-hit") {
            return hit(settings["size"], settings["entries"], settings["operations"]);
        }
        return "{\"error\": \"unknown command\"}";
    }

private:
    using Clock = std::chrono::steady_clock;

    static double nanoseconds_since(Clock::time_point start) {
        return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    }

    /// The median cost of reading the clock, which bench-cli subtracts from its operations too.
    static double reading_nanoseconds() {
        static const double cost = [] {
            std::vector<double> times;
            for (int number = 0; number < 20'000; number++) {
                times.push_back(nanoseconds_since(Clock::now()));
            }
            return median(times);
        }();
        return cost;
    }

    static double median(std::vector<double> &times) {
        auto middle = times.begin() + static_cast<long>(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        return *middle;
    }

    std::string put_all(long size, long entries) {
        std::string body(static_cast<size_t>(size), '\0');
        auto start = Clock::now();
        for (long number = 0; number < entries; number++) {
            size_t offset = static_cast<size_t>(number) * body_stride %
                            (bodies_.size() - static_cast<size_t>(size));
            body.assign(bodies_, offset, static_cast<size_t>(size));
            body[0] = static_cast<char>(number);
            store_->put(key_text(size, number), body);
        }
        store_->flush();
        return result(nanoseconds_since(start), entries, entries);
    }

    std::string hit(long size, long entries, long operations) {
        std::vector<std::string> keys;
        for (long number = 0; number < entries; number++) keys.push_back(key_text(size, number));
        Random random{1};
        long correct = 0;
        std::string key;
        const double reading = reading_nanoseconds();
        std::vector<double> times;
        times.reserve(static_cast<size_t>(operations));
        for (long step = 0; step < operations; step++) {
            auto number = static_cast<long>(random.next() % static_cast<uint64_t>(entries));
            // A caller has just made its key, so the key is in the processor's cache.
            key = keys[static_cast<size_t>(number)];
            auto start = Clock::now();
            int first = store_->first_byte(key);
            times.push_back(std::max(0.0, nanoseconds_since(start) - reading));
            if (first == (number & 0xFF)) correct++;
        }
        // The median, as in bench-cli: an operation whose thread lost its processor does not count.
        return result(median(times) * static_cast<double>(operations), operations, correct);
    }

    static std::string result(double nanoseconds, long operations, long correct) {
        char text[160];
        std::snprintf(text, sizeof text,
                      "{\"nanoseconds_per_operation\": %.3f, \"operations\": %ld, \"correct\": %ld}",
                      nanoseconds / static_cast<double>(operations), operations, correct);
        return text;
    }

    std::unique_ptr<Store> store_;
    std::string bodies_;
};

std::unique_ptr<Store> open_store(const std::string &kind, const std::string &directory) {
    if (kind == "rocksdb") return open_rocksdb(directory);
    if (kind == "lmdb") return open_lmdb(directory);
    if (kind == "floor") return open_floor(directory);
    die("'" + kind + "' is not a store; give rocksdb, lmdb or floor");
}

} // namespace

int main(int count, char **arguments) {
    if (count != 4) die("usage: disk-peer rocksdb|lmdb|floor DIRECTORY BODIES");
    std::ifstream file(arguments[3], std::ios::binary);
    if (!file) die(std::string("cannot read ") + arguments[3]);
    std::string bodies{std::istreambuf_iterator<char>(file), {}};
    if (bodies.size() < (1 << 20)) die(std::string(arguments[3]) + " has fewer than 1048576 bytes");
    Peer peer(open_store(arguments[1], arguments[2]), std::move(bodies));
    for (std::string line; std::getline(std::cin, line);) {
        std::cout << peer.answer(line) << std::endl;
    }
}
