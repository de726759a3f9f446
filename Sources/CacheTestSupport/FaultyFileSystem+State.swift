import CacheEngine

extension FaultyFileSystem {
    /// The bytes of one file, as the process sees them and as the device holds them.
    struct File: Sendable {
        var bytes: [UInt8]
        var durable: [UInt8]
        /// The sectors whose durable bytes may differ.
        var dirty: Set<Int> = []

        init(bytes: [UInt8] = [], durable: [UInt8] = []) {
            self.bytes = bytes
            self.durable = durable
        }

        func separated() -> File {
            var file = File(
                bytes: bytes.withUnsafeBytes { [UInt8]($0) },
                durable: durable.withUnsafeBytes { [UInt8]($0) }
            )
            file.dirty = .init(dirty.lazy.map { $0 })
            return file
        }

        mutating func grow(to count: Int) {
            guard count > bytes.count else { return }
            bytes += [UInt8](repeating: 0, count: count - bytes.count)
        }

        mutating func put(_ new: UnsafeRawBufferPointer, at offset: Int) {
            guard !new.isEmpty else { return }
            grow(to: offset + new.count)
            bytes.withUnsafeMutableBytes { all in
                UnsafeMutableRawBufferPointer(rebasing: all[offset..<offset + new.count])
                    .copyMemory(from: new)
            }
            let sector = FaultyFileSystem.sectorBytes
            dirty.formUnion(offset / sector...(offset + new.count - 1) / sector)
        }

        mutating func synchronize() {
            growDurable()
            for sector in dirty { makeDurable(sector) }
            dirty.removeAll()
        }

        /// The length is durable, because space is allocated to files before they are used.
        mutating func growDurable() {
            durable += [UInt8](repeating: 0, count: bytes.count - durable.count)
        }

        mutating func makeDurable(_ sector: Int) {
            let start = sector * FaultyFileSystem.sectorBytes
            let range = start..<min(bytes.count, start + FaultyFileSystem.sectorBytes)
            durable.replaceSubrange(range, with: bytes[range])
        }
    }

    struct State: Sendable {
        var random: SeededRandom
        var plan: Plan
        var files: [File] = []
        var names: [String: Int] = [:]
        var durableNames: [String: Int] = [:]
        var directories: Set<String> = ["/"]
        var links: Set<String> = []
        var opened: [Int32: Int] = [:]
        var locked: [Int: Int32] = [:]
        var nextDescriptor: Int32 = 100
        var history: [[String: [UInt8]]] = []

        init(random: SeededRandom, plan: Plan) {
            self.random = random
            self.plan = plan
        }

        /// Takes over the files and names of another device, in memory of its own.
        ///
        /// Collections that two devices shared would be read and changed under two locks, which
        /// ThreadSanitizer reports: it does not see what orders their counts of references.
        mutating func adoptContents(of other: borrowing State) {
            files = other.files.map { $0.separated() }
            names = .init(uniqueKeysWithValues: other.names.lazy.map { ($0, $1) })
            durableNames = .init(uniqueKeysWithValues: other.durableNames.lazy.map { ($0, $1) })
            directories = .init(other.directories.lazy.map { $0 })
            links = .init(other.links.lazy.map { $0 })
            nextDescriptor = other.nextDescriptor
        }

        mutating func happens(_ perMille: Int) -> Bool {
            perMille > 0 && Int(random.next() % 1_000) < perMille
        }

        mutating func addFile(_ path: String) -> Int {
            files.append(File())
            names[path] = files.count - 1
            return files.count - 1
        }

        func hasParent(of path: String) -> Bool {
            guard let slash = path.lastIndex(of: "/") else { return false }
            return directories.contains(String(path[..<slash]))
        }

        func file(_ file: OpenFile) throws(FileFault) -> Int {
            guard let number = opened[file.descriptor] else { throw FileFault(code: 9) }
            return number
        }

        func checkRoom(_ growth: Int) throws(FileFault) {
            guard growth > 0, plan.capacityBytes != .max else { return }
            let used = names.values.reduce(0) { $0 + files[$1].bytes.count }
            guard used + growth <= plan.capacityBytes else { throw .noSpace }
        }

