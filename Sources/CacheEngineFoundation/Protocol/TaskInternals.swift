#if canImport(FoundationNetworking)
    internal import Dispatch
    internal import Foundation
    internal import FoundationNetworking

    /// The parts of a task that a protocol needs, and that URLSession on Linux keeps to itself.
    ///
    /// They are read by reflection, by their names in swift-corelibs-foundation. The tests fail if
    /// a name has changed; a load then fails with `ProtocolFailure.unknownFoundation`.
    struct TaskInternals {
        /// The way in which URLSession hands the response over.
        enum Handover {
            /// The session's delegate gets each event.
            case delegate
            /// A completion handler gets the whole response.
            case handler
        }

        /// The content of the request, which an upload task keeps beside its request.
        enum Content {
            case none
            case data(Data)
            case file(URL)
            case stream(InputStream)
            /// The delegate provides a stream.
            case delegate
        }

        let session: URLSession
        /// The queue on which URLSession keeps the state of the task.
        let workQueue: DispatchQueue
        let handover: Handover
        /// The delegate that gets the events of this task; of a handler's task, its own delegate.
        let eventDelegate: (any URLSessionTaskDelegate)?
        let content: Content

        /// Reads the parts; to be called on the task's work queue, on which alone they change.
        ///
        /// Returns `nil` if a part is missing.
        init?(_ task: URLSessionTask) {
            guard let session = Self.session(of: task),
                let workQueue = Self.part("workQueue", of: task) as? DispatchQueue,
                let registry = Self.part("taskRegistry", of: session),
                let behaviours = Self.part("behaviours", of: registry),
                let behaviour = (behaviours as? any TaskTable)?.entry(task.taskIdentifier),
                let (handover, own) = Self.handover(behaviour),
                let body = Self.part("knownBody", of: task),
                let content = Self.content(body)
            else { return nil }
            self.session = session
            self.workQueue = workQueue
            self.handover = handover
            self.content = content
            switch handover {
            case .delegate: eventDelegate = session.delegate as? any URLSessionTaskDelegate
            case .handler: eventDelegate = own
            }
        }

        /// The session of a task; to be called on the task's work queue.
        static func session(of task: URLSessionTask) -> URLSession? {
            part("session", of: task) as? URLSession
        }

        /// The value of a stored property, also of a superclass.
        private static func part(_ name: String, of object: Any) -> Any? {
            var mirror: Mirror? = Mirror(reflecting: object)
            while let current = mirror {
                if let child = current.children.first(where: { $0.label == name }) {
                    return child.value
                }
                mirror = current.superclassMirror
            }
            return nil
        }

        /// The case of an enum, and its payload.
        private static func choice(_ value: Any) -> (name: String, payload: Any?) {
            if let child = Mirror(reflecting: value).children.first, let name = child.label {
                return (name, child.value)
            }
            return (String(describing: value), nil)
        }

        private static func handover(
            _ behaviour: Any
        ) -> (Handover, (any URLSessionTaskDelegate)?)? {
            let (name, payload) = choice(behaviour)
            switch name {
            case "callDelegate": return (.delegate, nil)
            case "dataCompletionHandler", "downloadCompletionHandler": return (.handler, nil)
            case "dataCompletionHandlerWithTaskDelegate",
                "downloadCompletionHandlerWithTaskDelegate":
                let parts = payload.map { Array(Mirror(reflecting: $0).children) } ?? []
                return (.handler, parts.last.flatMap { $0.value as? any URLSessionTaskDelegate })
            default: return nil
            }
        }

        private static func content(_ body: Any) -> Content? {
            // `knownBody` is an optional; without a value the delegate is asked.
            guard let known = Mirror(reflecting: body).children.first?.value else {
                return .delegate
            }
            let (name, payload) = choice(known)
            switch (name, payload) {
            case ("none", _): return Content.none
            case ("data", let data as DispatchData): return .data(Data(data))
            case ("file", let url as URL): return .file(url)
            case ("stream", let stream as InputStream): return .stream(stream)
            default: return nil
            }
        }
    }

    /// The dictionary of a session's tasks, whose values have a type without public access.
    private protocol TaskTable {
        func entry(_ taskIdentifier: Int) -> Any?
    }

    extension Dictionary: TaskTable where Key == Int {
        fileprivate func entry(_ taskIdentifier: Int) -> Any? { self[taskIdentifier] }
    }

    extension Data {
        /// Creates a copy of the bytes.
        fileprivate init(_ bytes: DispatchData) {
            self.init(count: bytes.count)
            guard !bytes.isEmpty else { return }
            withUnsafeMutableBytes { _ = bytes.copyBytes(to: $0) }
        }
    }
#endif
