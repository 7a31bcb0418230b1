import BusKit
import PodcastModel
import Testing
import WireMessages

@testable import LockstepCommands

@Suite struct WatchLogTests {
    private static func event(
        _ kind: MessageKind, _ topic: Topic, _ sequence: UInt64, epoch: UInt64 = 5, _ payload: [UInt8] = []
    ) -> StreamEvent {
        StreamEvent(
            topic: topic, header: BusHeader(kind, generation: 1, epoch: epoch, sequence: sequence, time: 1_500_000_000),
            payload: payload)
    }

    private static func replica(_ events: [StreamEvent], epoch: UInt64 = 5, at sequence: UInt64) -> Replica {
        var replica = Replica()
        replica.replace(at: StreamPosition(epoch: epoch, sequence: sequence), ready: [.playback: 1], entries: events)
        return replica
    }

    @Test func `the retained state comes first with its own places, then events`() {
        var log = WatchLog(prefixes: [], changesOnly: false)
        let put = Self.event(.put, .playbackState, 3, WirePlaybackState().wireBytes)
        let lines = log.lines(for: .snapshot(Self.replica([put], at: 9)))
        #expect(lines.map(\.kind) == ["snapshot"])
        #expect(lines.map(\.sequence) == [3])
        let next = log.lines(for: .event(Self.event(.put, .playbackState, 10, WirePlaybackState().wireBytes)))
        #expect(next.map(\.kind) == ["put"])
        #expect(next[0].payload == lines[0].payload)
        #expect(
            next[0].json.line.hasPrefix(
                #"{"epoch":5,"sequence":10,"topic":"stream/playback/state","kind":"put","at":1.5,"payload":{"state":"idle""#
            ))
    }

    @Test func `keys that are gone after a resync have a null payload`() {
        var log = WatchLog(prefixes: ["playback"], changesOnly: true)
        let put = Self.event(.put, .playbackState, 3)
        #expect(log.lines(for: .snapshot(Self.replica([put], at: 9))).isEmpty)
        let lines = log.lines(for: .snapshot(Self.replica([], epoch: 6, at: 2)))
        #expect(lines.map(\.payload) == [.null])
        #expect(lines.map(\.epoch) == [6])
    }

    @Test func `a topic that is not known is printed as bytes`() {
        let json = StreamPayload.json(Self.event(.put, Topic("stream/other/thing"), 1, [1, 2, 3]))
        #expect(json == .object(["base64": .string("AQID")]))
        #expect(StreamPayload.json(Self.event(.delete, .playbackState, 1)) == .null)
    }

    @Test func `prefixes choose topics`() {
        var log = WatchLog(prefixes: ["queue"], changesOnly: false)
        #expect(log.lines(for: .event(Self.event(.put, .playbackState, 1))).isEmpty)
        #expect(log.lines(for: .event(Self.event(.put, .queue("main"), 2))).count == 1)
    }

    @Test func `idle status has no episode and position 0`() {
        let now = Moment(monotonic: MonotonicTime(nanoseconds: 0), wall: Timestamp(milliseconds: 0))
        let json = WirePlaybackState().statusJSON(at: now, bootID: "b")
        #expect(json["state"] == .string("idle"))
        #expect(json["episode"] == .null)
        #expect(json["position"] == .integer(0))
    }
}