        mutating func read(
            _ file: OpenFile,
            into bytes: UnsafeMutableRawBufferPointer,
            at offset: Int
        ) throws(FileFault) -> Int {
            let number = try self.file(file)
            if happens(plan.readError) { throw .inputOutput }
            let wanted = offset..<offset + bytes.count
            if let bad = plan.unreadable, bad.overlaps(wanted) { throw .inputOutput }
            var count = min(bytes.count, max(0, files[number].bytes.count - offset))
            guard count > 0 else { return 0 }
            if happens(plan.shortRead) { count = 1 + Int(random.next() % UInt64(count)) }
            files[number].bytes.withUnsafeBytes { all in
                bytes.copyMemory(from: .init(rebasing: all[offset..<offset + count]))
            }
            if happens(plan.flipOnRead) {
                bytes[Int(random.next() % UInt64(count))] ^= 1 << (random.next() % 8)
            }
            return count
        }

        mutating func write(
            _ file: OpenFile,
            from bytes: UnsafeRawBufferPointer,
            at offset: Int
        ) throws(FileFault) -> Int {
            let number = try self.file(file)
            guard !plan.isReadOnly else { throw .readOnly }
            if let path = plan.unwritable, names[path] == number { throw .inputOutput }
            if let path = plan.unwritableStart, names[path] == number, offset == 0 {
                throw .inputOutput
            }
            if let full = plan.unwritableBytes, full.overlaps(offset..<offset + bytes.count) {
                throw .noSpace
            }
            try checkRoom(offset + bytes.count - files[number].bytes.count)
            if happens(plan.writeError) {
                // Some bytes may have been written before the device failed.
                let part = Int(random.next() % UInt64(bytes.count + 1))
                files[number].put(.init(rebasing: bytes[..<part]), at: offset)
                throw .inputOutput
            }
            var count = bytes.count
            if happens(plan.shortWrite) { count = 1 + Int(random.next() % UInt64(count)) }
            keep(.init(rebasing: bytes[..<count]), in: number, at: offset)
            if plan.keepsHistory { history.append(names.mapValues { files[$0].bytes }) }
            return count
        }

        private mutating func keep(_ bytes: UnsafeRawBufferPointer, in number: Int, at offset: Int)
        {
            var (kept, place) = (bytes, offset)
            if happens(plan.tornWrite) {
                let sector = FaultyFileSystem.sectorBytes
                let sectors = Int(random.next() % UInt64(bytes.count / sector + 1))
                kept = .init(rebasing: bytes[..<min(bytes.count, sectors * sector)])
            }
            if happens(plan.misdirectedWrite) {
                let pages = max(1, files[number].bytes.count / 4_096)
                place = Int(random.next() % UInt64(pages)) * 4_096
            }
            files[number].put(kept, at: place)
            if happens(plan.flipOnWrite), !kept.isEmpty {
                let position = place + Int(random.next() % UInt64(kept.count))
                files[number].bytes[position] ^= 1 << (random.next() % 8)
            }
        }

        /// Makes the names in a directory durable.
        ///
        /// A name may also become durable before, at random, when the power is cut.
        mutating func synchronizeNames(in directory: String) {
            func isInside(_ path: String) -> Bool {
                path.hasPrefix(directory + "/")
                    && !path.dropFirst(directory.utf8.count + 1).contains("/")
            }
            durableNames = durableNames.filter { !isInside($0.key) }
            for (path, file) in names where isInside(path) { durableNames[path] = file }
        }

        /// Which of so many sectors, in their order, a power cut loses; `nil` if each is lost or kept
        /// by itself.
        ///
        /// A device writes runs of sectors, so that the last of a file may be kept without many
        /// before them.
        private mutating func lostRun(of count: Int) -> Range<Int>? {
            guard count > 0, happens(300) else { return nil }
            let start = Int(random.next() % UInt64(count))
            return start..<start + 1 + Int(random.next() % UInt64(count - start))
        }

        mutating func loseUnsynchronized() {
            for path in Set(names.keys).union(durableNames.keys).sorted() {
                guard names[path] != durableNames[path], happens(500) else { continue }
                names[path] = durableNames[path]
            }
            durableNames = names
            for number in files.indices {
                files[number].growDurable()
                let written = files[number].dirty.sorted()
                let lost = lostRun(of: written.count)
                for (place, sector) in written.enumerated() {
                    guard lost.map({ !$0.contains(place) }) ?? happens(500) else { continue }
                    files[number].makeDurable(sector)
                }
                let durable = files[number].durable
                files[number] = File(bytes: durable, durable: durable)
            }
        }
    }
}
