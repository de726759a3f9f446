import CacheEngine

/// One request to a machine of a simulated fleet.
struct FleetQuestion: Sendable, CustomStringConvertible {
    let name: String
    let process: Int
    let path: FleetPath
    let language: String
    var isUnconditional = false
    var startedAt = 0

    var request: CacheRequest {
        var request = CacheRequest(
            url: path.url,
            fields: ["Accept-Language": language, "X-Caller": name]
        )
        if isUnconditional { request.fields["Cache-Control"] = "no-cache" }
        return request
    }

    var description: String {
        "\(name) of process \(process) \(path.rawValue) \(language) at \(startedAt)"
    }
}

/// The response that a caller received.
struct FleetAnswer: Sendable, CustomStringConvertible {
    var status: Int?
    var serial: Int?
    var asOf: Int?
    var source: CacheInfo.Source?
    var tier: CacheInfo.Tier?
    var ageSeconds: Int?
    var isStored = false
    var bytes: [UInt8] = []
    var error: (any Error)?

    mutating func take(_ response: CacheResponse) {
        status = response.status
        source = response.info.source
        tier = response.info.tier
        isStored = response.info.isStored
        serial = response.fields["X-Serial"].flatMap { Int($0) }
        asOf = response.fields["X-As-Of"].flatMap { Int($0) }
        ageSeconds = response.fields["Age"].flatMap { Int($0) }
    }

    var description: String {
        "status \(status ?? 0), serial \(serial ?? -1) as of \(asOf ?? -1), "
            + "\(source?.rawValue ?? "none") from \(tier?.rawValue ?? "nowhere"), "
            + "age \(ageSeconds ?? -1), \(bytes.count) bytes, error \(error as Any)"
    }
}
