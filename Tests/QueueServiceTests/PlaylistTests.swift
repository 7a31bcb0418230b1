import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

@testable import QueueService

@Suite struct PlaylistTests {
    @Test func `the machine fulfils the contract of playlists`() async throws {
        let rig = QueueRig()
        let contract = PlaylistContract(episode: QueueRig.episode) { request in
            guard let result = rig.send(payload: request.wireBytes) else {
                throw Failure(.unavailable, "The machine didn’t reply.")
            }
            return try result.get()
        } restart: {
            rig.restart()
        } settle: {
            rig.advance(by: .milliseconds(100))
        }
        try await contract.check()
    }

    private func rig(with numbers: [Int]) -> QueueRig {
        let rig = QueueRig()
        rig.send {
            $0.playlist = .with {
                $0.playlist = "p"; $0.create.title = "P"
            }
        }
        rig.send {
            $0.playlist = .with {
                $0.playlist = "p"; $0.add.episodes = numbers.map(QueueRig.episode)
            }
        }
        return rig
    }

    @discardableResult
    private func play(
        _ rig: QueueRig, _ fill: (inout WirePlayPlaylist) -> Void = { _ in }
    ) -> Result<WireQueueReply, Failure>? {
        rig.send {
            $0.playlist.playlist = "p"
            $0.playlist.play = .with(fill)
        }
    }

    @Test func `a playlist plays after the current entry, and the rest of Up Next stays`() {
        let rig = rig(with: [1, 2, 3])
        rig.add(10, 11, 12)
        rig.play(11)
        play(rig)
        #expect(rig.numbers == [10, 11, 1, 2, 3, 12])
        #expect(rig.current == 1)
        rig.send { $0.undo = WireUndo() }
        #expect(rig.numbers == [10, 11, 12])
    }

    @Test func `episodes that Up Next holds are moved, and the current one stays`() {
        let rig = rig(with: [1, 11, 12, 10])
        rig.add(10, 11, 12)
        rig.play(11)
        play(rig)
        #expect(rig.numbers == [11, 1, 12, 10])
        #expect(rig.current == 1)
        play(rig) { $0.fromText = QueueRig.episode(12) }
        #expect(rig.numbers == [11, 1, 12, 10])
        #expect(rig.current == 12)
    }

    @Test func `a playlist that begins with the loaded episode continues it without another load`() {
        let rig = rig(with: [11, 5])
        rig.add(10, 11, 12)
        rig.play(11)
        let loads = rig.playerRequests.count
        let reply = play(rig)
        #expect(rig.numbers == [10, 11, 5, 12])
        #expect(rig.current == 11 && rig.playerRequests.count == loads)
        #expect(throws: Never.self) { try #expect(reply?.get().changed == true) }
        rig.playerChanges { $0.status = .paused }
        let resumed = play(rig)
        #expect(rig.numbers == [10, 11, 5, 12])
        #expect(rig.player.status == .playing)
        #expect(throws: Never.self) { try #expect(resumed?.get().changed == true) }
        let again = play(rig)
        #expect(throws: Never.self) { try #expect(again?.get().changed == false) }
    }

