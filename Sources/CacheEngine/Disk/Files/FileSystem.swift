/// What the disk tier asks of a file system: one of the engine's two seams, so that a test can
/// lose, tear and misplace bytes.
///
/// Every method may do less than asked (short reads and writes) or fail; `Volume` deals with both.
package protocol FileSystem: Sendable {
    func open(_ path: String, _ purpose: OpenPurpose) throws(FileFault) -> OpenFile
    func close(_ file: OpenFile)
    /// Reads up to `bytes.count` bytes; 0 at the end of the file.
    func read(
        _ file: OpenFile,
        into bytes: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) throws(FileFault) -> Int
    /// Reads what needs no wait for the device; throws `.wouldWait` when that is nothing.
    func readCached(
        _ file: OpenFile,
        into bytes: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) throws(FileFault) -> Int
    func write(
        _ file: OpenFile,
        from bytes: UnsafeRawBufferPointer,
        at offset: Int
    ) throws(FileFault) -> Int
    func preallocate(_ file: OpenFile, bytes: Int) throws(FileFault)
    func truncate(_ file: OpenFile, bytes: Int) throws(FileFault)
    func size(_ file: OpenFile) throws(FileFault) -> Int
    func synchronize(_ file: OpenFile) throws(FileFault)
    /// Takes the file's exclusive lock, or throws `.wouldWait`.
    func lock(_ file: OpenFile) throws(FileFault)
    /// Gives that lock up. A close alone may not: a child process that is being started holds all
    /// open files for a moment.
    func unlock(_ file: OpenFile)
    func rename(_ path: String, to target: String) throws(FileFault)
    func unlink(_ path: String) throws(FileFault)
    /// The names in a directory, without `.` and `..`.
    func list(_ directory: String) throws(FileFault) -> [String]
    func makeDirectory(_ path: String) throws(FileFault)
    func synchronizeDirectory(_ path: String) throws(FileFault)
}

/// What a file is opened for.
///
/// Symbolic links are never followed.
package enum OpenPurpose: Hashable, Sendable {
    /// Reading and writing a file that exists.
    case existing
    /// Reading and writing; created when absent.
    case openOrCreate
    /// Reading and writing a file that must not exist yet.
    case createNew
}

/// A file descriptor.
package struct OpenFile: Hashable, Sendable {
    package let descriptor: Int32
    package init(descriptor: Int32) { self.descriptor = descriptor }
}

/// Why a file operation failed: the operating system's error number.
package struct FileFault: Error, Hashable, Sendable {
    package let code: Int32
    package init(code: Int32) { self.code = code }
}
