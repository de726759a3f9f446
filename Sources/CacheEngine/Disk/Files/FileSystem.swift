/// The file system operations that the disk tier needs.
///
/// Tests put a file system in its place that loses, tears and misplaces bytes. Every method
/// may do less than asked (short reads and writes) or fail; `Volume` handles both.
package protocol FileSystem: Sendable {
    func open(_ path: String, _ purpose: OpenPurpose) throws(FileFault) -> OpenFile
    func close(_ file: OpenFile)
    /// Reads up to `bytes.count` bytes; returns 0 at the end of the file.
    func read(
        _ file: OpenFile,
        into bytes: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) throws(FileFault) -> Int
    /// Reads the bytes that need no wait for the device; throws `.wouldWait` if there are none.
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
    func size(_ file: OpenFile) throws(FileFault) -> Int
    /// Returns the size of a file that need not be open, nor readable; throws for a link or a
    /// directory.
    func size(ofPath path: String) throws(FileFault) -> Int
    func synchronize(_ file: OpenFile) throws(FileFault)
    /// Takes the file's exclusive lock; throws `.wouldWait` if another process holds it.
    func lock(_ file: OpenFile) throws(FileFault)
    /// Releases the file's lock.
    ///
    /// Closing the file may not be enough: a child process that is being started holds all open
    /// files for a moment.
    func unlock(_ file: OpenFile)
    func rename(_ path: String, to target: String) throws(FileFault)
    func unlink(_ path: String) throws(FileFault)
    /// The names in a directory, without `.` and `..`.
    func list(_ directory: String) throws(FileFault) -> [String]
    func makeDirectory(_ path: String) throws(FileFault)
    func synchronizeDirectory(_ path: String) throws(FileFault)
    func identity(of file: OpenFile) throws(FileFault) -> FileIdentity
    func identity(ofPath path: String) throws(FileFault) -> FileIdentity
}

/// Identifies a file, to tell whether two names, or a name and an open file, are the same file.
package struct FileIdentity: Hashable, Sendable {
    package let device: UInt64
    package let number: UInt64

    package init(device: UInt64, number: UInt64) {
        self.device = device
        self.number = number
    }
}

/// The purpose for which a file is opened.
///
/// Symbolic links are never followed.
package enum OpenPurpose: Hashable, Sendable {
    /// Reading a file that exists, also one that may not be written.
    case reading
    /// Reading and writing a file that exists.
    case existing
    /// Reading and writing a file that is created if it is missing.
    case openOrCreate
    /// Reading and writing a file that must not exist yet.
    case createNew
}

/// A file descriptor.
package struct OpenFile: Hashable, Sendable {
    package let descriptor: Int32
    package init(descriptor: Int32) { self.descriptor = descriptor }
}

/// The reason why a file operation failed: the operating system's error number.
package struct FileFault: Error, Hashable, Sendable {
    package let code: Int32
    package init(code: Int32) { self.code = code }
}
