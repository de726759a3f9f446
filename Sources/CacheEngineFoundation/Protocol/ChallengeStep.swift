#if canImport(FoundationNetworking)
    internal import CacheEngine
    internal import Foundation
    internal import FoundationNetworking
    internal import HTTPCaching

    /// The challenges of one task: the user names and passwords that the origin asks for.
    ///
    /// URLSession on Linux would ask too, load around the cache, and never end the task if there is
    /// no password. So the load asks the delegate itself. Only the Basic scheme (RFC 7617) is
    /// answered; URLSession on Linux traps on any other.
    struct ChallengeStep: Sendable {
        private let delivery: TaskDelivery
        private let storage: URLCredentialStorage?
        private var failureCount = 0
        private var used: (space: URLProtectionSpace, credential: URLCredential)?

        init(_ delivery: TaskDelivery, _ configuration: URLSessionConfiguration) {
            self.delivery = delivery
            storage = configuration.urlCredentialStorage
        }

        /// The value of `Authorization` that answers a 401; `nil` if the caller gets the 401.
        ///
        /// - Throws: `URLError.cancelled` if the delegate cancels the challenge.
        mutating func authorization(
            for response: CacheResponse,
            _ url: URL
        ) async throws -> String? {
            guard response.status == 401 else {
                keepUsed()
                return nil
            }
            guard let space = Self.space(of: response, url),
                let head = response.urlResponse(url: url),
                let credential = try await credential(for: space, head),
                let user = credential.user, let password = credential.password
            else { return nil }
            failureCount += 1
            used = (space, credential)
            return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
        }

        /// Keeps a password that the origin accepted, as long as its persistence says.
        private mutating func keepUsed() {
            guard let (space, credential) = used.take(), credential.persistence != .none else {
                return
            }
            storage?.set(credential, for: space)
        }

        private func credential(
            for space: URLProtectionSpace,
            _ head: HTTPURLResponse
        ) async throws -> URLCredential? {
            let known =
                storage?.defaultCredential(for: space)
                ?? storage?.credentials(for: space)?.min { $0.key < $1.key }?.value
            // A password that has just failed is not proposed again.
            let proposed = known == used?.credential ? nil : known
            guard let delegate = delivery.task.delegate else { return proposed }
            let challenge = URLAuthenticationChallenge(
                protectionSpace: space,
                proposedCredential: proposed,
                previousFailureCount: failureCount,
                failureResponse: head,
                error: nil,
                sender: ChallengeSender()
            )
            let (session, task) = (delivery.internals.session, delivery.task)
            let (disposition, credential) = try await Race<Answer>.answer { answer in
                session.delegateQueue.addOperation {
                    delegate.urlSession(session, task: task, didReceive: challenge) {
                        answer(($0, $1))
                    }
                }
            }
            switch disposition {
            case .useCredential: return credential
            case .performDefaultHandling: return proposed
            case .rejectProtectionSpace, .cancelAuthenticationChallenge:
                throw URLError(.cancelled)
            }
        }

        private typealias Answer = (URLSession.AuthChallengeDisposition, URLCredential?)

        private static func space(of response: CacheResponse, _ url: URL) -> URLProtectionSpace? {
            guard let host = url.host,
                let challenge = BasicChallenge(in: response.fields.values(field))
            else { return nil }
            let isSecure = url.scheme?.lowercased() == "https"
            return URLProtectionSpace(
                host: host,
                port: url.port ?? (isSecure ? 443 : 80),
                protocol: isSecure ? "https" : "http",
                realm: challenge.realm,
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic
            )
        }

        /// The head of a 401 in the form that URLSession hands over without a challenge of its own.
        static func settled(_ response: CacheResponse) -> CacheResponse {
            let values = response.fields.values(field)
            guard response.status == 401, !values.isEmpty else { return response }
            var response = response
            response.fields.remove(field)
            response.fields["Origin-" + field] = values.joined(separator: ", ")
            return response
        }

        private static let field = "WWW-Authenticate"
    }

    /// The sender that a challenge must have; the answer arrives by the completion handler.
    private final class ChallengeSender: NSObject, URLAuthenticationChallengeSender, Sendable {
        func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
        func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
        func cancel(_ challenge: URLAuthenticationChallenge) {}
        func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
        func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
    }
#endif
