import BusKit
import OwnerKit
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import DownloadsService

/// Downloads with a library, a database and a clock in memory; the test is the network.
final class DownloadsRig {
    private(set) var machine = DownloadsMachine(root: "/d")
    var now = Moment(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000), wall: Timestamp(milliseconds: 1_700_000_000_000))
    var library: [String: WireEpisode] = [:]
    /// Podcasts of it that no page names, as they have moved from one to another.
    var overlooked: Set<String> = []
    /// Podcasts of it that are not subscribed to any more.
    var unsubscribed: Set<String> = []
    var refusal: Failure?
    /// What lies where the files of episodes were put, if it is not the file.
    var found: [String: FoundFile] = [:]
    /// Nothing can be looked at.
    var isDiskOut = false
    /// A disk that hangs: looks are not answered.
    var isDiskHanging = false
    /// The folder's marker, and the podcasts' folders that are mounted; nil: nothing can be marked.
    var marker: String? = ""
    var mounts: Set<String> = []
    private(set) var unanswered: [UInt64] = []
    private(set) var records: [String: StoredRecord] = [:]
    private(set) var retained: [Topic: [UInt8]] = [:]
    private(set) var actions: [DownloadsAction] = []
    private var timers: [DownloadsMachine.Timer: MonotonicTime] = [:]
    private var replies: [RequestID: Result<WireDownloadsReply, Failure>] = [:]
    private var inbox: [DownloadsMachine.Event] = []

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

    /// A new life of the process.
    func start(root: String = "/d") {
        machine = DownloadsMachine(root: root)
        (timers, inbox, actions) = ([:], [], [])
        let stored = records.values.sorted { ($0.collection, $0.key) < ($1.collection, $1.key) }
        let effects = machine.restore(stored, now: now)
        retained = [:]
        publish(machine.retained(now: now))
        perform(effects)
        verify(machine.knownPodcasts)
        settle()
    }

    /// Tells of those podcasts that the library does not have, as the runtime does.
    private func verify(_ podcasts: Set<PodcastID>) {
        let existing = Set(library.values.map(\.podcastID))
        inbox += podcasts.sorted().filter { !existing.contains($0.text) }.map { .podcastForgotten($0) }
    }

    @discardableResult
    func send(_ fill: (inout WireDownloadsRequest) -> Void) -> Result<WireDownloadsReply, Failure>? {
        var request = WireDownloadsRequest()
        fill(&request)
        let id = RequestID.random()
        tell(.command(Command(id: id, origin: "test", payload: request.wireBytes)))
        return replies[id]
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

    func report(_ input: DownloadsInput) { tell(.input(input)) }

    func observe(_ topic: Topic, _ kind: MessageKind, _ payload: [UInt8]) {
        let header = BusHeader(kind, generation: 1, epoch: 1, sequence: 1, originSequence: 1)
        inbox.append(.observed(StreamEvent(topic: topic, header: header, payload: payload)))
        let parts = topic.parts.map(String.init)
        if kind == .delete, parts.dropLast().suffix(2) == ["feeds", "podcast"],
            let id = parts.last.flatMap({ PodcastID($0) })
        {
            verify([id])
        }
        settle()
    }

    func tell(_ event: DownloadsMachine.Event) {
        inbox.append(event)
        settle()
    }

    /// Lets time pass, and the timers with it.
    func advance(_ seconds: Double) {
        now.monotonic = now.monotonic.advanced(by: .seconds(seconds))
        now.wall = Timestamp(milliseconds: now.wall.milliseconds + Int64((seconds * 1_000).rounded()))
        for (timer, at) in timers.sorted(by: { $0.value < $1.value }) where at <= now.monotonic {
            timers[timer] = nil
            inbox.append(.timer(timer))
        }
        settle()
    }

    func reply(to request: RequestID) -> Result<WireDownloadsReply, Failure>? { replies[request] }

    /// The orders that were begun and not ended since the process started.
    var orders: [TransferOrder] { actions.compactMap { if case .start(let order) = $0 { order } else { nil } } }
    func order(_ episode: String) throws -> TransferOrder { try #require(orders.last { $0.episode == episode }) }

    /// A transfer of an episode goes on to its end.
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
        records["download/\(episode)"].flatMap { try? WireDownload(wireBytes: $0.value) }
    }

    /// What the stream shows, which must be what is stored.
    func shown(_ episode: String) -> WireDownload? {
        retained[.download(episode)].flatMap { try? WireDownload(wireBytes: $0) }
    }

    var alerts: [WireAlert] {
        retained.filter { $0.key.text.contains("/alert/") }.compactMap { try? WireAlert(wireBytes: $0.value) }
    }

    func why(_ episode: String) -> String {
        (send { $0.why.episode = episode }?.reply?.why ?? []).joined(separator: " ")
    }

    private func settle() {
        while !inbox.isEmpty { perform(machine.handle(inbox.removeFirst(), now: now)) }
    }

    private func perform(_ effects: [DownloadsMachine.Effect]) {
        for effect in effects {
            switch effect {
            case .commit(let transaction): conclude(transaction)
            case .publish(let publications): publish(publications)
            case .reply(let request, let result): reply(request, result)
            case .call(let call): look(call)
            case .timer(let timer, let at): timers[timer] = at
            case .perform(let action):
                actions.append(action)
                if case .checkFiles(let number, let paths) = action { answer(number, paths) }
                if case .mark(let id) = action { mark(id) }
            case .log: break
            }
        }
    }

    /// The folder as it is seen now.
    var snapshot: FolderSnapshot { FolderSnapshot(marker: marker ?? "", mounts: mounts) }

    private func answer(_ number: UInt64, _ paths: [String: String]) {
        guard !isDiskHanging else {
            unanswered.append(number)
            return
        }
        inbox.append(.input(.filesChecked(number, paths.reduce(into: [:]) { $0[$1.key] = lies($1.key) }, snapshot)))
    }

    private func mark(_ id: String) {
        guard marker != nil else {
            inbox.append(.input(.markFailed(Failure(.storageFailed, "read-only"))))
            return
        }
        marker = id
        inbox.append(.input(.marked(id)))
    }

    private func lies(_ episode: String) -> FoundFile? {
        isDiskOut ? nil : found[episode] ?? .file(machine.store.current.downloads[episode]?.totalBytes ?? 0)
    }

    private func conclude(_ transaction: DownloadsMachine.Transaction) {
        if let refusal {
            inbox.append(.refused(transaction.step, refusal))
            if let answer = transaction.answer { reply(answer.request, .failure(refusal)) }
            return
        }
        for change in transaction.changes {
            switch change.change {
            case .put(let record)?:
                records["\(record.collection)/\(record.key)"] = StoredRecord(
                    collection: record.collection, key: record.key, value: Array(record.value))
            case .delete(let key)?: records["\(key.collection)/\(key.key)"] = nil
            default: Issue.record("a change that downloads never makes: \(change)")
            }
        }
        publish(transaction.publications)
        if let answer = transaction.answer { reply(answer.request, .success(answer.reply)) }
        inbox.append(.committed(transaction.step))
    }

    private func publish(_ publications: [Publication]) {
        for publication in publications {
            #expect(publication.topic.isPublishable(by: .downloads, kind: publication.kind))
            switch publication.kind {
            case .put: retained[publication.topic] = publication.payload
            case .delete: retained[publication.topic] = nil
            default: break
            }
        }
    }

    private func reply(_ request: RequestID, _ result: Result<[UInt8], Failure>) {
        #expect(replies[request] == nil, "a request is answered once")
        replies[request] = result.flatMap { bytes in
            Result { try WireDownloadsReply(wireBytes: bytes) }.mapError { Failure(.malformed, "\($0)") }
        }
    }

    private func look(_ call: DownloadsMachine.Call) {
        guard let request = try? WirePersistenceRequest(wireBytes: call.payload) else { return }
        var reply = WirePersistenceReply()
        switch request.command {
        case .episodes(let query)?:
            let all = library.values.filter { $0.podcastID == query.podcast }.sorted { $0.id > $1.id }
            reply.episodes.episodes = Array(all.prefix(Int(query.limit)))
        case .podcasts(let query)?:
            let there = Set(library.values.map(\.podcastID)).subtracting(query.includeUnsubscribed ? [] : unsubscribed)
            reply.podcasts.podcasts = there.sorted().map { id in
                var podcast = WirePodcast()
                podcast.id = id
                podcast.subscribed = !unsubscribed.contains(id)
                return podcast
            }
            reply.podcasts.podcasts.removeAll { overlooked.contains($0.id) }
        default: reply.episodes.episodes = request.episodesByID.ids.compactMap { library[$0] }
        }
        inbox.append(.answered(call.query, .success(reply.wireBytes)))
    }
}

extension Result where Success == WireDownloadsReply, Failure == PodcastModel.Failure {
    var failure: PodcastModel.Failure? { if case .failure(let failure) = self { failure } else { nil } }
    var reply: WireDownloadsReply? { try? get() }
}
