import Foundation
import Testing

/// Sends each request that the proxy's and the operator's page show.
@Suite struct DocumentedRequestTests {
    struct Request {
        var method = "GET"
        var target = ""
        var fields: [String] = []

        /// The request that `curl` would send for `line`.
        init(_ line: Substring) throws {
            for match in line.matches(of: /-X (\w+)/) { method = String(match.1) }
            for match in line.matches(of: /-H "([^"]+)"/) { fields.append(String(match.1)) }
            target = String(try #require(line.firstMatch(of: /http:\/\/[^\/\s]+(\/\S*)/)).1)
            if let given = line.firstMatch(of: /--request-target (\S+)/) {
                target = String(given.1)
            }
        }
    }

    static func requests(_ name: String) throws -> [Request] {
        let page = URL(filePath: #filePath).appending(path: "../../../../docs/\(name).md")
        return try String(contentsOf: page.standardized, encoding: .utf8)
            .split(separator: "\n").filter { $0.hasPrefix("curl ") }.map(Request.init)
    }

    @Test func everyDocumentedRequestIsAnswered() async throws {
        let requests = try Self.requests("cache-proxy") + Self.requests("operating")
        #expect(requests.count >= 10)
        try await AdminTests.withAdmin { _, _, port async throws in
            for request in requests {
                var fields = request.fields.map {
                    $0.replacing("$TOKEN", with: AdminTests.token)
                }
                if !fields.contains(where: { $0.hasPrefix("Host:") }) { fields.append("Host: a") }
                let head = "\(request.method) \(request.target) HTTP/1.1\r\n"
                let response = try await WireClient(port).exchange(
                    head + fields.map { $0 + "\r\n" }.joined() + "\r\n"
                )
                #expect(response.status == 200, "\(request)")
            }
        }
    }
}
