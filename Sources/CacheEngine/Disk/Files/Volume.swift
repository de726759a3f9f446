/// The file system under the disk tier: the machine's, called directly, or a replacement.
///
/// A read of the machine's files costs one predictable branch instead of a call through an
/// existential. The methods complete short reads and writes.
package enum Volume: Sendable {
    case system
    case replaced(any FileSystem)

    private static let machine = SystemFileSystem()

    /// The number of interruptions or calls without progress after which an operation fails.
    private static let attemptsMax = 1_000

    /// Reads until `bytes` is full or the file ends; returns the number of bytes read.
    package func read(
        _ file: OpenFile,
        into bytes: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) throws(FileFault) -> Int {
        var done = 0
        var attempts = 0
        while done < bytes.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[done...])
            do {
                let count =
                    switch self {
                    case .system: try Self.machine.read(file, into: rest, at: offset + done)
                    case .replaced(let files): try files.read(file, into: rest, at: offset + done)
                    }
                guard count > 0 else { break }
                done += count
            } catch {
                attempts += 1
                guard error == .interrupted, attempts < Self.attemptsMax else { throw error }
            }
        }
        return done
    }

    /// Tries once to read without waiting for the device; returns the number of bytes read.
    ///
    /// Returns `nil` if the attempt failed.
    package func readsCached(
        _ file: OpenFile,
        into bytes: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) -> Int? {
        do {
            return switch self {
            case .system: try Self.machine.readCached(file, into: bytes, at: offset)
            case .replaced(let files): try files.readCached(file, into: bytes, at: offset)
            }
        } catch { return nil }
    }

    /// Writes all of `bytes`.
    package func write(
        _ file: OpenFile,
        from bytes: UnsafeRawBufferPointer,
        at offset: Int
    ) throws(FileFault) {
        var done = 0
        var attempts = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            do {
                let count =
                    switch self {
                    case .system: try Self.machine.write(file, from: rest, at: offset + done)
                    case .replaced(let files):
                        try files.write(file, from: rest, at: offset + done)
                    }
                done += count
                if count == 0 { attempts += 1 }
            } catch {
                attempts += 1
                guard error == .interrupted else { throw error }
            }
            guard attempts < Self.attemptsMax else { throw .inputOutput }
        }
    }

    /// Replaces a file: after a kill it has the old bytes or the new ones, and after a power cut too
    /// if it `isSynchronized`.
    func replace(
        _ path: String,
        with bytes: [UInt8],
        draft: String,
        isSynchronized: Bool
    ) throws(FileFault) {
        try? unlink(draft)
        let file = try open(draft, .createNew)
        defer { close(file) }
        var fault: FileFault?
        bytes.withUnsafeBytes { bytes in
            do throws(FileFault) {
                try write(file, from: bytes, at: 0)
                if isSynchronized { try synchronize(file) }
            } catch { fault = error }
        }
        if let fault { throw fault }
        try rename(draft, to: path)
    }

    package func open(_ path: String, _ purpose: OpenPurpose) throws(FileFault) -> OpenFile {
        try files.open(path, purpose)
    }
    package func close(_ file: OpenFile) { files.close(file) }
    package func preallocate(_ file: OpenFile, bytes: Int) throws(FileFault) {
        try files.preallocate(file, bytes: bytes)
    }
    package func size(_ file: OpenFile) throws(FileFault) -> Int { try files.size(file) }
    package func size(ofPath path: String) throws(FileFault) -> Int {
        try files.size(ofPath: path)
    }
    package func synchronize(_ file: OpenFile) throws(FileFault) { try files.synchronize(file) }
    package func lock(_ file: OpenFile) throws(FileFault) { try files.lock(file) }
    package func unlock(_ file: OpenFile) { files.unlock(file) }
    package func rename(_ path: String, to target: String) throws(FileFault) {
        try files.rename(path, to: target)
    }
    package func unlink(_ path: String) throws(FileFault) { try files.unlink(path) }
    package func list(_ directory: String) throws(FileFault) -> [String] {
        try files.list(directory)
    }
    package func makeDirectory(_ path: String) throws(FileFault) { try files.makeDirectory(path) }
    package func synchronizeDirectory(_ path: String) throws(FileFault) {
        try files.synchronizeDirectory(path)
    }

    package func identity(of file: OpenFile) throws(FileFault) -> FileIdentity {
        try files.identity(of: file)
    }
    package func identity(ofPath path: String) throws(FileFault) -> FileIdentity {
        try files.identity(ofPath: path)
    }

    /// Used by every operation except reads and writes.
    private var files: any FileSystem {
        switch self {
        case .system: Self.machine
        case .replaced(let files): files
        }
    }
}
