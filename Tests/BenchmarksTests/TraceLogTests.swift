import Benchmarks
import Foundation
import Testing

@testable import bench_cli

/// Lines in the log of a server, some of them without a request.
@Suite struct TraceLogTests {
    static func log(_ quoted: String, _ rest: String = "200 5") -> String {
        #"10.0.0.1 - - [22/Nov/2026:10:00:00 +0000] "\#(quoted)" \#(rest)"# + "\n"
    }

    static func lines(_ count: Int, _ line: (Int) -> String) -> String {
        (0..<count).map(line).joined()
    }

    static let logged = lines(30) { log("GET /\($0 % 2) HTTP/1.1") }

    private static func read(_ text: String, _ format: TraceFormat? = nil) throws -> RequestTrace {
        try TraceTests.read("t", Data(text.utf8), format)
    }

    @Test(arguments: [
        ("-", "408 0"), ("", "400 0"), (#"\x16\x03\x01"#, "400 157"), ("GET", "400 0"),
        (#"\x16\x03\x01 \x02 HTTP/1.1"#, "400 157"), (#"\"GET /a\" x"#, "400 -"),
        (#"\\"#, #"400 0 "-" "agent""#), ("\u{16}\u{3} x", "400 0"),
    ])
    func lineWithoutARequestIsSkippedAndCounted(quoted: String, rest: String) throws {
        let odd = Self.log(quoted, rest)
        for format in [nil, TraceFormat.clf] {
            let trace = try Self.read(odd + Self.logged + odd, format)
            #expect(trace.requests.count == 30)
            #expect(trace.objectCount == 2)
            #expect(trace.skippedLines == 2)
        }
    }

    @Test func escapedQuotesArePartOfTheRequest() throws {
        let paths = [#"/a\"b"#, "/a", #"/a\"b"#, #"/a\\"#]
        let trace = try Self.read(
            paths.map { Self.log("GET \($0) HTTP/1.1", #"200 7 "-" "\"agent\"""#) }.joined()
        )
        #expect(TraceTests.shape(trace) == [[0, 7], [1, 7], [0, 7], [2, 7]])
        #expect(trace.skippedLines == 0)
    }

    @Test func requestsWithoutALengthAreCounted() throws {
        let trace = try Self.read(
            Self.log("GET /a HTTP/1.1", "200 7") + Self.log("GET /b HTTP/1.1", "200 -")
                + Self.log("POST /c HTTP/1.1", "200 -") + Self.log("GET /a HTTP/1.1", "304 -")
        )
        #expect(TraceTests.shape(trace) == [[0, 7], [1, 0], [0, 0]])
        #expect(trace.requestsWithoutSize == 2)
        let head = ReplayCommand.head("t", trace)
        #expect(head.hasSuffix("Requests without a length, taken as 0 bytes: 2\n"))
    }

    /// Words that another server puts behind the combined format name no host.
    @Test(arguments: [
        #"upstream 0.004"#, #""-" 0.004"#, "fresh soon",
    ])
    func lastWordOfAnotherLogIsNoHost(words: String) throws {
        let trace = try Self.read(
            ["a", "b"].map {
                Self.log("GET /x HTTP/1.1", #"200 7 "-" "agent" \#(words) \#($0)"#)
            }.joined()
        )
        #expect(trace.objectCount == 1)
    }

    @Test func otherMethodsAreNotSkippedLines() throws {
        let trace = try Self.read(Self.log("POST /a HTTP/1.1") + Self.logged)
        #expect(trace.requests.count == 30)
        #expect(trace.skippedLines == 0)
    }

    @Test(arguments: [
        "no log at all", #"h - - [t] "GET /a HTTP/1.1 200 5"#, #"h - - [t] "-" 408"#,
        #"h - - [t] "-" ok 5"#, #"h - - [t] "-" 408 none"#, #"h - - [t] "GET /a\" 200 5"#,
    ])
    func lineOfAnotherFormEndsTheLog(line: String) throws {
        #expect {
            try Self.read(Self.logged + line + "\n")
        } throws: { error in
            "\(error)".contains("line 31 is not host ident user") && "\(error)".contains(line)
        }
    }
}
