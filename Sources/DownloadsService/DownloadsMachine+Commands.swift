import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension DownloadsMachine {
    /// Handles a command. A command about downloaded files is handled again after the files have been checked.
    mutating func handle(_ command: Command, isChecked: Bool = false, now: Moment, _ effects: inout Effects) {
        do throws(Failure) {
            guard let request = try? WireDownloadsRequest(wireBytes: command.payload) else {
                throw Failure(.malformed, "The downloads service can’t decode the request.")
            }
            try perform(request, command, isChecked, now: now, &effects)
        } catch {
            effects.append(.reply(command.id, .failure(error)))
        }
    }

    private mutating func perform(
        _ request: WireDownloadsRequest, _ command: Command, _ isChecked: Bool, now: Moment, _ effects: inout Effects
    ) throws(Failure) {
        switch request.command {
        case .add(let add)?:
            let episodes = try Self.valid(add.episodes)
            if !isChecked, files.check(episodes, for: command, store.current, now: now, &effects) { return }
            let unknown = episodes.filter { store.current.downloads[$0] == nil }
            guard unknown.isEmpty else { return lookUp(unknown, .add(command, episodes), &effects) }
            try self.add(episodes, knowing: [:], command, now: now, &effects)
        case .pause(let pause)?:
            let episodes = try Self.valid(pause.episodes)
            let active = episodes.filter { store.current.downloads[$0]?.state == .downloading }
            try update(episodes, command, now: now, &effects) { download throws(Failure) in
                if download.state == .paused { return }
                try Self.require(download, [.queued, .downloading], "paused")
                download.state = .paused
            }
            // The feeds may have new addresses for the files.
            refresh(active, &effects)
        case .resume(let resume)?:
            try update(Self.valid(resume.episodes), command, now: now, &effects) { download throws(Failure) in
                if download.state == .queued || download.state == .downloading { return }
                try Self.require(download, [.paused, .failed], "resumed")
                download.begin(requestedBy: command.origin, at: now.wall)
            }
        case .cancel(let cancel)?:
            try end(cancel.episodes, [.queued, .downloading, .paused], "cancelled", command, now: now, &effects)
        case .remove(let remove)?:
            try end(remove.episodes, [.downloaded, .failed], "removed", command, now: now, &effects)
        case .why(let query)?:
            guard store.current.downloads[query.episode] != nil || store.current.past[query.episode] != nil else {
                return lookUp([query.episode], .why(command), &effects)
            }
            if !isChecked, files.check([query.episode], for: command, store.current, now: now, &effects) { return }
            Self.explain(why(query.episode, now: now), to: command, &effects)
        case .setSetting(let setting)?: try set(setting, command, now: now, &effects)
        case .answerAlert(let answer)?: try self.answer(answer, command, now: now, &effects)
        case nil: throw Failure(.unknownCommand, "This version of the downloads service doesn’t support the command.")
        }
    }

    private static func valid(_ episodes: [String]) throws(Failure) -> [String] {
        guard !episodes.isEmpty else { throw Failure(.invalidArgument, "Specify at least one episode.") }
        guard episodes.count <= RequestSizes.episodes else {
            throw Failure(
                .limitReached, "At most \(RequestSizes.episodes) episodes can be named at once; split the request.")
        }
        if let bad = episodes.first(where: { EpisodeID($0) == nil }) {
            throw Failure(.invalidArgument, "“\(bad)” isn’t a valid episode ID.")
        }
        var seen: Set<String> = []
        return episodes.filter { seen.insert($0).inserted }
    }

    private static func require(
        _ download: WireDownload, _ states: [WireDownload.State], _ action: String
    ) throws(Failure) {
        guard states.contains(download.state) else {
            let state = download.state == .failed ? "has failed" : "is \(download.state.word)"
            throw Failure(
                .notApplicable, "“\(download.title)” \(state) and can’t be \(action); \(advice(download, states)).")
        }
    }

    private static func advice(_ download: WireDownload, _ states: [WireDownload.State]) -> String {
        let isOver = download.state == .failed || download.state == .downloaded
        if isOver, states.contains(.paused), !states.contains(.failed) {
            return "`lockstep download remove` removes it"
        }
        if !isOver, states.contains(.downloaded) { return "`lockstep download cancel` cancels it" }
        return "nothing was changed"
    }

    // MARK: Adding

    /// Adds all episodes, or none if one of them has no download and isn’t in the library.
    mutating func add(
        _ episodes: [String], knowing found: [String: WireEpisode], _ command: Command, now: Moment,
        _ effects: inout Effects
    ) throws(Failure) {
        var change = change(now)
        var reply = WireDownloadsReply()
        for episode in episodes {
            let known = store.current.downloads[episode]
            var download = if let known { known } else { try WireDownload(of: found[episode], episode) }
            let isNew = [.notDownloaded, .paused, .failed].contains(download.state)
            if isNew {
                if download.state == .notDownloaded { change.forgetPast(episode) }
                download.begin(requestedBy: command.origin, at: now.wall)
                change.putResolved(download)
            }
            let isBegunNow = !isNew && download.beginNow(for: command.origin, at: now.wall)
            if isBegunNow { change.put(download) }
            reply.downloads.append(download)
            reply.changed.append(isNew || isBegunNow)
        }
        commit(change, answering: (command.id, reply.wireBytes), &effects)
    }

    // MARK: Changing

    /// Ends downloads in these states. Episodes without a download aren’t changed.
    private mutating func end(
        _ episodes: [String], _ states: [WireDownload.State], _ action: String, _ command: Command, now: Moment,
        _ effects: inout Effects
    ) throws(Failure) {
        try update(Self.valid(episodes), command, isEnding: true, now: now, &effects) { download throws(Failure) in
            try Self.require(download, states, action)
            download.state = .notDownloaded
        }
    }

    private mutating func update(
        _ episodes: [String], _ command: Command, isEnding: Bool = false, now: Moment, _ effects: inout Effects,
        _ action: (inout WireDownload) throws(Failure) -> Void
    ) throws(Failure) {
        let unknown = isEnding ? [] : episodes.filter { store.current.downloads[$0] == nil }
        guard unknown.isEmpty else { return lookUp(unknown, .titles(command, unknown), &effects) }
        var change = change(now)
        var reply = WireDownloadsReply()
        for episode in episodes {
            var download = WireDownload()
            download.episode = episode
            let before = store.current.downloads[episode]
            if let before {
                download = before
                try action(&download)
            }
            if let before, download.state == .notDownloaded {
                let action = before.state == .downloaded ? "removed" : "cancelled"
                change.remove(before, "\(action) \(CommandOrigin(command.origin).phrase)")
            } else if let before, download != before {
                change.putResolved(download)
            }
            reply.downloads.append(download)
            reply.changed.append(before != nil && download != before)
        }
        commit(change, answering: (command.id, reply.wireBytes), &effects)
    }

    private mutating func set(
        _ setting: WireSetSetting, _ command: Command, now: Moment, _ effects: inout Effects
    ) throws(Failure) {
        var change = change(now)
        let isChanged = try change.set(setting)
        if setting.key == SettingKey.autoDownload.rawValue { AutoDownload.cancelQueued(&change) }
        var reply = WireDownloadsReply()
        reply.setting = change.store.settings.reply(to: setting, changed: isChanged)
        commit(change, answering: (command.id, reply.wireBytes), &effects)
        guard isChanged else { return }
        if setting.key == SettingKey.bandwidthLimit.rawValue { effects.append(.perform(limitAction)) }
        if setting.podcast.isEmpty { lookUpPodcasts(&effects) } else { lookUpNewest(of: setting.podcast, &effects) }
        effects.append(.perform(.checkNetwork))
        rules.applySoon(now: now, &effects)
    }

    private mutating func answer(
        _ answer: WireAnswerAlert, _ command: Command, now: Moment, _ effects: inout Effects
    ) throws(Failure) {
        let alert = store.current.alerts.active[answer.alert]
        var change = change(now)
        let isFirst = try change.answer(answer)
        var reply = WireDownloadsReply()
        reply.alertAnswered = answer.answered(changed: isFirst)
        if isFirst, answer.action == "retry", let episode = alert?.episode,
            var download = store.current.downloads[episode], download.state == .failed
        {
            download.begin(requestedBy: command.origin, at: now.wall)
            change.put(download)
        }
        let isAccepted = isFirst && answer.action == "accept"
        if isAccepted { files.folder.accept(&change) }
        commit(change, answering: (command.id, reply.wireBytes), &effects)
        if isAccepted { files.recheck(store.current, now: now, &effects) }
    }

    // MARK: Explaining

    static func explain(_ sentences: [String], to command: Command, _ effects: inout Effects) {
        var reply = WireDownloadsReply()
        reply.why = sentences
        effects.append(.reply(command.id, .success(reply.wireBytes)))
    }

    /// Explains why an episode was never downloaded; nil if it isn’t in the library.
    static func neverRequested(_ episode: WireEpisode?) -> String {
        if let episode {
            if episode.enclosureURL.isEmpty { return "It has no audio to download." }
            if WebAddress(episode.enclosureURL)?.isFile ?? false {
                return "It is a file on this machine; there is nothing to download."
            }
        }
        return "It was never downloaded: no client and no rule has requested it."
    }

    /// Explains in sentences why an episode is downloaded or not.
    func why(_ episode: String, now: Moment) -> [String] {
        guard let download = store.current.downloads[episode] else {
            guard let past = store.current.past[episode] else { return [Self.neverRequested(nil)] }
            let state = past.unfinished ? "It is not downloaded; its download was" : "It is no longer downloaded:"
            return ["\(state) \(past.reason)."]
        }
        let state = download.state == .queued ? "to be downloaded" : download.state.word
        var sentences = ["It is \(state): \(download.reason)."]
        let request = download.automatic ? "wanted \(download.reason)" : download.reason
        switch download.state {
        case .paused: sentences = ["Its download is paused.", "It was \(request)."]
        case .failed:
            sentences = ["Its download failed: \(download.error.message)", "It was \(request)."]
        case .queued:
            let wait = max(0, (download.nextAttempt - now.wall.milliseconds) / 1_000)
            if !download.waitsFor.isEmpty {
                sentences.append("It waits for \(download.waitsFor)\(download.waitsFor.hasSuffix(".") ? "" : ".")")
            }
            if wait > 0 { sentences.append("The next attempt is in \(wait) s.") }
            if download.waitsFor.isEmpty, wait == 0 { sentences.append("It’s waiting for other downloads to finish.") }
        case .downloaded:
            if files.missingFolder(of: download, in: store.current) != nil {
                sentences.append("Its file can’t be reached; check that its disk is mounted.")
            }
            sentences += rules.reasons(for: download, in: store.current)
        default: break
        }
        if !download.note.isEmpty, download.state != .downloading { sentences.append(download.note) }
        return sentences
    }
}
