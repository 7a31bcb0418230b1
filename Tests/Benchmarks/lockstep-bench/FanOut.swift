import BusKit
import Foundation
import PodcastModel
import SwiftProtobuf
import WireMessages
import ZeroMQ

/// Measures from `pause` to the new state at all observers: N SUB sockets in one thread that read each event’s number,
/// as in the baseline. The first one also decodes the states to find the number that all wait for.
enum FanOut {
    /// Boxes for sockets, which can’t be copied into an array.
    private final class Observer {
        var socket: Socket
        init(_ fleet: BenchFleet) throws {
            socket = try Socket(
                .subscribe, in: fleet.context,
                options: [
                    .linger(0), .receiveHighWaterMark(1_000), .receiveTimeout(10_000),
                    .subscribe(Array("stream/".utf8)),
                ])
            try socket.connect(fleet.endpoint("pub.sock"))
        }

        private func next() throws -> [Frame] {
            guard let message = try socket.receive(wait: true), message.count == 3 else {
                throw BenchFleet.Failed(description: "an observer has seen nothing for ten seconds")
            }
            return message
        }

        /// Waits until the player is paused or audible, and returns the event’s number. A resume causes several events,
        /// of which the last one reports sound.
        func until(paused: Bool) throws -> UInt64 {
            while true {
                let message = try next()
                guard message[0].text == Topic.playbackState.text else { continue }
                let state = try WirePlaybackState(wireBytes: message[2].bytes)
                if paused ? state.status == .paused : state.status == .playing && state.anchor.running {
                    return try BusHeader(decoding: message[1].bytes).sequence
                }
            }
        }

        /// Waits for the event with this number.
        func until(_ sequence: UInt64) throws {
            while try next()[1].bytes[16..<24].reduce(0, { $0 << 8 | UInt64($1) }) < sequence {}
        }

        deinit { socket.close() }
    }

    /// The seconds until all observers had the state, and until the pause was acknowledged and thus durable.
    private typealias Times = (seen: Double, acknowledged: Double)

    /// Prints medians of consecutive pauses, each after all events of the resume before it have arrived: a pause
    /// that waits behind the events of a resume isn’t what the baseline measures.
    static func measure(_ fleet: BenchFleet, observers count: Int) throws {
        let median =
            try pauses(fleet, observers: count, rounds: count >= 1_000 ? 20 : 60, quiet: 0)
            .map(\.seen).quantile(0.5) * 1e6
        let budget = count >= 1_000 ? "<= 1.1x" : count >= 100 ? "<= 1.5x" : "<= 2.5x"
        Row(name: "pause.n\(count)", value: median, unit: "us", peer: "libzmq.pause.n\(count)", budget: budget).print()
        let mpd = count >= 1_000 ? "<= 0.3x" : count >= 100 ? "<= 0.7x" : nil
        Row(name: "pause.n\(count).mpd", value: median, unit: "us", peer: "mpd.pause.n\(count)", budget: mpd).print()
    }

    /// Prints medians of pauses after 60 ms without events, as with key presses: every process is idle.
    static func measureCold(_ fleet: BenchFleet) throws {
        let times = try pauses(fleet, observers: 1, rounds: 60, quiet: 0.06)
        let (seen, acknowledged) = (times.map(\.seen), times.map(\.acknowledged))
        Row(
            name: "pause.cold.n1", value: seen.quantile(0.5) * 1e6, unit: "us", peer: "libzmq.pause.cold.n1",
            budget: "<= 2x"
        ).print()
        Row(name: "pause.cold.durable", value: acknowledged.quantile(0.5) * 1e6, unit: "us", budget: "<= 2000").print()
        Row(
            name: "pause.cold.durable.sqlite", value: acknowledged.quantile(0.5) * 1e6, unit: "us",
            peer: "sqlite.commit.cold.p50"
        ).print()
    }

    private static func pauses(_ fleet: BenchFleet, observers count: Int, rounds: Int, quiet: Double) throws -> [Times]
    {
        let client = try RawClient(fleet)
        let observers = try (0..<count).map { _ in try Observer(fleet) }
        func set(paused: Bool) throws -> Times {
            if quiet > 0 { Thread.sleep(forTimeInterval: quiet) }
            let start = monotonicSeconds()
            try client.send(.playback, WirePlaybackRequest.with { $0.setPaused.paused = paused }.wireBytes)
            let sequence = try observers[0].until(paused: paused)
            for observer in observers.dropFirst() { try observer.until(sequence) }
            let seen = monotonicSeconds() - start
            guard try client.receive() != nil else {
                throw BenchFleet.Failed(description: "the player does not answer")
            }
            return (seen, monotonicSeconds() - start)
        }
        // A subscription is in force once its socket has received something.
        sleep(1)
        for _ in 0..<3 {
            _ = try set(paused: true)
            _ = try set(paused: false)
        }
        return try (0..<rounds).map { _ in
            let times = try set(paused: true)
            _ = try set(paused: false)
            return times
        }
    }
}
