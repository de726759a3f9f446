import Foundation

/// One file of the package, for the house rules.
struct SourceFile {
    /// The path below the package's root.
    let path: String
    let text: String

    /// The text without comment lines, so that comments may mention any name.
    var code: String {
        // By bytes: to find the characters of all sources takes most of a minute.
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { line in
                let isComment = line.drop { $0 == UInt8(ascii: " ") }.starts(with: "//".utf8)
                return isComment ? "" : Substring(line)
            }
            .joined(separator: "\n")
    }

    /// The folder directly below `Sources/CacheEngine`; `nil` for other files.
    var room: String? {
        let parts = path.split(separator: "/")
        guard parts.count > 3, parts[0] == "Sources", parts[1] == "CacheEngine" else { return nil }
        return String(parts[2])
    }

    var typeNamesMentioned: Set<String> {
        Set(code.matches(of: /\b[A-Z]\w+/).map { String($0.output) })
    }

    var topLevelTypes: [String] {
        text.matches(of: /(?m)^(?:[a-z]+ )*(?:struct|class|actor|enum|protocol) ([A-Z]\w+)/)
            .map { String($0.1) }
    }

    /// The top-level types and those nested in others.
    var declaredTypes: [String] {
        text.matches(
            of: /(?m)^\s*(?:[a-z]+ )*(?:struct|class|actor|enum|protocol|typealias) ([A-Z]\w+)/
        )
        .map { String($0.1) }
    }

    static let packageRoot = URL(filePath: #filePath).appending(path: "../../..").standardized

    /// The text of the file at `path`, below the package's root.
    static func read(_ path: String) throws -> String {
        try String(contentsOf: packageRoot.appending(path: path), encoding: .utf8)
    }

    struct MissingFolder: Error {
        let path: String
    }

    /// Every file below `folders` whose name ends in one of `endings`.
    ///
    /// - Throws: `MissingFolder`, so that a rule about a folder that was renamed does not hold for
    ///   want of files.
    static func all(in folders: [String], endings: [String] = [".swift"]) throws -> [SourceFile] {
        var files: [SourceFile] = []
        for folder in folders {
            let root = packageRoot.appending(path: folder)
            let paths = FileManager.default.enumerator(atPath: root.path())?.allObjects ?? []
            if paths.isEmpty { throw MissingFolder(path: folder) }
            for case let path as String in paths where endings.contains(where: path.hasSuffix) {
                if path.hasPrefix(".build/") || path.contains("/.build/") { continue }
                let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
                files.append(SourceFile(path: "\(folder)/\(path)", text: text))
            }
        }
        return files.sorted { $0.path < $1.path }
    }
}