    @Test func `a paused episode is resumed once the other items are durable`() {
        let rig = rig(with: [11, 5])
        rig.add(10, 11, 12)
        rig.play(11)
        rig.playerChanges { $0.status = .paused }
        let reply = play(rig)
        #expect(rig.numbers == [10, 11, 5, 12])
        #expect(rig.player.status == .playing)
        #expect(throws: Never.self) {
            let reply = try reply?.get() ?? WireQueueReply()
            #expect(reply.changed)
            #expect(reply.entries.map(\.episode.id) == [QueueRig.episode(11)])
        }
    }

    @Test func `a page of large items ends early, and the next one continues it`() throws {
        let rig = QueueRig()
        let count = 300
        for number in 1...count {
            rig.details[QueueRig.episode(number)] = .with {
                $0.id = QueueRig.episode(number)
                $0.title = String(repeating: "t", count: 4_096)
                $0.enclosureURL = "https://example.org/" + String(repeating: "u", count: 4_000)
            }
        }
        rig.send {
            $0.playlist = .with {
                $0.playlist = "p"; $0.create.title = "P"
            }
        }
        let added = rig.send {
            $0.playlist = .with {
                $0.playlist = "p"; $0.add.episodes = (1...count).map(QueueRig.episode)
            }
        }
        let limit = RequestSizes.pageBytes + 10_000
        let addition = try added?.get()
        #expect(addition?.count == UInt32(count))
        #expect(addition.map { $0.wireBytes.count < limit } == true)
        var read: [String] = []
        while read.count < count {
            let page = rig.send {
                $0.playlist.playlist = "p"
                $0.playlist.items.offset = UInt32(read.count)
            }
            let reply = try page?.get() ?? WireQueueReply()
            #expect(reply.wireBytes.count < limit)
            try #require(!reply.entries.isEmpty)
            read += reply.entries.map(\.episode.id)
        }
        #expect(read == (1...count).map(QueueRig.episode))
    }

    @Test func `titles in rules are replaced by IDs, and unknown lists are refused`() {
        let rig = rig(with: [1])
        rig.send {
            $0.playlist = .with {
                $0.playlist = "long-drives"; $0.create.title = "Long drives"
            }
        }
        rig.send {
            $0.playlist = .with {
                $0.playlist = "smart"; $0.create.smart.rule = "in \"long DRIVES\""
            }
        }
        #expect(rig.machine.playlists["smart"]?.smart?.wire.rule == "in long-drives")
        func resolved(_ rule: String) -> Result<String, Failure>? {
            rig.send { $0.playlist.resolve.rule = rule }?.map(\.rule)
        }
        func refusal(_ rule: String) -> FailureCode? {
            if case .failure(let failure)? = resolved(rule) { failure.known } else { nil }
        }
        let all = "not in \"Long drives\" and (in P or in \"Up Next\" or played)"
        #expect(throws: Never.self) {
            try #expect(resolved(all)?.get() == "not in long-drives and (in p or in main or played)")
        }
        #expect(refusal("not in typo") == .notFound)
        #expect(refusal("in smart") == .notApplicable)
        #expect(refusal("in") == .invalidArgument)
        rig.send {
            $0.playlist = .with {
                $0.playlist = "other"; $0.create.title = "LONG drives"
            }
        }
        #expect(refusal("in \"Long Drives\"") == .ambiguous)
    }

    @Test func `equal seeds shuffle equally, and the chosen first item stays first`() {
        func order(_ seed: UInt64, from: Int? = nil) -> [Int] {
            let rig = rig(with: Array(1...20))
            play(rig) {
                $0.shuffle = true
                $0.seed = seed
                $0.fromText = from.map(QueueRig.episode) ?? ""
            }
            return rig.numbers
        }
        #expect(order(5) == order(5))
        #expect(order(5) != order(6))
        #expect(order(5).sorted() == Array(1...20))
        #expect(order(5, from: 7).first == 7)
    }

    @Test func `without continuous play only one item is added`() {
        let rig = rig(with: [1, 2, 3])
        rig.send {
            $0.playlist = .with {
                $0.playlist = "p"; $0.change.continuous = false
            }
        }
        play(rig) { $0.fromText = "2" }
        #expect(rig.numbers == [2])
        play(rig) { $0.continuous = true }
        #expect(rig.numbers == [2, 1, 3])
    }

    @Test func `new titles and positions reach the items without a revision`() throws {
        let rig = rig(with: [1, 2])
        let before = try #require(rig.machine.playlists["p"])
        rig.details[QueueRig.episode(1)] = .with {
            $0.id = QueueRig.episode(1)
            $0.title = "Renamed"
        }
        let changed = WireEpisodesChanged.with { $0.updated = [QueueRig.episode(1)] }
        rig.observe(.event, .episodes(of: "pod"), changed.wireBytes)
        let after = try #require(rig.machine.playlists["p"])
        #expect(after.queue.entries.first?.wire.episode.title == "Renamed")
        #expect(after.queue.revision == before.queue.revision && after.updatedAt == before.updatedAt)
    }

    @Test func `deleted playlists are erased after a day, and beyond the last ten`() {
        let rig = QueueRig()
        for number in 1...12 {
            rig.send {
                $0.playlist = .with {
                    $0.playlist = "p\(number)"; $0.create.title = "P"
                }
            }
            rig.advance(by: .seconds(1))
            rig.send {
                $0.playlist = .with {
                    $0.playlist = "p\(number)"; $0.delete.withItems = true
                }
            }
        }
        let kept = (3...12).map { "p\($0)" }
        #expect(Set(rig.machine.state.current.deleted.playlists.keys) == Set(kept))
        // Of several with the same title, the one that was deleted last is restored.
        rig.send { $0.playlist.undelete.text = "p" }
        #expect(rig.machine.playlists["p12"] != nil)
        rig.restart()
        #expect(rig.machine.state.current.deleted.playlists.count == 9)
        for _ in 1...25 { rig.advance(by: .seconds(3_600)) }
        #expect(rig.machine.state.current.deleted.playlists.isEmpty)
        rig.restart()
        #expect(rig.machine.state.current.deleted.playlists.isEmpty && rig.machine.playlists.count == 2)
    }

    @Test func `episodes of a podcast that was forgotten since aren’t restored`() {
        let gone = PodcastID.derived(from: "gone")
        let rig = QueueRig()
        rig.details[QueueRig.episode(1)] = .with { ($0.id, $0.podcastID) = (QueueRig.episode(1), gone.text) }
        rig.details[QueueRig.episode(2)] = .with { ($0.id, $0.podcastID) = (QueueRig.episode(2), "stays") }
        rig.send {
            $0.playlist = .with {
                $0.playlist = "p"; $0.create.title = "P"
            }
        }
        rig.send {
            $0.playlist = .with {
                $0.playlist = "p"; $0.add.episodes = [QueueRig.episode(1), QueueRig.episode(2)]
            }
        }
        rig.send {
            $0.playlist = .with {
                $0.playlist = "p"; $0.delete.withItems = true
            }
        }
        rig.handle(.podcastForgotten(gone))
        rig.send { $0.playlist.undelete.text = "p" }
        #expect(rig.machine.playlists["p"]?.queue.entries.map(\.episode) == [QueueRig.episode(2)])
    }

    @Test func `a deleted playlist is on no stream`() {
        let rig = rig(with: [1, 2])
        #expect(rig.retained[.playlist("p")] != nil)
        rig.send {
            $0.playlist = .with {
                $0.playlist = "p"; $0.delete.withItems = true
            }
        }
        #expect(rig.retained[.playlist("p")] == nil)
        rig.restart()
        #expect(rig.machine.playlists.keys.sorted() == [PlaylistName.favourites])
    }

    @Test func `at most 200 playlists exist`() {
        let rig = QueueRig()
        for number in 1..<200 {
            rig.send {
                $0.playlist = .with {
                    $0.playlist = "p\(number)"; $0.create.title = "P"
                }
            }
        }
        let refused = rig.send {
            $0.playlist = .with {
                $0.playlist = "one-more"; $0.create.title = "P"
            }
        }
        #expect(throws: Failure.self) { try refused?.get() }
        #expect(rig.machine.playlists.count == 200)
    }

    @Test func `a queue can’t have the ID of a playlist`() {
        let rig = rig(with: [])
        let refused = rig.send {
            $0.queue = "p"
            $0.create = WireCreateQueue()
        }
        #expect(throws: Failure.self) { try refused?.get() }
    }

    @Test(arguments: [
        ("Long drives", "long-drives"), ("  2024: Best of!", "best-of"), ("日本語", "playlist"), ("Été", "t"),
        (String(repeating: "word ", count: 20), "word-word-word-word-word-word-word-word"),
    ])
    func `the ID of a playlist is made from its title`(title: String, id: String) {
        #expect(PlaylistName.id(for: title) == id)
        #expect(QueueName.isValid(id))
    }
}
