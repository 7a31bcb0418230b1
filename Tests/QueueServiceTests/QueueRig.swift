import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import QueueService

/// A queue machine with a library and a player that respond at once, or as late as a test requires.
final class QueueRig: OwnerRig {
    typealias Request = WireQueueRequest
    typealias Reply = WireQueueReply

    let owner = OwnerHarness(QueueMachine()) { Issue.record("\($0)") }
    /// The loads and resumes that were requested from the player.
    private(set) var playerRequests: [WirePlaybackRequest] = []
    /// The calls with these requests.
    private(set) var callsToPlayer: [QueueMachine.Call] = []
    /// The preparations that were requested from the player.
    private(set) var preparations: [WirePrepareEpisode] = []
    /// The episodes whose chapters were requested from feeds, and those that the player had to look up again.
    private(set) var chapterFetches: [String] = []
    private(set) var refreshes: [String] = []
    /// Whether the player and the library answer requests.
    var playerAnswers = true
    var libraryAnswers = true
    var player = WirePlaybackState.with { $0.status = .idle }
    var library: Set<String> = []
    /// The library’s data about individual episodes; an address is derived from the ID if it is missing.
    var details: [String: WireEpisode] = [:]
    /// The episodes without audio.
    var withoutAudio: Set<String> = []

    init(episodes: Int = 30) {
        library = Set((1...episodes).map(Self.episode))
        restart(QueueMachine())
        playerChanges { _ in }
        playerReady(true)
        published = []
    }

    static func episode(_ number: Int) -> String { "e" + String(1_000 + number) }

    @discardableResult
    func add(_ numbers: Int..., next: Bool = false) -> Result<WireQueueReply, Failure>? {
        send {
            $0.add.episodes = numbers.map(Self.episode)
            $0.add.next = next
        }
    }

    @discardableResult
    func play(_ number: Int) -> Result<WireQueueReply, Failure>? {
        send { $0.play.episode = Self.episode(number) }
    }

    /// Returns the entries of a queue as numbers.
    func numbers(of queue: String) -> [Int] {
        machine.queues.named(queue).queue.entries.compactMap { Int($0.episode.dropFirst()).map { $0 - 1_000 } }
    }

    var numbers: [Int] { numbers(of: "main") }

    /// The current entry’s number.
    var current: Int? {
        machine.main.queue.current.flatMap { machine.main.queue.entry($0) }.flatMap { Int($0.episode.dropFirst()) }
            .map { $0 - 1_000 }
    }

    /// Returns the ID of the entry with the episode of this number.
    func entry(_ number: Int) -> String { machine.main.queue.entry(episode: Self.episode(number))?.id ?? "" }

    /// The value of `stream/queue/next`.
    var next: WireQueueNext? { retained[.queueNext].flatMap { try? WireQueueNext(wireBytes: $0) } }

    // MARK: Player

    func playerReady(_ ready: Bool) {
        let status = WireServiceStatus.with {
            $0.name = "playback"
            $0.state = ready ? .ready : .down
        }
        observe(.put, .service(.playback), status.wireBytes)
    }

    func playerChanges(_ change: (inout WirePlaybackState) -> Void) {
        let revision = player.revision
        change(&player)
        player.revision = revision + 1
        observe(.put, .playbackState, player.wireBytes)
    }

    /// Restarts the process from its durable state, before the player restarts if `withPlayer` is false.
    func restart(withPlayer: Bool = true) {
        restart(QueueMachine())
        guard withPlayer else { return }
        playerReady(true)
        observe(.put, .playbackState, player.wireBytes)
    }

    // MARK: Calls

    func holds(_ call: QueueMachine.Call) -> Bool {
        switch call.query {
        case .load, .player: !playerAnswers
        case .episodes, .newestEpisodes, .smartPlaylist: !libraryAnswers
        case .unawaited, .preparation: false
        }
    }

