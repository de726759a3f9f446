// RocksDB, LMDB or a bare file under the work that bench-cli asks for: a line in, a line of JSON out.
//
//   disk-peer rocksdb|lmdb|floor DIRECTORY BODIES
//
//   disk-store size=4096 entries=1000     stores new entries and flushes; nanoseconds in all
//   disk-hit size=4096 entries=1000 operations=500
//
// BODIES is a file that both sides take the bodies from: entry n of size s begins at
// (n * 506816) mod (file size - s) and carries the low byte of n in front.

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

/// A key as the other side writes it: 46 bytes, the size and the number in it.
std::string key_text(long size, long number) {
    const std::string prefix = "https://example.test/assets/";
    std::string digits = std::to_string(number);
    std::string kind = std::to_string(size) + "-";
    return prefix + kind + std::string(46 - prefix.size() - kind.size() - digits.size(), '0') +
           digits;
}

/// SplitMix64, as on the other side.
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
        std::vector<double> times;
        times.reserve(static_cast<size_t>(operations));
        for (long step = 0; step < operations; step++) {
            auto number = static_cast<long>(random.next() % static_cast<uint64_t>(entries));
            // Made just now, as a caller makes it: the key is in the processor's cache.
            key = keys[static_cast<size_t>(number)];
            auto start = Clock::now();
            int first = store_->first_byte(key);
            times.push_back(nanoseconds_since(start));
            if (first == (number & 0xFF)) correct++;
        }
        // The median, as on the other side: a thread that lost its processor tells nothing of us.
        auto middle = times.begin() + static_cast<long>(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        return result(*middle * static_cast<double>(operations), operations, correct);
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
    die("no such store: " + kind);
}

} // namespace

int main(int count, char **arguments) {
    if (count != 4) die("usage: disk-peer rocksdb|lmdb|floor DIRECTORY BODIES");
    std::ifstream file(arguments[3], std::ios::binary);
    if (!file) die(std::string("cannot read ") + arguments[3]);
    std::string bodies{std::istreambuf_iterator<char>(file), {}};
    if (bodies.size() < (1 << 20)) die("the file with the bodies is too short");
    Peer peer(open_store(arguments[1], arguments[2]), std::move(bodies));
    for (std::string line; std::getline(std::cin, line);) {
        std::cout << peer.answer(line) << std::endl;
    }
}
