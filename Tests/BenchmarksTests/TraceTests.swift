import Benchmarks
import Foundation
import Testing

/// The same requests in each form that `bench-cli replay` reads.
@Suite struct TraceTests {
    /// Objects and sizes; text names stand for the numbers where a form has them.
    static let requests: [(object: Int, size: Int)] = [
        (1, 100), (2, 2_000), (1, 100), (3, 7), (2, 2_000), (9, 1), (1, 100),
    ]

    private static func lines(_ line: (Int, Int, Int) -> String) -> String {
        requests.enumerated().map { line($0.offset, $0.element.object, $0.element.size) + "\n" }
            .joined()
    }

    private static let oracleGeneral: Data = {
        var data = Data()
        for (time, request) in requests.enumerated() {
            withUnsafeBytes(of: UInt32(time).littleEndian) { data.append(contentsOf: $0) }
            withUnsafeBytes(of: UInt64(request.object).littleEndian) { data.append(contentsOf: $0) }
            withUnsafeBytes(of: UInt32(request.size).littleEndian) { data.append(contentsOf: $0) }
            withUnsafeBytes(of: Int64(-2).littleEndian) { data.append(contentsOf: $0) }
        }
        return data
    }()

    static let forms: [(name: String, data: Data)] = [
        ("plain.csv", Data(lines { "\($0),\($1),\($2)" }.utf8)),
        ("crlf.csv", Data(lines { "\($0),\($1),\($2)\r" }.utf8)),
        ("header.csv", Data(("time,object,size\n" + lines { "\($0),\($1),\($2)" }).utf8)),
        ("order.csv", Data(("size,next,key\n" + lines { "\($2),-1,\($1)" }).utf8)),
        ("comments", Data(("# made by hand\n\n" + lines { "\($0).25,\($1),\($2),GET" }).utf8)),
        ("tabs.tsv", Data(lines { "\($0)\t\($1)\t\($2)\tx" }.utf8)),
        ("spaces", Data(lines { "\($0)  \($1) \($2)" }.utf8)),
        ("two", Data(lines { _, object, size in "\(object),\(size)" }.utf8)),
        ("text.csv", Data(lines { "\($0),object-\($1),\($2)" }.utf8)),
        ("cluster", Data(lines { "\($0),key-\($1),5,\($2 - 5),12,get,0" }.utf8)),
        (
            "cache-u.tsv",
            Data(
                ("relative_unix\thashed_path_query\timage_type\tresponse_size\ttime_firstbyte\n"
                    + lines { "\($0)\t\($1)\tjpeg\t\($2)\t0.01" }).utf8
            )
        ),
        (
            "access.log",
            Data(
                lines {
                    "10.0.0.1 - - [22/Nov/2026:10:00:0\($0 % 10) +0000] "
                        + "\"GET /\($1) HTTP/1.1\" 200 \($2) \"-\" \"agent\""
                }.utf8
            )
        ),
        ("x.oracleGeneral", oracleGeneral),
        ("binary", oracleGeneral),
    ]

    /// The order in which objects appear, whatever their identities are, and the sizes.
    static func shape(_ trace: RequestTrace) -> [[Int]] {
        var numbers: [UInt64: Int] = [:]
        return trace.requests.map { request in
            let number = numbers[request.object] ?? numbers.count
            numbers[request.object] = number
            return [number, Int(request.sizeBytes)]
        }
    }

