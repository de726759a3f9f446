import CacheEngine
import Testing

@testable import CacheProxy

@Suite struct ResponseHeadWriterTests {
    @Test func headCarriesFieldsFramingDateAndVia() {
        let text = Self.write(200, ["ETag": "\"a\"", "Content-Length": "999"], .length(5))
        #expect(
            text == "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 5\r\n"
                + "Date: Thu, 01 Jan 1970 00:00:09 GMT\r\nVia: 1.1 me\r\n\r\n"
        )
    }

    @Test func dateOfTheOriginStays() {
        let text = Self.write(200, ["date": "Mon, 01 Jan 2024 00:00:00 GMT"], .length(0))
        #expect(text.contains("date: Mon, 01 Jan 2024 00:00:00 GMT\r\n"))
        #expect(!text.contains("1970"))
    }

    @Test func fieldsOfTheConnectionStayBehind() {
        let text = Self.write(
            200,
            [
                "X-Hop": "1", "Connection": "close, x-hop", "Keep-Alive": "5", "Upgrade": "h2c",
                "Transfer-Encoding": "gzip", "Trailer": "x", "TE": "x", "Proxy-Connection": "x",
                "Kept": "1",
            ],
            .chunked
        )
        #expect(
            text == "HTTP/1.1 200 OK\r\nKept: 1\r\nTransfer-Encoding: chunked\r\n"
                + "Date: Thu, 01 Jan 1970 00:00:09 GMT\r\nVia: 1.1 me\r\n\r\n"
        )
    }

    /// Each field alone, so that only its own name can cause its removal.
    @Test(arguments: [
        "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", "Proxy-Connection",
        "Proxy-Authorization", "Content-Length", "Transfer-Encoding",
    ])
    func eachFieldOfTheConnectionStaysBehindByItself(name: String) {
        let text = Self.write(200, HeaderFields([(name, "7"), ("Kept", "1")]), .chunked)
        #expect(
            text == "HTTP/1.1 200 OK\r\nKept: 1\r\nTransfer-Encoding: chunked\r\n"
                + "Date: Thu, 01 Jan 1970 00:00:09 GMT\r\nVia: 1.1 me\r\n\r\n"
        )
    }

    @Test func lengthOfA304IsTheOriginsAndA204HasNoLength() {
        #expect(Self.write(304, ["Content-Length": "7"], .none).contains("Content-Length: 7\r\n"))
        #expect(!Self.write(204, ["Content-Length": "7"], .none).contains("Content-Length"))
    }

    @Test(arguments: [
        (404, "404 Not Found"), (999, "999 "), (599, "599 "), (508, "508 Loop Detected"),
    ])
    func statusLineHasItsPhraseIfThereIsOne(_ row: (Int, String)) {
        #expect(Self.write(row.0, [:], .none).hasPrefix("HTTP/1.1 \(row.1)\r\n"))
    }

    @Test func framingFollowsStatusMethodAndVersion() {
        func framing(_ status: Int, _ isHead: Bool, _ count: Int?, _ isOld: Bool) -> ResponseFraming
        {
            ResponseFraming(status: status, isHead: isHead, bodyCount: count, isOldVersion: isOld)
        }
        #expect(framing(200, false, 3, false) == .length(3))
        #expect(framing(200, false, nil, false) == .chunked)
        #expect(framing(200, false, nil, true) == .untilClose)
        #expect(framing(200, true, 3, false) == .none)
        #expect(framing(204, false, 0, false) == .none)
        #expect(framing(304, false, nil, true) == .none)
        #expect(framing(999, false, 3, false) == .length(3))
    }

    @Test func numbersAreWritten() {
        let out = OutputBuffer(capacity: 64)
        for number in [0, 9, 10, 99, 100, 4_096, Int.max] {
            out.removeAll()
            out.append(decimal: number)
            #expect(String(decoding: out.bytes, as: UTF8.self) == "\(number)")
            out.removeAll()
            out.append(hexadecimal: number)
            #expect(String(decoding: out.bytes, as: UTF8.self) == String(number, radix: 16))
        }
    }

    @Test func bufferGrowsWithItsContent() {
        let out = OutputBuffer(capacity: 64)
        for _ in 0..<1_000 { out.append("0123456789") }
        #expect(out.count == 10_000)
        #expect(out.bytes[9_999] == UInt8(ascii: "9"))
    }

    static func write(_ status: Int, _ fields: HeaderFields, _ framing: ResponseFraming) -> String {
        let out = OutputBuffer(capacity: 64)
        var writer = ResponseHeadWriter(name: "me")
        writer.write(
            status: status,
            fields: fields,
            framing: framing,
            persistence: .goesOn,
            nowSeconds: 9,
            to: out
        )
        return String(decoding: out.bytes, as: UTF8.self)
    }
}
