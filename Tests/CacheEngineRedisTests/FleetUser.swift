import Foundation
import RedisTestSupport

/// The user of a fleet, with the rights that docs/fleet.md gives it.
enum FleetUser {
    static let password = "fleet-word"

    /// The words behind `ACL SETUSER`, as the document has them.
    static func words(sharesEntries: Bool = false) throws -> [String] {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "docs/fleet.md"), encoding: .utf8)
        guard let rules = text.firstMatch(of: /ACL SETUSER ([^`]+)```/),
            let more = text.firstMatch(of: /With shared entries the user also needs `([^`]+)`/)
        else { throw RedisFailure("docs/fleet.md has no rights") }
        let words = "\(rules.1) \(sharesEntries ? more.1 : "")".split(
            whereSeparator: \.isWhitespace
        )
        return words.map { $0 == ">password" ? ">\(password)" : String($0) }
    }

    static func url(_ redis: RedisProcess) -> String {
        "redis://fleet:\(password)@127.0.0.1:\(redis.port)/test"
    }
}
