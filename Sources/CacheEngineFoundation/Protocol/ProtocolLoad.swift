#if canImport(FoundationNetworking)
    internal import CacheEngine
    internal import Foundation
    internal import FoundationNetworking

    /// One load of a task through a cache: request, redirects, response.
    struct ProtocolLoad: Sendable {
        let cache: HTTPCache
        let storing: CachingURLProtocol.Storing
        let delivery: TaskDelivery

        init(registered: ProtocolRegistry.Registered, delivery: TaskDelivery) {
            cache = registered.cache
            storing = registered.storing
            self.delivery = delivery
        }

        /// Loads, and delivers the response or an error; nothing if the task was cancelled.
        func run() async {
            let url = delivery.task.currentRequest?.url
            do {
                try await load()
            } catch {
                guard !Task.isCancelled else { return }
                await delivery.fail(ProtocolFailure.urlError(error, url: url))
            }
        }

        private func load() async throws {
            guard var request = delivery.task.currentRequest, var url = request.url else {
                throw URLError(.badURL)
            }
            let configuration = delivery.internals.session.configuration
            var content = try await TaskContent(of: delivery)
            var challenges = ChallengeStep(delivery, configuration)
            var hasLeftOrigin = false
            var hasNewPassword = false
            for hop in 0... {
                try Task.checkCancellation()
                var asked = try SessionRequest.cacheRequest(
                    request,
                    configuration,
                    withSecrets: !hasLeftOrigin
                )
                asked.body = content.body
                if let type = content.usualType(for: asked) { asked.fields["Content-Type"] = type }
                asked.options.leavesStoring = asksDelegate(about: asked)
                if hasNewPassword { askOrigin(&asked) }
                let response = try await cache.respond(to: asked)
                content.reportIfUnseen(to: delivery)
                SessionCookies.keep(of: response, url, configuration)
                if content.isRepeatable, hop < EngineURLCache.redirectsMax, mayLoad(asked),
                    let authorization = try await challenges.authorization(for: response, url)
                {
                    request.setValue(authorization, forHTTPHeaderField: "Authorization")
                    content = try content.repeated()
                    hasNewPassword = true
                    continue
                }
                let step = RedirectStep(response, to: request, content)
                if let step, let next = try await follow(step, response, url, configuration) {
                    guard hop < EngineURLCache.redirectsMax, let target = next.url else {
                        throw URLError(.httpTooManyRedirects)
                    }
                    request = next
                    hasNewPassword = false
                    hasLeftOrigin = hasLeftOrigin || !RedirectStep.isSameOrigin(url, target)
                    url = target
                    content = step.content(for: next, delivery)
                    continue
                }
                let consent = StoreConsent(of: delivery, cache, asked, response)
                return try await ResponseDelivery(delivery, url, consent).deliver(response)
            }
        }

        /// Keeps a stored 401 from answering the password that it asked for.
        private func askOrigin(_ asked: inout CacheRequest) {
            asked.options.policy = policy(of: asked).with { $0.reads = false }
        }

        /// Whether a password could reach the origin.
        private func mayLoad(_ asked: CacheRequest) -> Bool { policy(of: asked).onMiss == .load }

        private func policy(of asked: CacheRequest) -> CachePolicy {
            asked.options.policy ?? cache.configuration.policy
        }

        /// The request that follows the redirect; `nil` if the delegate wants the redirect itself.
        private func follow(
            _ step: RedirectStep,
            _ response: CacheResponse,
            _ url: URL,
            _ configuration: URLSessionConfiguration
        ) async throws -> URLRequest? {
            guard let head = response.urlResponse(url: url) else { return nil }
            let next = SessionCookies.added(to: step.request, configuration)
            return try await delivery.askAboutRedirect(head, to: next)
        }

        /// Whether the delegate decides about the response in place of the cache.
        private func asksDelegate(about request: CacheRequest) -> Bool {
            storing == .askingDelegate && request.method == .get
                && request.body == nil && cache.configuration.hooks.willStore == nil
                && delivery.task is URLSessionDataTask
                && delivery.task.delegate is any URLSessionDataDelegate
        }
    }

    /// The cache's request for a request of a session.
    enum SessionRequest {
        /// Makes the request, with the session's additional fields.
        ///
        /// The secrets among them are meant for the first origin alone: once a chain of redirects
        /// has left it, they are left out (`withSecrets`), also if it leads back.
        static func cacheRequest(
            _ request: URLRequest,
            _ configuration: URLSessionConfiguration,
            withSecrets: Bool
        ) throws -> CacheRequest {
            var bare = request
            bare.httpBody = nil
            bare.httpBodyStream = nil
            guard request.url?.host?.isEmpty == false, var asked = CacheRequest(bare) else {
                throw URLError(.badURL)
            }
            for (name, value) in configuration.additionalFields.pairs {
                if asked.fields.contains(name) { continue }
                if !withSecrets, RedirectStep.isSecret(name) { continue }
                asked.fields.append(name, value)
            }
            takeOptions(of: configuration, request, for: &asked)
            return asked
        }

        /// Gives the session's policy and timeout to a request that has none of its own.
        static func takeOptions(
            of configuration: URLSessionConfiguration,
            _ request: URLRequest,
            for asked: inout CacheRequest
        ) {
            if request.timeoutInterval == usualTimeoutSeconds {
                let seconds = configuration.timeoutIntervalForRequest
                asked.options.timeout = Duration(clampingSeconds: seconds)
            }
            guard asked.options.policy == nil,
                configuration.requestCachePolicy != .useProtocolCachePolicy
            else { return }
            asked.options.policy = CachePolicy(configuration.requestCachePolicy)
        }

        /// The timeout of a request that sets none.
        private static let usualTimeoutSeconds: TimeInterval = 60
    }
#endif
