// swift-tools-version: 6.2
import PackageDescription

// `make check` does not build this package, because its dependencies come from the network.
let package = Package(
    name: "hummingbird-cache",
    platforms: [.macOS(.v15)],
    products: [.library(name: "HummingbirdCache", targets: ["HummingbirdCache"])],
    dependencies: [
        .package(name: "cache-engine", path: "../../.."),
        .package(path: "../AsyncHTTPClientOrigin"),
        .package(path: "../NIOBridge"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.3.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.80.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.10.0"),
        .package(
            url: "https://github.com/swift-server/swift-service-lifecycle.git",
            from: "2.6.0"
        ),
    ],
    targets: [
        .target(
            name: "HummingbirdCache",
            dependencies: [
                "NIOBridge",
                .product(name: "CacheEngine", package: "cache-engine"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"),
            ]
        ),
        .executableTarget(
            name: "hummingbird-gateway",
            dependencies: [
                "AsyncHTTPClientOrigin", "HummingbirdCache",
                .product(name: "CacheEngine", package: "cache-engine"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
    ]
)
