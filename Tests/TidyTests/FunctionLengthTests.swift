import Foundation
import Testing

/// A function fits on a screen.
@Suite struct FunctionLengthTests {
    private static let linesMax = 60

    @Test func noFunctionIsLong() throws {
        var count = 0
        for file in try SourceFile.all(in: ["Sources", "Examples", "Adapters", "Fuzz"]) {
            for function in file.functions {
                count += 1
                #expect(
                    function.lineCount <= Self.linesMax,
                    "\(file.path):\(function.line) has \(function.lineCount) lines"
                )
            }
        }
        #expect(count > 2_000)
    }

    @Test func lengthsAreCountedFromTheNameToTheBrace() {
        let file = SourceFile(
            path: "",
            text: """
                struct A {
                    @discardableResult
                    package func one(
                        _ two: Int
                    ) -> Int {
                        #if DEBUG
                            three()
                        #endif
                        return two
                    }

                    init() {}
                    protocolRequirement func none()
                }
                """
        )
        #expect(file.functions.map(\.line) == [3, 12])
        #expect(file.functions.map(\.lineCount) == [8, 1])
    }
}

extension SourceFile {
    /// A function or initialiser with a body.
    struct Function {
        let line: Int
        let lineCount: Int
    }

    /// The functions of the file, found by the indentation that the formatter gives them.
    var functions: [Function] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.indices.compactMap { number in
            // The search below takes a hundred times as long.
            let isCandidate = ["func ", "init", "subscript"].contains(where: lines[number].contains)
            guard isCandidate else { return nil }
            let start =
                /^(\s*)(?:@[\w()]+ |\w+(?:\(\w+\))? )*(?:func \S|init[?(<]|deinit|subscript)/
            guard let match = lines[number].firstMatch(of: start) else { return nil }
            if lines[number].hasSuffix("}") { return Function(line: number + 1, lineCount: 1) }
            let indent = match.1
            for end in lines[number...].indices.dropFirst() {
                let line = lines[end]
                guard line.hasPrefix(indent), let first = line.dropFirst(indent.count).first,
                    first != " "
                else { continue }
                // The brace at the same indentation ends the body; a signature may end before it.
                if first == "}" { return Function(line: number + 1, lineCount: end - number + 1) }
                if first == ")" || first == "#" || line.dropFirst(indent.count).hasPrefix("where") {
                    continue
                }
                return nil
            }
            return nil
        }
    }
}
