#if canImport(FoundationNetworking)
    internal import CacheEngine
    internal import Foundation
    internal import FoundationNetworking
    internal import Platform

    /// The delegate's decision about storing one response.
    ///
    /// The engine has kept the response out of the store (`RequestOptions.leavesStoring`), and it
    /// is stored here in the form that the delegate returns, by the rules that hold for every fetch
    /// (`PendingStore`).
    struct StoreConsent: Sendable {
        /// The largest body that a delegate is asked about; a larger response is not stored.
        static let bodyBytesMax = 64 << 20

        private let delivery: TaskDelivery
        private let cache: HTTPCache
        private let request: CacheRequest
        private let pending: PendingStore

        /// Returns `nil` if nothing is to be decided: the response is not a fetched one, or the rules
        /// of HTTP forbid to store it.
        init?(
            of delivery: TaskDelivery,
            _ cache: HTTPCache,
            _ request: CacheRequest,
            _ response: CacheResponse
        ) {
            guard let pending = response.info.pendingStore else { return nil }
            self.delivery = delivery
            self.cache = cache
            self.request = request
            self.pending = pending
        }

        /// Asks the delegate, and stores the response that it returns.
        ///
        /// Of the tasks that share the response, the first that has the whole body asks. A response is
        /// not stored if the delegate refuses it, or answers later than
        /// `CacheHooks.maximumWillStoreTime`.
        func store(_ head: HTTPURLResponse, _ body: @autoclosure () -> Data) async {
            guard let delegate = delivery.task.delegate as? any URLSessionDataDelegate,
                let task = delivery.task as? URLSessionDataTask
            else { return }
            // A suspended task asks nothing, nor does one that was cancelled: another may.
            guard (try? await delivery.deliver { _, _ in }) != nil, pending.take() else { return }
            let proposal = CachedURLResponse(
                response: head,
                data: body(),
                userInfo: nil,
                storagePolicy: .allowed
            )
            guard let decision = await answer(of: delegate, task, about: proposal) else {
                // The entry that the response replaces must not answer later requests.
                return await cache.endReplaced(by: pending, for: request)
            }
            guard let options = HTTPCache.ManualStoreOptions(decision) else { return }
            var response = CacheResponse(decision)
            if decision.response === head {
                // The delegate's copy joins lines of one name; an unchanged head keeps them apart.
                response.fields = pending.fields
            } else if let changed = decision.response as? HTTPURLResponse {
                // The engine decodes nothing: the body has the coding that its fields name.
                response.fields = HeaderFields(changed)
            }
            _ = try? await cache.store(response, for: request, options: options, as: pending)
        }

        private func answer(
            of delegate: any URLSessionDataDelegate,
            _ task: URLSessionDataTask,
            about proposal: CachedURLResponse
        ) async -> CachedURLResponse? {
            let session = delivery.internals.session
            let limit = UInt64(
                nanosecondsIn: cache.configuration.hooks.maximumWillStoreTime.seconds
            )
            let decision = try? await Race<CachedURLResponse?>.answer { answer in
                let timer = Task { [clock = cache.configuration.clock] in
                    try await clock.sleep(nanoseconds: limit)
                    answer(nil)
                }
                session.delegateQueue.addOperation {
                    delegate.urlSession(
                        session,
                        dataTask: task,
                        willCacheResponse: proposal
                    ) { decision in
                        timer.cancel()
                        answer(decision)
                    }
                }
            }
            guard let decision, decision.storagePolicy != .notAllowed else {
                return nil
            }
            return decision
        }
    }
#endif
