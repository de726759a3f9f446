import Benchmarks
import Foundation
import Testing

/// Stray lines at the start of a trace, and lines of no form.
@Suite struct TraceJudgeTests {
    private static func lines(_ count: Int, _ line: (Int) -> String) -> String {
        TraceLogTests.lines(count, line)
    }

    private static let table = lines(30) { "\($0),\($0 % 2),100\n" }

    private static func read(_ text: String, _ format: TraceFormat? = nil) throws -> RequestTrace {
        try TraceTests.read("t", Data(text.utf8), format)
    }

    @Test(arguments: [
        (TraceLogTests.logged, "host ident user"), (table, "time,object,size"),
        (lines(30) { "key\($0 % 2),100\n" }, "object,size"),
        (lines(30) { "\($0),key-\($0 % 2),5,6,12,get,0\n" }, "time,key,key size"),
        (lines(30) { "\($0) 3 0 1\n" }, "first block, number of blocks"),
        (
            "relative_unix\thashed_path_query\timage_type\tresponse_size\ttime_firstbyte\n"
                + lines(30) { "\($0)\t\($0)\tjpeg\t6\t0.01\n" }, "time, hashed path"
        ),
    ])
    func strayFirstLineIsAnErrorOfTheFormThatFollows(text: String, form: String) throws {
        for stray in ["garbage", "more garbage here"] {
            #expect {
                try Self.read("\(stray)\n\(text)")
            } throws: { error in
                "\(error)".contains("line 1 is not \(form)")
                    && "\(error)".hasSuffix(": `\(stray)`")
            }
        }
    }

    @Test func strayFirstLineIsAnErrorOfTheFormThatIsGiven() throws {
        #expect {
            try Self.read("garbage\n" + Self.table, .csv)
        } throws: { error in
            "\(error)".contains("line 1 is not time,object,size: `garbage`")
        }
    }

    @Test func firstLineWithNamesIsNoStrayLine() throws {
        let expected = TraceTests.shape(try Self.read(Self.table))
        for names in ["time,object,size", "ts,url,bytes", "\"time\",\"key\",\"length\""] {
            let trace = try Self.read("# made by hand\n\(names)\n" + Self.table)
            #expect(TraceTests.shape(trace) == expected)
        }
        // A line with a number has no names.
        #expect(TraceTests.shape(try Self.read("key,5\nid,6\n")) == [[0, 5], [1, 6]])
    }

    @Test(arguments: [
        #"{"time": 1, "url": "/a", "size": 2}"#, "a line of words", "noon,3,4", "a,b",
        "1000 words are, however, no trace",
    ])
    func linesWithoutACommonFormNameTheFlag(line: String) throws {
        let message =
            ": the first lines have no form in common: `\(line)`; give --format and one "
            + "of csv, oracleGeneral, lis, twitter, wiki, clf"
        #expect {
            try Self.read(Self.lines(30) { _ in line + "\n" })
        } throws: { error in
            "\(error)".hasSuffix(message)
        }
    }

    /// The form is known before the whole trace is; the last line of a piece may be cut.
    @Test func longTraceIsJudgedByItsFirstPiece() throws {
        let long = String(repeating: "x", count: 60_000)
        let text = Self.lines(4) { "\($0),\(long)\($0 % 2),100\n" } + Self.table
        #expect(try Self.read(text).requests.count == 34)
        #expect {
            try Self.read("garbage\n" + text)
        } throws: { error in
            "\(error)".contains("line 1 is not time,object,size")
        }
    }

    @Test func objectsAloneHaveNoSizes() throws {
        #expect(try !Self.read("/a,b\n/c\n/d\n").hasSizes)
        #expect(try !Self.read("time,object\n1,2\n").hasSizes)
        #expect(try !Self.read(TraceLogTests.log("GET /a HTTP/1.1", "304 -")).hasSizes)
        #expect(try Self.read(Self.table).hasSizes)
    }
}