    static func read(
        _ name: String,
        _ data: Data,
        _ format: TraceFormat? = nil,
        progress: (_ bytes: Int, _ total: Int?) -> Void = { _, _ in }
    ) throws -> RequestTrace {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("traces-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent(name)
        try data.write(to: file)
        return try RequestTrace(path: file.path, format: format, progress: progress)
    }

    @Test(arguments: forms) func eachFormGivesTheSameRequests(form: (name: String, data: Data))
        throws
    {
        // A key of five bytes counts with its value; the smallest sizes cannot be written so.
        let isCut = form.name == "cluster"
        let expected = try Self.read("plain.csv", Self.forms[0].data)
        if isCut {
            let lines = String(decoding: form.data, as: UTF8.self).split(separator: "\n")
                .filter { !$0.contains(",-") }
            let trace = try Self.read("cluster", Data(lines.joined(separator: "\n").utf8))
            #expect(Self.shape(trace) == Self.shape(expected).filter { $0[1] >= 5 })
            return
        }
        let trace = try Self.read(form.name, form.data)
        #expect(Self.shape(trace) == Self.shape(expected))
        #expect(trace.objectCount == 4)
        #expect(trace.distinctBytes == expected.distinctBytes)
    }

    @Test func blocksAndIdentitiesAloneCountOne() throws {
        let blocks = try Self.read("p.lis", Data("10 3 0 1\n11 1 0 2\n".utf8))
        let alone = try Self.read("ids", Data("10\n11\n12\n11\n".utf8))
        #expect(Self.shape(blocks) == Self.shape(alone))
        #expect(blocks.distinctBytes == 3)
    }

    @Test func onlyReadsOfALogAreRequests() throws {
        let log = """
            h - - [t] "POST /a HTTP/1.1" 200 5
            h - - [t] "GET /a HTTP/1.1" 304 -

            """
        #expect(Self.shape(try Self.read("access.log", Data(log.utf8))) == [[0, 0]])
        let commands = "1,a,1,9,3,set,0\n2,a,1,9,3,get,0\n"
        #expect(Self.shape(try Self.read("c", Data(commands.utf8))) == [[0, 10]])
    }

    /// The archive that `program` makes of the bytes.
    private static func packed(_ data: Data, by program: String = "gzip") throws -> Data {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("traces-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("t.csv")
        try data.write(to: file)
        let packing = Process()
        packing.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        packing.arguments = [program, "-q", file.path]
        try packing.run()
        packing.waitUntilExit()
        return try Data(contentsOf: file.appendingPathExtension(program == "gzip" ? "gz" : "zst"))
    }

    /// Packs the bytes, lets `change` change the archive and reads it.
    private static func readPacked(
        _ data: Data,
        change: (inout Data) -> Void = { _ in }
    ) throws -> RequestTrace {
        var archive = try packed(data)
        change(&archive)
        return try read("t.csv.gz", archive)
    }

    @Test func archivesAreUnpacked() throws {
        let trace = try Self.readPacked(Self.forms[0].data)
        #expect(trace.requests.count == Self.requests.count)
        #expect {
            try Self.readPacked(Self.forms[0].data) { $0.removeLast($0.count / 2) }
        } throws: { error in
            "\(error)".hasSuffix(
                "/t.csv.gz: gzip cannot unpack the file: unexpected end of file; get it again"
            )
        }
    }

    @Test(arguments: ["gzip", "zstd"]) func archiveIsKnownByItsFirstBytes(program: String) throws {
        for data in [Self.forms[0].data, Self.oracleGeneral] {
            let trace = try Self.read("trace", try Self.packed(data, by: program))
            #expect(trace.requests.map { Int($0.sizeBytes) } == Self.requests.map(\.size))
        }
    }

    /// The first bytes of a pipe cannot be read twice; here they come from another archive.
    @Test(arguments: ["gzip", "zstd"]) func packedBytesAreNoRecords(program: String) throws {
        let archive = try Self.packed(Self.oracleGeneral, by: program)
        #expect {
            try Self.readPacked(archive)
        } throws: { error in
            "\(error)".hasSuffix(
                "/t.csv.gz: the bytes are packed; send them through \(program) -dc first"
            )
        }
    }