    func answer(_ call: QueueMachine.Call) -> Result<[UInt8], Failure> {
        switch call.service {
        case .persistence: return .success(libraryReply(to: call).wireBytes)
        case .feeds:
            chapterFetches.append((try? WireFeedsRequest(wireBytes: call.payload))?.fetchChapters.episode ?? "")
            return .success([])
        default: return playerReply(to: call)
        }
    }

    func perform(_ action: Never) {}

    private func libraryReply(to call: QueueMachine.Call) -> WirePersistenceReply {
        let request = try? WirePersistenceRequest(wireBytes: call.payload)
        if case .episodes(let query)? = request?.command, !query.rule.isEmpty {
            return .with { $0.episodes = page(of: query) }
        }
        if case .episodes(let query)? = request?.command {
            return .with {
                $0.episodes.episodes = details.values.filter { $0.podcastID == query.podcast }
                    .sorted { ($0.published, $0.id) > ($1.published, $1.id) }
            }
        }
        let ids = (request?.episodesByID.ids ?? []).filter { library.contains($0) || details[$0] != nil }
        return .with { $0.episodes.episodes = ids.map(libraryEpisode) }
    }

    /// The first episodes in order of their IDs that meet a rule.
    private func page(of query: WireEpisodesQuery) -> WireEpisodesPage {
        guard let rule = try? EpisodeRule(query.rule) else { return WireEpisodesPage() }
        let context = EpisodeRule.Context(now: now.wall)
        let matches = library.union(details.keys).sorted().filter { $0 > query.after }
            .filter { rule.matches(facts(of: $0), in: context) }
        return .with {
            $0.episodes = matches.prefix(Int(query.limit)).map(libraryEpisode)
            $0.next = matches.count > Int(query.limit) ? $0.episodes.last?.id ?? "" : ""
            $0.ruleApplied = true
        }
    }

    private func facts(of id: String) -> EpisodeFacts {
        let episode = libraryEpisode(id)
        var facts = EpisodeFacts()
        facts.lists = Set(
            machine.queues.values.filter { $0.queue.entry(episode: id) != nil }.map(\.name)
                + machine.playlists.values.filter { $0.queue.entry(episode: id) != nil }.map(\.name))
        if machine.queues.contain(episode: id) { facts.marks.insert(.queued) }
        if episode.state.played { facts.marks.insert(.played) }
        if episode.published > 0 { facts.published = Timestamp(milliseconds: episode.published) }
        facts.title = episode.title
        return facts
    }

    private func libraryEpisode(_ id: String) -> WireEpisode {
        var episode = details[id] ?? .with { ($0.id, $0.title) = (id, "Episode \(id)") }
        if withoutAudio.contains(id) {
            episode.enclosureURL = ""
        } else if episode.enclosureURL.isEmpty {
            episode.enclosureURL = "http://127.0.0.1/\(id).mp3"
        }
        return episode
    }

    private func playerReply(to call: QueueMachine.Call) -> Result<[UInt8], Failure> {
        guard let request = try? WirePlaybackRequest(wireBytes: call.payload) else {
            return .failure(Failure(.malformed, "unreadable"))
        }
        switch request.command {
        case .prepare(let prepare):
            preparations.append(prepare)
            return .success([])
        case .refreshEpisode(let refresh):
            refreshes.append(refresh.episode)
            return .success([])
        case .queueRenamed(let rename):
            if player.queue == rename.queue { player.queue = rename.name }
            return .success([])
        default: break
        }
        playerRequests.append(request)
        callsToPlayer.append(call)
        let before = player
        switch request.command {
        case .load(let load):
            player.status = load.paused ? .paused : .playing
            player.episode = load.episode
            player.loadID = load.loadID
            player.queueEntry = load.queueEntry
            player.queue = load.queue
        case .setPaused(let pause): player.status = pause.paused ? .paused : .playing
        case .togglePaused: player.status = player.status == .playing ? .paused : .playing
        default: break
        }
        let changed = player != before
        if changed { player.revision += 1 }
        return .success(
            WirePlaybackReply.with {
                $0.state = player
                $0.changed = changed
            }.wireBytes)
    }
}
