#include "store.h"

#include <cstdlib>
#include <cstring>
#include <lmdb.h>
#include <lz4.h>
#include <sys/stat.h>
#include <vector>

namespace {

/// LMDB with LZ4 values. One read transaction is reset and renewed, as LMDB's documentation advises.
/// Puts are batched in transactions without a sync for each.
class LMDBStore final : public Store {
public:
    explicit LMDBStore(const std::string &directory) {
        std::string path = directory + "/lmdb";
        mkdir(path.c_str(), 0700);
        check(mdb_env_create(&env_));
        check(mdb_env_set_mapsize(env_, size_t{16} << 30));
        check(mdb_env_open(env_, path.c_str(), MDB_NOSYNC | MDB_NOTLS | MDB_NORDAHEAD, 0600));
        MDB_txn *txn = nullptr;
        check(mdb_txn_begin(env_, nullptr, 0, &txn));
        check(mdb_dbi_open(txn, nullptr, 0, &dbi_));
        check(mdb_txn_commit(txn));
        check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader_));
        mdb_txn_reset(reader_);
    }

    ~LMDBStore() override {
        if (writer_ != nullptr) mdb_txn_abort(writer_);
        mdb_txn_abort(reader_);
        mdb_env_close(env_);
    }

    void put(std::string_view key, std::string_view body) override {
        if (writer_ == nullptr) check(mdb_txn_begin(env_, nullptr, 0, &writer_));
        uint32_t raw = static_cast<uint32_t>(body.size());
        scratch_.resize(sizeof raw + LZ4_compressBound(static_cast<int>(raw)));
        std::memcpy(scratch_.data(), &raw, sizeof raw);
        int stored = LZ4_compress_default(body.data(), scratch_.data() + sizeof raw,
                                          static_cast<int>(raw),
                                          static_cast<int>(scratch_.size() - sizeof raw));
        if (stored <= 0) die("lmdb: a body could not be compressed");
        MDB_val name{key.size(), const_cast<char *>(key.data())};
        MDB_val value{sizeof raw + static_cast<size_t>(stored), scratch_.data()};
        check(mdb_put(writer_, dbi_, &name, &value, 0));
        pending_ += value.mv_size;
        if (pending_ >= batch_size) commit();
    }

    int first_byte(std::string_view key) override {
        check(mdb_txn_renew(reader_));
        MDB_val name{key.size(), const_cast<char *>(key.data())};
        MDB_val value{};
        int result = -1;
        if (mdb_get(reader_, dbi_, &name, &value) == 0) result = decompressed_first_byte(value);
        mdb_txn_reset(reader_);
        return result;
    }

    void flush() override { commit(); }

    std::string configuration() const override {
        return std::string(MDB_VERSION_STRING) +
               ", LZ4 values, NOSYNC, NORDAHEAD, read transaction renewed for each look-up, "
               "no checksums";
    }

private:
    /// The size of the engine's batches.
    static constexpr size_t batch_size = 256 << 10;

    static void check(int code) {
        if (code != 0) die(std::string("lmdb: ") + mdb_strerror(code));
    }

    void commit() {
        if (writer_ == nullptr) return;
        check(mdb_txn_commit(writer_));
        writer_ = nullptr;
        pending_ = 0;
    }

    /// Decompresses into allocated memory, because a body must outlive the transaction.
    static int decompressed_first_byte(const MDB_val &value) {
        auto bytes = static_cast<const char *>(value.mv_data);
        uint32_t raw = 0;
        std::memcpy(&raw, bytes, sizeof raw);
        auto body = static_cast<char *>(std::malloc(raw));
        int count = LZ4_decompress_safe(bytes + sizeof raw, body,
                                        static_cast<int>(value.mv_size - sizeof raw),
                                        static_cast<int>(raw));
        int first = count == static_cast<int>(raw) ? static_cast<unsigned char>(body[0]) : -1;
        std::free(body);
        return first;
    }

    MDB_env *env_ = nullptr;
    MDB_dbi dbi_ = 0;
    MDB_txn *reader_ = nullptr;
    MDB_txn *writer_ = nullptr;
    size_t pending_ = 0;
    std::vector<char> scratch_;
};

} // namespace

std::unique_ptr<Store> open_lmdb(const std::string &directory) {
    return std::make_unique<LMDBStore>(directory);
}
