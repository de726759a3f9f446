public import CacheEngine

/// Checks a store against the promises of `CacheStore`.
///
/// ```swift
/// @Test func theStoreKeepsItsPromises() async {
///     let broken = await StoreConformance { DictionaryStore() }.run()
///     #expect(broken.isEmpty)
/// }
/// ```
///
/// A store may drop any entry. It must not invent entries, mix up two keys, or return an entry that
/// was removed or replaced. Every check opens a store of its own, which must be empty.
public struct StoreConformance: Sendable {
    /// Opens an empty store.
    public typealias Opening = @Sendable () async throws -> any CacheStore
    /// Opens the contents of a store again, as after a restart.
    public typealias Reopening = @Sendable (any CacheStore) async throws -> any CacheStore

    /// A broken promise.
    public struct Violation: Hashable, Sendable, CustomStringConvertible {
        /// The name of the check.
        public let check: String
        /// The violation.
        public let detail: String
        /// The check and the violation.
        public var description: String { "\(check): \(detail)" }
    }

    private let open: Opening
    private let reopen: Reopening?
    private let seeds: Range<UInt64>
    private let stepsMax: Int

    /// Creates the checks for the stores that `open` returns.
    ///
    /// - Parameters:
    ///   - seeds: The seeds of random runs against a model, one run for each.
    ///   - steps: The length of each random run.
    ///   - reopen: Closes a store and opens its contents again; `nil` if nothing persists.
    ///   - open: Returns a new, empty store.
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

    /// Runs every check.
    ///
    /// - Returns: The broken promises, or an empty array if the store conforms.
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
