/// A peer: another cache in a program of its own, controlled line by line.
///
/// The program times its own work, as we do ours; the exchange of lines is not timed.
package final class PeerProgram {
    /// The name used in the ratios (`ratio_to`).
    package let name: String
    private let process: Subprocess

    /// The name of a peer, and the words that start it.
    package struct Launch: Hashable, Sendable {
        package let name: String
        package let command: [String]

        package init(name: String, command: [String]) {
            self.name = name
            self.command = command
        }

        /// Parses `caffeine=java -cp '/a b/peers' Peer`: a name and a command of the shell.
        ///
        /// The shell only splits the words; it becomes the program, which gets the arguments too.
        package init(parsing text: String) throws {
            let parts = text.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, !parts[0].contains(" ") else {
                throw UsageError("--peer: `\(text)` is not a peer; give NAME=COMMAND")
            }
            let name = String(parts[0])
            self.init(name: name, command: ["/bin/sh", "-c", "exec \(parts[1]) \"$@\"", name])
        }
    }

    package init(_ launch: Launch, arguments: [String] = []) throws {
        name = launch.name
        process = try Subprocess(launch.command + arguments)
    }

    /// The figures that a peer reports.
    package struct Answer: Hashable, Sendable {
        package let nanosecondsPerOperation: Double
        package let operations: Double
    }

    /// The peer's description of itself and its configuration.
    package func describe() throws -> String {
        try request("describe").configuration ?? "no description"
    }

    /// Has the peer perform a command; throws unless every operation was correct.
    package func perform(_ command: String) throws -> Answer {
        let answer = try request(command)
        guard let time = answer.nanosecondsPerOperation, let operations = answer.operations,
            let correct = answer.correct
        else { throw WorkloadFailure("\(name): the answer to \(command) has no figures") }
        guard correct == operations, operations > 0 else {
            throw WorkloadFailure(
                "\(name): \(operations - correct) of \(operations) operations failed"
            )
        }
        return Answer(nanosecondsPerOperation: time, operations: operations)
    }

    /// A line of the peer.
    private struct Line: Decodable {
        var configuration: String?
        var nanosecondsPerOperation: Double?
        var operations: Double?
        var correct: Double?
        var error: String?

        enum CodingKeys: String, CodingKey {
            case configuration, operations, correct, error
            case nanosecondsPerOperation = "nanoseconds_per_operation"
        }
    }

    private func request(_ command: String) throws -> Line {
        try process.send(command)
        guard let line = try process.receiveLine() else {
            throw WorkloadFailure("\(name) ended before its answer to \(command)")
        }
        let answer: Line = try JSONText.decode(from: line)
        if let error = answer.error { throw WorkloadFailure("\(name): \(error)") }
        return answer
    }

    package func finish() { process.finish() }
}
