#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking

    /// A `URLProtocol` that loads every http and https task of a session through an `HTTPCache`.
    ///
    /// ```swift
    /// let configuration = URLSessionConfiguration.default
    /// configuration.load(through: cache)  // the one added line
    /// let session = URLSession(configuration: configuration)
    /// ```
    ///
    /// Data, download and upload tasks of every method and status cost one origin request, or
    /// none. `URLSessionConfiguration.load(through:)` registers the protocol; the class has
    /// no other use.
    ///
    /// It exists on Linux only, where URLSession itself stores no HTTP response.
    public class CachingURLProtocol: URLProtocol {
        /// Which responses of data tasks are stored.
        public enum Storing: Hashable, Sendable {
            /// The session's data delegate is asked about each response to a GET that HTTP allows
            /// to be stored.
            ///
            /// The delegate's `urlSession(_:dataTask:willCacheResponse:completionHandler:)` may
            /// change the response, refuse it, or keep it in memory. It sees the whole body, so
            /// neither a response of more than 64 MiB nor one to a request with `Range` is stored.
            /// Of the tasks that share a fetch, the first that has the whole body is asked about; a
            /// refresh in the background is not. A cache with a `willStore` hook asks the hook in
            /// place of the delegate.
            case askingDelegate
            /// The rules of the cache decide, as for every other request to it.
            case byRules
        }

        /// The state of the one load of an instance; used on the task's work queue alone.
        private enum Stage {
            case new
            case loading(TaskDelivery)
            case over
        }

        private var stage = Stage.new

        /// Whether the request is loaded through a cache: its scheme is http or https, and the
        /// class was registered by `load(through:)`.
        public override class func canInit(with request: URLRequest) -> Bool {
            guard let scheme = request.url?.scheme?.lowercased() else { return false }
            return ["http", "https"].contains(scheme) && ProtocolRegistry.shared.knows(self)
        }

        /// Returns the request unchanged.
        public override class func canonicalRequest(for request: URLRequest) -> URLRequest {
            request
        }

        /// Starts the load, or continues it if the task was suspended.
        public override func startLoading() {
            switch stage {
            case .loading(let delivery): delivery.resume()
            case .over: break
            case .new: begin()
            }
        }

        /// Ends the load if the task is cancelled, and pauses it otherwise.
        ///
        /// A task that was suspended may be running again when URLSession calls this.
        public override func stopLoading() {
            let isCancelled = task?.state == .canceling || task?.state == .completed
            switch stage {
            case .loading(let delivery):
                guard isCancelled else { return delivery.pause() }
                delivery.cancel()
                stage = .over
            case .new: if isCancelled { stage = .over }
            case .over: break
            }
        }

        private func begin() {
            guard let task, let client else { return }
            stage = .over
            guard let internals = TaskInternals(task) else {
                return client.urlProtocol(self, didFailWithError: ProtocolFailure.unknownFoundation)
            }
            guard let registered = ProtocolRegistry.shared.registered(for: type(of: self)) else {
                return client.urlProtocol(self, didFailWithError: ProtocolFailure.cacheIsGone)
            }
            let delivery = TaskDelivery(self, task, client, internals)
            stage = .loading(delivery)
            delivery.begin(ProtocolLoad(registered: registered, delivery: delivery))
        }

        /// Ends the load: later calls of URLSession have no effect.
        func loadHasEnded() { stage = .over }
    }
#endif
