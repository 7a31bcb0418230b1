import PodcastModel
import SwiftProtobuf
import Testing
package import WireMessages

/// The behaviour that every implementation of playlists must have. The same tests run against the queue’s machine alone
/// and against the real services with a database.
package struct PlaylistContract {
    private let send: (WireQueueRequest) async throws -> WireQueueReply
    private let restart: () async throws -> Void
    private let settle: () async throws -> Void
    private let episode: (Int) -> String

    /// - Parameters:
    ///   - episode: the ID of an episode in the library, by its number from 1 to 20; the titles end in the ID.
    ///   - send: sends a request.
    ///   - restart: kills the queue service, and returns when its next run is ready.
    ///   - settle: lets some time pass.
    package init(
        episode: @escaping (Int) -> String,
        send: @escaping (WireQueueRequest) async throws -> WireQueueReply,
        restart: @escaping () async throws -> Void,
        settle: @escaping () async throws -> Void
    ) {
        (self.episode, self.send, self.restart, self.settle) = (episode, send, restart, settle)
    }

    /// Tests all parts of the contract, each with playlists of its own.
    package func check() async throws {
        try await checkCreation()
        try await checkItems()
        try await checkHistory()
        try await checkLimitsAndRefusals()
        try await checkPlaying()
        try await checkSmart()
        try await checkSmartRefusals()
    }

    @discardableResult
    private func ask(
        _ id: String, _ fill: (inout WirePlaylistRequest) -> Void
    ) async throws -> WireQueueReply {
        var request = WireQueueRequest()
        request.playlist.playlist = id
        fill(&request.playlist)
        return try await send(request)
    }

    private func refusal(
        _ id: String, _ fill: (inout WirePlaylistRequest) -> Void
    ) async -> FailureCode? {
        do {
            try await ask(id, fill)
            return nil
        } catch {
            return (error as? Failure)?.known
        }
    }

    private func items(_ id: String) async throws -> [String] {
        try await ask(id) { $0.items = WireItemsQuery() }.entries.map(\.episode.id)
    }

    private func episodes(_ numbers: Int...) -> [String] { numbers.map(episode) }

    private func checkCreation() async throws {
        let created = try await ask("drives") { $0.create.title = " Long drives " }
        #expect(created.changed && created.playlist.title == "Long drives" && created.playlist.continuous)
        try await ask("drives") { $0.add.episodes = episodes(1, 2) }
        let again = try await ask("drives") { $0.create.title = "Something else" }
        #expect(!again.changed && again.playlist.title == "Long drives" && again.playlist.items == 2)
        let renamed = try await ask("drives") { $0.change.title = "Drives" }
        #expect(renamed.changed && renamed.playlist.title == "Drives")
        #expect(renamed.playlist.updatedAt >= created.playlist.updatedAt && renamed.revision > again.revision)
        #expect(try await !ask("drives") { $0.change.title = "Drives" }.changed)
        try await ask("drives") {
            $0.change.shuffle = true
            $0.change.continuous = false
        }
        try await restart()
        let stored = try await ask("drives") { $0.items = WireItemsQuery() }
        #expect(stored.playlist.shuffle && !stored.playlist.continuous && stored.playlist.title == "Drives")
        #expect(stored.playlist.createdAt == created.playlist.createdAt)
        #expect(stored.entries.map(\.episode.id) == episodes(1, 2))
        #expect(await refusal("drives") { $0.delete = WireDeletePlaylist() } == .notApplicable)
        #expect(try await ask("drives") { $0.delete.withItems = true }.changed)
        #expect(await refusal("drives") { $0.items = WireItemsQuery() } == .notFound)
        try await restart()
        #expect(await refusal("drives") { $0.items = WireItemsQuery() } == .notFound)
        let restored = try await ask("") { $0.undelete.text = "dRIVES" }
        #expect(restored.changed && restored.playlist.id == "drives" && restored.playlist.shuffle)
        #expect(restored.revision > stored.revision && restored.playlist.createdAt == created.playlist.createdAt)
        #expect(try await items("drives") == episodes(1, 2))
        try await restart()
        #expect(try await items("drives") == episodes(1, 2))
        #expect(await refusal("") { $0.undelete.text = "drives" } == .notFound)
        #expect(try await ask("drives") { $0.undo = WireUndo() }.changed)
        #expect(try await ask("drives") { $0.delete.withItems = true }.changed)
        // Another playlist with this ID begins without the items and the history of the deleted one, which is kept.
        #expect(try await ask("drives") { $0.create.title = "Other" }.changed)
        try await restart()
        #expect(try await items("drives") == [])
        #expect(try await ask("drives") { $0.history = WireHistoryQuery() }.history == [])
        let other = try await ask("") { $0.undelete.text = "Drives" }
        #expect(other.playlist.id == "drives-2" && other.playlist.title == "Drives" && other.playlist.items == 0)
        #expect(try await ask("drives-2") { $0.redo = WireRedo() }.changed)
        try await restart()
        #expect(try await items("drives-2") == episodes(1, 2))
        #expect(try await ask("drives-2") { $0.delete.withItems = true }.changed)
        #expect(try await ask("drives") { $0.delete = WireDeletePlaylist() }.changed)
    }

    private func checkItems() async throws {
        try await ask("list") { $0.create = WireCreatePlaylist() }
        try await ask("list") { $0.add.episodes = episodes(1, 2, 3, 4, 5, 6) }
        let duplicate = try await ask("list") { $0.add.episodes = episodes(2, 7, 2) }
        #expect(duplicate.alreadyThere == episodes(2) && duplicate.count == 1)
        let front = try await ask("list") {
            $0.add.episodes = episodes(8)
            $0.add.next = true
        }
        #expect(front.playlist.items == 8)
        #expect(try await items("list") == episodes(8, 1, 2, 3, 4, 5, 6, 7))
        let moved = try await ask("list") {
            $0.add.episodes = episodes(8, 3)
            $0.add.next = true
        }
        #expect(moved.moved == episodes(8, 3) && moved.alreadyThere == [] && moved.count == 0)
        #expect(try await items("list") == episodes(8, 3, 1, 2, 4, 5, 6, 7))
        #expect(try await ask("list") { $0.undo = WireUndo() }.description_p == "Moved 2 episodes to the front")
        let unmoved = try await ask("list") {
            $0.add.episodes = episodes(8)
            $0.add.next = true
        }
        #expect(!unmoved.changed && unmoved.alreadyThere == episodes(8))
        // Several items move together, in the list’s order.
        try await ask("list") {
            $0.move.texts = [episode(6), episode(1), episode(3)]
            $0.move.beforeText = episode(8)
        }
        #expect(try await items("list") == episodes(1, 3, 6, 8, 2, 4, 5, 7))
        try await ask("list") {
            $0.move.texts = ["1", "2"]
            $0.move.afterText = episode(7)
        }
        #expect(try await items("list") == episodes(6, 8, 2, 4, 5, 7, 1, 3))
        try await ask("list") {
            $0.move.texts = [episode(3), episode(8)]
            $0.move.index = 6
        }
        #expect(try await items("list") == episodes(6, 2, 4, 5, 7, 1, 8, 3))
        let same = try await ask("list") {
            $0.move.texts = [episode(6)]
            $0.move.index = 0
        }
        #expect(!same.changed)
        try await restart()
        #expect(try await items("list") == episodes(6, 2, 4, 5, 7, 1, 8, 3))
        try await ask("list") { $0.remove.texts = ["1", episode(8)] }
        // Episodes without an item are ignored.
        try await ask("list") { $0.remove.episodes = episodes(2, 8, 20) }
        #expect(try await items("list") == episodes(4, 5, 7, 1, 3))
        try await ask("list") { $0.sort.by = .title }
        #expect(try await items("list") == episodes(1, 3, 4, 5, 7).sorted())
        let page = try await ask("list") {
            $0.items.offset = 3
            $0.items.limit = 1
        }
        #expect(page.entries.map(\.episode.id) == [episodes(1, 3, 4, 5, 7).sorted()[3]] && page.playlist.items == 5)
    }

    private func checkHistory() async throws {
        try await ask("past") { $0.create = WireCreatePlaylist() }
        let first = try await ask("past") { $0.add.episodes = episodes(1, 2, 3) }
        try await ask("past") { $0.remove.texts = [episode(2)] }
        try await ask("past") { $0.clear = WireClearQueue() }
        try await restart()
        #expect(try await items("past") == [])
        #expect(try await ask("past") { $0.undo = WireUndo() }.changed)
        #expect(try await items("past") == episodes(1, 3))
        try await ask("past") { $0.undo = WireUndo() }
        try await ask("past") { $0.redo = WireRedo() }
        #expect(try await items("past") == episodes(1, 3))
        try await ask("past") { $0.restore.revision = first.revision }
        #expect(try await items("past") == episodes(1, 2, 3))
        let history = try await ask("past") { $0.history.limit = 2 }.history
        #expect(history.count == 2 && history[0].entries == 3)
        let changed = await refusal("past") {
            $0.ifRevision = first.revision
            $0.clear = WireClearQueue()
        }
        #expect(changed == .revisionMismatch)
    }

    private func checkLimitsAndRefusals() async throws {
        #expect(await refusal("nothing") { $0.clear = WireClearQueue() } == .notFound)
        #expect(await refusal("main") { $0.create.title = "Main" } == .invalidArgument)
        #expect(await refusal("no spaces") { $0.create.title = "x" } == .invalidArgument)
        #expect(await refusal("long") { $0.create.title = String(repeating: "x", count: 201) } == .invalidArgument)
        #expect(await refusal("control") { $0.create.title = "a\nb" } == .invalidArgument)
        let favourites = PlaylistName.favourites
        #expect(await refusal(favourites) { $0.delete.withItems = true } == .notApplicable)
        #expect(await refusal(favourites) { $0.change.title = "Mine" } == .notApplicable)
        #expect(await refusal(favourites) { $0.add.episodes = ["missing"] } == .notFound)
        #expect(await refusal(favourites) { $0.add = WireAddEntries() } == .invalidArgument)
        #expect(await refusal(favourites) { $0.remove = WireRemoveEntries() } == .invalidArgument)
        #expect(await refusal(favourites) { $0.play = WirePlayPlaylist() } == .queueEmpty)
        #expect(await refusal(favourites) { $0.move.texts = ["1"] } == .notFound)
        try await ask(favourites) { $0.add.episodes = episodes(9) }
        #expect(await refusal(favourites) { $0.move.texts = ["1"] } == .invalidArgument)
        let itself = await refusal(favourites) {
            $0.move.texts = ["1"]
            $0.move.beforeText = "1"
        }
        #expect(itself == .notApplicable)
        let beyond = await refusal(favourites) {
            $0.move.texts = ["1"]
            $0.move.index = 1
        }
        #expect(beyond == .notApplicable)
        #expect(try await items(favourites) == episodes(9))
    }

    private func checkPlaying() async throws {
        _ = try await send(.with { $0.add.episodes = episodes(11, 12, 2) })
        try await ask("played") { $0.create = WireCreatePlaylist() }
        try await ask("played") { $0.add.episodes = episodes(1, 2, 3) }
        let played = try await ask("played") { $0.play.fromText = episode(2) }
        #expect(played.entries.map(\.episode.id) == episodes(2) && !played.loadID.isEmpty)
        // The second episode’s entry is moved, the third episode is added.
        let history = try await send(.with { $0.history.limit = 10 }).history
        #expect(history.first { $0.description_p.contains("playlist") }?.entries == 4)
    }

    /// Waits until a smart playlist has these items.
    private func untilItems(_ id: String, are numbers: Int...) async throws {
        let expected = numbers.map(episode)
        var found: [String] = []
        for _ in 0..<500 {
            found = try await items(id)
            if found == expected { return }
            try await settle()
        }
        #expect(found == expected)
    }

    private func checkSmart() async throws {
        try await ask("base") { $0.create = WireCreatePlaylist() }
        try await ask("base") { $0.add.episodes = episodes(5, 4, 3, 2, 1) }
        let created = try await ask("smart") {
            $0.create.title = "Smart"
            $0.create.smart.rule = "IN base"
            $0.create.smart.order = .title
            $0.create.smart.limit = 3
        }
        #expect(created.playlist.smart.rule == "in base" && created.changed)
        // The first reply already has the items.
        #expect(try await items("smart") == episodes(1, 2, 3))
        let before = try await ask("smart") { $0.items = WireItemsQuery() }
        #expect(before.playlist.items == 3)
        try await ask("base") { $0.remove.episodes = episodes(1) }
        try await untilItems("smart", are: 2, 3, 4)
        let after = try await ask("smart") { $0.items = WireItemsQuery() }
        #expect(after.revision > before.revision && after.playlist.updatedAt >= before.playlist.updatedAt)
        // A change of the base that doesn’t change the items changes no revision.
        try await ask("base") { $0.add.episodes = episodes(6) }
        try await restart()
        let restarted = try await ask("smart") { $0.items = WireItemsQuery() }
        #expect(restarted.entries.map(\.episode.id) == episodes(2, 3, 4))
        #expect(restarted.revision == after.revision && restarted.playlist.updatedAt == after.playlist.updatedAt)
        let edited = try await ask("smart") {
            $0.change.rule = "in base and not in favourites"
            $0.change.limit = 4
        }
        #expect(edited.changed && edited.playlist.smart.limit == 4)
        #expect(try await items("smart") == episodes(2, 3, 4, 5))
        #expect(try await !ask("smart") { $0.change.limit = 4 }.changed)
        try await ask(PlaylistName.favourites) { $0.add.episodes = episodes(4) }
        try await untilItems("smart", are: 2, 3, 5, 6)
        try await ask("base") { $0.clear = WireClearQueue() }
        try await untilItems("smart")
        #expect(await refusal("smart") { $0.play = WirePlayPlaylist() } == .queueEmpty)
        try await ask("base") { $0.undo = WireUndo() }
        try await untilItems("smart", are: 2, 3, 5, 6)
        #expect(try await ask("smart") { $0.play = WirePlayPlaylist() }.entries.map(\.episode.id) == episodes(2))
        #expect(try await ask("smart") { $0.delete = WireDeletePlaylist() }.changed)
        let undeleted = try await ask("") { $0.undelete.text = "smart" }
        #expect(undeleted.changed && undeleted.playlist.smart.limit == 4)
        try await untilItems("smart", are: 2, 3, 5, 6)
        #expect(try await ask("smart") { $0.delete = WireDeletePlaylist() }.changed)
        try await restart()
        #expect(await refusal("smart") { $0.items = WireItemsQuery() } == .notFound)
    }

    private func checkSmartRefusals() async throws {
        func creation(_ fill: @escaping (inout WireSmartList) -> Void) async -> FailureCode? {
            await refusal("refused") { fill(&$0.create.smart) }
        }
        try await ask("rule") { $0.create.smart.rule = "played" }
        #expect(await creation { $0.rule = "" } == .invalidArgument)
        #expect(await creation { $0.rule = "lenght < 20m" } == .invalidArgument)
        #expect(await creation { $0.rule = "in refused" } == .invalidArgument)
        #expect(await creation { $0.rule = "played or in rule" } == .notApplicable)
        #expect(await creation { $0.rule = "in nothing" } == .notFound)
        for change: (inout WireSmartList) -> Void in [
            { $0.limit = 1_001 }, { $0.order = .relevance }, { $0.order = .UNRECOGNIZED(99) },
        ] {
            let code = await refusal("refused") {
                $0.create.smart.rule = "played"
                change(&$0.create.smart)
            }
            #expect(code == .invalidArgument)
        }
        #expect(await refusal("rule") { $0.change.queue = "nothing" } == .notFound)
        #expect(await refusal("rule") { $0.change.rule = "in rule" } == .invalidArgument)
        #expect(await refusal("base") { $0.change.rule = "played" } == .notApplicable)
        #expect(await refusal("rule") { $0.add.episodes = episodes(1) } == .notApplicable)
        #expect(await refusal("rule") { $0.clear = WireClearQueue() } == .notApplicable)
        #expect(await refusal("rule") { $0.undo = WireUndo() } == .notApplicable)
        #expect(await refusal("refused") { $0.items = WireItemsQuery() } == .notFound)
        let reply = try await ask("rule") { $0.items = WireItemsQuery() }
        #expect(reply.playlist.smart.limit == 100 && reply.entries.isEmpty)
    }
}
