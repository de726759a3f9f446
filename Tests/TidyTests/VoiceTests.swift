import Foundation
import Testing

/// Comments and documents name their subject and use plain verbs.
@Suite struct VoiceTests {
    /// The folders that are searched; the documents in the root are searched as well.
    private static let folders = ["Sources", "Adapters", "docs"]

    /// Phrases that are ruled out, as regular expressions, and what to write instead.
    private static let phrases: [(pattern: String, instead: String)] = [
        (#"^(Who|What|Whoever|Whatever|Whose|Nobody)\b(?!.*\?)"#, "begin with the subject"),
        (
            #"(?<![Tt]here )\b(is|are|was|were) none\b"#,
            "say \"invalid\", \"missing\" or \"there is no …\""
        ),
        (#"\b[Ww](hoever|homever|hoso)\b"#, "name the reader, caller or request"),
        (#"\b[Nn]obody (can|could|may|knows|reads|asks|waits)\b"#, "say \"no reader …\""),
        (#"\b([Hh]e|[Hh]im|[Hh]is|[Hh]imself)\b"#, "a request is not a person"),
        (#"\b(is|are|was|were) not to \w+\b"#, "say \"must not\""),
        (#"\bis no (news|longer so)\b"#, "say what is so"),
        (#"\b(brought|brings|bring) (it |them |the body )?home\b"#, "say \"delivers\""),
        (#"\bsees? to it\b"#, "say \"ensures\""),
        (#"\bthere is nobody\b"#, "say \"there is no reader\""),
        (
            #"\b[Bb]ehind ([a-z]+ ){1,2}(head|answer|response|request)s?\b"#,
            "\"behind\" is a place: say \"after\""
        ),
    ]

    @Test func noFileHasAPhraseThatIsRuledOut() throws {
        let files = try SourceFile.all(in: Self.folders, endings: [".swift", ".md", ".h", ".c"])
        for file in try files + SourceFile.documents() {
            for line in file.prose {
                guard let fault = Self.fault(in: line.text) else { continue }
                Issue.record("\(file.path):\(line.number) \(fault): \(line.text)")
            }
        }
        #expect(files.count > 300)
    }

    @Test(arguments: [
        "nil for a URL that is none", "Whoever asks waits", "he was permitted",
        "it is not to be kept",
        "What came whole is brought home first", "Who was behind still reads",
        "A request that comes behind the head", "The connection ends behind an incomplete response",
    ])
    func phraseIsFound(_ line: String) { #expect(Self.fault(in: line) != nil) }

    @Test(arguments: [
        "What does the entry cost?", "`nil` if the URL is not absolute.",
        "The reader that lags behind", "The tier behind the memory, after the response",
        "the hit", "There is no entry.", "Whether the entry is in `scope`.",
    ])
    func plainSentenceIsLeftAlone(_ line: String) { #expect(Self.fault(in: line) == nil) }

    private static func fault(in line: String) -> String? {
        guard line.range(of: anyPhrase, options: .regularExpression) != nil else { return nil }
        return phrases.first { line.range(of: $0.pattern, options: .regularExpression) != nil }?
            .instead
    }

    /// All phrases in one expression, because most lines have none.
    private static let anyPhrase = phrases.map { "(?:\($0.pattern))" }.joined(separator: "|")
}

extension SourceFile {
    /// The lines of comments, or of the whole document, outside code.
    fileprivate var prose: [(number: Int, text: String)] {
        var isInCode = false
        var lines: [(Int, String)] = []
        let newline = UInt8(ascii: "\n")
        for (number, bytes) in text.utf8.split(separator: newline, omittingEmptySubsequences: false)
            .enumerated()
        {
            let line = Substring(bytes.drop { $0 == UInt8(ascii: " ") })
            if path.hasSuffix(".md") {
                if line.hasPrefix("```") { isInCode.toggle() }
                if !isInCode { lines.append((number + 1, Self.withoutCode(String(line)))) }
            } else if line.utf8.first == UInt8(ascii: "/") || line.utf8.first == UInt8(ascii: "*"),
                let comment = line.firstMatch(of: /^(?:\/\/\/?|\/?\*+) ?(.*)$/)
            {
                lines.append((number + 1, Self.withoutCode(String(comment.1))))
            }
        }
        return lines
    }

    /// The line without what stands in backticks.
    private static func withoutCode(_ line: String) -> String {
        line.utf8.contains(UInt8(ascii: "`")) ? line.replacing(/`[^`]*`/, with: "`") : line
    }
}
