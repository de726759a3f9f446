#if canImport(FoundationNetworking)
    internal import CacheEngine
    internal import Foundation
    internal import FoundationNetworking

    /// Delivers one response in the form that its task takes: pieces, one piece, or a file.
    struct ResponseDelivery {
        private let delivery: TaskDelivery
        private let url: URL
        private let consent: StoreConsent?

        /// The bytes delivered to a delegate before it is waited for.
        private static let windowBytes = 1 << 20

        init(_ delivery: TaskDelivery, _ url: URL, _ consent: StoreConsent?) {
            self.delivery = delivery
            self.url = url
            self.consent = consent
        }

        func deliver(_ response: CacheResponse) async throws {
            let response = ChallengeStep.settled(response)
            guard let head = response.urlResponse(url: url) else {
                throw URLError(.badServerResponse)
            }
            let expected = response.body.count
            noteProgress(0, of: expected)
            if delivery.task is URLSessionDownloadTask {
                return try await file(response, head)
            }
            if let chunk = response.body.availableChunk { return try await whole(chunk, head) }
            switch delivery.internals.handover {
            case .delegate: try await pieces(response, head)
            case .handler: try await gathered(response, head)
            }
        }

        // MARK: - Data and upload tasks

        private func whole(_ chunk: ByteChunk, _ head: HTTPURLResponse) async throws {
            let data = Data(chunk)
            await consent?.store(head, data)
            noteProgress(data.count, of: data.count)
            let own = ownDelegate
            try await delivery.finish { [delivery] client, urlProtocol in
                client.urlProtocol(urlProtocol, didReceive: head, cacheStoragePolicy: .notAllowed)
                if !data.isEmpty {
                    client.urlProtocol(urlProtocol, didLoad: data)
                    Self.show(data, to: own, delivery)
                }
            }
        }

        private func pieces(_ response: CacheResponse, _ head: HTTPURLResponse) async throws {
            try await receive(head)
            // The pieces themselves: the tasks that share the response share them.
            var gathered: [ByteChunk]? = consent.map { _ in [] }
            var total = 0
            var sinceSettled = 0
            for try await chunk in response.body {
                let data = Data(chunk)
                try await delivery.deliver { $0.urlProtocol($1, didLoad: data) }
                total += data.count
                noteProgress(total, of: response.body.count)
                if total > StoreConsent.bodyBytesMax { gathered = nil }
                gathered?.append(chunk)
                sinceSettled += data.count
                if sinceSettled >= Self.windowBytes {
                    await delivery.settle()
                    sinceSettled = 0
                }
            }
            if let gathered { await consent?.store(head, Data(joining: gathered)) }
            try await delivery.finish()
        }

        /// A completion handler gets the last piece alone, so the body is delivered as one.
        private func gathered(_ response: CacheResponse, _ head: HTTPURLResponse) async throws {
            try await receive(head)
            let own = ownDelegate
            var data = Data()
            for try await chunk in response.body {
                let piece = Data(chunk)
                data.append(piece)
                noteProgress(data.count, of: response.body.count)
                if own != nil {
                    try await delivery.deliver { [delivery] _, _ in
                        Self.show(piece, to: own, delivery)
                    }
                }
            }
            let body = data
            if body.count <= StoreConsent.bodyBytesMax { await consent?.store(head, body) }
            try await delivery.finish { client, urlProtocol in
                if !body.isEmpty { client.urlProtocol(urlProtocol, didLoad: body) }
            }
        }

        /// The delegate of the task alone; URLSession gives it the pieces beside the handler.
        private var ownDelegate: (any URLSessionDataDelegate)? {
            guard delivery.internals.handover == .handler else { return nil }
            return delivery.internals.eventDelegate as? any URLSessionDataDelegate
        }

        private static func show(
            _ data: Data,
            to delegate: (any URLSessionDataDelegate)?,
            _ delivery: TaskDelivery
        ) {
            guard let delegate, let task = delivery.task as? URLSessionDataTask else { return }
            let session = delivery.internals.session
            session.delegateQueue.addOperation {
                delegate.urlSession(session, dataTask: task, didReceive: data)
            }
        }

        private func receive(_ head: HTTPURLResponse) async throws {
            try await delivery.deliver {
                $0.urlProtocol($1, didReceive: head, cacheStoragePolicy: .notAllowed)
            }
        }

        // MARK: - Download tasks

        private func file(_ response: CacheResponse, _ head: HTTPURLResponse) async throws {
            try await receive(head)
            let file = try DownloadFile()
            do {
                var total = 0
                var sinceSettled = 0
                for try await chunk in response.body {
                    try Task.checkCancellation()
                    let data = Data(chunk)
                    try file.append(data)
                    total += data.count
                    sinceSettled += data.count
                    noteProgress(total, of: response.body.count)
                    try await report(data.count, total, of: response.body.count)
                    if sinceSettled >= Self.windowBytes {
                        await delivery.settle()
                        sinceSettled = 0
                    }
                }
                try file.close()
                guard DownloadFile.canBeHandedOver else { throw ProtocolFailure.unknownFoundation }
                try await delivery.finish { _, urlProtocol in file.handOver(to: urlProtocol) }
            } catch {
                file.remove()
                throw error
            }
        }

        private func report(_ bytes: Int, _ total: Int, of expected: Int?) async throws {
            guard let task = delivery.task as? URLSessionDownloadTask,
                let delegate = delivery.internals.eventDelegate as? any URLSessionDownloadDelegate
            else { return }
            let session = delivery.internals.session
            try await delivery.deliver { _, _ in
                session.delegateQueue.addOperation {
                    delegate.urlSession(
                        session,
                        downloadTask: task,
                        didWriteData: Int64(bytes),
                        totalBytesWritten: Int64(total),
                        totalBytesExpectedToWrite: expected.map(Int64.init)
                            ?? NSURLSessionTransferSizeUnknown
                    )
                }
            }
        }

        // MARK: - Progress

        private func noteProgress(_ count: Int, of expected: Int?) {
            let progress = delivery.task.progress
            progress.totalUnitCount = expected.map(Int64.init) ?? -1
            progress.completedUnitCount = Int64(count)
        }
    }
#endif
