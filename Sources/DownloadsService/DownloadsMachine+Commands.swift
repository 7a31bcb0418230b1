import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension DownloadsMachine {
    mutating func take(_ command: Command, now: Moment) -> [Effect] {
        do throws(Failure) {
            guard let request = try? WireDownloadsRequest(wireBytes: command.payload) else {
                throw Failure(.malformed, "The request to the downloads service can’t be read.")
            }
            switch request.command {
            case .add(let add)?: return try self.add(Self.named(add.episodes), command, now: now)
            case .pause(let pause)?:
                let paused = try Self.named(pause.episodes)
                let coming = paused.filter { book.current.downloads[$0]?.state == .downloading }
                let effects = try alter(paused, command, now: now) { download throws(Failure) in
                    if download.state == .paused { return }
                    try Self.require(download, [.queued, .downloading], "paused")
                    download.state = .paused
                }
                // Their feeds may have moved them while they came.
                return effects + askAgain(coming)
            case .resume(let resume)?:
                return try alter(Self.named(resume.episodes), command, now: now) { download throws(Failure) in
                    if download.state == .queued || download.state == .downloading { return }
                    try Self.require(download, [.paused, .failed], "resumed")
                    download.begin(wishedBy: command.origin, at: now.wall)
                }
            case .cancel(let cancel)?:
                return try alter(Self.named(cancel.episodes), command, isEnding: true, now: now) {
                    download throws(Failure) in
                    try Self.require(download, [.queued, .downloading, .paused], "cancelled")
                    download.state = .notDownloaded
                }
            case .remove(let remove)?:
                return try alter(Self.named(remove.episodes), command, isEnding: true, now: now) {
                    download throws(Failure) in
                    try Self.require(download, [.downloaded, .failed], "removed")
                    download.state = .notDownloaded
                }
            case .why(let query)?:
                guard isKnown(query.episode) else {
                    return [call(.why(command), episodes: [query.episode])]
                }
                // What somebody asks about is looked at before it is told.
                return look(at: [query.episode], for: .why(command, query.episode), now: now)
                    ?? Self.explain(why(query.episode, now: now), to: command)
            case .setSetting(let setting)?: return try set(setting, command, now: now)
            case .answerAlert(let answer)?: return try self.answer(answer, command, now: now)
            case nil: throw Failure(.unknownCommand, "The downloads service doesn’t know this command.")
            }
        } catch {
            return [.reply(command.id, .failure(error))]
        }
    }

    /// Answers why an episode's file is there, or is not.
    static func explain(_ sentences: [String], to command: Command) -> [Effect] {
        var reply = WireDownloadsReply()
        reply.why = sentences
        return [.reply(command.id, .success(reply.wireBytes))]
    }

    private static func named(_ episodes: [String]) throws(Failure) -> [String] {
        guard !episodes.isEmpty else { throw Failure(.invalidArgument, "No episode was named.") }
        guard episodes.count <= RequestSizes.episodes else {
            throw Failure(
                .limitReached, "At most \(RequestSizes.episodes) episodes can be named at once; use several steps.")
        }
        if let bad = episodes.first(where: { EpisodeID($0) == nil }) {
            throw Failure(.invalidArgument, "“\(bad)” isn’t a valid episode ID.")
        }
        var seen: Set<String> = []
        return episodes.filter { seen.insert($0).inserted }
    }

    private static func require(
        _ download: WireDownload, _ states: [WireDownload.State], _ deed: String
    ) throws(Failure) {
        guard states.contains(download.state) else {
            let state = download.state == .failed ? "has failed" : "is \(download.state.word)"
            throw Failure(
                .invalidArgument, "“\(download.title)” \(state) and cannot be \(deed); \(advice(download, states)).")
        }
    }

    /// What can be done instead.
    private static func advice(_ download: WireDownload, _ states: [WireDownload.State]) -> String {
        let isOver = download.state == .failed || download.state == .downloaded
        if isOver, states.contains(.paused), !states.contains(.failed) { return "remove it instead" }
        if !isOver, states.contains(.downloaded) { return "cancel it instead" }
        return "nothing was done"
    }

    // MARK: Adding

    /// Adds episodes; the files of those that are downloaded are looked at before.
    private mutating func add(_ episodes: [String], _ command: Command, now: Moment) throws(Failure) -> [Effect] {
        if let looking = look(at: episodes, for: .add(command, episodes), now: now) { return looking }
        return try addKnown(episodes, command, now: now)
    }

    /// Adds episodes of which it is known whether their files are there.
    mutating func addKnown(_ episodes: [String], _ command: Command, now: Moment) throws(Failure) -> [Effect] {
        let unknown = episodes.filter { book.current.downloads[$0] == nil }
        guard unknown.isEmpty else { return [call(.add(command, episodes), episodes: unknown)] }
        return try add(episodes, knowing: [:], command, now: now)
    }

    /// Adds episodes that are known to the library, or all or none.
    mutating func add(
        _ episodes: [String], knowing found: [String: WireEpisode], _ command: Command, now: Moment
    ) throws(Failure) -> [Effect] {
        var change = change
        var reply = WireDownloadsReply()
        for episode in episodes {
            var download = WireDownload()
            if let known = book.current.downloads[episode] {
                download = known
            } else {
                download = try Self.download(of: found[episode], episode)
            }
            let isNew = [.notDownloaded, .paused, .failed].contains(download.state)
            if isNew {
                if download.state == .notDownloaded { change.forgetPast(episode) }
                download.begin(wishedBy: command.origin, at: now.wall)
                change.put(download)
                change.endAlerts { $0.episode == episode }
            }
            let isHastened = !isNew && hasten(&download, command, now: now)
            if isHastened { change.put(download) }
            reply.downloads.append(download)
            reply.changed.append(isNew || isHastened)
        }
        return commit(change, answering: (command.id, reply.wireBytes))
    }

    /// What a rule has asked for waits for its hour, and what has failed for its next try; a wish does not.
    private func hasten(_ download: inout WireDownload, _ command: Command, now: Moment) -> Bool {
        let waits = download.state == .queued && (!download.waitsFor.isEmpty || download.nextAttempt > 0)
        let isOnTheWay = download.state == .queued || download.state == .downloading
        guard waits || isOnTheWay && download.automatic else { return false }
        if waits { download.begin() }
        download.wish(by: command.origin, at: now.wall)
        return true
    }

    /// A download of an episode as the library has it, not wanted yet.
    static func download(of episode: WireEpisode?, _ id: String) throws(Failure) -> WireDownload {
        guard let episode else { throw Failure(.notFound, "There is no episode “\(id)”; nothing was added.") }
        guard !episode.enclosureURL.isEmpty else {
            throw Failure(.episodeUnavailable, "“\(episode.title)” has no audio that could be downloaded.")
        }
        guard let address = WebAddress(episode.enclosureURL) else { throw .unusableAddress(episode.enclosureURL) }
        guard !address.isFile else {
            throw Failure(.badURL, "“\(episode.title)” is a file on this machine; there is nothing to download.")
        }
        var download = WireDownload()
        download.episode = id
        download.title = episode.title
        download.podcastID = episode.podcastID
        download.podcastTitle = episode.podcastTitle
        download.url = episode.enclosureURL
        download.contentType = episode.enclosureType
        download.announcedBytes = episode.enclosureLength
        download.published = episode.published == 0 ? episode.firstSeen : episode.published
        return download
    }

    // MARK: Changing

    private mutating func alter(
        _ episodes: [String], _ command: Command, isEnding: Bool = false, now: Moment,
        _ deed: (inout WireDownload) throws(Failure) -> Void
    ) throws(Failure) -> [Effect] {
        // To end what has ended, or never was, changes nothing.
        let unknown = isEnding ? [] : episodes.filter { book.current.downloads[$0] == nil }
        guard unknown.isEmpty else { return [call(.titles(command, unknown), episodes: unknown)] }
        var change = change
        var reply = WireDownloadsReply()
        for episode in episodes {
            guard let before = book.current.downloads[episode] else {
                var none = WireDownload()
                none.episode = episode
                reply.downloads.append(none)
                reply.changed.append(false)
                continue
            }
            var download = before
            try deed(&download)
            if download.state == .notDownloaded {
                let deed = before.state == .downloaded ? "removed" : "given up"
                leave(before, "\(deed) \(CommandOrigin(command.origin).phrase)", &change, now: now)
            } else if download != before {
                change.put(download)
                change.endAlerts { $0.episode == episode }
            }
            reply.downloads.append(download)
            reply.changed.append(download != before)
        }
        return commit(change, answering: (command.id, reply.wireBytes))
    }

    /// Why nothing can be done to the first of these episodes, which nobody has asked for.
    static func notWanted(_ episodes: [String], _ found: [WireEpisode]) -> Failure {
        let first = episodes.first ?? ""
        guard let episode = found.first(where: { $0.id == first }) else {
            return Failure(.notFound, "There is no episode “\(first)”; nothing was done.")
        }
        return Failure(
            .notFound, "“\(episode.title)” is not downloaded, nor waits to be; nothing was done.")
    }

    /// A download ends, and its file, or what has come of it, is deleted once that is durable.
    func leave(_ download: WireDownload, _ reason: String, _ change: inout BookChange, now: Moment) {
        let isWhole = download.state == .downloaded
        let path = isWhole ? relative(download.path) ?? "" : ""
        change.note(download.episode, reason, path: path, isUnfinished: !isWhole, at: now.wall)
        var gone = download
        gone.state = .notDownloaded
        change.put(gone)
        change.endAlerts { $0.episode == download.episode }
        change.actions.append(
            path.isEmpty
                ? .discard(episode: download.episode)
                : .delete(episode: download.episode, path: path, folder: book.current.folder.marker))
    }

    private mutating func set(
        _ setting: WireSetSetting, _ command: Command, now: Moment
    ) throws(Failure) -> [Effect] {
        var change = change
        let isChanged = try change.set(setting)
        if setting.key == SettingKey.autoDownload.rawValue { withdraw(&change) }
        var reply = WireDownloadsReply()
        reply.setting = change.book.settings.reply(to: setting, changed: isChanged)
        var effects = commit(change, answering: (command.id, reply.wireBytes))
        guard isChanged else { return effects }
        if setting.key == SettingKey.bandwidthLimit.rawValue { effects.append(.perform(limitAction)) }
        effects += setting.podcast.isEmpty ? [askPodcasts()] : askNewest(of: setting.podcast)
        return effects + [.perform(.lookAround)] + retainSoon(now: now)
    }

    /// What waits because of a rule that holds no more is not wanted any more; if it is set again, it is.
    private func withdraw(_ change: inout BookChange) {
        let settings = change.book.settings
        for download in change.book.downloads.values.sorted(by: { $0.episode < $1.episode })
        where download.automatic && download.state == .queued
            && settings.number(.autoDownload, podcast: download.podcastID) == 0
        {
            var gone = download
            gone.state = .notDownloaded
            change.put(gone)
            change.actions.append(.discard(episode: download.episode))
        }
    }

    // MARK: Alerts

    private mutating func answer(_ answer: WireAnswerAlert, _ command: Command, now: Moment) throws(Failure) -> [Effect]
    {
        let waiting = book.current.alerts.standing[answer.alert]
        var change = change
        let answered = try change.answer(answer, at: now.wall) ? waiting : nil
        var reply = WireDownloadsReply()
        reply.alertAnswered = answer.answered(changed: answered != nil)
        guard let alert = answered else { return [.reply(command.id, .success(reply.wireBytes))] }
        if answer.action == "retry", var download = book.current.downloads[alert.episode], download.state == .failed {
            download.begin(wishedBy: command.origin, at: now.wall)
            change.put(download)
        }
        guard answer.action == "accept" else { return commit(change, answering: (command.id, reply.wireBytes)) }
        acceptFolder(&change)
        return commit(change, answering: (command.id, reply.wireBytes)) + review(now: now)
    }
}

