// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "tray",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "lockstep", path: "../../..")],
    targets: [
        .executableTarget(name: "tray", dependencies: [.product(name: "LockstepClient", package: "lockstep")])
    ]
)
