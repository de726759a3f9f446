#include "store.h"

#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

namespace {

/// RocksDB with LZ4 blob files, as its documentation advises for values of some kilobytes
/// (https://github.com/facebook/rocksdb/wiki/BlobDB). The other settings are those of its page on
/// point look-ups: a bloom filter of ten bits and a hash index in the data blocks.
class RocksDBStore final : public Store {
public:
    explicit RocksDBStore(const std::string &directory) {
        rocksdb::BlockBasedTableOptions table;
        table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
        table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
        // Index, filter and the small blocks with the blob references stay in memory. Bodies are
        // read from the file, and these reads are measured.
        rocksdb::Options options;
        options.create_if_missing = true;
        options.compression = rocksdb::kLZ4Compression;
        options.enable_blob_files = true;
        options.min_blob_size = 512;
        options.blob_compression_type = rocksdb::kLZ4Compression;
        options.write_buffer_size = 64 << 20;
        options.max_background_jobs = 2;
        options.optimize_filters_for_hits = false;
        options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
        rocksdb::DB *db = nullptr;
        check(rocksdb::DB::Open(options, directory + "/rocksdb", &db));
        db_.reset(db);
        // A cache may lose its last writes, and so may the engine.
        write_options_.disableWAL = true;
    }

    void put(std::string_view key, std::string_view body) override {
        check(db_->Put(write_options_, slice(key), slice(body)));
    }

    int first_byte(std::string_view key) override {
        value_.Reset();
        auto status = db_->Get({}, db_->DefaultColumnFamily(), slice(key), &value_);
        if (!status.ok() || value_.empty()) return -1;
        return static_cast<unsigned char>(value_[0]);
    }

    void flush() override { check(db_->Flush({})); }

    std::string configuration() const override {
        return "RocksDB " + std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) +
               ", blob files with LZ4, bloom filter, no write-ahead log, checksums verified";
    }

private:
    static rocksdb::Slice slice(std::string_view view) { return {view.data(), view.size()}; }

    static void check(const rocksdb::Status &status) {
        if (!status.ok()) die("rocksdb: " + status.ToString());
    }

    std::unique_ptr<rocksdb::DB> db_;
    rocksdb::WriteOptions write_options_;
    rocksdb::PinnableSlice value_;
};

} // namespace

std::unique_ptr<Store> open_rocksdb(const std::string &directory) {
    return std::make_unique<RocksDBStore>(directory);
}