    /// Records have no mark of their own.
    @Test func bytesWhoseTimesFallAreRecordsByNameOnly() throws {
        let noise = Data((0..<2_400).map { UInt8(truncatingIfNeeded: $0 * 37) })
        #expect {
            try Self.read("noise", noise)
        } throws: { error in
            "\(error)".contains(
                "/noise: the bytes are neither text nor records of 24 bytes whose times do not "
                    + "fall; give --format and one of csv, oracleGeneral"
            )
        }
        #expect(try Self.read("noise.oracleGeneral", noise).requests.count == 100)
        #expect(try Self.read("noise", noise, .oracleGeneral).requests.count == 100)
    }

    @Test func readingTellsItsProgress() throws {
        let comment = "#" + String(repeating: "x", count: 65_535) + "\n"
        let data = Data((String(repeating: comment, count: 600) + "1,2,3\n").utf8)
        var shares: [(bytes: Int, total: Int?)] = []
        let trace = try Self.read("t", data) { shares.append(($0, $1)) }
        #expect(trace.requests.count == 1)
        #expect(shares.map { $0.bytes >> 20 } == [16, 32])
        #expect(shares.allSatisfy { $0.total == data.count })
        shares = []
        _ = try Self.read("t", try Self.packed(data)) { shares.append(($0, $1)) }
        #expect(shares.count == 2 && shares.allSatisfy { $0.total == nil })
    }

    /// The program finds the damage at the end of the archive, behind the wrong line.
    @Test func damageOfAnArchiveIsReportedBeforeAWrongLine() throws {
        let lines = String(repeating: "1,2,3\n", count: 20_000)
        let data = Data((lines + "nonsense\n" + lines).utf8)
        #expect {
            try Self.readPacked(data)
        } throws: { error in
            "\(error)".hasSuffix("line 20001 is not time,object,size: `nonsense`")
        }
        #expect {
            try Self.readPacked(data) { $0[$0.count - 8] ^= 1 }
        } throws: { error in
            "\(error)".contains("gzip cannot unpack the file: invalid compressed data--crc error")
        }
    }

    @Test(arguments: [
        ("t.csv.gz", "gzip cannot unpack the file: not in gzip format; get it again"),
        ("t.csv.zst", "zstd cannot unpack the file: unsupported format; get it again"),
    ])
    func otherFileIsNoArchive(name: String, message: String) throws {
        #expect {
            try Self.read(name, Data("1,2,3\n".utf8))
        } throws: { error in
            "\(error)".hasSuffix("/\(name): \(message)")
        }
    }

    @Test func missingArchiveCannotBeRead() {
        #expect(throws: UsageError("/nonexistent/t.gz cannot be read: No such file or directory")) {
            try RequestTrace(path: "/nonexistent/t.gz")
        }
    }

    @Test(arguments: [
        ("1,2,3\nnonsense\n", "line 2 is not time,object,size: `nonsense`"),
        ("1,2,3\n2,3,-4\n", "line 2 is not time,object,size: `2,3,-4`"),
        ("1,2,3\n\n# x\nnoon,3,4\n", "line 4 is not time,object,size: `noon,3,4`"),
        ("1,2,3\n1,2\n", "line 2 is not time,object,size: `1,2`"),
        ("1,2\n1,2,3\n4,5\n", "line 2 is not object,size: `1,2,3`"),
        ("a\nb c\n", "line 2 is not the object alone: `b c`"),
        ("h [t] \"GET /a\" 200 5\nh [t] GET /a 200 5\n", "line 2 is not host ident user"),
        ("", "the file has no requests"), ("# nothing\n\n", "the file has no requests"),
    ])
    func wrongLineIsNamedWithItsText(text: String, message: String) throws {
        #expect {
            try Self.read("t", Data(text.utf8))
        } throws: { error in
            "\(error)".contains(message)
        }
    }

    @Test func truncatedRecordIsNamed() throws {
        #expect {
            try Self.read("x.oracleGeneral", Self.oracleGeneral.dropLast(5))
        } throws: { error in
            "\(error)".contains("the last record has 19 of 24 bytes")
        }
    }
}
