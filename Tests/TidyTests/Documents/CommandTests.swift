import Testing

/// Every command in the documents must work.
@Suite struct CommandTests {
    @Test func everyCommandInTheDocumentsWorks() async throws {
        let proof = try CommandProof()
        var commands = 0
        for document in try SourceFile.documents() {
            for command in DocumentedCommand.all(in: document, programs: CommandProof.programs) {
                commands += 1
                let complaint = try await proof.complaint(about: command)
                #expect(complaint == nil, "\(command)")
            }
        }
        #expect(commands > 30)
    }

    /// Commands in blocks of another kind would not be tested.
    @Test func commandsStandInBlocksMarkedAsSuch() throws {
        for document in try SourceFile.documents() {
            for line in DocumentedCommand.Line.all(in: document.text) where line.isUnmarkedCode {
                let command = DocumentedCommand(document: document.path, text: line.text)
                guard let command else { continue }
                let isCommand =
                    CommandProof.programs.contains(command.program)
                    || ["apt-get", "cd", "docker", "git", "sudo", "$"].contains(command.program)
                #expect(!isCommand, "\(command) stands in a block that is not marked sh")
            }
        }
    }

    /// The first lines of an example state how it is run.
    @Test func everyExampleIsRunAsItSays() async throws {
        let proof = try CommandProof()
        for file in try SourceFile.all(in: ["Examples"]) {
            for match in file.text.matches(of: /(?m)^\/\/\/? +(swift run .*)$/) {
                let command = DocumentedCommand(document: file.path, text: String(match.1))
                guard let command else { continue }
                let complaint = try await proof.complaint(about: command)
                #expect(complaint == nil, "\(command)")
            }
        }
    }
}

/// The proofs detect commands that do not work.
@Suite struct CommandProofTests {
    @Test(arguments: [
        "make nothing-of-the-kind", "make lint TARGET=x nothing", "docker run cache",
        "swift run nobody", "swift build --product nobody", "bench-cli run --no-such-flag",
        "bench-cli no-such-command x", "cache-proxy --no-such-flag", "cache-proxy --memory lots",
        "perf/compare nothing", "perf/compare memory --no-such-flag", "perf/profile no-workload",
        "perf/soak --hours 3", "Examples/Fleet/fleet fly", "Fuzz/run no-target",
        "curl http://127.0.0.1/",
    ])
    func aCommandThatDoesNotWorkIsFoundOut(text: String) async throws {
        let command = try #require(DocumentedCommand(document: "x.md", text: text))
        #expect(try await CommandProof().complaint(about: command) != nil)
    }

    @Test func commandsThatNothingRunsAreFound() throws {
        let runs = try LongRuns()
        #expect(runs.contain("make", "tsan") && runs.contain("perf/soak", nil))
        #expect(!runs.contain("make", "format") && !runs.contain("perf/compare", "hit-ratio"))
    }

    @Test func wordsAreReadAsAShellReadsThem() throws {
        let text = #"A_B=1 curl -H "X: a # b" --x=y  http://h/ # why"#
        let command = try #require(DocumentedCommand(document: "x.md", text: text))
        #expect(command.words == ["curl", "-H", "X: a # b", "--x=y", "http://h/"])
        #expect(DocumentedCommand(document: "x.md", text: "# only a comment") == nil)
    }

    @Test func commandsAreFoundInBlocksAndInText() {
        let text = """
            Type `make all` or `make`; `bench-cli` is a name, `let x` is code.
            ```sh
            cache-proxy --a \\
                --b
            unheard-of c
            ```
            ```
            make no-command
            ```
            """
        let document = SourceFile(path: "x.md", text: text)
        let commands = DocumentedCommand.all(in: document, programs: CommandProof.programs)
        #expect(
            commands.map(\.words) == [
                ["make", "all"], ["make"], ["cache-proxy", "--a", "--b"], ["unheard-of", "c"],
            ]
        )
    }
}
