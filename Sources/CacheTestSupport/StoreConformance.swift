public import CacheEngine

/// Runs the promises of `CacheStore` against a store of yours.
///
/// ```swift
/// @Test func theStoreKeepsItsPromises() async {
///     let broken = await StoreConformance { DictionaryStore() }.run()
///     #expect(broken.isEmpty)
/// }
/// ```
///
/// A store may forget whatever it likes; it never invents, never mixes up two keys, and never brings
/// back what was removed or replaced. Every check opens a store of its own, expected to be empty.
public struct StoreConformance: Sendable {
    /// Opens an empty store.
    public typealias Opening = @Sendable () async throws -> any CacheStore
    /// Opens again what was stored: the same store after a restart.
    public typealias Reopening = @Sendable (any CacheStore) async throws -> any CacheStore

    /// A promise that was not kept.
    public struct Violation: Hashable, Sendable, CustomStringConvertible {
        /// The name of the check.
        public let check: String
        /// What happened.
        public let detail: String
        /// Check and what happened.
        public var description: String { "\(check): \(detail)" }
    }

    private let open: Opening
    private let reopen: Reopening?
    private let seeds: Range<UInt64>
    private let stepsMax: Int

    /// Checks for the stores that `open` gives.
    ///
    /// - Parameters:
    ///   - seeds: One random run against a model is made for each.
    ///   - steps: The length of each such run.
    ///   - reopen: Closes a store and opens what it kept; nil for stores that keep nothing.
    ///   - open: Gives a new, empty store.
    public init(
        seeds: Range<UInt64> = 0..<64,
        steps: Int = 200,
        reopen: Reopening? = nil,
        open: @escaping Opening
    ) {
        self.open = open
        self.reopen = reopen
        self.seeds = seeds
        stepsMax = max(1, steps)
    }

    /// Makes every check.
    ///
    /// - Returns: The promises that were not kept; none for a store that conforms.
    public func run() async -> [Violation] {
        var violations: [Violation] = []
        for check in StoreCheck.all {
            violations += await run(check.name) { try await check.body(try await open()) }
        }
        for seed in seeds {
            violations += await run("random run, seed \(seed)") {
                var model = StoreModel(seed: seed)
                return try await model.run(steps: stepsMax, on: try await open())
            }
        }
        if let reopen {
            violations += await run("restart") {
                try await StoreCheck.survivesRestart(try await open(), reopen)
            }
        }
        return violations
    }

    private func run(
        _ name: String,
        _ body: () async throws -> [String]
    ) async -> [Violation] {
        do {
            return try await body().map { Violation(check: name, detail: $0) }
        } catch {
            return [Violation(check: name, detail: "threw \(error)")]
        }
    }
}
