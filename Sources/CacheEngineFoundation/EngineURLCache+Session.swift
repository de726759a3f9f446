internal import CacheEngine
internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking

    /// The part of the cache that URLSession calls for each data task.
    extension EngineURLCache {
        /// Answers a task by the engine: look-up, collapsing, loading and storing.
        ///
        /// The completion handler gets `nil`, and URLSession loads the response itself, in two
        /// cases: the engine does not handle the request (other methods, own conditions,
        /// credentials), or URLSession would not accept the response (`DeliverableFields`).
        func answer(
            _ dataTask: URLSessionDataTask,
            completionHandler: @Sendable @escaping (CachedURLResponse?) -> Void
        ) {
            guard let request = dataTask.currentRequest, let url = request.url,
                let asked = engineRequest(request, of: dataTask)
            else { return completionHandler(nil) }
            let task = SessionTask(dataTask)
            guard isAnswered(asked, request) else {
                // URLSession itself follows no policy.
                if !mayLoad(asked) { ForbiddenLoad.refuse(task.cancel) }
                return completionHandler(nil)
            }
            if let stored = cache.immediateResponse(to: asked),
                let chunk = stored.body.availableChunk, redirect(stored, from: url) == nil,
                let answer = deliverable(stored, chunk, url)
            {
                return completionHandler(answer)
            }
            guard mayLoad(asked) else {
                // Decided synchronously, because only then the load can be prevented; at most a
                // disk is waited for.
                let found = BlockingCall.wait { SendableOutcome(await self.load(asked, url: url)) }
                if case .answer(let answer) = found.outcome { return completionHandler(answer) }
                ForbiddenLoad.refuse(task.cancel)
                return completionHandler(nil)
            }
            Task {
                switch await self.outcome(of: asked, url: url, for: task) {
                case .answer(let answer): completionHandler(answer)
                case .leave: completionHandler(nil)
                case .withdraw:
                    // The cancellation goes first: URLSession handles it before it handles the
                    // response.
                    dataTask.cancel()
                    completionHandler(nil)
                }
            }
        }
    }

    extension EngineURLCache {
        /// The outcome of a task.
        private enum Outcome {
            case answer(CachedURLResponse)
            /// URLSession loads the response itself.
            case leave
            /// The policy forbids loading and no stored response exists, or the task is already
            /// cancelled.
            case withdraw
        }

        /// The most redirects that one task follows, as many as URLSession.
        static let redirectsMax = 20
        /// The interval of the check whether a task still runs.
        private static let watchNanoseconds: UInt64 = 50_000_000

        /// Makes the engine's request; `nil` if it is not one of HTTP.
        ///
        /// Called on the work queue of the task, on which URLSession asks its cache.
        private func engineRequest(
            _ request: URLRequest,
            of task: URLSessionDataTask
        ) -> CacheRequest? {
            guard let scheme = request.url?.scheme?.lowercased(),
                ["http", "https"].contains(scheme), var asked = cacheRequest(bodiless(request))
            else { return nil }
            if let session = TaskInternals.session(of: task) {
                SessionRequest.takeOptions(of: session.configuration, request, for: &asked)
            }
            return asked
        }

        /// The request without its content, which only URLSession sends.
        private func bodiless(_ request: URLRequest) -> URLRequest {
            guard request.httpBody != nil || request.httpBodyStream != nil else { return request }
            var request = request
            request.httpBody = nil
            request.httpBodyStream = nil
            return request
        }

        /// Whether the engine answers the request; if not, URLSession must do the work.
        private func isAnswered(_ asked: CacheRequest, _ request: URLRequest) -> Bool {
            guard asked.method == .get || asked.method == .head, request.httpBody == nil,
                request.httpBodyStream == nil
            else { return false }
            return !Self.ownFields.contains { request.value(forHTTPHeaderField: $0) != nil }
        }

        /// URLSession accepts neither a stored response to a request with credentials, nor a 304.
        private static let ownFields = [
            "Authorization", "Proxy-Authorization", "If-None-Match", "If-Modified-Since",
            "If-Match", "If-Unmodified-Since",
        ]

        /// Loads the outcome, and stops when the task is cancelled meanwhile.
        private func outcome(
            of request: CacheRequest,
            url: URL,
            for task: SessionTask
        ) async -> Outcome {
            await withTaskGroup(of: SendableOutcome?.self) { group in
                group.addTask { SendableOutcome(await self.load(request, url: url)) }
                group.addTask {
                    while task.isWanted {
                        do {
                            try await Task.sleep(nanoseconds: Self.watchNanoseconds)
                        } catch { break }
                    }
                    return nil
                }
                let first = await group.next() ?? nil
                group.cancelAll()
                return first?.outcome ?? .withdraw
            }
        }

        private func mayLoad(_ request: CacheRequest) -> Bool {
            (request.options.policy ?? cache.configuration.policy).onMiss == .load
        }

        private func load(_ request: CacheRequest, url: URL) async -> Outcome {
            let mayLoad = mayLoad(request)
            var request = request
            var url = url
            do {
                for _ in 0...Self.redirectsMax {
                    let response = try await cache.respond(to: request)
                    keepCookies(of: response, url)
                    if let target = redirect(response, from: url) {
                        request = redirected(request, from: url, to: target)
                        url = target
                        continue
                    }
                    let isFromNetwork = !response.info.didUseCachedResponse
                    if isFromNetwork, (response.body.count ?? 0) > maximumDeliverySize.bytes {
                        return .leave
                    }
                    let limit = isFromNetwork ? maximumDeliverySize : .bytes(.max)
                    let (whole, chunk) = try await cache.gather(
                        response,
                        to: request,
                        upTo: limit
                    )
                    if redirect(whole, from: url) == nil,
                        let answer = deliverable(whole, chunk, url)
                    {
                        return .answer(answer)
                    }
                    return mayLoad ? .leave : .withdraw
                }
                return .leave
            } catch {
                return mayLoad ? .leave : .withdraw
            }
        }

        /// Makes the response that URLSession accepts; `nil` if there is no such form.
        private func deliverable(
            _ response: CacheResponse,
            _ chunk: ByteChunk,
            _ url: URL
        ) -> CachedURLResponse? {
            guard
                DeliverableFields.isDeliverable(status: response.status, fields: response.fields)
            else { return nil }
            var shaped = response
            shaped.fields = DeliverableFields.shaped(response.fields)
            return shaped.urlResponse(url: url).map { shaped.cachedURLResponse($0, chunk) }
        }

        private func redirect(_ response: CacheResponse, from url: URL) -> URL? {
            guard [301, 302, 303, 307, 308].contains(response.status),
                let location = response.fields["Location"],
                let target = URL(string: location, relativeTo: url)?.absoluteURL,
                let scheme = target.scheme?.lowercased(), ["http", "https"].contains(scheme)
            else { return nil }
            return target
        }

        /// Makes the request for the redirect's target: with the cookies that are kept for it,
        /// without those of another host (RFC 6265 §8.6) and credentials for another origin.
        ///
        /// A request with credentials of its own is not handled here: these are of
        /// `additionalFields`. All other fields go on, as with URLSession itself.
        private func redirected(_ request: CacheRequest, from: URL, to: URL) -> CacheRequest {
            var request = request
            request.url = to.absoluteString
            if !RedirectStep.isSameOrigin(from, to) {
                for name in RedirectStep.credentials { request.fields.remove(name) }
            }
            if from.host != to.host || from.scheme != to.scheme { request.fields.remove("Cookie") }
            // The redirect may have set one, and a cookie may be of one path (RFC 6265 §5.4).
            if let cookies = cookieStorage?.cookies(for: to), !cookies.isEmpty {
                request.fields["Cookie"] = Self.joined(request.fields["Cookie"], cookies)
            }
            return request
        }

        /// The value of `Cookie` with these cookies, and with those of `own` of other names.
        private static func joined(_ own: String?, _ cookies: [HTTPCookie]) -> String? {
            let names = Set(cookies.map(\.name))
            let others = (own ?? "").split(separator: ";")
                .map { String($0.trimmingPrefix(" ")) }
                .filter { !names.contains(String($0.prefix { $0 != "=" })) }
            let stored = HTTPCookie.requestHeaderFields(with: cookies)["Cookie"]
            return (others + [stored].compactMap(\.self)).joined(separator: "; ")
        }

        private func keepCookies(of response: CacheResponse, _ url: URL) {
            guard let cookieStorage else { return }
            SessionCookies.keep(of: response, url, in: cookieStorage)
        }

        /// Carries an outcome out of a task group.
        ///
        /// `@unchecked Sendable`: one child task makes the response in it, nothing changes it, and
        /// only the parent reads it.
        private struct SendableOutcome: @unchecked Sendable {
            let outcome: Outcome
            init(_ outcome: Outcome) { self.outcome = outcome }
        }
    }

    /// A task of URLSession, used only to read its state and to cancel it.
    ///
    /// `@unchecked Sendable`: the one variable never changes, and URLSession protects a task's
    /// state and cancellation with a queue of its own.
    private struct SessionTask: @unchecked Sendable {
        private let task: URLSessionDataTask

        init(_ task: URLSessionDataTask) { self.task = task }

        @Sendable func cancel() { task.cancel() }

        var isWanted: Bool {
            switch task.state {
            case .running, .suspended: true
            case .canceling, .completed: false
            @unknown default: true
            }
        }
    }
#endif
