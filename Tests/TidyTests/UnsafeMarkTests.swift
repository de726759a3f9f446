import Foundation
import Testing

/// Where the compiler's proof is replaced by one in a comment: every place, by name.
///
/// A new name is added here by hand, so that a reviewer sees it. `HouseRuleTests` asks each for its
/// proof.
@Suite struct UnsafeMarkTests {
    private static let uncheckedTypes = [
        "BatchBuffer", "ByteChunk", "DiskIndex", "EngineURLCache", "Entry", "EntryTable",
        "HandedOver", "IOPoolCore", "IndexTable", "InputContent", "Kept", "MeasuredBody",
        "MemoryShardState", "OwnThreads", "RemovalLedger", "ReuseRates", "SendableOutcome",
        "SessionTask", "ShardCommons", "Slab", "State", "State", "StatusName", "TaskDelivery",
        "ThreadCounts",
        "ThreadFlag", "WatchedContent",
    ]

    private static let unsafeVariables = [
        "links", "signalPipe", "table", "thread", "worker",
    ]

    @Test func everyUncheckedTypeIsListed() throws {
        let found = try Self.matches(
            of:
                /(?m)^\s*(?:\w+ )*(?:struct|class|actor|enum|extension) ([\w.]+)[^\n]*@unchecked Sendable/
        )
        #expect(found == Self.uncheckedTypes.sorted())
    }

    @Test func everyUnsafeVariableIsListed() throws {
        let found = try Self.matches(of: /nonisolated\(unsafe\) (?:\w+ )*(?:let|var) (\w+)/)
        #expect(found == Self.unsafeVariables.sorted())
    }

    /// No mark may hide in a form that the lists do not see.
    @Test func everyMarkIsOfAListedForm() throws {
        let marks = try SourceFile.all(in: ["Sources"]).reduce(0) { count, file in
            count + file.code.matches(of: /@unchecked Sendable|nonisolated\(unsafe\)/).count
        }
        #expect(marks == Self.uncheckedTypes.count + Self.unsafeVariables.count)
    }

    private static func matches(of mark: Regex<(Substring, Substring)>) throws -> [String] {
        try SourceFile.all(in: ["Sources"]).flatMap { file in
            file.code.matches(of: mark).map { String($0.1) }
        }
        .sorted()
    }
}
