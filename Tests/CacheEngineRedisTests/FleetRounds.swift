import Foundation
import Testing

/// The length of the tests that repeat a fault: `make fleet` asks for their whole number of rounds.
enum FleetRounds {
    private static let isWhole = ProcessInfo.processInfo.environment["FLEET_ROUNDS"] == "all"

    static func scaled(_ few: Int, to all: Int) -> Int { isWhole ? all : few }
    static var minutes: TimeLimitTrait.Duration { .minutes(isWhole ? 20 : 2) }
}
