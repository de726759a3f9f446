// swift-tools-version: 6.2
import PackageDescription

// `make check` does not build this package, because its dependency comes from the network.
let package = Package(
    name: "nio-bridge",
    platforms: [.macOS(.v15)],
    products: [.library(name: "NIOBridge", targets: ["NIOBridge"])],
    dependencies: [
        .package(name: "cache-engine", path: "../../.."),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.80.0"),
    ],
    targets: [
        .target(
            name: "NIOBridge",
            dependencies: [
                .product(name: "CacheEngine", package: "cache-engine"),
                .product(name: "NIOCore", package: "swift-nio"),
            ]
        )
    ]
)
