#if canImport(FoundationNetworking)
    internal import CacheEngine
    internal import Foundation
    internal import FoundationNetworking

    /// The content that a task sends, and whether it can be sent once more after a redirect.
    struct TaskContent {
        private(set) var body: BodyStream?
        /// Makes the content again; `nil` if it can be read only once.
        private let again: (@Sendable () throws -> BodyStream)?
        private let isForm: Bool
        /// The length of content in memory, whose sending is reported in one piece.
        private var unseenBytes: Int?

        /// No content.
        static let none = TaskContent(body: nil, again: nil, isForm: false, unseenBytes: nil)

        private init(
            body: BodyStream?,
            again: (@Sendable () throws -> BodyStream)?,
            isForm: Bool,
            unseenBytes: Int?
        ) {
            self.body = body
            self.again = again
            self.isForm = isForm
            self.unseenBytes = unseenBytes
        }

        /// The content of a task, from the task itself or from its delegate.
        init(of delivery: TaskDelivery) async throws {
            switch delivery.internals.content {
            case .none: self = .none
            case .data(let data): self.init(data, isForm: Self.isForm(delivery.task))
            case .file(let url):
                let again: @Sendable () throws -> BodyStream = { try Self.file(url, delivery) }
                self.init(body: try again(), again: again, isForm: false, unseenBytes: nil)
            case .stream(let stream):
                self.init(
                    body: Self.stream(stream, nil, delivery),
                    again: nil,
                    isForm: Self.isForm(delivery.task),
                    unseenBytes: nil
                )
            case .delegate:
                guard let stream = try await delivery.askForStream() else {
                    self = .none
                    return
                }
                self.init(
                    body: Self.stream(stream, nil, delivery),
                    again: nil,
                    isForm: false,
                    unseenBytes: nil
                )
            }
        }

        /// The content of a request that the delegate has made.
        init(of request: URLRequest, _ delivery: TaskDelivery) {
            if let data = request.httpBody {
                self.init(data, isForm: true)
            } else if let stream = request.httpBodyStream {
                self.init(
                    body: Self.stream(stream, nil, delivery),
                    again: nil,
                    isForm: true,
                    unseenBytes: nil
                )
            } else {
                self = .none
            }
        }

        private init(_ data: Data, isForm: Bool) {
            let chunk = ByteChunk(data)
            self.init(
                body: BodyStream(chunk),
                again: { BodyStream(chunk) },
                isForm: isForm,
                unseenBytes: chunk.count
            )
        }

        /// Whether the content can be sent to the target of a redirect.
        var isRepeatable: Bool { body == nil || again != nil }

        /// The same content from its beginning.
        func repeated() throws -> TaskContent {
            guard let again else { return .none }
            return TaskContent(
                body: try again(),
                again: again,
                isForm: isForm,
                unseenBytes: unseenBytes
            )
        }

        /// The type that URLSession gives to the content of a POST without one; `nil` otherwise.
        func usualType(for request: CacheRequest) -> String? {
            let isUntyped = request.method == .post && !request.fields.contains("Content-Type")
            return isForm && isUntyped ? "application/x-www-form-urlencoded" : nil
        }

        /// Reports content in memory as sent: the response has arrived.
        func reportIfUnseen(to delivery: TaskDelivery) {
            guard let count = unseenBytes.map(Int64.init), count > 0 else { return }
            delivery.reportSent(count, total: count, expected: count)
        }

        /// Content from the request itself, and not from an upload task.
        private static func isForm(_ task: URLSessionTask) -> Bool {
            !(task is URLSessionUploadTask)
        }

        private static func file(_ url: URL, _ delivery: TaskDelivery) throws -> BodyStream {
            guard
                let size = try? FileManager.default.attributesOfItem(atPath: url.path)[.size],
                let count = (size as? NSNumber)?.intValue, let stream = InputStream(url: url)
            else { throw URLError(.fileDoesNotExist) }
            return Self.stream(stream, count, delivery)
        }

        private static func stream(
            _ stream: InputStream,
            _ count: Int?,
            _ delivery: TaskDelivery
        ) -> BodyStream {
            let expected = count.map(Int64.init) ?? NSURLSessionTransferSizeUnknown
            let content = InputContent(stream) { bytes, total in
                delivery.reportSent(bytes, total: total, expected: expected)
            }
            return BodyStream(content, count: count)
        }
    }
#endif
