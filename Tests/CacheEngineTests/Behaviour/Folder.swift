import Foundation
import Synchronization

/// A folder of a test's own, gone with the object.
///
/// `@unchecked Sendable`: the path never changes; the files below it belong to whoever a test lets
/// write there.
final class Folder: @unchecked Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path() + "/cache-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// A path inside the folder.
    func path(_ name: String) -> String { "\(path)/\(name)" }

    /// Every file below, by its path.
    var files: [String] {
        let names = FileManager.default.enumerator(atPath: path)?.allObjects ?? []
        return names.compactMap { name in
            guard let name = name as? String else { return nil }
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: self.path(name), isDirectory: &isFolder)
            return isFolder.boolValue ? nil : self.path(name)
        }
    }

    /// Whether the bytes of `text` are in any file.
    func contains(_ text: String) throws -> Bool {
        let wanted = Data(text.utf8)
        for file in files {
            let data = try Data(contentsOf: URL(filePath: file))
            if data.range(of: wanted) != nil { return true }
        }
        return false
    }

    /// Bytes that the files occupy.
    var occupiedBytes: Int {
        files.reduce(0) { sum, file in
            let values = try? URL(filePath: file).resourceValues(forKeys: [.fileSizeKey])
            return sum + (values?.fileSize ?? 0)
        }
    }

    /// A copy of the folder as it is on the device now: what a killed process would leave.
    func copy() throws -> Folder {
        let copy = try Folder()
        try FileManager.default.removeItem(atPath: copy.path)
        try FileManager.default.copyItem(atPath: path, toPath: copy.path)
        return copy
    }
}

/// Counts up, from any task.
final class Numbers: Sendable {
    private let value = Mutex(0)

    func next() -> Int {
        value.withLock {
            $0 += 1
            return $0
        }
    }
}
