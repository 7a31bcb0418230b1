import BusKit
import Foundation
import PodcastModel
import SwiftProtobuf
import WireMessages
import ZeroMQ

/// From `pause` to the full new state at all observers: N decoding SUB sockets in one thread, as in the baseline.
enum FanOut {
    /// Sockets in an array: they cannot be copied, their boxes can.
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

        /// Waits until the player is seen in that state.
        func until(_ status: WirePlaybackState.Status) throws {
            while true {
                guard let message = try socket.receive(wait: true), message.count == 3 else {
                    throw BenchFleet.Failed(description: "an observer has seen nothing for ten seconds")
                }
                _ = try BusHeader(decoding: message[1].bytes)
                guard message[0].text == Topic.playbackState.text else { continue }
                if try WirePlaybackState(wireBytes: message[2].bytes).status == status { return }
            }
        }

        deinit { socket.close() }
    }

    static func measure(_ fleet: BenchFleet, observers count: Int) throws {
        let client = try RawClient(fleet)
        let observers = try (0..<count).map { _ in try Observer(fleet) }
        func set(paused: Bool) throws -> Double {
            let start = monotonicSeconds()
            try client.send(.playback, WirePlaybackRequest.with { $0.setPaused.paused = paused }.wireBytes)
            for observer in observers { try observer.until(paused ? .paused : .playing) }
            let time = monotonicSeconds() - start
            guard try client.receive() != nil else {
                throw BenchFleet.Failed(description: "the player does not answer")
            }
            return time
        }
        // A subscription is in force when its socket has seen something.
        sleep(1)
        for _ in 0..<3 {
            _ = try set(paused: true)
            _ = try set(paused: false)
        }
        var times: [Double] = []
        for _ in 0..<(count >= 1_000 ? 20 : 60) {
            times.append(try set(paused: true))
            _ = try set(paused: false)
        }
        let median = times.quantile(0.5) * 1e6
        Row(name: "pause.n\(count)", value: median, unit: "us", peer: "libzmq.pause.n\(count)", budget: "<= 1.5x")
            .print()
        let mpd = count >= 1_000 ? "<= 0.3x" : count >= 100 ? "<= 0.7x" : nil
        Row(name: "pause.n\(count).mpd", value: median, unit: "us", peer: "mpd.pause.n\(count)", budget: mpd).print()
    }
}
