package import CacheEngine
import HTTPCaching

extension OriginRequest {
    /// The framing of the content that follows the head (RFC 9112 §6).
    package enum Framing: Hashable, Sendable {
        case none
        case length(Int)
        case chunked
    }

    /// Returns the framing of the content.
    ///
    /// - Throws: `CacheError.Code.requestInvalid` if the request cannot be sent.
    package func framing() throws(CacheError) -> Framing {
        let isToken = method.kind != .other || FieldSection.isValidName(method.name)
        guard isToken, method.kind != .connect else {
            throw CacheError(
                .requestInvalid,
                detail: "The method `\(PlainText.excerpt(method.name))` cannot be sent; "
                    + "give a token other than CONNECT"
            )
        }
        // Content of a HEAD has no meaning (RFC 9110 §9.3.2).
        if method.kind == .head { return .none }
        guard let body else {
            // Servers answer a POST without a length with 411 (RFC 9110 §8.6).
            switch method.kind {
            case .post, .put, .patch: return .length(0)
            default: return .none
            }
        }
        if let count = body.count { return .length(count) }
        return try announcedCount().map { .length($0) } ?? .chunked
    }

    /// The number in the one line of Content-Length; `nil` if there is no line.
    private func announcedCount() throws(CacheError) -> Int? {
        var lineCount = 0
        var count: Int?
        fields.section.forEachValue(of: "content-length") { value in
            lineCount += 1
            count = DecimalNumber.parse(value.trimmed)
        }
        guard lineCount > 0 else { return nil }
        guard lineCount == 1, let count else {
            let value = PlainText.excerpt(fields["Content-Length"] ?? "")
            throw CacheError(
                .requestInvalid,
                detail: "The request has an invalid Content-Length: `\(value)`; "
                    + "give the number of bytes, or no field"
            )
        }
        return count
    }
}
