import Foundation
import PodcastModel

/// Measures commands from start to end, as a shell runs them.
enum Commands {
    private static let rounds = 20

    /// Prints medians of short commands; each `pause` pauses playback.
    static func measure(_ fleet: BenchFleet) throws {
        try row("command.version", budget: "<= 12") { try fleet.time("--version") }
        try row("command.status", budget: "<= 18") { try fleet.time("status") }
        try row("command.pause", budget: "<= 18") {
            try fleet.lockstep("resume")
            return try fleet.time("pause")
        }
        try row("command.doctor", budget: "<= 100") { try fleet.time("doctor") }
    }

    /// Prints the same with a large library.
    static func measureInLibrary(_ fleet: BenchFleet) throws {
        try row("command.status.library", peer: "command.status", budget: "<= 1.2x") { try fleet.time("status") }
        try row("command.pause.library", peer: "command.pause", budget: "<= 1.2x") {
            try fleet.lockstep("resume")
            return try fleet.time("pause")
        }
    }

    /// Prints medians of commands about a library.
    static func measureOfLibrary(_ fleet: BenchFleet, _ name: String, searching word: String) throws {
        try fleet.lockstep("playlist", "create", "Bench")
        try fleet.lockstep("playlist", "add", "bench", "--where", "title ~ \(word)", "--fit", "100h")
        let commands = [
            ["status"], ["episodes"], ["episodes", "--where", "unplayed and length < 20m", "--sort", "shortest"],
            ["search", word], ["playlist", "show", "bench"],
        ]
        for (index, arguments) in commands.enumerated() {
            let label = index == 2 ? "rule" : arguments[0]
            try row("\(name).command.\(label)", budget: "<= 50") { try fleet.time(arguments) }
        }
    }

    /// Measures feeds and marks of thousands of episodes. The library has 4,200 already.
    static func measureLong(_ fleet: BenchFleet) throws {
        let feed = try fleet.writeLongFeed(episodes: 5_000, as: "five")
        Row(name: "subscribe.5000", value: try fleet.time("subscribe", feed), unit: "s", budget: "<= 0.5").print()
        let client = try RawClient(fleet)
        let ids = try client.episodes(limit: 5_000, podcast: client.podcast(titled: "A podcast of five"))
        Row(name: "mark.5000", value: try fleet.time(["mark", "played"] + ids), unit: "s").print()
        try fleet.lockstep("subscribe", fleet.writeLongFeed(episodes: 3_800, as: "four"))
        let times = try (0..<5).map { _ in try fleet.time("episodes", "--all") }
        Row(name: "episodes.13000", value: times.quantile(0.5), unit: "s", budget: "<= 0.4").print()
    }

    private static func row(
        _ name: String, peer: String? = nil, budget: String, _ time: () throws -> Double
    ) throws {
        _ = try time()
        let times = try (0..<rounds).map { _ in try time() }
        Row(name: name, value: times.quantile(0.5) * 1e3, unit: "ms", peer: peer, budget: budget).print()
    }
}
