// Names what is public and has no documentation; ends with 1 when there is something.
//
//   swift docs/undocumented.swift FOLDER-OF-SYMBOL-GRAPHS

import Foundation

struct SymbolGraph: Decodable {
    struct Symbol: Decodable {
        struct Identifier: Decodable { let precise: String }
        struct DocComment: Decodable {}
        let identifier: Identifier
        let pathComponents: [String]
        let docComment: DocComment?

        /// Whether the compiler wrote the symbol, or it comes with a conformance to a foreign protocol.
        var isSynthesized: Bool { identifier.precise.contains("::SYNTHESIZED::") }
    }

    let symbols: [Symbol]
}

let folder = URL(filePath: CommandLine.arguments[1])
var symbolCount = 0
var undocumented: Set<String> = []
let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
for case let file as URL in files?.allObjects ?? [] where file.pathExtension == "json" {
    let graph = try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: file))
    for symbol in graph.symbols where !symbol.isSynthesized {
        symbolCount += 1
        if symbol.docComment == nil {
            undocumented.insert(symbol.pathComponents.joined(separator: "."))
        }
    }
}
print("\(symbolCount) public symbols, \(undocumented.count) without documentation")
for name in undocumented.sorted() { print("  \(name)") }
exit(symbolCount > 0 && undocumented.isEmpty ? 0 : 1)
