#if canImport(FoundationNetworking)
    internal import CacheEngine
    internal import Foundation
    internal import FoundationNetworking

    /// The cookies of a session, kept and sent as its configuration says.
    enum SessionCookies {
        /// Keeps the cookies that the origin sent with a response, if the session accepts cookies.
        static func keep(
            of response: CacheResponse,
            _ url: URL,
            _ configuration: URLSessionConfiguration
        ) {
            guard let storage = configuration.httpCookieStorage,
                configuration.httpCookieAcceptPolicy != .never
            else { return }
            keep(of: response, url, in: storage)
        }

        /// Keeps the cookies that the origin sent with a response.
        static func keep(of response: CacheResponse, _ url: URL, in storage: HTTPCookieStorage) {
            for line in response.newCookies {
                let fields = ["Set-Cookie": line]
                let cookies = HTTPCookie.cookies(withResponseHeaderFields: fields, for: url)
                storage.setCookies(cookies, for: url, mainDocumentURL: nil)
            }
        }

        /// The request with the cookies for its URL, if the session sends cookies.
        static func added(
            to request: URLRequest,
            _ configuration: URLSessionConfiguration
        ) -> URLRequest {
            guard configuration.httpShouldSetCookies, let url = request.url,
                let cookies = configuration.httpCookieStorage?.cookies(for: url),
                let line = HTTPCookie.requestHeaderFields(with: cookies)["Cookie"], !line.isEmpty
            else { return request }
            var request = request
            request.setValue(line, forHTTPHeaderField: "Cookie")
            return request
        }
    }

    extension CacheResponse {
        /// The lines of `Set-Cookie` that the origin sent to this request or a concurrent one.
        ///
        /// A stored line would undo what has happened to its cookie since. So of a response that the
        /// origin has confirmed, only the lines of the 304 count, which the request has that was
        /// sent; the others that waited for it get none.
        fileprivate var newCookies: [String] {
            switch info.source {
            case .origin, .collapsed: fields.values("Set-Cookie")
            case .revalidated: info.originFields?.values("Set-Cookie") ?? []
            case .fresh, .stale, .fallback, .generated: []
            }
        }
    }
#endif
