#if canImport(FoundationNetworking)
    internal import CacheEngine
    internal import Foundation
    internal import FoundationNetworking

    /// The request that a redirect leads to (RFC 9110 §15.4).
    struct RedirectStep {
        let request: URLRequest
        private let content: TaskContent

        /// Returns `nil` if the response is no redirect, or one that cannot be followed: no
        /// `Location`, another scheme, or content that can be sent only once.
        init?(_ response: CacheResponse, to request: URLRequest, _ content: TaskContent) {
            guard [301, 302, 303, 305, 306, 307, 308].contains(response.status),
                let location = response.fields["Location"], let url = request.url,
                let target = URL(string: location, relativeTo: url)?.absoluteURL,
                let scheme = target.scheme?.lowercased(), ["http", "https"].contains(scheme),
                target.host?.isEmpty == false
            else { return nil }
            var next = request
            next.url = target
            let method = request.httpMethod ?? "GET"
            if Self.becomesGet(method, response.status) {
                next.httpMethod = "GET"
                next.httpBody = nil
                for name in Self.contentFields { next.setValue(nil, forHTTPHeaderField: name) }
                self.content = .none
            } else {
                guard content.isRepeatable, let again = try? content.repeated() else { return nil }
                self.content = again
            }
            if !Self.isSameOrigin(url, target) {
                for name in Self.secrets { next.setValue(nil, forHTTPHeaderField: name) }
            }
            self.request = next
        }

        /// The content for the request that the delegate has chosen: that of the redirect, unless it
        /// chose another method or content.
        func content(for chosen: URLRequest, _ delivery: TaskDelivery) -> TaskContent {
            let isOffered =
                chosen.httpMethod == request.httpMethod && chosen.httpBody == request.httpBody
                && chosen.httpBodyStream === request.httpBodyStream
            return isOffered ? content : TaskContent(of: chosen, delivery)
        }

        private static let contentFields = ["Content-Type", "Content-Length", "Content-Encoding"]
        static let credentials = ["Authorization", "Proxy-Authorization"]
        /// The fields that another origin must not see.
        private static let secrets = credentials + ["Cookie"]

        /// Whether another origin must not see the field.
        static func isSecret(_ name: String) -> Bool {
            secrets.contains { $0.lowercased() == name.lowercased() }
        }

        private static func becomesGet(_ method: String, _ status: Int) -> Bool {
            switch status {
            case 301, 302: method == "POST"
            case 303: method != "GET" && method != "HEAD"
            default: false
            }
        }

        static func isSameOrigin(_ one: URL, _ other: URL) -> Bool {
            one.scheme?.lowercased() == other.scheme?.lowercased()
                && one.host?.lowercased() == other.host?.lowercased() && port(one) == port(other)
        }

        private static func port(_ url: URL) -> Int {
            url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80)
        }
    }
#endif
