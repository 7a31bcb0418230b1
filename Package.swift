// swift-tools-version: 6.2

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

// The products of other packages, each named once.
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let signals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let arguments: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let protobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
let locks: Target.Dependency = .product(name: "NIOConcurrencyHelpers", package: "swift-nio")
let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")

/// A library target of ours: the folder, the module and the name are one.
func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

/// A process of the fleet: one `Main.swift` that names the parts of its library.
func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

/// The tests of a library, or a suite over several.
func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

// What several targets have in common.
let process: [Target.Dependency] = [
    "ProcessKit", "BusKit", "WireMessages", "PodcastModel", "LibC", protobuf, locks, logging, lifecycle,
]
let owner: [Target.Dependency] = ["OwnerKit"] + process
let shared: [Target.Dependency] = [
    "LockstepClient", "FleetHome", "BusKit", "WireMessages", "PodcastModel", "TestSupport", protobuf, locks, logging,
]

let package = Package(
    name: "lockstep",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "LockstepClient", targets: ["LockstepClient", "PodcastModel"]),
        .executable(name: "lockstep", targets: ["lockstep"]),
        .executable(name: "lockstep-bus", targets: ["lockstep-bus"]),
        .executable(name: "lockstep-persistence", targets: ["lockstep-persistence"]),
        .executable(name: "lockstep-playback", targets: ["lockstep-playback"]),
        .executable(name: "lockstep-queue", targets: ["lockstep-queue"]),
        .executable(name: "lockstep-feeds", targets: ["lockstep-feeds"]),
        .executable(name: "lockstep-downloads", targets: ["lockstep-downloads"]),
        .executable(name: "lockstep-supervisor", targets: ["lockstep-supervisor"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        // Without its default traits: they bring all of Foundation into every process.
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0", traits: []),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    ],
    targets: [
        // C: module maps and shims.
        .systemLibrary(name: "CZeroMQ", providers: [.apt(["libzmq3-dev"]), .brew(["zeromq"])]),
        .systemLibrary(name: "CSodium", providers: [.apt(["libsodium-dev"]), .brew(["libsodium"])]),
        .systemLibrary(
            name: "CLibXML2", pkgConfig: "libxml-2.0", providers: [.apt(["libxml2-dev"]), .brew(["libxml2"])]),
        .systemLibrary(name: "CNcurses", providers: [.apt(["libncurses-dev"]), .brew(["ncurses"])]),
        .target(name: "CLibraryLoader"),
        .target(name: "CMPV", dependencies: ["CLibraryLoader"]),
        .target(name: "CCurl", dependencies: ["CLibraryLoader"]),
        .target(name: "CLogind", dependencies: ["CLibraryLoader"]),
        .target(name: "CProcess"),
        .target(name: "CConnectionGuard"),

        // The domain and the wire.
        library("LibC"),
        library("PodcastModel", ["LibC"]),
        library("WireMessages", ["PodcastModel", protobuf]),
        library("ZeroMQ", ["CZeroMQ", "LibC", locks]),
        // The folders and files of a fleet, and whether one runs.
        library("FleetHome", ["PodcastModel", "LibC", locks]),
        // The bus, as clients see it; what every process needs; what every owner of a part of the state needs.
        library(
            "BusKit",
            ["FleetHome", "ZeroMQ", "WireMessages", "PodcastModel", "LibC", protobuf, locks, logging, lifecycle]),
        library(
            "ProcessKit",
            [
                "BusKit", "ZeroMQ", "WireMessages", "PodcastModel", "LibC", "CProcess", locks, logging,
                lifecycle, signals,
            ]),
        library(
            "OwnerKit",
            ["ProcessKit", "BusKit", "WireMessages", "PodcastModel", "CSodium", protobuf, locks, logging, lifecycle]),
        library("FeedParsing", ["PodcastModel", "CLibXML2"]),
        library("WebClient", ["PodcastModel", "LibC", "CCurl", locks]),
        library("FeedFetching", ["PodcastModel", "FeedParsing", "WebClient", "LibC"]),

        // The services.
        library("BusBroker", process + ["ZeroMQ", "CConnectionGuard", "CProcess"]),
        library("PersistenceService", owner + [grdb, sqlite]),
        library("PlaybackService", owner + ["WebClient", "CMPV", "CLogind"]),
        library("QueueService", owner),
        library("FeedsService", owner + ["FeedParsing", "FeedFetching", "WebClient"]),
        library("DownloadsService", owner + ["WebClient"]),
        library("SupervisorControl", ["ProcessKit", "BusKit", "PodcastModel", "LibC", "CProcess"]),
        library("FleetSupervisor", owner + ["SupervisorControl", "CProcess"]),

        // What a screen is written with.
        library(
            "LockstepClient", ["BusKit", "WireMessages", "PodcastModel", "LibC", protobuf, locks, logging]),

        // The command line.
        library(
            "LockstepCommands",
            [
                "LockstepClient", "FleetHome", "SupervisorControl", "PodcastModel", "LibC", "CNcurses", arguments,
                locks,
                // `feed check` reads feeds by itself, with the passwords that are kept for them.
                "FeedParsing", "FeedFetching", "WebClient",
            ]),

        // Processes.
        program("lockstep", ["LockstepCommands"]),
        program("lockstep-bus", ["BusBroker", "ProcessKit"]),
        program("lockstep-persistence", ["PersistenceService", "ProcessKit"]),
        program("lockstep-playback", ["PlaybackService", "ProcessKit"]),
        program("lockstep-queue", ["QueueService", "ProcessKit"]),
        program("lockstep-feeds", ["FeedsService", "ProcessKit"]),
        program("lockstep-downloads", ["DownloadsService", "ProcessKit"]),
        program("lockstep-supervisor", ["FleetSupervisor"]),

        // Measures the fleet beside bare baselines; see Tests/Benchmarks/README.md.
        .executableTarget(
            name: "lockstep-bench",
            dependencies: ["BusKit", "ZeroMQ", "WireMessages", "PodcastModel", "FeedParsing", protobuf, locks],
            path: "Tests/Benchmarks/lockstep-bench", swiftSettings: strict),

        // What the tests share: an HTTP server, child processes, temporary homes, waiting for events.
        .target(
            name: "TestSupport",
            dependencies: [
                "BusBroker", "ProcessKit", "BusKit", "WireMessages", "PodcastModel", "ZeroMQ", "LibC", "CProcess",
                protobuf,
                nioCore, nioPosix, nioHTTP1, sqlite, locks, logging, lifecycle,
            ],
            path: "Tests/TestSupport", swiftSettings: strict),
        .target(
            name: "EngineDouble", dependencies: ["PlaybackService", "PodcastModel", locks], path: "Tests/EngineDouble",
            swiftSettings: strict),
        .target(
            name: "OwnerHarness", dependencies: ["OwnerKit", "BusKit", "WireMessages", "PodcastModel", protobuf],
            path: "Tests/OwnerHarness", swiftSettings: strict),
        tests("PodcastModelTests", ["PodcastModel", "TestSupport"]),
        tests("WireMessagesTests", ["WireMessages", "PodcastModel", protobuf]),
        tests("ZeroMQTests", ["ZeroMQ", "LibC", "TestSupport", locks]),
        tests("WebClientTests", ["WebClient", "PodcastModel", "LibC", "TestSupport", locks]),
        tests("FeedParsingTests", ["FeedParsing", "PodcastModel", "TestSupport"]),
        tests("BusKitTests", shared + ["ZeroMQ"]),
        tests("LockstepClientTests", shared),
        tests("ProcessKitTests", shared + ["ProcessKit", "LibC", "CProcess"]),
        tests("OwnerKitTests", shared + ["OwnerKit", "ProcessKit", lifecycle]),
        tests("BusBrokerTests", shared + ["BusBroker", "ZeroMQ", "LibC", "CConnectionGuard", "OwnerHarness"]),
        tests(
            "PersistenceServiceTests", shared + ["PersistenceService", "FleetHome", "OwnerKit", grdb, sqlite],
            exclude: ["Fixtures"]),
        tests("PlaybackServiceTests", shared + ["PlaybackService", "OwnerKit", "OwnerHarness", "EngineDouble"]),
        tests("QueueServiceTests", shared + ["QueueService", "OwnerKit", "OwnerHarness"]),
        tests(
            "FeedsServiceTests",
            shared + ["FeedsService", "FeedFetching", "FeedParsing", "OwnerKit", "OwnerHarness", "ProcessKit"]),
        tests("DownloadsServiceTests", shared + ["DownloadsService", "OwnerKit", "OwnerHarness", "LibC"]),
        tests("FleetSupervisorTests", shared + ["FleetSupervisor", "SupervisorControl", "LibC", "CProcess"]),
        tests("LockstepCommandsTests", shared + ["LockstepCommands", "FeedParsing", "SupervisorControl", arguments]),
        tests(
            "FleetTests",
            shared + [
                "BusBroker", "PersistenceService", "PlaybackService", "QueueService", "FeedsService",
                "DownloadsService", "OwnerKit", "EngineDouble", "LibC", lifecycle,
            ]),
        .target(name: "CLogindDouble", path: "Tests/CLogindDouble"),
        // The example of the README, for the test that runs it. It is a package of its own, too.
        .executableTarget(
            name: "tray", dependencies: ["LockstepClient", "PodcastModel"], path: "Tests/Examples/Tray/Sources/tray",
            swiftSettings: strict),
        tests("ProcessTests", shared + ["ProcessKit", "ZeroMQ", "CProcess", "CLogindDouble"]),
    ]
)

// With LOCKSTEP_TARGETS=programs, as the scripts of deploy/ build them, there are only the programs; with =bench also the
// benchmark's harness. One `swift build` then builds what is installed, and neither tests nor what only they need.
if let wanted = Context.environment["LOCKSTEP_TARGETS"] {
    package.targets.removeAll { target in
        target.type == .test
            || ["TestSupport", "EngineDouble", "OwnerHarness", "CLogindDouble", "tray"].contains(target.name)
            || target.name == "lockstep-bench" && wanted != "bench"
    }
}
