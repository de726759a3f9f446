import Foundation

extension SourceFile {
    /// All documents for readers.
    static func documents() throws -> [SourceFile] {
        let root = try FileManager.default.contentsOfDirectory(atPath: packageRoot.path())
            .filter { $0.hasSuffix(".md") }
            .map { name in
                let place = packageRoot.appending(path: name)
                return SourceFile(path: name, text: try String(contentsOf: place, encoding: .utf8))
            }
        let folders = ["docs", "perf", "Examples", "Adapters", "Fuzz", "Sources"]
        return root.sorted { $0.path < $1.path } + (try all(in: folders, endings: [".md"]))
    }
}
