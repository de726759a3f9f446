import Foundation

/// A temporary folder of one test, deleted with the object.
///
/// `@unchecked Sendable`: `path` never changes, and the object holds no other state.
final class Folder: @unchecked Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path() + "/cache-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func path(_ name: String) -> String { "\(path)/\(name)" }

    /// The path of every file in the folder, at any depth.
    var files: [String] {
        let names = FileManager.default.enumerator(atPath: path)?.allObjects ?? []
        return names.compactMap { name in
            guard let name = name as? String else { return nil }
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: self.path(name), isDirectory: &isFolder)
            return isFolder.boolValue ? nil : self.path(name)
        }
    }

    /// Returns whether any file contains the bytes of `text`.
    func contains(_ text: String) throws -> Bool {
        let wanted = Data(text.utf8)
        for file in files {
            let data = try Data(contentsOf: URL(filePath: file))
            if data.range(of: wanted) != nil { return true }
        }
        return false
    }

    /// The sum of the file sizes.
    var occupiedBytes: Int {
        files.reduce(0) { sum, file in
            let values = try? URL(filePath: file).resourceValues(forKeys: [.fileSizeKey])
            return sum + (values?.fileSize ?? 0)
        }
    }

    /// Copies the files as they are now, as a killed process would leave them.
    func copy() throws -> Folder {
        let copy = try Folder()
        try FileManager.default.removeItem(atPath: copy.path)
        try FileManager.default.copyItem(atPath: path, toPath: copy.path)
        return copy
    }
}
