/// A peer: somebody else's cache in a program of its own, asked line by line.
///
/// The program times its own work, as we do ours; what passes between us is not timed.
package final class PeerProgram {
    /// The name the ratios go by (`ratio_to`).
    package let name: String
    private let process: Subprocess

    /// How a peer is started.
    package struct Launch: Hashable, Sendable {
        package let name: String
        package let command: [String]

        package init(name: String, command: [String]) {
            self.name = name
            self.command = command
        }

        /// Reads `caffeine=java -cp … Peer caffeine`; words are parted by spaces.
        package init(parsing text: String) throws {
            let parts = text.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, !parts[0].contains(" ") else {
                throw UsageError("--peer \(text): NAME=COMMAND is needed")
            }
            self.init(
                name: String(parts[0]),
                command: parts[1].split(separator: " ").map(String.init)
            )
        }
    }

    package init(_ launch: Launch, arguments: [String] = []) throws {
        name = launch.name
        process = try Subprocess(launch.command + arguments)
    }

    /// What a peer says it did.
    package struct Answer: Hashable, Sendable {
        package let nanosecondsPerOperation: Double
        package let operations: Double
    }

    /// What the peer is and how it is set up.
    package func describe() throws -> String {
        try request("describe")["configuration"]?.text ?? "no description"
    }

    /// Has the peer do a piece of work; fails unless every operation of it went right.
    package func perform(_ command: String) throws -> Answer {
        let answer = try request(command)
        guard let time = answer["nanoseconds_per_operation"]?.double,
            let operations = answer["operations"]?.double, let correct = answer["correct"]?.double
        else { throw WorkloadFailure("\(name) answered \(answer) to \(command)") }
        guard correct == operations, operations > 0 else {
            throw WorkloadFailure("\(name): \(operations - correct) of \(operations) went wrong")
        }
        return Answer(nanosecondsPerOperation: time, operations: operations)
    }

    private func request(_ command: String) throws -> JSONValue {
        try process.send(command)
        guard let line = try process.receiveLine() else {
            throw WorkloadFailure("\(name) ended without an answer to \(command)")
        }
        let answer = try JSONValue(parsing: line)
        if let error = answer["error"]?.text { throw WorkloadFailure("\(name): \(error)") }
        return answer
    }

    package func finish() { process.finish() }
}
