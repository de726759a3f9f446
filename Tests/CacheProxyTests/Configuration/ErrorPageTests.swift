import CacheEngine
import Foundation
import Testing

@testable import CacheProxy

/// The page of errors has every text and code that a user of the proxy can see.
@Suite struct ErrorPageTests {
    static func page() throws -> String {
        let page = URL(filePath: #filePath).appending(path: "../../../../docs/errors.md")
        return try String(contentsOf: page.standardized, encoding: .utf8)
    }

    /// The first cells of all rows, each `…` in them standing for any text.
    static func templates() throws -> [[String]] {
        try page().matches(of: /(?m)^\| `+ ?(.+?) ?`+ \|/).map {
            $0.1.components(separatedBy: "…")
        }
    }

    static func fits(_ text: String, _ template: [String]) -> Bool {
        guard let first = template.first, let last = template.last, text.hasPrefix(first),
            template.count > 1 || text == first, text.hasSuffix(last)
        else { return false }
        var rest = text[...]
        for part in template where !part.isEmpty {
            guard let place = rest.range(of: part) else { return false }
            rest = rest[place.upperBound...]
        }
        return true
    }

    @Test(arguments: ConfigurationMistakeTests.mistakes)
    func everyTextOfAConfigurationErrorIsOnThePage(_ row: ConfigurationMistakeTests.Mistake) throws
    {
        #expect(try Self.templates().contains { Self.fits(row.text, $0) }, "\(row.text)")
    }

    @Test func everyCodeOfAResponseIsOnThePage() throws {
        let page = try Self.page()
        for fault in RequestFault.allCases {
            #expect(page.contains("`\(fault.rawValue)`"), "\(fault)")
        }
        let codes: [CacheError.Code] = [
            .originFailed, .originUnreachable, .originTimedOut, .originMisbehaved, .bodyTruncated,
            .bodyTooLarge, .readerTooSlow, .notCached, .deadlineExceeded, .requestInvalid,
            .loadRecursed, .shutDown, .directoryInUse, .directoryUnusable, .directoryForeign,
            .storageFailed, .storageTimedOut, .configurationInvalid,
        ]
        for code in codes { #expect(page.contains("`\(code)"), "\(code)") }
        for row in page.matches(of: /(?m)^\| (`\w+`(?:, `\w+`)*) \| (\d{3}) \|/) {
            for name in row.1.matches(of: /\w+/) {
                let name = String(name.output)
                let status =
                    RequestFault(rawValue: name)?.status
                    ?? codes.first { $0.description == name }.map(GatewayError.status)
                #expect(status.map(String.init) == String(row.2), "\(name)")
            }
        }
    }

    @Test func everyReportAboutAProxyHeaderIsOnThePage() throws {
        let lines =
            [ProxyHeaderReport.refused("192.0.2.1") + ReportLimit.note(skipped: 3)]
            + ProxyHeaderFault.allCases.map { ProxyHeaderReport.closed("192.0.2.1", $0) }
        let templates = try Self.templates()
        for line in lines { #expect(templates.contains { Self.fits(line, $0) }, "\(line)") }
        let page = try Self.page()
        for fault in ProxyHeaderFault.allCases { #expect(page.contains(fault.text), "\(fault)") }
    }

    @Test func everyReportAboutDroppedLinesIsOnThePage() throws {
        let templates = try Self.templates()
        for (path, code) in [("-", EAGAIN), ("/var/log/a", ENOSPC)] {
            let line = AccessLogFile.loss(path, code) + ReportLimit.note(skipped: 3)
            #expect(templates.contains { Self.fits(line, $0) }, "\(line)")
        }
    }

    @Test func everyFailedSystemCallIsOnThePage() throws {
        let page = try Self.page()
        for attempt: SystemError.Attempt in [.listen, .openLog, .watch, .startThread, .openPipe] {
            #expect(page.contains("`\(attempt.text)"), "\(attempt)")
        }
        let error = SystemError(.listen, "127.0.0.1:80", code: EADDRINUSE)
        #expect(
            error.description == "Cannot listen on 127.0.0.1:80: Address already in use; "
                + "stop the process that uses it, or give another address"
        )
    }
}
