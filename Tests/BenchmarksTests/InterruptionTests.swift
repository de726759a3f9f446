import Benchmarks
import CacheTestSupport
import Platform
import Testing

@Suite(.timeLimit(.minutes(5))) struct InterruptionTests {
    /// The path of the program, which is built beside the tests.
    private static var program: String {
        let path = CommandLine.arguments[0]
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
        return String(folder) + "bench-cli"
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func interruptedRunLeavesNoDirectory(signal: Int32) async throws {
        let folder = TemporaryFolder()
        let process = try ChildProgram.start(
            Self.program,
            ["run", "disk-hit-warm", "--directory", folder.path],
            output: "/dev/null"
        )
        let hasBegun = await eventually { !ScratchDirectory.files(below: folder.path).isEmpty }
        kill(process, signal)
        let status = ChildProgram.wait(for: process)
        #expect(hasBegun)
        #expect(status == (128 + signal) << 8)
        #expect(folder.names().isEmpty)
    }
}
