extension Target {
    /// The targets of several machines over Redis.
    static let fleet: [Target] = [
        Target(
            "fleet",
            "shared hits a second of one Redis loop",
            "fleet-shared-hit",
            "shared_hits",
            .value,
            .atLeast(30_000)
        ),
        Target(
            "fleet",
            "a shared hit, one caller",
            "fleet-latency",
            "time_per_shared_hit",
            .value,
            .atMost(300_000)
        ),
        Target(
            "fleet",
            "added to a miss by the fleet",
            "fleet-latency",
            "added_to_miss",
            .value,
            .atMost(500_000)
        ),
        Target(
            "fleet",
            "origin requests for each object, three cold machines",
            "fleet-cold",
            "origin_requests_per_object",
            .value,
            .atMost(1.02)
        ) { $0.parameter("fleet") == "store" },
        Target(
            "fleet",
            "p99 of local hits while Redis is stopped",
            "fleet-stopped",
            "p99_of_hits",
            .ratio(to: "before"),
            .atMost(1.1)
        ),
        Target(
            "fleet",
            "added to the p99 of misses in its first second",
            "fleet-stopped",
            "added_to_miss_p99",
            .value,
            .atMost(50_000_000)
        ) { $0.parameter("time") == "first second" },
        Target(
            "fleet",
            "added to it later",
            "fleet-stopped",
            "added_to_miss_p99",
            .value,
            .atMost(1_000_000)
        ) { $0.parameter("time") == "later" },
        Target(
            "fleet",
            "until the store is used again",
            "fleet-stopped",
            "time_until_used_again",
            .value,
            .atMost(11_000_000_000)
        ),
    ]
}
