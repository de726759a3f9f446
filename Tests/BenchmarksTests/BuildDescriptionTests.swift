import Foundation
import Testing

@testable import Benchmarks

@Suite struct BuildDescriptionTests {
    /// A program may lie in another checkout than the current directory, or be older than it.
    @Test func revisionIsThatOfTheProgram() throws {
        let scratch = try ScratchDirectory(in: WorkloadPlan.defaultScratchDirectory)
        let program = scratch.path + "/program"
        try TextFile.write("", to: program)
        #expect(BuildDescription.revision(of: program) == nil)
        let git = ["git", "-C", scratch.path, "-c", "user.name=n", "-c", "user.email=e"]
        for words in [["init"], ["commit", "--allow-empty", "-m", "m"]] {
            try #require(Subprocess.firstLine(of: git + words) != nil)
        }
        try TextFile.write("x", to: program)
        let revision = try #require(BuildDescription.revision(of: program))
        #expect(Subprocess.firstLine(of: git + ["rev-parse", "--short", "HEAD"]) == revision)
        let past = [FileAttributeKey.modificationDate: Date(timeIntervalSince1970: 1_000)]
        try FileManager.default.setAttributes(past, ofItemAtPath: program)
        #expect(BuildDescription.revision(of: program) == nil)
    }
}
