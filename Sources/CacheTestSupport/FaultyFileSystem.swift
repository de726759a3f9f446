package import CacheEngine
import Synchronization

/// A file system in memory that fails according to a plan and a seed.
///
/// Its faults are short reads and writes, interrupted calls, errors, a full device, flipped bits,
/// and torn and misdirected writes.
///
/// Written bytes are durable only after a synchronisation: `cutPower` keeps or loses each sector
/// written since, at random, or loses a run of sectors and keeps the others. `endProcess` loses only
/// the open files and their locks.
package final class FaultyFileSystem: FileSystem {
    /// The faults, as calls out of a thousand.
    package struct Plan: Sendable {
        package var shortRead = 0
        package var shortWrite = 0
        package var interrupted = 0
        package var cold = 0
        package var readError = 0
        package var writeError = 0
        package var synchronizeError = 0
        /// The path of a file that the device does not synchronise.
        package var unconfirmed: String?
        /// Whether a synchronisation that fails loses what it was to write, although reads find it.
        package var losesUnconfirmed = false
        /// The returned bytes differ in one bit from the stored bytes.
        package var flipOnRead = 0
        /// The stored bytes differ in one bit from the given bytes.
        package var flipOnWrite = 0
        /// Only the first sectors are stored, although the call succeeds.
        package var tornWrite = 0
        /// The bytes are stored elsewhere in the file, although the call succeeds.
        package var misdirectedWrite = 0
        /// The bytes that all files together may take.
        package var capacityBytes = Int.max
        package var openFilesMax = Int.max
        package var isReadOnly = false
        /// The path of a file that the device cannot write.
        package var unwritable: String?
        /// The path of a file of which the device cannot write the first byte.
        package var unwritableStart: String?
        /// The bytes of every file for which the device has no room.
        package var unwritableBytes: Range<Int>?
        /// The paths of files that this process may not open.
        package var forbidden: Set<String> = []
        /// Whether this process may not unlink those files either.
        package var keepsForbidden = false
        /// Whether this process may unlink no file.
        package var keepsNames = false
        /// Whether each write adds the contents of all files to `history`.
        package var keepsHistory = false
        /// The bytes of every file that the device cannot read.
        package var unreadable: Range<Int>?

        package init() {}
    }

    package static let sectorBytes = 512

    private let state: Mutex<State>

    package init(seed: UInt64, plan: Plan = Plan()) {
        state = Mutex(State(random: SeededRandom(seed: seed), plan: plan))
    }

    package var plan: Plan {
        get { state.withLock { $0.plan } }
        set { state.withLock { $0.plan = newValue } }
    }

    private let beforeNextRead = Mutex<(@Sendable () -> Void)?>(nil)
    private let beforeReads = Mutex<(@Sendable () -> Void)?>(nil)
    private let beforeWrites = Mutex<(@Sendable () -> Void)?>(nil)

    // MARK: Control by a test

    /// Lets the next read that finds its bytes call `hook` first, on its own thread.
    package func stopNextRead(_ hook: @escaping @Sendable () -> Void) {
        beforeNextRead.withLock { $0 = hook }
    }

    /// Lets each read that may wait for the device call `hook` first, on its own thread.
    package func stopReads(_ hook: (@Sendable () -> Void)?) {
        beforeReads.withLock { $0 = hook }
    }

    /// Lets each write call `hook` first, on its own thread.
    package func stopWrites(_ hook: (@Sendable () -> Void)?) {
        beforeWrites.withLock { $0 = hook }
    }

    /// Ends the process: its files are closed, its locks are released and all its bytes remain.
    package func endProcess() {
        state.withLock { state in
            state.opened.removeAll()
            state.locked.removeAll()
        }
    }

    /// Ends the machine: each sector that was not synchronised is kept or lost.
    package func cutPower() {
        endProcess()
        state.withLock { $0.loseUnsynchronized() }
    }

    /// Returns a second device with the contents of this one after its process or machine has
    /// ended.
    ///
    /// This device is unaffected.
    package func copy(afterPowerCut isPowerCut: Bool, seed: UInt64 = 1) -> FaultyFileSystem {
        let copy = FaultyFileSystem(seed: seed)
        state.withLock { held in copy.state.withLock { $0.adoptContents(of: held) } }
        if isPowerCut { copy.cutPower() }
        return copy
    }

    /// The paths of all files.
    package var paths: [String] { state.withLock { $0.names.keys.sorted() } }

    /// The number of open files.
    package var openCount: Int { state.withLock { $0.opened.count } }

    package func bytes(of path: String) -> [UInt8]? {
        state.withLock { state in state.names[path].map { state.files[$0].bytes } }
    }

    /// Replaces the contents of a file durably.
    package func replace(_ path: String, with bytes: [UInt8]) {
        state.withLock { state in
            let file = state.names[path] ?? state.addFile(path)
            state.files[file] = File(bytes: bytes, durable: bytes)
        }
    }

    /// Removes a file or a whole directory durably.
    package func erase(_ path: String) {
        state.withLock { state in
            for known in state.names.keys where known == path || known.hasPrefix(path + "/") {
                state.names[known] = nil
                state.durableNames[known] = nil
            }
            state.directories = state.directories.filter {
                $0 != path && !$0.hasPrefix(path + "/")
            }
        }
    }

    /// Adds a symbolic link, which cannot be opened, as on the real file system.
    package func addLink(_ path: String) { _ = state.withLock { $0.links.insert(path) } }

    /// Returns the contents of every file, for `restore`.
    package func snapshot() -> [String: [UInt8]] {
        state.withLock { state in state.names.mapValues { state.files[$0].bytes } }
    }

    /// The contents of every file after each write, for `restore`.
    package var history: [[String: [UInt8]]] { state.withLock { $0.history } }

    package func restore(_ snapshot: [String: [UInt8]]) {
        for path in paths where snapshot[path] == nil { erase(path) }
        for (path, bytes) in snapshot { replace(path, with: bytes) }
    }

    package var totalBytes: Int {
        state.withLock { state in state.names.values.reduce(0) { $0 + state.files[$1].bytes.count }
        }
    }

    // MARK: FileSystem

    package func open(_ path: String, _ purpose: OpenPurpose) throws(FileFault) -> OpenFile {
        try change { state throws(FileFault) in
            guard !state.links.contains(path) else { throw .link }
            guard !state.plan.forbidden.contains(path) else { throw .noPermission }
            guard state.opened.count < state.plan.openFilesMax else { throw .tooManyFiles }
            let known = state.names[path]
            if known == nil {
                let mayCreate = purpose == .openOrCreate || purpose == .createNew
                guard mayCreate, state.hasParent(of: path) else { throw .notFound }
            } else if purpose == .createNew {
                throw .exists
            }
            guard purpose == .reading || !state.plan.isReadOnly else { throw .readOnly }
            let file = known ?? state.addFile(path)
            state.nextDescriptor += 1
            state.opened[state.nextDescriptor] = file
            return OpenFile(descriptor: state.nextDescriptor)
        }
    }

    package func close(_ file: OpenFile) {
        state.withLock { state in
            guard let closed = state.opened.removeValue(forKey: file.descriptor) else { return }
            if state.locked[closed] == file.descriptor { state.locked[closed] = nil }
        }
    }

    package func read(
        _ file: OpenFile,
        into bytes: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) throws(FileFault) -> Int {
        beforeReads.withLock { $0 }?()
        beforeNextRead.withLock { $0.take() }?()
        return try transfer { state throws(FileFault) in
            try state.read(file, into: bytes, at: offset)
        }
    }

    package func readCached(
        _ file: OpenFile,
        into bytes: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) throws(FileFault) -> Int {
        // A device that is always cold finds nothing here.
        if plan.cold < 1_000 { beforeNextRead.withLock { $0.take() }?() }
        return try transfer { state throws(FileFault) in
            if state.happens(state.plan.cold) { throw .wouldWait }
            return try state.read(file, into: bytes, at: offset)
        }
    }

    package func write(
        _ file: OpenFile,
        from bytes: UnsafeRawBufferPointer,
        at offset: Int
    ) throws(FileFault) -> Int {
        beforeWrites.withLock { $0 }?()
        return try transfer { state throws(FileFault) in
            try state.write(file, from: bytes, at: offset)
        }
    }

    package func preallocate(_ file: OpenFile, bytes: Int) throws(FileFault) {
        try change { state throws(FileFault) in
            let number = try state.file(file)
            let growth = max(0, bytes - state.files[number].bytes.count)
            try state.checkRoom(growth)
            state.files[number].grow(to: bytes)
        }
    }

    package func size(_ file: OpenFile) throws(FileFault) -> Int {
        try change { state throws(FileFault) in state.files[try state.file(file)].bytes.count }
    }

    package func size(ofPath path: String) throws(FileFault) -> Int {
        try change { state throws(FileFault) in
            guard !state.links.contains(path) else { throw .link }
            guard let number = state.names[path] else { throw .notFound }
            return state.files[number].bytes.count
        }
    }

    package func synchronize(_ file: OpenFile) throws(FileFault) {
        try change { state throws(FileFault) in
            let number = try state.file(file)
            let isUnconfirmed = state.plan.unconfirmed.map { state.names[$0] == number } ?? false
            guard !state.happens(state.plan.synchronizeError), !isUnconfirmed else {
                if state.plan.losesUnconfirmed { state.files[number].dirty.removeAll() }
                throw .inputOutput
            }
            state.files[number].synchronize()
        }
    }

    package func lock(_ file: OpenFile) throws(FileFault) {
        try change { state throws(FileFault) in
            let number = try state.file(file)
            guard state.locked[number] == nil else { throw .wouldWait }
            state.locked[number] = file.descriptor
        }
    }

    package func unlock(_ file: OpenFile) {
        state.withLock { state in
            state.locked = state.locked.filter { $0.value != file.descriptor }
        }
    }

    package func rename(_ path: String, to target: String) throws(FileFault) {
        try change { state throws(FileFault) in
            guard !state.plan.isReadOnly else { throw .readOnly }
            guard let file = state.names.removeValue(forKey: path) else { throw .notFound }
            state.names[target] = file
        }
    }

    package func unlink(_ path: String) throws(FileFault) {
        try change { state throws(FileFault) in
            guard !state.plan.isReadOnly else { throw .readOnly }
            let isKept = state.plan.keepsForbidden && state.plan.forbidden.contains(path)
            guard !isKept, !state.plan.keepsNames else { throw .noPermission }
            guard state.names.removeValue(forKey: path) != nil else { throw .notFound }
        }
    }

    package func list(_ directory: String) throws(FileFault) -> [String] {
        try change { state throws(FileFault) in
            guard state.directories.contains(directory), !state.links.contains(directory) else {
                throw .notFound
            }
            let all = Array(state.names.keys) + Array(state.directories)
            return all.compactMap { path in
                guard path.hasPrefix(directory + "/") else { return nil }
                let name = path.dropFirst(directory.utf8.count + 1)
                return name.contains("/") ? nil : String(name)
            }
        }
    }

    package func makeDirectory(_ path: String) throws(FileFault) {
        try change { state throws(FileFault) in
            guard !state.directories.contains(path), state.names[path] == nil else { throw .exists }
            guard !state.plan.isReadOnly else { throw .readOnly }
            state.directories.insert(path)
        }
    }

    package func synchronizeDirectory(_ path: String) throws(FileFault) {
        try change { state throws(FileFault) in
            if state.happens(state.plan.synchronizeError) { throw .inputOutput }
            state.synchronizeNames(in: path)
        }
    }

    package func identity(of file: OpenFile) throws(FileFault) -> FileIdentity {
        try change { state throws(FileFault) in
            FileIdentity(device: 0, number: UInt64(try state.file(file)))
        }
    }

    package func identity(ofPath path: String) throws(FileFault) -> FileIdentity {
        try change { state throws(FileFault) in
            guard let number = state.names[path] else { throw .notFound }
            return FileIdentity(device: 0, number: UInt64(number))
        }
    }

    // MARK: Locking

    private func change<Result: Sendable>(
        _ body: (inout State) throws(FileFault) -> Result
    ) throws(FileFault) -> Result {
        let result = state.withLock { state -> Swift.Result<Result, FileFault> in
            do throws(FileFault) { return .success(try body(&state)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Performs a call that may be interrupted before it has any effect.
    private func transfer(
        _ body: (inout State) throws(FileFault) -> Int
    ) throws(FileFault) -> Int {
        try change { state throws(FileFault) in
            if state.happens(state.plan.interrupted) { throw .interrupted }
            return try body(&state)
        }
    }
}
