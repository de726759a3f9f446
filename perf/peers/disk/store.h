#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

/// A store of bodies on a disk, driven by the peer program.
class Store {
public:
    virtual ~Store() = default;

    virtual void put(std::string_view key, std::string_view body) = 0;

    /// Reads and decompresses the body; returns its first byte, or -1 if the key is missing.
    virtual int first_byte(std::string_view key) = 0;

    /// Writes all entries to the operating system and leaves none in a cache of the store.
    virtual void flush() = 0;

    virtual std::string configuration() const = 0;
};

std::unique_ptr<Store> open_rocksdb(const std::string &directory);
std::unique_ptr<Store> open_lmdb(const std::string &directory);
std::unique_ptr<Store> open_floor(const std::string &directory);

[[noreturn]] void die(const std::string &what);