extension WireDownload {
    /// Files with greater values are kept first by `keepDownloads`: episodes published later, but what somebody has asked
    /// for counts as new as the request, so that asking for an old episode doesn’t delete it at once.
    var retentionOrder: (Int64, String) {
        (automatic ? published : max(published, requestedAt), episode)
    }

    /// Somebody asks for it, perhaps anew: it is no rule's any more.
    mutating func wish(by origin: String, at time: Timestamp) {
        requestedAt = time.milliseconds
        automatic = false
        reason = "asked for \(CommandOrigin(origin).phrase)"
    }

    /// It is wanted by somebody, from the first try on.
    mutating func begin(wishedBy origin: String, at time: Timestamp) {
        wish(by: origin, at: time)
        begin()
    }

    /// It is wanted, from the first try on.
    mutating func begin() {
        state = .queued
        attempt = 0
        nextAttempt = 0
        waitsFor = ""
        clearError()
    }
}

extension WireDownload.State {
    /// The word for the state, for sentences.
    var word: String {
        switch self {
        case .queued: "waiting"
        case .downloading: "being downloaded"
        case .paused: "paused"
        case .downloaded: "downloaded"
        case .failed: "failed"
        case .notDownloaded, .UNRECOGNIZED: "not downloaded"
        }
    }
}
