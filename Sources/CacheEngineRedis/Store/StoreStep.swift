import RESP
import RedisClient

/// A script of the shared store, with the record that it works on and its words.
struct StoreStep: Sendable {
    let script: FleetScript
    let name: StoreName
    let words: [[UInt8]]

    init(_ script: FleetScript, _ name: StoreName, _ words: [[UInt8]]) {
        self.script = script
        self.name = name
        self.words = words
    }

    static func word(_ number: Int) -> [UInt8] { Array(String(number).utf8) }
}

extension FleetServer {
    private static var publishLimit: Duration { .milliseconds(500) }

    /// Runs scripts in one piece.
    func run(
        _ steps: [StoreStep],
        by key: [UInt8],
        lane: RedisLane = .bulk
    ) async throws(RedisError) -> [RESPValue] {
        let replies = try await runScripts(by: key, within: Self.publishLimit, lane: lane) {
            isWhole in
            steps.map { $0.script.command($0.name.both, isWhole: isWhole, $0.words) }
        }
        for case .error(let text) in replies { throw RedisError(.misbehaved, detail: text) }
        return replies
    }
}
