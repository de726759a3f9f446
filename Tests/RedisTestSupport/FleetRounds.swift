import Foundation

/// The length of the tests that repeat a fault: `make fleet` asks for their whole number of rounds.
package enum FleetRounds {
    private static let isWhole = ProcessInfo.processInfo.environment["FLEET_ROUNDS"] == "all"

    package static func scaled(_ few: Int, to all: Int) -> Int { isWhole ? all : few }
    package static var minutesMax: Int { isWhole ? 20 : 2 }
}
