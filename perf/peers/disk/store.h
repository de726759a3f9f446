#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

/// One way to keep bodies on a disk, as the peer program drives it.
class Store {
public:
    virtual ~Store() = default;

    virtual void put(std::string_view key, std::string_view body) = 0;

    /// Calls for the body, decompressed; returns its first byte, or -1 when there is none.
    virtual int first_byte(std::string_view key) = 0;

    /// Everything put so far is with the operating system when this returns, and nothing of it is
    /// left in a cache of the store's own.
    virtual void flush() = 0;

    virtual std::string configuration() const = 0;
};

std::unique_ptr<Store> open_rocksdb(const std::string &directory);
std::unique_ptr<Store> open_lmdb(const std::string &directory);
std::unique_ptr<Store> open_floor(const std::string &directory);

[[noreturn]] void die(const std::string &what);
