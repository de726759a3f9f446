import Foundation
import Testing

/// `docs/public-face.txt` lists every public declaration of every product, so that a review sees
/// each change.
///
/// `UPDATE_PUBLIC_FACE=1 swift test --filter PublicFaceTests` writes the list anew.
@Suite struct PublicFaceTests {
    private static let list = "docs/public-face.txt"

    @Test func everyPublicDeclarationIsInTheList() throws {
        var found: [String] = []
        for target in try Self.products() {
            let files = try SourceFile.all(in: ["Sources/\(target)"])
            found += files.flatMap { PublicFace(code: $0.code).declarations }
                .map { "\(target) \($0)" }
        }
        found = Set(found).sorted()
        if ProcessInfo.processInfo.environment["UPDATE_PUBLIC_FACE"] != nil {
            try found.joined(separator: "\n").appending("\n")
                .write(
                    to: SourceFile.packageRoot.appending(path: Self.list),
                    atomically: true,
                    encoding: .utf8
                )
        }
        let listed = try SourceFile.read(Self.list).split(separator: "\n").map { String($0) }
        let (now, before) = (Set(found), Set(listed))
        #expect(now.subtracting(before).isEmpty, "not in docs/public-face.txt")
        #expect(before.subtracting(now).isEmpty, "in docs/public-face.txt alone")
        #expect(found.count > 800)
    }

    @Test func everyProductIsFound() throws {
        let products = try Self.products()
        for name in ["CacheEngine", "CacheEngineFoundation", "CacheTestSupport"] {
            #expect(products.contains(name))
        }
    }

    @Test func declarationsAreFound() {
        let code = """
            extension Outer {
                public struct Inner: Sendable {
                    public var size: Int
                    var hidden = 0
                    public init(
                        _ size: Int,
                        named name: String = "a, b: c"
                    ) { self.size = size }
                }
                public static func make(of size: Int) -> Inner { Inner(size, named: "") }
                public nonisolated(nonsending) func ask(for name: String) async {}
            }
            public let top = 1
            """
        #expect(
            PublicFace(code: code).declarations == [
                "struct Outer.Inner", "var Outer.Inner.size", "init Outer.Inner.init(_:named:)",
                "func Outer.make(of:)", "func Outer.ask(for:)", "let top",
            ]
        )
    }

    @Test func casesOfPublicEnumerationsAreFound() {
        let code = """
            public indirect enum Answer: Sendable {
                case yes, no
                case `default`
                case text = "a, b(c: d)"
                case number(Int), named(String, of: [String: Int] = [:])
                case
                    late,
                    later(
                        (any Error)?,
                        at: Int
                    )

                public var isYes: Bool {
                    switch self {
                    case .yes: true
                    default: false
                    }
                }
                private enum Hidden {
                    case one
                }
            }
            enum Internal {
                case two
            }
            """
        #expect(
            PublicFace(code: code).declarations == [
                "enum Answer", "case Answer.yes", "case Answer.no", "case Answer.default",
                "case Answer.text", "case Answer.number(_:)", "case Answer.named(_:of:)",
                "case Answer.late", "case Answer.later(_:at:)", "var Answer.isYes",
            ]
        )
    }

    @Test func requirementsOfPublicProtocolsAreFound() {
        let code = """
            public protocol Store: Sendable {
                associatedtype Item: Sendable
                var count: Int { get async }
                init(_ count: Int)
                static func make<T: Sendable>(
                    from item: T
                ) -> Self
                @discardableResult mutating func add(_ item: Item) -> Bool
            }
            extension Store {
                public func add(_ item: Item) {}
                func hidden() {}
            }
            protocol Internal {
                func alsoHidden()
            }
            """
        #expect(
            PublicFace(code: code).declarations == [
                "protocol Store", "requirement associatedtype Store.Item",
                "requirement var Store.count", "requirement init Store.init(_:)",
                "requirement func Store.make(from:)", "requirement func Store.add(_:)",
                "func Store.add(_:)",
            ]
        )
    }

    /// The targets of the libraries that the manifest offers.
    private static func products() throws -> [String] {
        try SourceFile.read("Package.swift")
            .matches(of: /\.library\(name: "\w+", targets: \["(\w+)"\]\)/)
            .map { String($0.1) }
    }
}
