import Benchmarks

/// Lists the workloads.
enum ListCommand: Command {
    static let name = "list"
    static let synopsis = ""
    static let summary = "names the workloads and what each finds out"
    static let flags: [Arguments.Flag] = []

    static func run(_ arguments: Arguments) async throws -> ExitCode {
        try requireNoWords(arguments)
        let workloads = WorkloadCatalogue.all + WorkloadCatalogue.fleet
        let width = workloads.map(\.name.count).max() ?? 0
        for workload in workloads {
            let padding = String(repeating: " ", count: width - workload.name.count)
            Terminal.say("\(workload.name)\(padding)  \(workload.question)")
        }
        return .success
    }
}
