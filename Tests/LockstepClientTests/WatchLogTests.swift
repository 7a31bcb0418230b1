import BusKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepClient

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

    @Test func `retained values come first, with the sequence numbers of their publication`() {
        var log = WatchLog(prefixes: [], changesOnly: false)
        let put = Self.event(.put, .playbackState, 3, WirePlaybackState().wireBytes)
        let lines = log.events(for: .snapshot(Self.replica([put], at: 9)))
        #expect(lines.map(\.kind) == ["snapshot"])
        #expect(lines.map(\.sequence) == [3])
        let next = log.events(for: .event(Self.event(.put, .playbackState, 10, WirePlaybackState().wireBytes)))
        #expect(next.map(\.kind) == ["put"])
        #expect(next[0].payload == lines[0].payload)
        #expect(
            next[0].json.line.hasPrefix(
                #"{"epoch":5,"sequence":10,"topic":"stream/playback/state","kind":"put","at":1.5,"payload":{"state":"idle""#
            ))
    }

    @Test func `topics that no longer exist after a resync are reported with a null payload`() {
        var log = WatchLog(prefixes: ["playback"], changesOnly: true)
        let put = Self.event(.put, .playbackState, 3)
        #expect(log.events(for: .snapshot(Self.replica([put], at: 9))).isEmpty)
        let lines = log.events(for: .snapshot(Self.replica([], epoch: 6, at: 2)))
        #expect(lines.map(\.payload) == [.null])
        #expect(lines.map(\.epoch) == [6])
    }

    @Test func `an unknown topic’s payload is printed in base 64`() {
        let json = StreamPayload.json(Self.event(.put, Topic("stream/other/thing"), 1, [1, 2, 3]))
        #expect(json == .object(["base64": .string("AQID")]))
        let delta = StreamPayload.json(Self.event(.delta, Topic("stream/other/thing"), 2, [1, 2, 3]))
        #expect(delta == .object(["base64": .string("AQID"), "delta": .bool(true)]))
        #expect(StreamPayload.json(Self.event(.delete, .playbackState, 1)) == .null)
    }

    @Test func `only topics with a chosen prefix are reported`() {
        var log = WatchLog(prefixes: ["queue"], changesOnly: false)
        #expect(log.events(for: .event(Self.event(.put, .playbackState, 1))).isEmpty)
        #expect(log.events(for: .event(Self.event(.put, .queue("main"), 2))).count == 1)
    }

    @Test func `the status of an idle player has no episode and position 0`() {
        let now = Moment(monotonic: MonotonicTime(nanoseconds: 0), wall: Timestamp(milliseconds: 0))
        let json = PlayerState(WirePlaybackState()).json(at: now)
        #expect(json["state"] == .string("idle"))
        #expect(json["episode"] == .null)
        #expect(json["position"] == .integer(0))
    }

    private static func json(_ topic: Topic, _ message: some SwiftProtobuf.Message) -> String {
        StreamPayload.json(event(.put, topic, 1, message.wireBytes)).line
    }

    @Test func `settings are printed as an object of the values that were set`() {
        var state = WireSettingsState()
        state.podcast = "p1"
        state.settings = [("boost", "on"), ("newerKey", "x"), ("speed", "1.5")].map { key, value in
            .with {
                $0.key = key
                $0.value = value
            }
        }
        #expect(
            Self.json(.settings(.playback, podcast: "p1"), state)
                == #"{"podcast":"p1","settings":{"boost":true,"newerKey":"x","speed":1.5}}"#)
    }

    @Test func `the next entry’s JSON has the reason why nothing follows and the outcome of each load`() {
        let next = WireQueueNext.with {
            $0.queue = "main"
            $0.current.id = "q1"
            $0.reason = .lastEntry
            $0.loads = [
                .with { ($0.loadID, $0.queue, $0.entry, $0.outcome) = ("l1", "main", "q1", .accepted) },
                .with {
                    ($0.loadID, $0.queue, $0.entry, $0.outcome, $0.afterLoad) = ("l2", "main", "q1", .pending, "l1")
                },
            ]
        }
        let json = StreamPayload.json(Self.event(.put, .queueNext, 1, next.wireBytes))
        #expect(json["queue"] == .string("main") && json["current"]?["id"] == .string("q1"))
        #expect(json["following"] == .null && json["reason"] == .string("lastEntry"))
        let loads =
            #""loads":[{"loadId":"l1","queue":"main","entry":"q1","outcome":"accepted","error":null,"afterLoad":null},"#
            + #"{"loadId":"l2","queue":"main","entry":"q1","outcome":"pending","error":null,"afterLoad":"l1"}]}"#
        #expect(json.line.hasSuffix(loads))
    }

    @Test func `bookmarks are printed as an array`() {
        let marks = WireBookmarks.with {
            $0.bookmarks = [
                .with {
                    $0.id = "b1"
                    $0.episode = "e1"
                    $0.position = 12.5
                    $0.createdAt = 1_500
                }
            ]
        }
        #expect(
            Self.json(.bookmarks(of: "e1"), marks)
                == #"[{"id":"b1","episode":"e1","title":null,"position":12.5,"note":null,"createdAt":1.5}]"#)
    }

    @Test func `a download’s event has the JSON that the command prints, and its progress has its own`() {
        let download = WireDownload.with {
            $0.episode = "e1"
            $0.state = .downloading
            $0.totalBytes = 10
        }
        #expect(Self.json(.download("e1"), download) == download.json.line)
        let progress = WireDownloadProgress.with {
            $0.episode = "e1"
            $0.receivedBytes = 5
            $0.bytesPerSecond = 2.5
        }
        #expect(
            Self.json(.downloadProgress("e1"), progress)
                == #"{"episode":"e1","receivedBytes":5,"totalBytes":null,"bytesPerSecond":2.5}"#)
    }

    @Test func `the player’s JSON has its retry, sleep timer, chapter and sound`() {
        var state = WirePlaybackState()
        state.status = .loading
        state.chapter = 2
        state.retry.attempt = 1
        state.retry.of = 3
        state.retry.nextInSeconds = 2
        state.retry.nextAt = 1_500_000_000
        state.sleep.episodes = 3
        state.sound.gain = 3
        let json = StreamPayload.json(Self.event(.put, .playbackState, 1, state.wireBytes))
        #expect(
            json["retry"]?.line == #"{"attempt":1,"of":3,"nextInSeconds":2,"error":null,"nextMonotonic":1.5}"#)
        #expect(
            json["sleep"]?.line
                == #"{"endsAt":null,"monotonic":null,"bootId":null,"episodes":3,"endOfChapter":false,"fading":false}"#)
        #expect(json["chapter"] == .integer(2))
        #expect(json["sound"]?.line == #"{"gain":3,"trimSilence":false,"boost":false,"normalise":false}"#)
        #expect(json["local"] == .bool(false))
    }

    @Test func `a queue’s JSON has its modes, and each entry the reason why it was added`() {
        let queue = WireQueueState.with {
            $0.name = "evening"
            $0.modes = .with {
                $0.repeat = .all
                $0.keep = true
                $0.limit = 5
            }
            $0.entries = [
                .with {
                    $0.id = "q1"
                    $0.reason = "added by hand"
                }
            ]
        }
        let json = Self.json(.queue("evening"), queue)
        #expect(json.hasSuffix(#""modes":{"repeat":"all","consume":false,"limit":5}}"#))
        #expect(json.contains(#""addedAt":null,"reason":"added by hand"}"#))
    }
}
