import Platform

/// A folder that is removed with its contents when its last reference is released.
public final class TemporaryFolder: Sendable {
    /// The path of the folder.
    public let path: String

    /// Creates an empty folder.
    public init() {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(base)/cache-engine-XXXXXX".utf8CString)
        precondition(mkdtemp(&template) != nil, "No temporary folder can be made in \(base)")
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Returns the sorted names in the folder or in a subfolder.
    public func names(in subfolder: String = "") -> [String] {
        Self.names(subfolder.isEmpty ? path : "\(path)/\(subfolder)")
    }

    deinit { Self.remove(path) }

    private static func names(_ path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let item = readdir(folder) {
            let name = withUnsafePointer(to: &item.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    private static func remove(_ path: String) {
        for name in names(path) {
            let inner = "\(path)/\(name)"
            var status = stat()
            guard lstat(inner, &status) == 0 else { continue }
            if status.st_mode & S_IFMT == S_IFDIR { remove(inner) } else { unlink(inner) }
        }
        rmdir(path)
    }
}
