import HTTPCaching

/// Parts of stored responses: 206 and 416.
extension ResponseBuilder {
    /// The response to the ranges of a request, from a response that is stored whole.
    func response(
        _ resolution: RangeSet.Resolution,
        of stored: StoredResponse,
        _ info: CacheInfo
    ) -> CacheResponse {
        let size = stored.bodyCount
        switch resolution {
        case .whole:
            var response = head(stored, status: 200, info)
            response.body = stored.body
            return response
        case .unsatisfiable:
            var response = error(416, from: stored, info)
            response.fields["Content-Range"] = ContentRange(unsatisfiedBodySize: size).text
            return response
        case .single(let range):
            return part(range, bodySize: size, stored.body(range), head(stored, status: 206, info))
        case .multi(let ranges):
            return multipart(ranges, bodySize: size, of: stored, info) { stored.body($0) }
        }
    }

    /// The response from a stored partial one, which serves the ranges that it holds; without a
    /// strong validator it serves exactly its own range.
    func response(
        fromPart stored: StoredResponse,
        to request: CacheRequest,
        _ facts: RequestFacts,
        _ info: CacheInfo
    ) -> CacheResponse? {
        guard request.method == .get, facts.hasRange, let parts = stored.parts,
            let size = parts.bodySize, let ranges = RangeSet(request.fields.section)
        else { return nil }
        switch conditions(
            of: request.fields.section,
            facts,
            on: stored.facts,
            stored.withEncodedFields
        ) {
        case .notModified: return notModified(head(stored, status: 304, info))
        case .rangeAllowed: break
        case .full, .forward, .preconditionFailed: return nil
        }
        let isStrong = stored.facts.flags.contains(.hasStrongValidator)
        switch ranges.resolve(bodySize: size) {
        case .single(let range) where isStrong ? parts.contains(range) : parts.parts == [range]:
            let body = stored.body(parts.storedRange(of: range))
            return part(range, bodySize: size, body, head(stored, status: 206, info))
        case .multi(let ranges) where isStrong && ranges.allSatisfy(parts.contains):
            return multipart(ranges, bodySize: size, of: stored, info) {
                stored.body(parts.storedRange(of: $0))
            }
        case .single, .multi, .whole, .unsatisfiable: return nil
        }
    }

    /// `response` as a 206 that carries one range.
    func part(
        _ range: Range<Int>,
        bodySize: Int,
        _ body: BodyStream,
        _ response: consuming CacheResponse
    ) -> CacheResponse {
        assert(body.count ?? range.count == range.count, "the body is the part")
        response.status = 206
        response.fields.describePart(range, of: bodySize)
        response.body = body
        return response
    }

    private func multipart(
        _ ranges: [Range<Int>],
        bodySize: Int,
        of stored: StoredResponse,
        _ info: CacheInfo,
        _ body: (Range<Int>) -> BodyStream
    ) -> CacheResponse {
        let layout = MultipartByteranges(
            boundary: Self.boundary(),
            partType: stored.fields().first("Content-Type"),
            bodySize: bodySize,
            ranges: ranges
        )
        var pieces: [BodyStream] = []
        for (index, range) in ranges.enumerated() {
            pieces.append(BodyStream(ByteChunk(layout.head(ofPart: index))))
            pieces.append(body(range))
        }
        pieces.append(BodyStream(ByteChunk(layout.tail)))
        var response = head(stored, status: 206, info)
        response.fields["Content-Type"] = layout.contentType
        response.fields["Content-Length"] = String(layout.contentLength)
        response.fields["Content-Range"] = nil
        response.fields["Content-Digest"] = nil
        response.body = BodyStream(parts: pieces)
        assert(
            response.body.count ?? layout.contentLength == layout.contentLength,
            "as long as announced"
        )
        return response
    }

    /// A random multipart boundary, which a body cannot contain on purpose.
    private static func boundary() -> String {
        var random = SystemRandomNumberGenerator()
        return String(random.next(), radix: 36) + String(random.next(), radix: 36)
    }
}

extension PartialBody {
    /// The position of the bytes of `range`, which must be held, among the stored parts.
    func storedRange(of range: Range<Int>) -> Range<Int> {
        var offset = 0
        for part in parts {
            if part.lowerBound <= range.lowerBound && range.upperBound <= part.upperBound {
                let start = offset + range.lowerBound - part.lowerBound
                return start..<start + range.count
            }
            offset += part.count
        }
        preconditionFailure("Only a range that is held has a place")
    }
}
