internal import CEngineShims
import Platform

extension FileFault {
    package static let wouldWait = Self(code: EAGAIN)
    package static let interrupted = Self(code: EINTR)
    package static let inputOutput = Self(code: EIO)
    package static let noSpace = Self(code: ENOSPC)
    package static let notFound = Self(code: ENOENT)
    package static let exists = Self(code: EEXIST)
    package static let tooManyFiles = Self(code: EMFILE)
    package static let readOnly = Self(code: EROFS)
    package static let noPermission = Self(code: EACCES)
    package static let link = Self(code: ELOOP)

    /// Whether the machine ran out of descriptors or memory; the file itself may be sound.
    package var isExhaustion: Bool { [EMFILE, ENFILE, ENOMEM].contains(code) }

    /// Whether this process may not open the file.
    package var isForbidden: Bool { [EACCES, EPERM].contains(code) }

    /// Whether an open that failed proves that the path leads to no file.
    package var provesAbsence: Bool {
        namesLinkOrDirectory || [ENOENT, ENOTDIR, ENXIO].contains(code)
    }

    /// Whether the path leads to a link or a directory instead of a file.
    package var namesLinkOrDirectory: Bool { [ELOOP, EISDIR].contains(code) }

    package var text: String { String(cString: strerror(code)) }

    fileprivate static var last: Self { Self(code: errno) }
}

/// The machine's file system.
///
/// Files have mode 0600, directories 0700; links are not followed.
package struct SystemFileSystem: FileSystem {
    package init() {}

    package func open(_ path: String, _ purpose: OpenPurpose) throws(FileFault) -> OpenFile {
        var flags = O_CLOEXEC | O_NOFOLLOW
        switch purpose {
        // A pipe in the place of the file must not hold up the thread.
        case .reading: flags |= O_RDONLY | O_NONBLOCK
        case .existing: flags |= O_RDWR
        case .openOrCreate: flags |= O_RDWR | O_CREAT
        case .createNew: flags |= O_RDWR | O_CREAT | O_EXCL
        }
        var descriptor = sysOpen(path, flags | ce_open_no_access_times, 0o600)
        // Only the file's owner may open it without updating access times.
        if descriptor < 0, errno == EPERM { descriptor = sysOpen(path, flags, 0o600) }
        guard descriptor >= 0 else { throw .last }
        return OpenFile(descriptor: descriptor)
    }

    package func close(_ file: OpenFile) { _ = sysClose(file.descriptor) }

    package func read(
        _ file: OpenFile,
        into bytes: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) throws(FileFault) -> Int {
        let count = pread(file.descriptor, bytes.baseAddress, bytes.count, off_t(offset))
        guard count >= 0 else { throw .last }
        return count
    }

    package func readCached(
        _ file: OpenFile,
        into bytes: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) throws(FileFault) -> Int {
        let count = ce_pread_cached(
            file.descriptor,
            bytes.baseAddress,
            bytes.count,
            Int64(offset)
        )
        guard count >= 0 else { throw FileFault(code: Int32(-count)) }
        return Int(count)
    }

    package func write(
        _ file: OpenFile,
        from bytes: UnsafeRawBufferPointer,
        at offset: Int
    ) throws(FileFault) -> Int {
        let count = pwrite(file.descriptor, bytes.baseAddress, bytes.count, off_t(offset))
        guard count >= 0 else { throw .last }
        return count
    }

    package func preallocate(_ file: OpenFile, bytes: Int) throws(FileFault) {
        let result = ce_preallocate(file.descriptor, Int64(bytes))
        guard result == 0 else { throw FileFault(code: -result) }
    }

    package func size(_ file: OpenFile) throws(FileFault) -> Int {
        var status = stat()
        guard fstat(file.descriptor, &status) == 0 else { throw .last }
        return Int(status.st_size)
    }

    package func size(ofPath path: String) throws(FileFault) -> Int {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw .last }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .link }
        return Int(status.st_size)
    }

    package func synchronize(_ file: OpenFile) throws(FileFault) {
        let result = ce_sync_data(file.descriptor)
        guard result == 0 else { throw FileFault(code: -result) }
    }

    package func lock(_ file: OpenFile) throws(FileFault) {
        guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else { throw .last }
    }

    package func unlock(_ file: OpenFile) { _ = flock(file.descriptor, LOCK_UN) }

    package func rename(_ path: String, to target: String) throws(FileFault) {
        guard sysRename(path, target) == 0 else { throw .last }
    }

    package func unlink(_ path: String) throws(FileFault) {
        guard sysUnlink(path) == 0 else { throw .last }
    }

    package func list(_ directory: String) throws(FileFault) -> [String] {
        let descriptor = sysOpen(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw .last }
        guard let stream = fdopendir(descriptor) else {
            let fault = FileFault.last
            _ = sysClose(descriptor)
            throw fault
        }
        defer { closedir(stream) }
        var names: [String] = []
        // The end and a failure differ in the error number alone.
        errno = 0
        while let item = readdir(stream) {
            let name = withUnsafePointer(to: &item.pointee.d_name) { start in
                start.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
            errno = 0
        }
        guard errno == 0 else { throw .last }
        return names
    }

    package func makeDirectory(_ path: String) throws(FileFault) {
        guard mkdir(path, 0o700) == 0 else { throw .last }
    }

    package func synchronizeDirectory(_ path: String) throws(FileFault) {
        let descriptor = sysOpen(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw .last }
        defer { _ = sysClose(descriptor) }
        guard fsync(descriptor) == 0 else { throw .last }
    }

    package func identity(of file: OpenFile) throws(FileFault) -> FileIdentity {
        var status = stat()
        guard fstat(file.descriptor, &status) == 0 else { throw .last }
        return FileIdentity(status)
    }

    package func identity(ofPath path: String) throws(FileFault) -> FileIdentity {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw .last }
        return FileIdentity(status)
    }
}

extension FileIdentity {
    fileprivate init(_ status: stat) {
        self.init(
            device: UInt64(truncatingIfNeeded: status.st_dev),
            number: UInt64(truncatingIfNeeded: status.st_ino)
        )
    }
}

// The C functions, under names that the methods above do not hide.
private func sysOpen(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
    open(path, flags, mode)
}
private func sysClose(_ descriptor: Int32) -> Int32 { close(descriptor) }
private func sysRename(_ path: String, _ target: String) -> Int32 { rename(path, target) }
private func sysUnlink(_ path: String) -> Int32 { unlink(path) }
