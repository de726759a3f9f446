#include "store.h"

#include <cstdlib>
#include <fcntl.h>
#include <lz4.h>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace {

/// The physical floor: one file, known offsets, pread and LZ4. It has no checksum and no key on the
/// disk, and its buffers are reused.
class FloorStore final : public Store {
public:
    explicit FloorStore(const std::string &directory) {
        file_ = open((directory + "/floor").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (file_ < 0) die("floor: cannot create " + directory + "/floor");
    }

    ~FloorStore() override { close(file_); }

    void put(std::string_view key, std::string_view body) override {
        size_t start = batch_.size();
        batch_.resize(start + LZ4_compressBound(static_cast<int>(body.size())));
        int stored = LZ4_compress_default(body.data(), batch_.data() + start,
                                          static_cast<int>(body.size()),
                                          static_cast<int>(batch_.size() - start));
        if (stored <= 0) die("floor: a body could not be compressed");
        batch_.resize(start + static_cast<size_t>(stored));
        places_[std::string(key)] = {written_ + static_cast<off_t>(start),
                                     static_cast<uint32_t>(stored),
                                     static_cast<uint32_t>(body.size())};
        if (batch_.size() >= batch_size) write_batch();
    }

    int first_byte(std::string_view key) override {
        auto found = places_.find(std::string(key));
        if (found == places_.end()) return -1;
        const Place &place = found->second;
        if (stored_.size() < place.stored) stored_.resize(place.stored);
        if (raw_.size() < place.raw) raw_.resize(place.raw);
        if (pread(file_, stored_.data(), place.stored, place.offset) !=
            static_cast<ssize_t>(place.stored)) {
            return -1;
        }
        int count = LZ4_decompress_safe(stored_.data(), raw_.data(),
                                        static_cast<int>(place.stored),
                                        static_cast<int>(place.raw));
        if (count != static_cast<int>(place.raw)) return -1;
        return static_cast<unsigned char>(raw_[0]);
    }

    void flush() override { write_batch(); }

    std::string configuration() const override {
        return "a std::unordered_map of places, pread, LZ4, no checksum, buffers reused";
    }

private:
    struct Place {
        off_t offset;
        uint32_t stored;
        uint32_t raw;
    };

    static constexpr size_t batch_size = 256 << 10;

    void write_batch() {
        size_t done = 0;
        while (done < batch_.size()) {
            ssize_t count = pwrite(file_, batch_.data() + done, batch_.size() - done,
                                   written_ + static_cast<off_t>(done));
            if (count <= 0) die("floor: a write failed");
            done += static_cast<size_t>(count);
        }
        written_ += static_cast<off_t>(batch_.size());
        batch_.clear();
    }

    int file_ = -1;
    off_t written_ = 0;
    std::unordered_map<std::string, Place> places_;
    std::vector<char> batch_, stored_, raw_;
};

} // namespace

std::unique_ptr<Store> open_floor(const std::string &directory) {
    return std::make_unique<FloorStore>(directory);
}
