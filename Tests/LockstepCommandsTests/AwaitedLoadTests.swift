import BusKit
import LockstepClient
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepCommands

/// Whether what a command has loaded is still to come.
@Suite struct AwaitedLoadTests {
    private static let before = WirePlaybackState.with { $0.loadID = "l0" }
    private static let awaited = AwaitedLoad(
        .with {
            $0.loadID = "l2"
            $0.revision = 5
            $0.entries = [.with { $0.id = "q2" }]
        }, in: "t", after: before)

    private static func view(
        shows load: String, _ status: WirePlaybackState.Status, marks entry: String, at revision: UInt64,
        ready: [ServiceName] = [.playback, .queue, .persistence]
    ) -> FleetView {
        var messages: [(Topic, any SwiftProtobuf.Message)] = ready.map { name in
            (.service(name), WireServiceStatus.with { $0.state = .ready })
        }
        messages.append(
            (
                .playbackState,
                WirePlaybackState.with {
                    $0.loadID = load
                    $0.status = status
                }
            ))
        messages.append(
            (
                .queue("t"),
                WireQueueState.with {
                    $0.name = "t"
                    $0.revision = revision
                    $0.current = entry
                    $0.entries = ["q1", "q2", "q3"].map { id in .with { $0.id = id } }
                }
            ))
        var view = FleetView(puts: messages)
        view.apply(.connection(.live))
        return view
    }

    @Test(
        arguments: [
            ("l0", .playing, "q2", 5, .coming),
            ("l2", .loading, "q2", 5, .coming),
            ("l2", .playing, "q2", 5, .settled),
            ("l2", .failed, "q2", 5, .settled),
            // It has played already when the queue is somewhere else.
            ("l2", .playing, "q3", 6, .settled),
            (LoadID.advance(after: "l2").text, .playing, "q3", 6, .settled),
            // The mark as it was before the answer says nothing.
            ("l0", .playing, "q1", 4, .coming),
            ("l0", .playing, "q3", 6, .overtaken),
            ("l2", .loading, "q3", 6, .overtaken),
            ("l3", .playing, "q3", 6, .overtaken),
            ("l0", .playing, "", 6, .overtaken),
            // Its entry was taken away while it opens.
            ("l2", .loading, "", 6, .coming),
            // From another queue; perhaps on its way before.
            ("x1", .loading, "q2", 5, .coming),
            ("x1", .playing, "q2", 5, .doubtful),
            ("", .idle, "q2", 5, .coming),
        ] as [(String, WirePlaybackState.Status, String, UInt64, AwaitedLoad.Outlook)])
    func `a load is waited for until something else is in its place`(
        shown: String, status: WirePlaybackState.Status, mark: String, revision: UInt64,
        outlook: AwaitedLoad.Outlook
    ) {
        let view = Self.view(shows: shown, status, marks: mark, at: revision)
        #expect(Self.awaited.outlook(in: view) == outlook)
    }

    @Test func `nothing is given up while a service is away`() {
        for ready in [[.playback, .persistence], [.queue, .persistence]] as [[ServiceName]] {
            let view = Self.view(shows: "l3", .playing, marks: "q3", at: 6, ready: ready)
            #expect(Self.awaited.outlook(in: view) == .coming)
        }
        let away = Self.view(shows: "x1", .playing, marks: "q2", at: 5, ready: [.playback, .queue])
        #expect(Self.awaited.outlook(in: away) == .coming)
    }

    @Test func `whatever is loaded is meant where no load is named`() {
        let view = Self.view(shows: "l7", .playing, marks: "q1", at: 9)
        #expect(AwaitedLoad("").outlook(in: view) == .settled)
    }
}
