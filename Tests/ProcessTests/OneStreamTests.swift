import BusKit
import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests that programs that watch the same fleet, fast or slow, receive the same events.
@Suite(.serialized)
struct OneStreamTests {
    @Test(.timeLimit(.minutes(5)))
    func `all players and watchers see the same sequence`() async throws {
        try await ProcessFleet.with(podcast: 6) { fleet in
            let commands =
                [["mini", "--plain"], ["expanded", "--plain"]] + Array(repeating: ["watch", "--json"], count: 5)
            try await FleetProgram.with(commands, of: fleet) { programs in
                let players = Array(programs[..<2])
                let watchers = Array(programs[2...])
                for player in players { try await player.until("the queue") { $0.contains("Up Next is empty.") } }
                for watcher in watchers {
                    try await watcher.until("the player's state") { Self.last(.playbackState, $0) != nil }
                }
                try await fleet.succeed("play", "Part 6 of many")
                for part in 2...5 { try await fleet.succeed("queue", "add", "Part \(part) of many") }
                try await fleet.succeed("pause")
                try await fleet.succeed("seek", "2:00")
                try await fleet.succeed("resume")
                try await fleet.succeed("skip", "forward")
                try await fleet.succeed("next")
                try await fleet.succeed("queue", "move", "4", "2")
                try await fleet.succeed("queue", "undo")
                try await fleet.succeed("stop")
                try await fleet.succeed("volume", "41")
                for watcher in watchers {
                    try await watcher.until("volume 41") {
                        Self.last(.playbackState, $0)?.contains(#""volume":41,"#) ?? false
                    }
                }
                for player in players {
                    try await player.until("volume 41") { $0.last?.contains("volume 41 %") ?? false }
                }
                let streams = watchers.map { $0.events.filter { $0.kind != "snapshot" } }
                #expect(streams.allSatisfy { $0.count > 20 })
                // The streams start at different positions; from the latest of these on all must have the same events.
                let beginnings = streams.compactMap(\.first).map(\.position)
                let ends = streams.compactMap(\.last).map(\.position)
                let start = try #require(beginnings.max())
                let end = try #require(ends.min())
                let sequences = streams.map { $0.filter { $0.position >= start && $0.position <= end } }
                for sequence in sequences { #expect(sequence == sequences[0]) }
                #expect(
                    zip(sequences[0], sequences[0].dropFirst()).allSatisfy {
                        $0.position.sequence + 1 == $1.position.sequence
                    })
                let words = players.map { $0.lines.map(Self.withoutTimes) }
                #expect(words[0] == words[1])
                #expect(words[0].count > 8)
            }
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `a program whose output is closed ends without a further event`() async throws {
        try await ProcessFleet.with { fleet in
            let commands = [
                ["watch", "--json"], ["watch", "--for", "600"], ["mini", "--plain"], ["expanded", "--json"],
            ]
            try await FleetProgram.with(commands, of: fleet) { programs in
                for program in programs {
                    try await program.until("the retained events") { !$0.isEmpty }
                    program.stopReading()
                    #expect(try await program.untilEnded() == 0)
                }
            }
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `suspended watchers detect the events that they missed`() async throws {
        try await ProcessFleet.with(podcast: 40) { fleet in
            let commands = Array(repeating: ["watch", "--json"], count: 5)
            try await FleetObserver.with(2, of: fleet) { observers in
                try await FleetProgram.with(commands, of: fleet) { watchers in
                    try await observers[0].untilReady()
                    for watcher in watchers {
                        try await watcher.until("the player's state") { Self.last(.playbackState, $0) != nil }
                    }
                    try await flood(fleet, observers, watchers)
                    try await FleetObserver.untilAgreed(observers)
                    let end = observers[0].view.replica.position
                    for watcher in watchers {
                        try await watcher.until("sequence \(end)") { Self.has(reached: end, $0) }
                    }
                    Self.check(watchers)
                }
            }
        }
    }

    /// Causes thousands of events while watchers are stopped beyond their buffers’ capacity and the bus is killed.
    private func flood(_ fleet: ProcessFleet, _ observers: [FleetObserver], _ watchers: [FleetProgram]) async throws {
        let page = try await PersistenceClient(observers[0].client).episodes(.with { $0.limit = 40 })
        let editor = QueueEditor(observers[1].client, episodes: page.episodes.map(\.id))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await editor.edit(seed: 9) }
            for index in 0..<8 {
                group.addTask {
                    var volume = Double(index)
                    while !Task.isCancelled {
                        volume = volume > 90 ? Double(index) : volume + 8
                        _ = try? await observers[1].client.ask(
                            .playback, WirePlaybackRequest.with { $0.setVolume.volume = volume },
                            reply: WirePlaybackReply.self, within: .seconds(20))
                    }
                }
            }
            for (round, events) in [3_000, 50, 500].enumerated() {
                for watcher in watchers[..<(round + 2)] { watcher.signal(SIGSTOP) }
                let epoch = observers[0].view.replica.position.epoch
                if round == 1 { fleet.signal("bus", SIGKILL) }
                try await observers[0].untilReady(after: round == 1 ? epoch : 0)
                let head = observers[0].view.replica.position.sequence
                try await observers[0].until("\(events) more events") {
                    $0.replica.position.sequence > head + UInt64(events)
                }
                for watcher in watchers { watcher.signal(SIGCONT) }
            }
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    private static func check(_ watchers: [FleetProgram]) {
        var stream: [FleetProgram.Event.Position: FleetProgram.Event] = [:]
        var resyncs = 0
        for watcher in watchers {
            var last: FleetProgram.Event?
            for event in watcher.events {
                // A snapshot starts a new comparison.
                if event.kind == "snapshot" {
                    if let last, last.kind != "snapshot" { resyncs += 1 }
                } else if let last, last.kind != "snapshot" {
                    #expect(
                        event.position.epoch == last.position.epoch
                            && event.position.sequence == last.position.sequence + 1)
                }
                last = event
                guard event.payload != "null" else { continue }
                if let known = stream[event.position] {
                    #expect(known.payload == event.payload && known.topic == event.topic)
                } else {
                    stream[event.position] = event
                }
            }
            #expect(watcher.retained == watchers[0].retained)
        }
        print("one stream: \(stream.count) events, \(resyncs) resyncs in \(watchers.count) watchers")
    }

    private static func has(reached end: StreamPosition, _ lines: [String]) -> Bool {
        let position = #"{"epoch":\#(end.epoch),"sequence":\#(end.sequence),"#
        return lines.suffix(400).contains { $0.hasPrefix(position) }
    }

    private static func last(_ topic: Topic, _ lines: [String]) -> String? {
        lines.last { $0.contains(#""topic":"\#(topic.text)""#) }
    }

    /// Two programs that print the position at different moments print different times.
    private static func withoutTimes(_ line: String) -> String {
        line.replacingOccurrences(of: "[0-9]+:[0-9:]+", with: "TIME", options: .regularExpression)
    }
}
