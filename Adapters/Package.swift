// swift-tools-version: 6.2
import PackageDescription

// The check does not build this package, because its dependencies come from the network. It demands
// the versions with which it was tested.

let house: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]
let engine = Target.Dependency.product(name: "CacheEngine", package: "cache-engine")
let testSupport = Target.Dependency.product(name: "CacheTestSupport", package: "cache-engine")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let serviceLifecycle = Target.Dependency.product(
    name: "ServiceLifecycle",
    package: "swift-service-lifecycle"
)
let tracing = Target.Dependency.product(name: "Tracing", package: "swift-distributed-tracing")
let vapor = Target.Dependency.product(name: "Vapor", package: "vapor")

let package = Package(
    name: "cache-engine-adapters",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "AsyncHTTPClientOrigin", targets: ["AsyncHTTPClientOrigin"]),
        .library(name: "CacheLogging", targets: ["CacheLogging"]),
        .library(name: "CacheMetrics", targets: ["CacheMetrics"]),
        .library(name: "CacheService", targets: ["CacheService"]),
        .library(name: "CacheTracing", targets: ["CacheTracing"]),
        .library(name: "HummingbirdCache", targets: ["HummingbirdCache"]),
        .library(name: "NIOBridge", targets: ["NIOBridge"]),
        .library(name: "VaporCache", targets: ["VaporCache"]),
    ],
    dependencies: [
        .package(name: "cache-engine", path: ".."),
        .package(
            url: "https://github.com/apple/swift-distributed-tracing.git",
            from: "1.4.1"
        ),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.14.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.10.1"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.3"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.37.2"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.26.0"),
        .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.33.1"),
        .package(
            url: "https://github.com/swift-server/swift-service-lifecycle.git",
            from: "2.11.0"
        ),
        .package(url: "https://github.com/vapor/vapor.git", from: "4.122.0"),
    ],
    targets: [
        // Events as log lines.
        .target(name: "CacheLogging", dependencies: [engine, logging], swiftSettings: house),
        .testTarget(
            name: "CacheLoggingTests",
            dependencies: [
                "CacheLogging", engine, logging, testSupport,
                .product(name: "InMemoryLogging", package: "swift-log"),
            ],
            swiftSettings: house
        ),

        // Statistics as metrics.
        .target(name: "CacheMetrics", dependencies: [engine, metrics], swiftSettings: house),
        .testTarget(
            name: "CacheMetricsTests",
            dependencies: [
                "CacheMetrics", engine, metrics, testSupport,
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ],
            swiftSettings: house
        ),

        // A cache as a service with graceful shutdown.
        .target(
            name: "CacheService",
            dependencies: [engine, serviceLifecycle],
            swiftSettings: house
        ),
        .testTarget(
            name: "CacheServiceTests",
            dependencies: [
                "CacheService", engine, serviceLifecycle, testSupport,
                .product(
                    name: "ServiceLifecycleTestKit",
                    package: "swift-service-lifecycle"
                ),
            ],
            swiftSettings: house
        ),

        // A span for each request to the origin.
        .target(name: "CacheTracing", dependencies: [engine, tracing], swiftSettings: house),
        .testTarget(
            name: "CacheTracingTests",
            dependencies: [
                "CacheTracing", engine, testSupport, tracing,
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: house
        ),

        // Bodies made of ByteBuffer, and the rules of a gateway.
        .target(name: "NIOBridge", dependencies: [engine, nioCore], swiftSettings: house),
        .testTarget(
            name: "NIOBridgeTests",
            dependencies: ["NIOBridge", engine, nioCore],
            swiftSettings: house
        ),

        // An origin over AsyncHTTPClient.
        .target(
            name: "AsyncHTTPClientOrigin",
            dependencies: [
                "NIOBridge", engine, nioCore, nioHTTP1, nioPosix, nioSSL,
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "AsyncHTTPClientOriginTests",
            dependencies: [
                "AsyncHTTPClientOrigin", engine, nioCore, nioPosix, testSupport,
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
            ],
            swiftSettings: house
        ),

        // Middlewares for Hummingbird, and its routes as an origin.
        .target(
            name: "HummingbirdCache",
            dependencies: ["NIOBridge", engine, httpTypes, hummingbird, logging, nioCore],
            swiftSettings: house
        ),
        .executableTarget(
            name: "hummingbird-gateway",
            dependencies: [
                "AsyncHTTPClientOrigin", "CacheService", "HummingbirdCache", engine, httpTypes,
                hummingbird, logging, nioCore, serviceLifecycle,
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "HummingbirdCacheTests",
            dependencies: [
                "HummingbirdCache", "hummingbird-gateway", engine, httpTypes, hummingbird, logging,
                nioCore, nioPosix, testSupport,
                .product(name: "HummingbirdTesting", package: "hummingbird"),
            ],
            swiftSettings: house
        ),

        // Middlewares for Vapor.
        .target(
            name: "VaporCache",
            dependencies: ["NIOBridge", engine, nioCore, nioHTTP1, vapor],
            swiftSettings: house
        ),
        .executableTarget(
            name: "vapor-gateway",
            dependencies: ["AsyncHTTPClientOrigin", "VaporCache", engine, nioHTTP1, vapor],
            swiftSettings: house
        ),
        .testTarget(
            name: "VaporCacheTests",
            dependencies: [
                "VaporCache", "vapor-gateway", engine, nioCore, nioHTTP1, nioPosix, testSupport,
                vapor,
                .product(name: "VaporTesting", package: "vapor"),
            ],
            swiftSettings: house
        ),
    ]
)
