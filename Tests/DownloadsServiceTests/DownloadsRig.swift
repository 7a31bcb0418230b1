import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import DownloadsService

/// Downloads with a library, a database and a clock in memory; the test simulates the network.
final class DownloadsRig: OwnerRig {
    typealias Request = WireDownloadsRequest
    typealias Reply = WireDownloadsReply

    let owner = OwnerHarness(DownloadsMachine(root: "/d")) { Issue.record("\($0)") }
    var library: [String: WireEpisode] = [:]
    /// Podcasts of the library that no page contains, because they moved between two pages.
    var overlooked: Set<String> = []
    /// Podcasts of the library that are unsubscribed.
    var unsubscribed: Set<String> = []
    /// The results of file checks by episode; without an entry, the downloaded file is found.
    var found: [String: FoundFile] = [:]
    /// Whether the disk is unreadable.
    var isDiskOut = false
    /// Whether the disk hangs: file checks report no result.
    var isDiskHanging = false
    /// The folder’s marker (nil if it can’t be written), and the podcasts’ folders that are mounted.
    var marker: String? = ""
    var mounts: Set<String> = []
    private(set) var unanswered: [UInt64] = []
    private(set) var actions: [DownloadsAction] = []

    init(episodes: Int = 5) {
        for number in 1...episodes {
            var episode = WireEpisode()
            episode.id = "e\(number)"
            episode.title = "Part \(number)"
            episode.podcastID = "p1"
            episode.podcastTitle = "Show"
            episode.enclosureURL = "http://host\(number % 2)/\(number).mp3"
            library[episode.id] = episode
        }
        start()
    }

    /// Starts a new process.
    func start(root: String = "/d") {
        actions = []
        restart(DownloadsMachine(root: root))
        verify(machine.knownPodcasts)
    }

    /// Reports the podcasts that are missing in the library, as the shell does.
    private func verify(_ podcasts: Set<PodcastID>) {
        let existing = Set(library.values.map(\.podcastID))
        for podcast in podcasts.sorted() where !existing.contains(podcast.text) { handle(.podcastForgotten(podcast)) }
    }

    @discardableResult
    func add(_ episodes: String...) -> Result<WireDownloadsReply, Failure>? { send { $0.add.episodes = episodes } }

    @discardableResult
    func set(_ key: SettingKey, _ value: String, podcast: String = "") -> Result<WireDownloadsReply, Failure>? {
        send {
            $0.setSetting.key = key.rawValue
            $0.setSetting.value = value
            $0.setSetting.podcast = podcast
        }
    }

    func observe(_ topic: Topic, _ kind: MessageKind, _ payload: [UInt8]) {
        observe(kind, topic, payload)
        let parts = topic.parts.map(String.init)
        if kind == .delete, parts.dropLast().suffix(2) == ["feeds", "podcast"],
            let id = parts.last.flatMap({ PodcastID($0) })
        {
            verify([id])
        }
    }

    /// Advances the clocks and fires due timers.
    func advance(_ seconds: Double) { advance(by: .seconds(seconds)) }

    /// The transfers that were started since the process started.
    var orders: [TransferOrder] { actions.compactMap { if case .start(let order) = $0 { order } else { nil } } }
    func order(_ episode: String) throws -> TransferOrder { try #require(orders.last { $0.episode == episode }) }

    /// Completes the transfer of an episode.
    func complete(_ episode: String, bytes: UInt64 = 1_000, etag: String = "\"a\"") throws {
        let number = try order(episode).number
        begin(number, bytes: bytes, etag: etag)
        report(.completed(number, bytes: bytes))
    }

    func begin(_ number: UInt64, bytes: UInt64 = 1_000, offset: UInt64 = 0, etag: String = "\"a\"") {
        report(
            .began(
                number,
                TransferStart(
                    total: bytes, offset: offset, version: FileVersion(etag: etag, lastModified: ""),
                    contentType: "audio/mpeg")))
    }

    func state(_ episode: String) -> WireDownload.State { stored(episode)?.state ?? .notDownloaded }

    func stored(_ episode: String) -> WireDownload? {
        records["download"]?[episode].flatMap { try? WireDownload(wireBytes: $0) }
    }

    /// The retained value of a download, which must equal the stored one.
    func shown(_ episode: String) -> WireDownload? {
        retained[.download(episode)].flatMap { try? WireDownload(wireBytes: $0) }
    }

    func why(_ episode: String) -> String {
        (send { $0.why.episode = episode }?.reply?.why ?? []).joined(separator: " ")
    }

    func perform(_ action: DownloadsAction) {
        actions.append(action)
        if case .checkFiles(let number, let paths) = action { answer(number, paths) }
        if case .mark(let id) = action { mark(id) }
    }

    /// The folder’s current snapshot.
    var snapshot: FolderSnapshot { FolderSnapshot(marker: marker ?? "", mounts: mounts) }

    private func answer(_ number: UInt64, _ paths: [String: String]) {
        guard !isDiskHanging else {
            unanswered.append(number)
            return
        }
        owner.enqueue(.input(.filesChecked(number, paths.reduce(into: [:]) { $0[$1.key] = lies($1.key) }, snapshot)))
    }

    private func mark(_ id: String) {
        guard marker != nil else {
            owner.enqueue(.input(.markFailed(Failure(.storageFailed, "read-only"))))
            return
        }
        marker = id
        owner.enqueue(.input(.marked(id)))
    }

    private func lies(_ episode: String) -> FoundFile? {
        isDiskOut ? nil : found[episode] ?? .file(machine.store.current.downloads[episode]?.totalBytes ?? 0)
    }

    func apply(_ changes: [WireChange]) {
        for change in changes {
            switch change.change {
            case .put?, .delete?: break
            default: Issue.record("a change that downloads never makes: \(change)")
            }
        }
    }

    func answer(_ call: DownloadsMachine.Call) -> Result<[UInt8], Failure> {
        var reply = WirePersistenceReply()
        let request = try? WirePersistenceRequest(wireBytes: call.payload)
        switch request?.command {
        case .episodes(let query)?:
            let all = library.values.filter { $0.podcastID == query.podcast }.sorted { $0.id > $1.id }
            reply.episodes.episodes = Array(all.prefix(Int(query.limit)))
        case .podcasts(let query)?:
            let there = Set(library.values.map(\.podcastID)).subtracting(query.includeUnsubscribed ? [] : unsubscribed)
            reply.podcasts.podcasts = there.subtracting(overlooked).sorted().map { id in
                var podcast = WirePodcast()
                podcast.id = id
                podcast.subscribed = !unsubscribed.contains(id)
                return podcast
            }
        default: reply.episodes.episodes = request?.episodesByID.ids.compactMap { library[$0] } ?? []
        }
        return .success(reply.wireBytes)
    }
}
